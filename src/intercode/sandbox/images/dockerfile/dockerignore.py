"""What a .dockerignore file keeps out of the context."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from intercode.core.errors import DataError


class IgnoreRules:
    """Tells which paths of a context are left out. The last pattern that fits a path, or a
    directory above it, decides; one with ``!`` takes it in again."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._rules: list[tuple[bool, re.Pattern[str]]] = []
        for line in lines:
            text = line.strip()
            if not text or line.startswith("#"):
                continue
            kept = text.startswith("!")
            pattern = "/".join(p for p in text[kept:].strip().split("/") if p not in ("", "."))
            if pattern:
                self._rules.append((kept, _compile_pattern(pattern)))

    @classmethod
    def for_dockerfile(cls, dockerfile: Path, context: Path) -> IgnoreRules:
        """The rules of ``Dockerfile.dockerignore`` beside the Dockerfile, else of the context."""
        for path in (
            dockerfile.with_name(f"{dockerfile.name}.dockerignore"), context / ".dockerignore"
        ):  # fmt: skip
            if path.is_file():
                return cls(path.read_text("utf-8", "surrogateescape").splitlines())
        return cls(())

    def __call__(self, path: str) -> bool:
        """Whether a path relative to the context is left out."""
        parts = path.split("/")
        above = ["/".join(parts[: i + 1]) for i in range(len(parts))]
        out = False
        for kept, rule in self._rules:
            if out == kept and any(rule.fullmatch(name) for name in above):
                out = not kept
        return out


def _compile_pattern(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(_pattern_regex(pattern))
    except re.error as e:
        raise DataError(f"{pattern!r} is no pattern for names: {e}") from e


def _pattern_regex(pattern: str) -> str:
    """``**`` stands for any directories, ``*`` and ``?`` for signs within a name."""
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
    """The names that a pattern with ``*``, ``?`` and ``[…]`` fits, sorted."""
    rule = _compile_pattern(pattern.replace("**", "*"))
    return sorted(name for name in names if rule.fullmatch(name))


def has_wildcard(text: str) -> bool:
    """Whether a path holds a sign that stands for others."""
    return any(sign in text for sign in "*?[")
