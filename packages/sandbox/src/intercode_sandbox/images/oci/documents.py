"""Parses and validates the untrusted JSON documents of container images."""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from intercode_sandbox.errors import DataError, UsageError

MAX_DOCUMENT_SIZE = 8 << 20
"""Size limit in bytes of a manifest, an index or a configuration."""

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_GO_ARCHITECTURES = {
    "x86_64": "amd64",
    "aarch64": "arm64",
    "arm64": "arm64",
    "i686": "386",
    "armv7l": "arm",
}
"""The kernel's names of architectures, and the names in images, which are those of Go."""


@dataclass(frozen=True, slots=True)
class ImageConfig:
    """The configuration of an image: the digests of its layers' unpacked archives, lowest first,
    the environment and working directory of its programs, and its entry point."""

    digest: str
    layers: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    architecture: str
    entrypoint: tuple[str, ...] = ()


def sha256(data: bytes) -> str:
    """Return the digest of ``data`` as ``sha256:<hex>``."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def architecture() -> str:
    """Return this machine's architecture by its name in images."""
    machine = platform.machine().lower()
    return _GO_ARCHITECTURES.get(machine, machine)


def parse_json(data: bytes, origin: str, kind: type = dict) -> Any:
    """Return the JSON value in ``data``. Raises DataError if it is not of type ``kind``."""
    if len(data) > MAX_DOCUMENT_SIZE:
        raise DataError(
            f"{origin} has {len(data)} bytes, more than the allowed {MAX_DOCUMENT_SIZE}"
        )
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as e:
        raise DataError(
            f"{origin} is not valid JSON: {str(e)[:200]}; make or fetch it again"
        ) from e
    if not isinstance(value, kind):
        raise DataError(f"{origin} is of type {type(value).__name__}, not {kind.__name__}")
    return value


def get_typed(
    table: Mapping[str, Any], key: str, kind: type, origin: str, required: bool = False
) -> Any:
    """Return ``table[key]``, or an empty ``kind`` if it is absent or null.

    Raises DataError for a value of another type, and for an absent value that is ``required``.
    """
    value = table.get(key)
    if value is None and not required:
        return kind()
    if not isinstance(value, kind) or isinstance(value, bool):
        raise DataError(f"{origin}: {key} = {str(value)[:100]!r} is not of type {kind.__name__}")
    return value


def get_objects(table: Mapping[str, Any], key: str, origin: str) -> list[dict[str, Any]]:
    """Return the list of objects under ``key``. Raises DataError for anything else."""
    found: list[dict[str, Any]] = get_typed(table, key, list, origin)
    if not all(isinstance(one, dict) for one in found):
        raise DataError(f"{origin}: {key} is not a list of objects")
    return found


def check_digest(text: object, origin: str) -> str:
    """Return ``text`` if it is a SHA-256 digest. Raises DataError otherwise."""
    if not isinstance(text, str) or not _DIGEST.fullmatch(text):
        raise DataError(f"{origin}: {str(text)[:100]!r} is not a digest of the form sha256:<hex>")
    return text


def verify_digest(data: bytes, digest: str, origin: str) -> bytes:
    """Return ``data`` if it has that digest. Raises DataError otherwise."""
    if (found := sha256(data)) != digest:
        raise DataError(
            f"{origin}: {digest} has the wrong digest ({found}): it was damaged or changed"
        )
    return data


def parse_config(data: bytes, origin: str) -> ImageConfig:
    """Return the configuration of an image for this machine.

    Raises DataError for a malformed configuration, UsageError for another architecture or system.
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
            f"linux/{architecture()}: use the image for that"
        )
    start = get_typed(table, "config", dict, origin)
    pairs = [str(pair).partition("=") for pair in get_typed(start, "Env", list, origin)]
    env = {key: value for key, _, value in pairs if key and "\0" not in key + value}
    cwd = PurePosixPath("/") / get_typed(start, "WorkingDir", str, origin)
    if ".." in cwd.parts or "\0" in str(cwd):
        raise DataError(f"{origin}: the working directory {str(cwd)!r} is invalid")
    words = start.get("Entrypoint")  # a plain string was allowed once
    entrypoint = [words] if isinstance(words, str) else get_typed(start, "Entrypoint", list, origin)
    if any(not isinstance(word, str) or "\0" in word for word in entrypoint):
        raise DataError(f"{origin}: the entry point {str(entrypoint)[:100]} is invalid")
    return ImageConfig(sha256(data), layers, env, str(cwd), made_for, tuple(entrypoint))
