"""Values that programs in a sandbox get, and that no record shows."""

from __future__ import annotations

import re
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import wraps
from typing import Any, NoReturn, ParamSpec, TypeVar

from intercode_sandbox.errors import UsageError

P = ParamSpec("P")
T = TypeVar("T")
_LEAST = 6


class Secrets:
    """Environment variables of commands whose values are shown nowhere: no ``repr``, spec or pickle
    has them, and ``redact`` replaces them in output and messages by ``[secret NAME]``.

    White space around a value does not count, and each line of a value is a value, too, unless it
    would be refused; so is the form in which messages quote it. Raises UsageError for what is no
    environment variable, and for a value that output may hold by chance: of less than
    6 bytes, or of one repeated character.
    """

    def __init__(self, values: Mapping[str, str] | None) -> None:
        if not isinstance(values, Mapping | None):
            raise UsageError("secrets are a mapping of names to values")
        self.variables = dict(values or {})
        self._marks: dict[bytes, bytes] = {}
        for name, value in self.variables.items():
            if not _is_text(name) or not name or "=" in name:
                raise UsageError("the name of a secret is a text without '=' and NUL")
            if not _is_text(value):
                raise UsageError(f"the secret {name} is no text that UTF-8 can encode without NUL")
            if reason := _weakness(value.strip()):
                raise UsageError(f"output may hold the secret {name} by chance: it {reason}")
            for part in (value, *value.splitlines()):
                if not _weakness(part.strip()):
                    for shown in (part.strip(), repr(part.strip())[1:-1]):
                        self._marks.setdefault(shown.encode(), f"[secret {name}]".encode())
        self._sorted = sorted(self._marks)
        longest_first = sorted(self._marks, key=len, reverse=True)
        self._longest = len(longest_first[0]) if longest_first else 0
        self._pattern = re.compile(b"|".join(re.escape(value) for value in longest_first))

    def __repr__(self) -> str:
        return f"Secrets({', '.join(self.variables)})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("secrets are not written down: give them where the sandbox is opened")

    def redact(self, text: str) -> str:
        """Return a text without the values. Where it ends with the first 6 bytes of a value or
        more, they are replaced, too: the text may have been cut."""
        data = self.redact_pieces()(text.encode("utf-8", "surrogatepass"), True)
        return data.decode("utf-8", "surrogatepass")

    @contextmanager
    def redacted_errors(self) -> Iterator[None]:
        """Replace the values in what the block raises, also in the errors that led to it, but not
        in one that the caller handles already."""
        handled = sys.exc_info()[1]
        try:
            yield
        except Exception as e:
            left: list[BaseException | None] = [e] if self._marks else []
            seen = {id(handled)}
            while left:
                error = left.pop()
                if error is None or id(error) in seen:
                    continue
                seen.add(id(error))
                left += error.__cause__, error.__context__
                with suppress(AttributeError):  # a class of the caller whose args are read-only
                    error.args = tuple(self._redacted(value) for value in error.args)
                for name in ("filename", "filename2", "strerror"):  # of an OSError
                    if isinstance(value := getattr(error, name, None), str):
                        setattr(error, name, self.redact(value))
            raise

    def _redacted(self, value: object) -> object:
        return self.redact(value) if isinstance(value, str) else value

    def redact_pieces(self) -> Callable[[bytes, bool], bytes]:
        """Return a function that does the same for the pieces of an output, of which the last is
        final. It keeps back what may be the beginning of a value."""
        kept = b""

        def redact(piece: bytes, final: bool) -> bytes:
            nonlocal kept
            if not self._marks:
                return piece
            data, shown, position = kept + piece, list[bytes](), 0
            end = self._begun(data, 0)
            for match in self._pattern.finditer(data):
                if match.start() >= end and not final:  # it may be a part of a longer value
                    break
                shown += data[position : match.start()], self._marks[match.group()]
                position = match.end()
                if position > end:
                    end = self._begun(data, position)
            shown.append(data[position:end])
            kept = data[end:]
            if final:
                begun = self._sorted[bisect_left(self._sorted, kept)]
                shown.append(kept if len(kept) < _LEAST else self._marks[begun])
                kept = b""
            return b"".join(shown)

        return redact

    def _begun(self, data: bytes, start: int) -> int:
        """Return the first position from ``start`` where everything to the end of the data is the
        beginning of a longer value, or the end."""
        for position in range(max(start, len(data) - self._longest + 1), len(data)):
            rest = data[position:]
            at = bisect_right(self._sorted, rest)
            if at < len(self._sorted) and self._sorted[at].startswith(rest):
                return position
        return len(data)


def redact_errors(method: Callable[P, T]) -> Callable[P, T]:
    """Decorate a method of an object with ``secrets``, whose values its errors then hide."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        owner: Any = args[0]
        with owner.secrets.redacted_errors():
            return method(*args, **kwargs)

    return call


def _is_text(value: object) -> bool:
    """Return whether a value is a text that UTF-8 can encode, without NUL."""
    return isinstance(value, str) and not re.search("[\0\ud800-\udfff]", value)


def _weakness(value: str) -> str:
    """Return why output may hold a value by chance, or nothing."""
    if len(value.encode()) < _LEAST:
        return f"has less than {_LEAST} bytes without the white space around it"
    return "is one repeated character" if len(set(value)) == 1 else ""
