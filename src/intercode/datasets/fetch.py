"""Downloads the files of a dataset from its authors; resumes broken downloads, checks digests."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx

from intercode.core.errors import DataError, InfrastructureError, UsageError
from intercode.core.registry import unknown_name_error
from intercode.datasets.data_files import fetched_data_root
from intercode.datasets.pins import Pin, PinnedFile, load_pins

MAX_ATTEMPTS = 4
"""Requests for a file before the download fails."""
TIMEOUT = httpx.Timeout(30.0, connect=10.0)
"""Seconds without a byte before a request fails."""

Progress = Callable[[str, int, int], None]
"""Called with a file's path, the bytes received so far and its size in bytes."""


def fetch(
    name: str,
    mirror: str | None = None,
    dest: Path | None = None,
    progress: Progress | None = None,
    *,
    pins: Mapping[str, Pin] | None = None,
    retry_delay: float = 1.0,
) -> Path:
    """Download the files of dataset ``name`` and return the directory that holds them.

    ``mirror`` is a base URL that serves the same paths; ``dest`` defaults to the cache. Correct
    files are not downloaded again, and truncated ones are continued. ``retry_delay`` is the delay
    in seconds before the second attempt; it doubles with every further one.

    Raises UnknownNameError for a dataset that is not pinned, DataError when a file differs from the
    pinned one, UsageError when the server does not have it, InfrastructureError when the connection
    keeps failing (the next run continues the download).
    """
    pins = load_pins() if pins is None else pins
    if name not in pins:
        raise unknown_name_error("dataset to fetch", name, list(pins))
    pin = pins[name]
    base = (mirror or pin.base_url).rstrip("/")
    if not base.startswith(("http://", "https://")):
        raise UsageError(f"the mirror {mirror!r} is not an http:// or https:// address")
    root = fetched_data_root() if dest is None else dest
    report = progress or _ignore_progress
    root.mkdir(parents=True, exist_ok=True)
    with _directory_lock(root), httpx.Client(timeout=TIMEOUT, follow_redirects=True) as client:
        for file in pin.files:
            target = root / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            if not _is_complete(target, file):
                _fetch_file(client, f"{base}/{file.path}", target, file, report, retry_delay)
            size = target.stat().st_size
            report(file.path, size, size)
    return root


def _ignore_progress(path: str, done: int, total: int) -> None:
    del path, done, total


@contextmanager
def _directory_lock(root: Path) -> Iterator[None]:
    """Lock ``root`` against other processes that download to it, if the system has locks."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    with (root / ".lock").open("wb") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def _file_digest(path: Path, file: PinnedFile) -> str:
    """Return the digest of ``path`` of the kind that ``file`` pins: SHA-256 or Git's SHA-1."""
    with path.open("rb") as f:
        if file.sha256:
            return hashlib.file_digest(f, "sha256").hexdigest()
        sum_ = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
        for block in iter(lambda: f.read(1 << 20), b""):
            sum_.update(block)
        return sum_.hexdigest()


def _expected_digest(file: PinnedFile) -> str:
    return file.sha256 or file.git_blob_sha1


def _is_complete(path: Path, file: PinnedFile) -> bool:
    if not path.is_file() or file.size not in (None, path.stat().st_size):
        return False
    return _file_digest(path, file) == _expected_digest(file)


def _fetch_file(
    client: httpx.Client,
    url: str,
    target: Path,
    file: PinnedFile,
    progress: Progress,
    retry_delay: float,
) -> None:
    """Download ``url`` to ``target`` through a ``.part`` file next to it."""
    part = target.with_name(target.name + ".part")
    leftover, expected = part.is_file(), _expected_digest(file)
    _download(client, url, part, file, progress, retry_delay)
    digest = _file_digest(part, file)
    if digest != expected and leftover:  # the part of an earlier run may be damaged
        part.unlink()
        _download(client, url, part, file, progress, retry_delay)
        digest = _file_digest(part, file)
    if digest != expected:
        part.unlink()
        kind = "sha256" if file.sha256 else "git's sha1"
        raise DataError(
            f"{file.path} from {url} is not the pinned file: expected {kind} {expected}, "
            f"got {digest}; nothing was stored: try another server with --mirror"
        )
    part.replace(target)


def _download(
    client: httpx.Client,
    url: str,
    part: Path,
    file: PinnedFile,
    progress: Progress,
    retry_delay: float,
) -> None:
    """Complete ``part``, with further requests when the connection breaks."""
    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            return _resume_download(client, url, part, file, progress)
        except httpx.InvalidURL as e:
            raise UsageError(f"{url!r} is not an address: {e}; check --mirror") from e
        except httpx.RequestError as e:
            if attempt == MAX_ATTEMPTS:
                raise InfrastructureError(
                    f"cannot get {url} after {MAX_ATTEMPTS} attempts: {e or type(e).__name__}; run "
                    "the same command again to continue, or name another server with --mirror"
                ) from e
            time.sleep(retry_delay * 2 ** (attempt - 1))
    return None


def _resume_download(
    client: httpx.Client, url: str, part: Path, file: PinnedFile, progress: Progress
) -> None:
    """Request the rest of ``part`` once.

    Raises httpx.RequestError when another attempt may help, else UsageError or DataError.
    """
    offset = part.stat().st_size if part.is_file() else 0
    if file.size is None and part.is_file() and _is_complete(part, file):
        return
    if file.size is not None and offset > file.size:
        part.unlink()
        offset = 0
    if offset == file.size and part.is_file():
        return
    headers = {"Accept-Encoding": "identity"}
    if offset:
        headers["Range"] = f"bytes={offset}-"
    with client.stream("GET", url, headers=headers) as response:
        resumed = _is_resumed(response, offset)
        _check_status(response, url, part, resumed)
        done = offset if resumed else 0
        size = file.size if file.size is not None else _announced_size(response, done)
        with part.open("ab" if resumed else "wb") as f:
            for chunk in response.iter_bytes():
                done += len(chunk)
                if done > size:
                    break
                f.write(chunk)
                progress(file.path, done, size)
    if done > size:
        part.unlink()
        raise DataError(
            f"{file.path} from {url} is not the pinned file: expected {size} bytes, got more; "
            "nothing was stored: try another server with --mirror"
        )
    if done < size:
        raise httpx.ReadError(f"the connection ended after {done} of {size} bytes")


def _announced_size(response: httpx.Response, done: int) -> int:
    """Return the size of a file without a pinned size, from the Content-Length of the response."""
    length = response.headers.get("Content-Length", "")
    if not length.isdigit():
        raise UsageError(
            f"{response.url} does not send a Content-Length: name another server with --mirror"
        )
    return done + int(length)


def _is_resumed(response: httpx.Response, offset: int) -> bool:
    """Return whether the response starts at byte ``offset``; without ranges it starts at 0."""
    start = response.headers.get("Content-Range", "")
    return response.status_code == 206 and start.startswith(f"bytes {offset}-")


def _check_status(response: httpx.Response, url: str, part: Path, resumed: bool) -> None:
    code = response.status_code
    if code == 416 or (code == 206 and not resumed):
        part.unlink(missing_ok=True)
        raise httpx.RemoteProtocolError(f"{url} cannot be continued (status {code})")
    if code == 429 or code >= 500:
        raise httpx.RemoteProtocolError(f"{url} answered with status {code}")
    if code not in (200, 206):
        raise UsageError(
            f"{url} answered with status {code}: check the address, or name another server "
            "with --mirror"
        )
