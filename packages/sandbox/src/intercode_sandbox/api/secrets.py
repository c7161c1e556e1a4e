"""Values that programs in a sandbox get, and that no record shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NoReturn

from intercode_sandbox.api.results import Result
from intercode_sandbox.errors import UsageError
from intercode_sandbox.streams import encode

_LEAST = 6


class Secrets:
    """Environment variables of commands whose values are shown nowhere: no message, ``repr``, spec,
    snapshot or pickle has them, and ``redact`` replaces them in output by ``[secret NAME]``.

    Raises UsageError for what is no environment variable, and for a value of less than 6 bytes,
    which output may hold by chance.
    """

    def __init__(self, values: Mapping[str, str] | None) -> None:
        if not isinstance(values, Mapping | None):
            raise UsageError("secrets are a mapping of names to values")
        self.variables = dict(values or {})
        for name, value in self.variables.items():
            if not isinstance(name, str) or not name or "=" in name or "\0" in name:
                raise UsageError("the name of a secret is a text without '=' and NUL")
            if not isinstance(value, str) or "\0" in value or len(encode(value)) < _LEAST:
                raise UsageError(
                    f"the secret {name} is a text of at least {_LEAST} bytes without NUL"
                )
        # the longest first, because one may be a part of another
        self._marks = sorted(
            ((value, f"[secret {name}]") for name, value in self.variables.items()),
            key=lambda pair: -len(pair[0]),
        )

    def __repr__(self) -> str:
        return f"Secrets({', '.join(self.variables)})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("secrets are not written down: give them where the sandbox is opened")

    def redact(self, text: str) -> str:
        """Return a text without the values."""
        for value, mark in self._marks:
            text = text.replace(value, mark)
        return text

    def redact_bytes(self, data: bytes) -> bytes:
        """Return bytes without the values."""
        for value, mark in self._marks:
            data = data.replace(encode(value), mark.encode())
        return data

    def redact_result(self, result: Result) -> Result:
        """Return a result without the values."""
        if not self._marks:
            return result
        return replace(
            result,
            stdout=self.redact(result.stdout),
            stderr=self.redact(result.stderr),
            output=self.redact(result.output),
            stdout_bytes=self.redact_bytes(result.stdout_bytes),
            stderr_bytes=self.redact_bytes(result.stderr_bytes),
        )

    def redact_pieces(self) -> Callable[[str, bool], str]:
        """Return a function for the pieces of a text, of which the last is final. It keeps back
        what may be the beginning of a value."""
        kept = ""

        def redact(piece: str, final: bool) -> str:
            nonlocal kept
            text = self.redact(kept + piece)
            begun = [0, *(_begun(text, value) for value, _ in self._marks if not final)]
            end = len(text) - max(begun)
            kept = text[end:]
            return text[:end]

        return redact


def _begun(text: str, value: str) -> int:
    """Return how many characters at the end of a text are the beginning of a value."""
    longest = min(len(text), len(value) - 1)
    return next((n for n in range(longest, 0, -1) if value.startswith(text[len(text) - n :])), 0)
