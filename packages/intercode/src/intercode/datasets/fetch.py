"""Downloads the files of a dataset from its authors; resumes broken downloads, checks digests."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from intercode.core.errors import DataError, InfrastructureError, UsageError
from intercode.datasets.data_files import fetched_data_root
from intercode.datasets.pins import Pin, PinnedFile, load_pins
from intercode_sandbox.clock import SYSTEM_CLOCK, Clock
from intercode_sandbox.http import (
    HttpClient,
    HttpError,
    Response,
    TooLongError,
    append_rest,
    parse_url,
    retry,
)
from intercode_sandbox.platforms.files import lock_file
from intercode_sandbox.registry import unknown_name_error

MAX_ATTEMPTS = 4
"""Requests for a file before the download fails."""
_RETRY_DELAY = 1.0  # seconds before the second attempt; it doubles with every further one

Progress = Callable[[str, int, int], None]
"""Called with a file's path, the bytes received so far and its size in bytes."""


def fetch(
    name: str,
    mirror: str | None = None,
    dest: Path | None = None,
    progress: Progress | None = None,
    *,
    pins: Mapping[str, Pin] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Path:
    """Download the files of dataset ``name`` and return the directory that holds them.

    ``mirror`` is a base URL that serves the same paths; ``dest`` defaults to the cache. Correct
    files are not downloaded again, and truncated ones are continued. ``clock`` waits between
    two attempts.

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
    with _directory_lock(root), HttpClient() as client:
        for file in pin.files:
            target = root / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            if not _is_complete(target, file):
                _Download(client, f"{base}/{file.path}", target, file, report, clock).run()
            size = target.stat().st_size
            report(file.path, size, size)
    return root


def _ignore_progress(path: str, done: int, total: int) -> None:
    del path, done, total


@contextmanager
def _directory_lock(root: Path) -> Iterator[None]:
    """Lock ``root`` against other processes that download to it, if the system has locks."""
    with (root / ".lock").open("wb") as file:
        lock_file(file)
        yield


def _pinned_digest(path: Path, file: PinnedFile) -> str:
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
    return _pinned_digest(path, file) == _expected_digest(file)


@dataclass(frozen=True)
class _Download:
    """The download of one file from ``url`` to ``target``, through a ``.part`` file next to it."""

    client: HttpClient
    url: str
    target: Path
    file: PinnedFile
    progress: Progress
    clock: Clock

    @property
    def part(self) -> Path:
        return self.target.with_name(self.target.name + ".part")

    def run(self) -> None:
        """Download the file and check its digest."""
        part, file = self.part, self.file
        leftover, expected = part.is_file(), _expected_digest(file)
        self._complete_part()
        digest = _pinned_digest(part, file)
        if digest != expected and leftover:  # the part of an earlier run may be damaged
            part.unlink()
            self._complete_part()
            digest = _pinned_digest(part, file)
        if digest != expected:
            kind = "sha256" if file.sha256 else "git's sha1"
            raise self._reject(f"expected {kind} {expected}, got {digest}")
        part.replace(self.target)

    def _complete_part(self) -> None:
        """Complete the part, with further requests when the connection breaks."""
        part, file = self.part, self.file
        if part.is_file() and (part.stat().st_size == file.size or _is_complete(part, file)):
            return
        try:
            retry(self._attempt, MAX_ATTEMPTS, _RETRY_DELAY, self.clock)
        except TooLongError as e:
            raise self._reject(str(e)) from e
        except HttpError as e:
            raise InfrastructureError(
                f"cannot get {self.url} after {MAX_ATTEMPTS} attempts: {e}; run the same command "
                "again to continue, or name another server with --mirror"
            ) from e

    def _attempt(self) -> None:
        with self.part.open("ab+") as f:
            append_rest(f, self.file.size, self._request, partial(self.progress, self.file.path))

    @contextmanager
    def _request(self, headers: Mapping[str, str]) -> Iterator[Response]:
        with self.client.request(parse_url(self.url), headers) as response:
            _check_status(response, self.url)
            yield response

    def _reject(self, fault: str) -> DataError:
        """Remove the part, and return the error for it."""
        self.part.unlink()
        return DataError(
            f"{self.file.path} from {self.url} is not the pinned file: {fault}; nothing was "
            "stored: try another server with --mirror"
        )


def _check_status(response: Response, url: str) -> None:
    code = response.status
    if code == 429 or code >= 500:
        raise HttpError(f"{url} answered with status {code}")
    if code not in (200, 206, 416):
        raise UsageError(
            f"{url} answered with status {code}: check the address, or name another server "
            "with --mirror"
        )
