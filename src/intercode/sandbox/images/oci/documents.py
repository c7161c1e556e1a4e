"""The JSON documents of container images, read without trusting them."""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from intercode.core.errors import DataError, UsageError

MAX_DOCUMENT_SIZE = 8 << 20
"""Bytes of a manifest, an index or a configuration."""

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_GO_ARCHITECTURES = {
    "x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64", "i686": "386", "armv7l": "arm",
}  # fmt: skip
"""What the kernel calls an architecture, and what images call it (names of the Go language)."""


@dataclass(frozen=True, slots=True)
class ImageConfig:
    """What an image's configuration says: the digests of its layers' unpacked archives, lowest
    first, and where its programs start."""

    digest: str
    layers: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    architecture: str


def sha256(data: bytes) -> str:
    """``sha256:<hex>`` of some bytes."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def architecture() -> str:
    """What images call this machine's architecture."""
    machine = platform.machine().lower()
    return _GO_ARCHITECTURES.get(machine, machine)


def parse_json(data: bytes, origin: str, kind: type = dict) -> Any:
    """The JSON value in ``data``, a ``kind``. Raises DataError for anything else."""
    if len(data) > MAX_DOCUMENT_SIZE:
        raise DataError(f"{origin} is a document of {len(data)} bytes: no image has such a one")
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as e:
        raise DataError(f"{origin} is no JSON: {str(e)[:200]}; make or fetch it again") from e
    if not isinstance(value, kind):
        raise DataError(f"{origin} holds a {type(value).__name__} where a {kind.__name__} belongs")
    return value


def get_typed(
    table: Mapping[str, Any], key: str, kind: type, origin: str, required: bool = False
) -> Any:
    """``table[key]``, a ``kind``; an empty one where it is absent or null.

    Raises DataError for another type, and for an absent one that is ``needed``.
    """
    value = table.get(key)
    if value is None and not required:
        return kind()
    if not isinstance(value, kind) or isinstance(value, bool):
        raise DataError(f"{origin}: {key} = {str(value)[:100]!r} is no {kind.__name__}")
    return value


def get_objects(table: Mapping[str, Any], key: str, origin: str) -> list[dict[str, Any]]:
    """The list of tables under ``key``. Raises DataError for anything else."""
    found: list[dict[str, Any]] = get_typed(table, key, list, origin)
    if not all(isinstance(one, dict) for one in found):
        raise DataError(f"{origin}: {key} is no list of tables")
    return found


def check_digest(text: object, origin: str) -> str:
    """``text`` where it is a SHA-256 digest. Raises DataError otherwise."""
    if not isinstance(text, str) or not _DIGEST.fullmatch(text):
        raise DataError(f"{origin}: {str(text)[:100]!r} is no digest of the form sha256:<hex>")
    return text


def verify_digest(data: bytes, digest: str, origin: str) -> bytes:
    """``data`` where it has that digest. Raises DataError otherwise."""
    if (found := sha256(data)) != digest:
        raise DataError(
            f"{origin}: {digest} has the wrong digest ({found}): it was damaged or changed"
        )
    return data


def parse_config(data: bytes, origin: str) -> ImageConfig:
    """The configuration of an image for this machine.

    Raises DataError for a malformed one, UsageError for another architecture or system.
    """
    table = parse_json(data, origin)
    rootfs = get_typed(table, "rootfs", dict, origin, required=True)
    layers = tuple(
        check_digest(d, origin) for d in get_typed(rootfs, "diff_ids", list, origin, required=True)
    )
    made_for = get_typed(table, "architecture", str, origin) or architecture()
    system = get_typed(table, "os", str, origin) or "linux"
    if system != "linux" or made_for != architecture():
        raise UsageError(
            f"{origin} is an image for {system}/{made_for}; this machine runs "
            f"linux/{architecture()}: take the image for that"
        )
    start = get_typed(table, "config", dict, origin)
    pairs = [str(pair).partition("=") for pair in get_typed(start, "Env", list, origin)]
    env = {key: value for key, _, value in pairs if key and "\0" not in key + value}
    cwd = PurePosixPath("/") / get_typed(start, "WorkingDir", str, origin)
    if ".." in cwd.parts or "\0" in str(cwd):
        raise DataError(f"{origin}: the working directory {str(cwd)!r} is none")
    return ImageConfig(sha256(data), layers, env, str(cwd), made_for)
