"""Reads the statements of a MySQL dump by lexemes, once, for every engine.

Quotations and comments end where MySQL's own client ends them. DELIMITER and SOURCE are the
client's commands; a dump can include files of its own directory.
"""

from __future__ import annotations

import hashlib
import mmap
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TextIO

from intercode_sql.errors import SqlDataError

SERVER_VERSION = 80033
"""Content of ``/*!NNNNN ... */`` counts as code for versions up to this one."""
LOAD_TIME = "2000-01-01 00:00:00"
"""What NOW() returns in a dump, so that every load of a dump is equal."""
_CHUNK = 1 << 20
"""Characters that are read at once."""
_MAX_DEPTH = 16
"""Limit of dumps that include each other."""
_BLANK = re.compile(r"\s+")
_CLIENT_COMMAND = re.compile(r"(delimiter|source|\\\.)[ \t]+([^\n]*)", re.I)
_VERSION_START = re.compile(r"/\*!(\d{5,6})?")
_LINE_COMMENT = re.compile(r"#|--(?=\s|\Z)")
_INCLUDED = re.compile(rb"\n[ \t]*(?:source|\\\.)[ \t]+([^\r\n]+)", re.I)


@dataclass(frozen=True, slots=True)
class DumpStatement:
    """A statement of a dump.

    ``source`` is its text in the file. ``code`` has no comments and holds the content of those for
    MySQL's versions; it is empty if nothing else is there. Bytes that are not UTF-8 are surrogates
    in both (``surrogateescape``).
    """

    file: Path
    line: int
    source: str
    code: str

    def error(self, reason: object) -> SqlDataError:
        """Return the error that names the file, the line and the statement."""
        excerpt = " ".join((self.code or self.source).split())[:100]
        return SqlDataError(f"{self.file}, line {self.line}: {reason} (at {excerpt!r})")


def read_statements(path: Path) -> Iterator[DumpStatement]:
    """Yield the statements of a dump and of the files that it includes. They can have any size.

    Raises SqlDataError if a file cannot be read or ends inside a quotation or a comment.
    """
    return _read_file(path, path.parent, 0)


def _read_file(path: Path, folder: Path, depth: int) -> Iterator[DumpStatement]:
    if depth > _MAX_DEPTH:
        raise SqlDataError(
            f"{path}: {_MAX_DEPTH} dumps include each other: remove the SOURCE lines"
        )
    try:
        with path.open(encoding=_encoding(path), errors="surrogateescape", newline="") as file:
            yield from _Reader(file, path, folder, depth).statements()
    except (OSError, UnicodeError) as e:
        raise SqlDataError(f"{path}: the dump cannot be read ({e})") from e


def _encoding(path: Path) -> str:
    with path.open("rb") as file:
        start = file.read(2)
    return "utf-16" if start in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"


def dump_digest(path: Path) -> str:
    """Return a digest of a dump and of the files that it includes. Raises SqlDataError for a file
    that cannot be read."""
    digest = hashlib.sha256()
    for file in _with_included(path, path.parent, 0):
        try:
            with file.open("rb") as content:
                own = hashlib.file_digest(content, "sha256")
        except OSError as e:
            raise SqlDataError(f"{file}: the dump cannot be read ({e.strerror})") from e
        if file == path:
            digest = own
        else:
            digest.update(own.digest())
    return digest.hexdigest()


def _with_included(path: Path, folder: Path, depth: int) -> Iterator[Path]:
    yield path
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            names = [m[1] for m in _INCLUDED.finditer(text)]
    except (OSError, ValueError):  # an empty file cannot be mapped
        return
    for name in names if depth < _MAX_DEPTH else ():
        found = folder / _file_name(name.decode("utf-8", "surrogateescape"))
        if found.is_file():
            yield from _with_included(found, folder, depth + 1)


def _file_name(argument: str) -> str:
    return argument.strip().rstrip(";").strip().strip("'\"")


@lru_cache(maxsize=8)
def _plain_text(delimiter: str) -> re.Pattern[str]:
    """Return the pattern of a text without comments and ends of statements. Every quotation in it
    is closed."""
    first = re.escape(delimiter[0])
    other = "" if len(delimiter) == 1 else rf"|(?!{re.escape(delimiter)}){first}"
    return re.compile(
        rf"""(?:[^'"`/\-\#*{first}]++
            |'(?:[^'\\]++|\\.)*+'|"(?:[^"\\]++|\\.)*+"|`[^`]*+`
            |/(?!\*|{first})|-(?!-\s|{first})|\*(?!/){other})*+""".replace("\n", ""),
        re.S | re.X,
    )


class _Reader:
    """Reads one file. ``_text`` is a window of it, which holds all of the current statement."""

    def __init__(self, file: TextIO, path: Path, folder: Path, depth: int) -> None:
        self._file, self._path, self._folder, self._depth = file, path, folder, depth
        self._text = ""
        self._start = 0  # position of the statement
        self._line = 1  # its line
        self._at = 0  # position up to which the text is read
        self._delimiter = ";"
        self._pieces: list[str] = []  # code of the statement up to _piece
        self._piece = 0
        self._filled = False  # whether the statement holds more than comments
        self._open = 0  # comments for versions that are not closed

    def statements(self) -> Iterator[DumpStatement]:
        """Yield the statements up to the end of the file."""
        while True:
            if not self._filled:
                if not self._skip_blanks():
                    break
                command = _CLIENT_COMMAND.match(self._text, self._at)
                if command is not None:
                    yield from self._run_command(command)
                    continue
            found = _plain_text(self._delimiter).match(self._text, self._at)
            if found is not None and found.end() > self._at:
                self._filled, self._at = True, found.end()
            if self._at == len(self._text):
                if not self._read_more():
                    break
            elif self._text.startswith(self._delimiter, self._at):
                yield from self._end_statement(len(self._delimiter))
            else:
                self._read_special()
        if self._open:
            raise self._unclosed("a comment /*! ... */", self._start)
        yield from self._end_statement(0)

    def _skip_blanks(self) -> bool:
        """Begin the statement behind blanks. Return False at the end of the file."""
        while True:
            blank = _BLANK.match(self._text, self._at)
            self._begin(blank.end() if blank is not None else self._at)
            if self._at < len(self._text):
                return True
            if not self._read_more():
                return False

    def _begin(self, start: int) -> None:
        """Begin a new statement at a position."""
        self._line += self._text.count("\n", self._start, start)
        self._start = self._at = self._piece = start
        self._pieces, self._filled = [], False

    def _read_more(self) -> bool:
        """Read whole lines. Return False at the end of the file."""
        kept = self._text[self._start :]
        more = self._file.read(max(_CHUNK, len(kept)))
        if not more:
            return False
        if not more.endswith("\n"):
            more += self._file.readline()
        self._at, self._piece = self._at - self._start, self._piece - self._start
        self._text, self._start = kept + more, 0
        return True

    def _unclosed(self, what: str, start: int) -> SqlDataError:
        line = self._line + self._text.count("\n", self._start, start)
        return SqlDataError(
            f"{self._path}, line {line}: the file ends within {what} that begins here: is it "
            "complete?"
        )

    def _read_special(self) -> None:
        """Read a comment, or what only begins like one. Raises SqlDataError if a quotation or
        comment is not closed."""
        text, at = self._text, self._at
        if text[at] in "'\"`":
            if not self._read_more():
                raise self._unclosed("a quotation", self._at)
        elif text.startswith("*/", at) and self._open:
            self._open -= 1
            self._cut(at + 2)
        elif text.startswith("/*", at):
            version = _VERSION_START.match(text, at)
            if version is not None and int(version[1] or 0) <= SERVER_VERSION:
                self._open += 1
                self._cut(version.end())
                self._filled = True
            else:
                filled = self._filled or version is not None or text.startswith("/*M!", at)
                self._skip_comment()
                self._filled = filled
        elif (comment := _LINE_COMMENT.match(text, at)) is not None:
            end = text.find("\n", comment.end())
            self._cut(len(text) if end < 0 else end)
        else:
            self._filled, self._at = True, at + 1

    def _skip_comment(self) -> None:
        """Leave out a comment that is no code."""
        while (end := self._text.find("*/", self._at + 2)) < 0:
            if not self._read_more():
                raise self._unclosed("a comment", self._at)
        self._cut(end + 2)

    def _cut(self, end: int) -> None:
        """Leave the text from here to ``end`` out of the code."""
        self._pieces += [self._text[self._piece : self._at], " "]
        self._at = self._piece = end

    def _end_statement(self, size: int) -> Iterator[DumpStatement]:
        source = self._text[self._start : self._at].strip()
        code = "".join([*self._pieces, self._text[self._piece : self._at]]).strip()
        filled, line = self._filled, self._line
        self._begin(self._at + size)
        if filled and source:
            yield DumpStatement(self._path, line, source, code)

    def _run_command(self, command: re.Match[str]) -> Iterator[DumpStatement]:
        word, argument = command[1].lower(), command[2].strip()
        line = self._line
        self._begin(command.end())
        if word == "delimiter":
            self._delimiter = argument.split()[0] if argument else ";"
            return
        path = self._folder / _file_name(argument)
        if not path.resolve().is_relative_to(self._folder.resolve()):
            raise SqlDataError(
                f"{self._path}, line {line}: a dump can include only files of its own directory, "
                f"not {_file_name(argument)}: copy the file into {self._folder}"
            )
        if not path.is_file():
            raise SqlDataError(
                f"{self._path}, line {line}: there is no file {path}, which the dump includes"
            )
        yield from _read_file(path, self._folder, self._depth + 1)
