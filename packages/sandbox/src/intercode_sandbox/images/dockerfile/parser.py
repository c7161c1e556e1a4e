"""Parses Dockerfiles into instructions: continued lines, comments, flags and here-documents."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from intercode_sandbox.errors import DataError
from intercode_sandbox.lines import split_lines
from intercode_sandbox.registry import unknown_name_error

INSTRUCTIONS = (
    "ADD",
    "ARG",
    "CMD",
    "COPY",
    "ENTRYPOINT",
    "ENV",
    "EXPOSE",
    "FROM",
    "HEALTHCHECK",
    "LABEL",
    "MAINTAINER",
    "ONBUILD",
    "RUN",
    "SHELL",
    "STOPSIGNAL",
    "USER",
    "VOLUME",
    "WORKDIR",
)
_WITH_DOCUMENTS = ("RUN", "COPY", "ADD")
_DIRECTIVE = re.compile(r"#\s*(\w+)\s*=\s*(\S+)\s*$")
_FLAG = re.compile(r"--([a-z-]+)(?:=(\S+))?(?:\s+|$)")
_DOCUMENT = re.compile(r"(?<!<)(?<!\S)<<(-?)(\"\w+\"|'\w+'|\w+)")


@dataclass(frozen=True, slots=True)
class HereDocument:
    """A here-document. ``quoted``: its delimiter is quoted, so variables are not expanded."""

    name: str
    text: str
    quoted: bool


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: its name in upper case, its text without flags, its first line, its flags
    and here-documents."""

    name: str
    text: str
    line: int
    flags: tuple[tuple[str, str], ...] = ()
    documents: tuple[HereDocument, ...] = ()

    def exec_form(self) -> list[str] | None:
        """Return the arguments in exec form (a JSON list), or None for another form."""
        if not self.text.startswith("["):
            return None
        try:
            found = json.loads(self.text)
        except ValueError:
            return None
        return found if isinstance(found, list) and all(isinstance(x, str) for x in found) else None


@dataclass(frozen=True, slots=True)
class Dockerfile:
    """A parsed Dockerfile. ``escape`` is the character that continues lines."""

    instructions: tuple[Instruction, ...]
    escape: str = "\\"


def parse_dockerfile(text: str, name: str = "Dockerfile") -> Dockerfile:
    """Parse the text of a Dockerfile. Messages call it ``name``.

    Raises DataError for unknown instructions, unterminated here-documents and an empty file.
    """
    lines = split_lines(text.removeprefix("\ufeff"))
    escape, at = _parse_directives(lines, name)
    found: list[Instruction] = []
    while at < len(lines):
        if not lines[at].strip() or lines[at].lstrip().startswith("#"):
            at += 1
            continue
        start, (joined, at) = at, _join_lines(lines, at, escape)
        instruction, at = _parse_instruction(joined, lines, start, at, name)
        found.append(instruction)
    if not found:
        raise DataError(f"{name} has no instruction")
    return Dockerfile(tuple(found), escape)


def _parse_directives(lines: list[str], name: str) -> tuple[str, int]:
    """Return the escape character, which a directive may set, and the index of the first line after
    the directives."""
    escape, at = "\\", 0
    while at < len(lines) and (found := _DIRECTIVE.match(lines[at].strip())):
        if found[1].lower() == "escape":
            if found[2] not in ("\\", "`"):
                raise DataError(f"{name}:{at + 1}: escape={found[2]} is neither \\ nor `")
            escape = found[2]
        at += 1
    return escape, at


def _join_lines(lines: list[str], at: int, escape: str) -> tuple[str, int]:
    """Return the line at index ``at`` joined with its continuation lines, without comments and
    empty lines between them, and the index of the next line."""
    parts: list[str] = []
    while at < len(lines):
        line = lines[at]
        at += 1
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        body = line.rstrip() if parts else line.strip()
        if body.endswith(escape):
            parts.append(body[:-1])
            continue
        parts.append(body)
        break
    return "".join(parts).strip(), at


def _parse_instruction(
    text: str, lines: list[str], start: int, at: int, file: str
) -> tuple[Instruction, int]:
    word, *more = text.split(None, 1)
    name, rest = word.upper(), more[0].strip() if more else ""
    if name not in INSTRUCTIONS:
        raise DataError(
            f"{file}:{start + 1}: {unknown_name_error('instruction', word, list(INSTRUCTIONS))}"
        )
    if not rest:
        raise DataError(f"{file}:{start + 1}: {name} needs an argument")
    flags = []
    while name in ("RUN", "COPY", "ADD", "FROM", "HEALTHCHECK") and (found := _FLAG.match(rest)):
        flags.append((found[1], found[2] or ""))
        rest = rest[found.end() :]
    documents: list[HereDocument] = []
    if name in _WITH_DOCUMENTS and not rest.startswith("["):
        for dash, mark in _DOCUMENT.findall(rest):
            document, at = _read_document(lines, at, dash, mark, f"{file}:{start + 1}")
            documents.append(document)
    return Instruction(name, rest, start + 1, tuple(flags), tuple(documents)), at


def _read_document(
    lines: list[str], at: int, dash: str, mark: str, where: str
) -> tuple[HereDocument, int]:
    name = mark.strip("\"'")
    body: list[str] = []
    while at < len(lines):
        line = lines[at].lstrip("\t") if dash else lines[at]
        at += 1
        if line == name:
            return HereDocument(name, "".join(f"{line}\n" for line in body), mark != name), at
        body.append(line)
    raise DataError(
        f"{where}: the here-document {name} is not terminated: end it with a line {name}"
    )


def strip_documents(text: str) -> str:
    """Return an instruction's text without the operators of here-documents."""
    return _DOCUMENT.sub("", text).strip()
