"""The operations of a sandbox that a connection carries as they are, for both of its ends.

Each is a method of the contract, whose annotations say how its arguments and its result travel and
what one side accepts from the other.
"""

from __future__ import annotations

import errno
import inspect
import json
import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from functools import wraps
from types import NoneType
from typing import Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

from intercode_sandbox.contract import BaseSandbox, Capability
from intercode_sandbox.errors import TooManyChangesError
from intercode_sandbox.remote.protocol import (
    MAX_BODY,
    ProtocolError,
    list_value,
    number_value,
    object_value,
    text_value,
)
from intercode_sandbox.types import TRUNCATED_CHANGES

Decoder = Callable[[Any], Any]
F = TypeVar("F", bound=Callable[..., Any])


# ------------------------------------------------------------------------- values
def pack_value(value: Any) -> bytes:
    """Return a value as the body of a message, whose size is not that of a header. Raises
    TooManyChangesError if it is longer than a body."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=_field_values)
    data = text.encode("utf-8", "surrogatepass")  # names of files that are not UTF-8
    if len(data) > MAX_BODY:
        raise TooManyChangesError(
            f"the list of changed files has {len(data)} bytes, more than the {MAX_BODY} of a "
            "remote sandbox"
        )
    return data


def unpack_value(body: bytes) -> Any:
    """Return the value that ``pack_value`` packed. Raises ProtocolError."""
    try:
        return json.loads(body.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as e:
        raise ProtocolError("a value that is not JSON") from e


def _field_values(record: Any) -> list[Any]:
    return [getattr(record, field.name) for field in fields(record)]


def decoder(hint: Any, largest: int = 2**63) -> Decoder:
    """Return what makes a value of a type from one of JSON, or raises ProtocolError. ``largest``:
    the greatest number."""
    simple: dict[Any, Decoder] = {
        str: text_value,
        int: lambda value: number_value(value, largest),
        bool: lambda value: _choice(value, (True, False)),
        NoneType: lambda value: _choice(value, (None,)),
    }
    if hint in simple:
        return simple[hint]
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return lambda value: _choice(value, inner)
    if origin is dict:
        name, item = map(decoder, inner)
        return lambda value: {name(n): item(v) for n, v in object_value(value).items()}
    if origin in (list, tuple, Sequence):
        item, collect = decoder(inner[0]), tuple if origin is tuple else list
        return lambda value: collect(map(item, list_value(value)))
    if not is_dataclass(hint):
        raise TypeError(f"no value of the type {hint} can be sent")
    return _record_decoder(cast("type[Any]", hint))


def _choice(value: Any, choices: tuple[Any, ...]) -> Any:
    if not any(value is choice or (value == choice and type(value) is str) for choice in choices):
        raise ProtocolError("a value that is none of those expected")
    return value


def _record_decoder(record: type[Any]) -> Decoder:
    """Return the decoder for a dataclass whose fields are texts, numbers and choices."""
    hints = list(get_type_hints(record).values())
    choices = [(n, get_args(hint)) for n, hint in enumerate(hints) if get_origin(hint) is Literal]
    numbers = {float: (float, int)}
    types = [(str,) if get_origin(h) is Literal else numbers.get(h, (h,)) for h in hints]

    def decode(values: Any) -> Any:
        if (
            type(values) is not list
            or len(values) != len(types)
            or any(type(v) not in each for v, each in zip(values, types, strict=True))
            or any(values[n] not in allowed for n, allowed in choices)
        ):
            raise ProtocolError(f"an invalid {record.__name__}")
        return record(*values)

    return decode


# --------------------------------------------------------------------- operations
def refuse_nul(*words: str) -> None:
    """Raise the OSError of a sandbox on this machine for a text with NUL."""
    if any("\0" in word for word in words):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


class Operation:
    """An operation, made from the method of the contract.

    ``check`` refuses a result with a ProtocolError. ``largest``: the greatest values of arguments
    that are numbers. Bytes travel as the body of a message, other arguments as a list in its
    header, and other results as JSON in its body.
    """

    def __init__(
        self,
        method: Callable[..., Any],
        capability: Capability | None,
        check: Callable[[Any], None] | None,
        largest: dict[str, int],
    ) -> None:
        self.name, self.capability, self._check = method.__name__, capability, check
        self._signature, hints = inspect.signature(method), get_type_hints(method)
        result = hints.pop("return")
        self._result = None if result is bytes else decoder(result)
        self._arguments = [
            None if hint is bytes else decoder(hint, largest.get(name, 2**63))
            for name, hint in hints.items()
        ]

    # ----------------------------------------------------------------- at the client
    def pack(self, *values: Any, **named: Any) -> tuple[list[Any], bytes]:
        """Return the arguments of a call and the body of its message. Raises OSError for a text
        with NUL, as a sandbox on this machine does, and for too many bytes."""
        bound = self._signature.bind(None, *values, **named)
        bound.apply_defaults()
        arguments, body = list[Any](), b""
        for value, read in zip(bound.args[1:], self._arguments, strict=True):
            if read is None:
                body = bytes(value)
            else:
                arguments.append(value)
        refuse_nul(*(value for value in arguments if isinstance(value, str)))
        if len(body) > MAX_BODY:
            raise OSError(errno.EFBIG, f"a remote file can be written with up to {MAX_BODY} bytes")
        return arguments, body

    def unpack(self, body: bytes) -> Any:
        """Return the result in an answer. Raises ProtocolError for one that is not valid."""
        result = body if self._result is None else self._result(unpack_value(body))
        if self._check is not None:
            self._check(result)
        return result

    # ----------------------------------------------------------------- at the server
    def perform(self, sandbox: BaseSandbox, arguments: Any, body: bytes) -> bytes:
        """Do what a client asks for, and return the body of the answer. Raises ProtocolError for
        arguments that are not valid."""
        left = iter(list_value(arguments))
        values = [body if read is None else read(next(left, None)) for read in self._arguments]
        result = getattr(sandbox, self.name)(*values)
        return result if isinstance(result, bytes) else pack_value(result)


OPERATIONS: dict[str, Operation] = {}
"""The operations of ForwardedSandbox by their names, for the server."""


def forwarded(
    method: F,
    capability: Capability | None = None,
    check: Callable[[Any], None] | None = None,
    **largest: int,
) -> F:
    """Return a method for ForwardedSandbox in the place of one of the contract. The other arguments
    are those of Operation. A server answers that a capability is missing as its sandbox does."""
    operation = Operation(method, capability, check, largest)

    @wraps(method, updated=())
    def forward(self: ForwardedSandbox, *values: Any, **named: Any) -> Any:
        return self.forward(operation, *operation.pack(*values, **named))

    OPERATIONS[operation.name] = operation
    return cast("F", forward)


def _check_paths(paths: Iterable[str]) -> None:
    if not all(path.startswith("/") or path == TRUNCATED_CHANGES for path in paths):
        raise ProtocolError("a path that is not absolute")


class ForwardedSandbox(BaseSandbox):
    """A sandbox whose operations are requests to the one at the server."""

    @abstractmethod
    def forward(self, operation: Operation, arguments: list[Any], body: bytes) -> Any:
        """Ask the server for an operation and return its result."""

    read = forwarded(BaseSandbox.read, limit=MAX_BODY)
    write = forwarded(BaseSandbox.write, mode=0o7777)
    file_info = forwarded(BaseSandbox.file_info, "listing")
    list_directory = forwarded(BaseSandbox.list_directory, "listing")
    remove = forwarded(BaseSandbox.remove, "listing")
    changes = forwarded(BaseSandbox.changes, check=_check_paths)
    changed_paths = forwarded(BaseSandbox.changed_paths, check=_check_paths)
    storage_exhausted = forwarded(BaseSandbox.storage_exhausted)
    limit_exceeded = forwarded(BaseSandbox.limit_exceeded)
    usage = forwarded(BaseSandbox.usage, "usage")
    recycle = forwarded(BaseSandbox.recycle, "recycle")
    processes = forwarded(BaseSandbox.processes, "processes")
    descendants = forwarded(BaseSandbox.descendants, "processes")
    signal = forwarded(BaseSandbox.signal, "processes", number=64)
    kill_since = forwarded(BaseSandbox.kill_since, "processes")
