"""Evaluates .dockerignore files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from intercode_sandbox.errors import DataError
from intercode_sandbox.lines import split_lines


class IgnoreRules:
    """Decides which paths of a context are ignored. The last pattern that matches a path or one of
    its parents decides; a pattern with ``!`` includes the path again."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._rules: list[tuple[bool, re.Pattern[str]]] = []
        for line in lines:
            text = line.strip()
            if not text or line.startswith("#"):
                continue
            negated = text.startswith("!")
            pattern = "/".join(p for p in text[negated:].strip().split("/") if p not in ("", "."))
            if pattern:
                self._rules.append((negated, _compile_pattern(pattern)))

    @classmethod
    def for_dockerfile(cls, dockerfile: Path, context: Path) -> IgnoreRules:
        """Return the rules of NAME.dockerignore next to the Dockerfile, else of .dockerignore."""
        for path in (
            dockerfile.with_name(f"{dockerfile.name}.dockerignore"),
            context / ".dockerignore",
        ):
            if path.is_file():
                return cls(split_lines(path.read_text("utf-8", "surrogateescape")))
        return cls(())

    def __call__(self, path: str) -> bool:
        """Return whether a path relative to the context is ignored."""
        parts = path.split("/")
        above = ["/".join(parts[: i + 1]) for i in range(len(parts))]
        out = False
        for negated, rule in self._rules:
            if out == negated and any(rule.fullmatch(name) for name in above):
                out = not negated
        return out


def _compile_pattern(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(_pattern_regex(pattern))
    except re.error as e:
        raise DataError(f"{pattern!r} is not a valid pattern: {e}") from e


def _pattern_regex(pattern: str) -> str:
    """Return the regular expression of a pattern. ``**`` matches any directories, ``*`` and ``?``
    match characters within a name."""
    out, at = "", 0
    while at < len(pattern):
        sign = pattern[at]
        if pattern.startswith("**/", at):
            out, at = out + "(?:.*/)?", at + 3
        elif pattern.startswith("**", at):
            out, at = out + ".*", at + 2
        elif sign == "[" and (end := pattern.find("]", at + 2)) > 0:
            inside = pattern[at + 1 : end].replace("\\", "\\\\")
            out, at = out + f"[{inside}]", end + 1
        elif sign == "\\" and at + 1 < len(pattern):
            out, at = out + re.escape(pattern[at + 1]), at + 2
        else:
            out += {"*": "[^/]*", "?": "[^/]"}.get(sign, re.escape(sign))
            at += 1
    return out


def match_names(pattern: str, names: Iterable[str]) -> list[str]:
    """Return the names that match a pattern with ``*``, ``?`` and ``[…]``, sorted."""
    rule = _compile_pattern(pattern.replace("**", "*"))
    return sorted(name for name in names if rule.fullmatch(name))


def has_wildcard(text: str) -> bool:
    """Return whether a path contains a wildcard."""
    return any(sign in text for sign in "*?[")
