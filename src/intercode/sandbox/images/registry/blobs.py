"""Downloads blobs to the cache, verifies them, and resumes interrupted downloads."""

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
        if (found := _file_digest(part)) != digest:
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
    while (before := file.seek(0, os.SEEK_END)) != size:
        if before > size:
            file.truncate(0)
            continue

        def ask() -> bool:
            return _download_range(registry, digest, size, file)

        registry.retry(ask)


def _download_range(registry: RegistryClient, digest: str, size: int, file: BinaryIO) -> bool:
    """Download from the end of the file on; return True on progress.

    Raises RetryableError otherwise.
    """
    before = file.seek(0, os.SEEK_END)
    headers = {"Range": f"bytes={before}-", "Accept-Encoding": "identity"}
    got = 0
    try:
        with registry.stream(f"blobs/{digest}", headers if before else {}) as response:
            if before and not _is_continuation(response, before):
                file.truncate(0)
                before = 0
                if response.status_code == 206:
                    raise RetryableError(
                        f"the registry sent another range of {digest} than requested"
                    )
            for piece in response.iter_raw():
                got += len(piece)
                if before + got > size:
                    file.truncate(0)
                    raise DataError(f"the blob {digest} is longer than its size of {size} bytes")
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
    content_range = str(response.headers.get("content-range", ""))
    return response.status_code == 206 and content_range.startswith(f"bytes {at}-")


def _file_digest(path: Path) -> str:
    with path.open("rb") as f:
        return f"sha256:{hashlib.file_digest(f, 'sha256').hexdigest()}"
