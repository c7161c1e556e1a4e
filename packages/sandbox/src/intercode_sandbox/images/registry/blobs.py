"""Downloads blobs to the cache, verifies them, and resumes interrupted downloads."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import BinaryIO

from intercode_sandbox.errors import DataError
from intercode_sandbox.http import HttpError, TooLongError, append_rest
from intercode_sandbox.images.cache.trees import file_lock, mark_in_use
from intercode_sandbox.images.registry.client import RegistryClient
from intercode_sandbox.platforms.files import file_digest


def blob_path(cache: Path, digest: str) -> Path:
    """Return the path of the blob with that digest in the cache."""
    return cache / "blobs" / digest.removeprefix("sha256:")


def fetch_blob(registry: RegistryClient, digest: str, size: int, cache: Path) -> Path:
    """Return the path of a blob in the cache, after downloading it if it is absent.

    An interrupted download is resumed. Raises DataError if the bytes do not match the digest,
    and as ``RegistryClient`` does.
    """
    final = blob_path(cache, digest)
    mark_in_use(cache, str(final.relative_to(cache)))
    final.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
    with file_lock(final.with_name(f".{final.name}.lock")):
        if final.is_file() and final.stat().st_size == size:
            return final
        part = final.with_name(f".{final.name}.part")
        with part.open("ab+") as f:
            _download(registry, digest, size, f)
        if (found := f"sha256:{file_digest(part)}") != digest:
            part.unlink()
            raise DataError(
                f"the registry sent {found} instead of {digest}: the blob is damaged or changed; "
                "try again"
            )
        part.chmod(0o644)
        part.replace(final)
    return final


def _download(registry: RegistryClient, digest: str, size: int, file: BinaryIO) -> None:
    """Append the missing bytes, with further requests as long as there is progress."""

    def attempt() -> None:
        before = file.seek(0, os.SEEK_END)
        try:
            append_rest(file, size, partial(registry.stream, f"blobs/{digest}"))
        except HttpError:
            if file.seek(0, os.SEEK_END) <= before:
                raise
        except TooLongError as e:
            raise DataError(f"the blob {digest} is longer than its size of {size} bytes") from e

    while file.seek(0, os.SEEK_END) != size:
        registry.retry(attempt)
