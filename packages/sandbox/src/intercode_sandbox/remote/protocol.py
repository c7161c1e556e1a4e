"""The messages between a client and a server of remote sandboxes, and the values that they carry.

Each WebSocket message is a frame: a type, a number, and a payload of bounded size. Requests and
answers are JSON with an optional body of bytes, in as many frames as they need. The other frames
carry streams. Neither side trusts the other: everything that arrives is checked here.
"""

from __future__ import annotations

import json
import re
import struct
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from enum import IntEnum
from pathlib import Path
from typing import Any

from intercode_sandbox.contract import Limits, SandboxSpec
from intercode_sandbox.determinism import determinism_from_settings
from intercode_sandbox.errors import (
    InterCodeError,
    MissingCapabilityError,
    SandboxError,
    SandboxKilledError,
    SandboxLostError,
    SandboxUnavailableError,
    TooManyChangesError,
    UsageError,
)
from intercode_sandbox.platforms.paths import cache_root
from intercode_sandbox.types import Image, Layer

VERSION = 5
PATH = "/sandboxes"
"""Path of the WebSocket on the server."""
CHUNK = 1 << 18
"""Greatest number of bytes of a message, or of a stream, in one frame."""
MAX_FRAME = 8 << 20
"""Greatest size of a frame. Only one with files that accompany data is longer than a chunk."""
WINDOW = 1 << 18
"""Bytes of a stream that may be on their way: sent, and not written at the other end."""
MAX_HEADER = 4 << 20
MAX_BODY = 96 << 20
_MAX_TEXT = 2000  # characters of an error
_PACKAGE = Path(__file__).parents[1]
_FRAME = struct.Struct(">BI")
_LENGTH = struct.Struct(">I")


class ProtocolError(Exception):
    """The other side sent something that the protocol does not allow."""


class Kind(IntEnum):
    """The types of frames. The number of a frame is that of its request, stream or sandbox; a
    process has the number of the stream with its exit status."""

    PART = 1  # of a message, which is a request to a server or its answer, that goes on
    MESSAGE = 2  # the last part
    DATA = 3  # of a stream
    PASSING = 4  # data of a stream that descriptors accompany; a message
    END = 5  # the last data of the stream, such as the exit status of a process
    REFUSED = 6  # nobody reads the stream any more
    CREDIT = 7  # so many bytes of the stream were written
    LOST = 8  # a sandbox has ended; a message


def frame(kind: Kind, number: int, payload: bytes | memoryview = b"") -> bytes:
    """Return a frame."""
    return b"".join((_FRAME.pack(kind, number), payload))


def parse_frame(data: bytes) -> tuple[Kind, int, bytes]:
    """Return type, number and payload of a frame."""
    try:
        kind, number = _FRAME.unpack_from(data)
        return Kind(kind), number, data[_FRAME.size :]
    except (struct.error, ValueError) as e:
        raise ProtocolError("a frame of an unknown type") from e


def pack_message(header: Mapping[str, Any], body: bytes = b"") -> bytes:
    """Return a message: a JSON object and bytes."""
    text = json.dumps(header, separators=(",", ":")).encode()
    return b"".join((_LENGTH.pack(len(text)), text, body))


def parse_message(data: bytes | bytearray) -> tuple[dict[str, Any], bytes]:
    """Return the JSON object and the bytes of a message."""
    try:
        (length,) = _LENGTH.unpack_from(data)
        if length > MAX_HEADER or length > len(data) - _LENGTH.size:
            raise ProtocolError("a message with a header that is too long")
        header = json.loads(bytes(data[_LENGTH.size : _LENGTH.size + length]))
    except (struct.error, ValueError, RecursionError) as e:
        raise ProtocolError("a message without a JSON object") from e
    if not isinstance(header, dict):
        raise ProtocolError("a message without a JSON object")
    return header, bytes(data[_LENGTH.size + length :])


# ------------------------------------------------------------------------- values
_ERRORS: dict[str, type[InterCodeError]] = {
    "killed": SandboxKilledError,
    "lost": SandboxLostError,
    "changes": TooManyChangesError,
    "capability": MissingCapabilityError,
    "unavailable": SandboxUnavailableError,
    "sandbox": SandboxError,
    "usage": UsageError,
}


def error_values(error: BaseException) -> dict[str, Any]:
    """Return an error as values for JSON. The text of an unexpected error is not sent."""
    if isinstance(error, OSError):
        return {"kind": "os", "errno": error.errno or 5, "text": str(error.strerror)[:_MAX_TEXT]}
    text = text_for_clients(error)
    if isinstance(error, ValueError) and not isinstance(error, InterCodeError):
        return {"kind": "value", "text": text}
    for kind, found in _ERRORS.items():
        if isinstance(error, found):
            return {"kind": kind, "text": text}
    return {
        "kind": "sandbox",
        "text": text if isinstance(error, InterCodeError) else "an internal error",
    }


def text_for_clients(error: BaseException) -> str:
    """Return the text of an error without paths of this machine that are none of a client's
    business: in the cache, of this package, of temporary files and of control groups."""
    directories = (cache_root(), _PACKAGE, "/sys/fs/cgroup")
    own = [re.escape(str(directory)) for directory in directories]
    for temporary in (tempfile.gettempdir(), "/dev/shm"):
        own.append(rf"{re.escape(temporary)}/(?:intercode-|tmp[a-z0-9_]{{8}}\b)")
    path = rf"(?:{'|'.join(own)})[^\s'\":;,)]*"
    return re.sub(path, "(a file of the server)", str(error))[:_MAX_TEXT]


def printable(text: str) -> str:
    """Return a text of the other side with its control characters escaped, for a terminal."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)


def parse_error(values: Any, url: str) -> Exception:
    """Return the error that ``error_values`` described."""
    if not isinstance(values, dict):
        values = {}
    kind, text = values.get("kind"), printable(str(values.get("text", ""))[:_MAX_TEXT])
    if kind == "os":
        number = values.get("errno")
        return OSError(number if isinstance(number, int) else 5, text)
    if kind == "value":
        return ValueError(text)
    return _ERRORS.get(str(kind), SandboxError)(f"{text} (at {url})")


def image_values(image: Image) -> dict[str, Any]:
    """Return what a client knows of an image, as values for JSON."""
    values = {"digest": image.digest, "env": dict(image.env), "cwd": image.cwd}
    return values | {"entrypoint": list(image.entrypoint)}


def spec_values(spec: SandboxSpec, layers: list[str]) -> dict[str, Any]:
    """Return a specification as values for JSON. ``layers``: references to layers at the server."""
    return {
        "image": spec.image.name,
        "layers": layers,
        "network": spec.network,
        "limits": asdict(spec.limits),
        "hostname": spec.hostname,
        "env": dict(spec.env),
        "appearance": spec.appearance,
        "determinism": asdict(spec.determinism) if spec.determinism else None,
    }


def parse_spec(values: Mapping[str, Any], image: Image, layers: tuple[Layer, ...]) -> SandboxSpec:
    """Return a specification from values that a client has sent. Raises ProtocolError, and
    UsageError as SandboxSpec does."""
    determinism = values.get("determinism")
    choices = {"network": ("none", "host"), "appearance": ("plain", "docker")}
    if any(values.get(name) not in allowed for name, allowed in choices.items()):
        raise ProtocolError("an unknown network or appearance")
    hostname = text_value(values.get("hostname"))
    if not hostname or len(hostname) > 64 or not hostname.replace("-", "").isalnum():
        raise ProtocolError("an invalid host name")
    try:
        limits = Limits(**object_value(values.get("limits")))
    except TypeError as e:
        raise ProtocolError("unknown limits") from e
    return SandboxSpec(
        image,
        layers,
        network=values["network"],
        limits=limits,
        hostname=hostname,
        env=object_value(values.get("env")),
        appearance=values["appearance"],
        determinism=None if determinism is None else determinism_from_settings(determinism),
    )


def text_value(value: Any) -> str:
    """Return a text without NUL. Raises ProtocolError for anything else."""
    if not isinstance(value, str) or "\0" in value:
        raise ProtocolError("a value that is not a text")
    return value


def number_value(value: Any, largest: int = 2**63) -> int:
    """Return a whole number of at least 0. Raises ProtocolError for anything else."""
    if type(value) is not int or not 0 <= value <= largest:
        raise ProtocolError("a value that is not a number in its range")
    return value


def list_value(value: Any) -> list[Any]:
    """Return a list. Raises ProtocolError for anything else."""
    if not isinstance(value, list):
        raise ProtocolError("a value that is not a list")
    return value


def object_value(value: Any) -> dict[str, Any]:
    """Return an object. Raises ProtocolError for anything else."""
    if not isinstance(value, dict):
        raise ProtocolError("a value that is not an object")
    return value


def string_values(value: Any) -> dict[str, str]:
    """Return an object of texts. Raises ProtocolError for anything else."""
    return {text_value(name): text_value(text) for name, text in object_value(value).items()}
