"""Blobs on the disk: fetched once, whole and right or not at all, gone on with where cut off."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import BinaryIO

import httpx

from intercode.core.errors import DataError
from intercode.sandbox.images.cache.trees import file_lock, mark_in_use
from intercode.sandbox.images.registry.client import RegistryClient, RetryableError


def blob_path(cache: Path, digest: str) -> Path:
    """Where the blob with that digest lies, or will."""
    return cache / "blobs" / digest.removeprefix("sha256:")


def fetch_blob(registry: RegistryClient, digest: str, size: int, cache: Path) -> Path:
    """The blob with that digest and size in the cache, fetched where it is not there.

    What an earlier fetch left half-done is gone on with. Raises DataError where the bytes are not
    those of the digest, and as ``Registry`` does.
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
        if (found := _file_digest(part)) != digest:
            part.unlink()
            raise DataError(
                f"the registry sent {found} where {digest} was asked for: it was damaged or "
                "changed; try again"
            )
        part.chmod(0o644)
        part.replace(final)
    return final


def _download(registry: RegistryClient, digest: str, size: int, file: BinaryIO) -> None:
    """Append what is missing, again and again while something comes."""
    while (before := file.seek(0, os.SEEK_END)) != size:
        if before > size:
            file.truncate(0)
            continue

        def ask() -> bool:
            return _download_range(registry, digest, size, file)

        registry.retry(ask)


def _download_range(registry: RegistryClient, digest: str, size: int, file: BinaryIO) -> bool:
    """Fetch from where the file ends; True where something came. Raises BusyError otherwise."""
    before = file.seek(0, os.SEEK_END)
    headers = {"Range": f"bytes={before}-", "Accept-Encoding": "identity"}
    got = 0
    try:
        with registry.stream(f"blobs/{digest}", headers if before else {}) as response:
            if before and not _is_continuation(response, before):
                file.truncate(0)
                before = 0
                if response.status_code == 206:
                    raise RetryableError(f"another piece of {digest} came than was asked for")
            for piece in response.iter_raw():
                got += len(piece)
                if before + got > size:
                    file.truncate(0)
                    raise DataError(f"the blob {digest} is longer than the {size} bytes it has")
                file.write(piece)
            file.flush()
    except RetryableError as e:
        file.flush()
        if e.status == 416:
            file.truncate(0)
        if not got:
            raise
        return True
    if not got:
        raise RetryableError(f"the blob {digest} ended after {before} of {size} bytes")
    return True


def _is_continuation(response: httpx.Response, at: int) -> bool:
    told = str(response.headers.get("content-range", ""))
    return response.status_code == 206 and told.startswith(f"bytes {at}-")


def _file_digest(path: Path) -> str:
    with path.open("rb") as f:
        return f"sha256:{hashlib.file_digest(f, 'sha256').hexdigest()}"
