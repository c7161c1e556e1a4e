"""Copies files and trees into a sandbox and out of it.

Everything that comes out of a sandbox was written by code that may be hostile. A download therefore
writes regular files, directories, and links that lead nowhere outside of them, below a new
directory, and never through a link.
"""

from __future__ import annotations

import errno
import os
import select
import shlex
import stat
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO

from intercode_sandbox.api.execution import CHUNK, Command, LiveProcesses, make_command, run_command
from intercode_sandbox.api.process import SandboxProcess
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.errors import DataError, SandboxError, UsageError
from intercode_sandbox.images.archives.tar import StrictTarInfo, mtime_ns
from intercode_sandbox.images.archives.tree_writer import MODE_MASK, TreeWriter
from intercode_sandbox.streams import BaseProcess, encode
from intercode_sandbox.types import FileInfo
from intercode_sandbox.validation import absolute_path

DEFAULT_LIMIT = 1 << 30
"""The most bytes of a download, unless another limit is given."""
MAX_ENTRIES = 500_000
"""Files, directories and links of a download. The program that lists them may be hostile."""
TRANSFER_SECONDS = 300.0
MAX_LINKS = 40
"""The most links through which a path leads, as in Linux."""
_MESSAGE_BYTES = 1000
_READ = '[ -f "$0" ] && exec head -c "$1" "$0"'
_WRITE = """
[ ! -d "$0" ] || exit 21
[ ! -p "$0" ] || exit 13  # a pipe: the write would wait for a reader
mkdir -p "${0%/*}/" && cat > "$0" || exit 13
[ ! -O "$0" ] || chmod "$1" "$0"
"""
"""Writes a file as a user. Its exit statuses are the numbers of Linux's errors. Here and below,
programs are given paths relative to the root directory, in which they start."""


def read(base: BaseSandbox, path: str, limit: int) -> bytes:
    """Return the content of a file; see ``Sandbox.read``."""
    path = absolute_path(path)
    with _naming(path, f"{limit} bytes: read takes a higher `limit`"):
        return base.read(path, limit)


def write(base: BaseSandbox, path: str, data: bytes, mode: int = 0o644) -> None:
    """Write a file; see ``Sandbox.write``."""
    path = _file_path(path)
    if not isinstance(data, bytes | bytearray | memoryview):
        raise UsageError(f"the content of {path} is text or bytes, not {data!r:.80}")
    with _naming(path, "the limit `file_size` of the sandbox"):
        base.write(path, data, _checked(mode))


def _file_path(path: str) -> str:
    """Return the path of a file to write. Raises IsADirectoryError if it ends in a slash."""
    path = absolute_path(path)
    if path.endswith("/"):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    return path


def _checked(mode: int) -> int:
    """Return the mode of a file. Raises UsageError for another value."""
    if type(mode) is not int or not 0 <= mode <= 0o7777:
        raise UsageError(f"mode is a number such as 0o644, not {mode!r}")
    return mode


def read_as(
    base: BaseSandbox, live: LiveProcesses, path: str, limit: int, user: str | int
) -> bytes:
    """Return the content of a file that a user may read; see ``Sandbox.read``."""
    path = absolute_path(path)
    argv = ["/bin/sh", "-c", _READ, f".{path}", str(limit + 1)]
    with SandboxProcess(base, live, make_command(base, argv, cwd="/", user=user)) as process:
        content = bytearray()
        for data, stream in process.chunks(TRANSFER_SECONDS):
            content += data if stream == "stdout" else b""
            if len(content) > limit:  # the sandbox's own program may write without end
                break
        has_read = len(content) <= limit and process.wait() == 0
    if not has_read:
        read(base, path, limit)  # raises what is wrong for root, too
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    return bytes(content)


def write_as(
    base: BaseSandbox, live: LiveProcesses, path: str, data: bytes, mode: int, user: str | int
) -> None:
    """Write a file as a user; see ``Sandbox.write``."""
    path = _file_path(path)
    argv = ["/bin/sh", "-c", _WRITE, f".{path}", f"{_checked(mode):o}"]
    command = make_command(base, argv, stdin=data, cwd="/", user=user)
    result = run_command(base, live, command, TRANSFER_SECONDS)
    if result.exit_code == errno.EISDIR:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not result.ok:
        number = errno.ENOSPC if result.limit_exceeded == "disk" else errno.EACCES
        raise OSError(number, result.stderr.strip()[:_MESSAGE_BYTES] or os.strerror(number), path)


@contextmanager
def _naming(path: str, limit: str) -> Iterator[None]:
    """Name the path, and the limit of its size, in an OSError, which a sandbox raises without
    them."""
    try:
        yield
    except OSError as e:
        if e.filename is None and e.errno is not None:
            e.filename = path
        if e.errno == errno.EFBIG:
            e.strerror = f"larger than {limit}"
        raise


def describe(base: BaseSandbox, path: str, follow: bool) -> FileInfo:
    """Return what a path is; see ``Sandbox.stat``."""
    path = absolute_path(path)
    with _naming(path, "a sandbox can describe"):
        return base.file_info(path, follow)


def list_files(base: BaseSandbox, path: str) -> dict[str, FileInfo]:
    """Return what is in a directory; see ``Sandbox.list_files``."""
    path = absolute_path(path)
    with _naming(path, "a sandbox can list"):
        return base.list_directory(path)


def remove(
    base: BaseSandbox, live: LiveProcesses, path: str, recursive: bool, user: str | int | None
) -> None:
    """Remove a file or directory; see ``Sandbox.remove``."""
    path = absolute_path(path)
    if not path.strip("/"):
        raise UsageError("the root directory cannot be removed: close the sandbox")
    is_directory = describe(base, path, follow=False).kind == "dir"
    if is_directory and not recursive:
        raise IsADirectoryError(errno.EISDIR, "a directory: give recursive=True", path)
    if user is None:
        with _naming(path, "a sandbox can remove"):
            base.remove(path, recursive)
        return
    command = make_command(
        base, ["rm", "-rf" if recursive else "-f", "--", f".{path}"], cwd="/", user=user
    )
    try:
        result = run_command(base, live, command, TRANSFER_SECONDS)
    except FileNotFoundError as e:
        raise SandboxError(f"{path} was not removed: the sandbox has no program rm") from e
    with suppress(FileNotFoundError):
        describe(base, path, follow=False)  # what the sandbox calls rm may do something else
        message = result.stderr.strip()[:_MESSAGE_BYTES] or "it is still there"
        raise OSError(errno.EACCES, message, path)


# ---------------------------------------------------------------------- uploads
def write_files(
    base: BaseSandbox, live: LiveProcesses, files: Mapping[str, str | bytes | Path]
) -> None:
    """Write files, by their paths in the sandbox. The value of each is its text, its bytes, or the
    path of a file or directory of this machine."""
    if not isinstance(files, Mapping):
        raise UsageError(f"files are a mapping such as {{'/tmp/a': 'text'}}, not {files!r:.80}")
    for path, content in files.items():
        if isinstance(content, Path):
            upload(base, live, content, path)
        else:
            data = encode(content) if isinstance(content, str) else content
            write(base, path, data)


def upload(base: BaseSandbox, live: LiveProcesses, local: Path, path: str) -> None:
    """Copy a file or directory of this machine to a path in a sandbox; see ``Sandbox.upload``."""
    path = absolute_path(path)
    try:
        info = local.stat()
    except OSError as e:
        raise UsageError(f"{local} cannot be uploaded: {e.strerror}") from e
    if stat.S_ISREG(info.st_mode):
        write(base, path, local.read_bytes(), mode=stat.S_IMODE(info.st_mode) & 0o777)
        return
    if not stat.S_ISDIR(info.st_mode):
        raise UsageError(f"{local} is neither a file nor a directory")
    with tempfile.TemporaryFile() as archive:
        _pack(local, archive)
        quoted = shlex.quote(f".{path}")
        script = f"mkdir -p {quoted} && tar -x -o -f - -C {quoted}"
        command = Command(["/bin/sh", "-c", script], "/", base.env, archive)
        result = run_command(base, live, command, TRANSFER_SECONDS)
    if result.timed_out:
        raise SandboxError(f"{local} was not written to {path} within {TRANSFER_SECONDS:g} s")
    if not result.ok:
        raise SandboxError(
            f"{local} cannot be uploaded to {path}: {result.stderr.strip()[:_MESSAGE_BYTES]!r}; "
            "the image needs tar for directories"
        )


def _pack(local: Path, archive: IO[bytes]) -> None:
    """Write a directory as a tar archive, owned by root, with links as links."""

    def own(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        entry.mode &= MODE_MASK
        return entry

    with tarfile.open(fileobj=archive, mode="w", format=tarfile.GNU_FORMAT) as out:
        for child in sorted(local.iterdir()):
            out.add(child, child.name, filter=own)
    archive.seek(0)


# -------------------------------------------------------------------- downloads
def download(
    base: BaseSandbox, live: LiveProcesses, path: str, local: Path, limit: int
) -> list[str]:
    """Copy a file or directory of a sandbox to this machine; see ``Sandbox.download``."""
    path = absolute_path(path)
    if limit < 0:
        raise UsageError(f"a download has a limit of at least 0 bytes, not {limit}")
    try:
        data = read(base, path, limit)
    except IsADirectoryError:
        return _download_tree(base, live, path, local, limit)
    local.parent.mkdir(parents=True, exist_ok=True)
    local.write_bytes(data)
    return []


def _download_tree(
    base: BaseSandbox, live: LiveProcesses, path: str, local: Path, limit: int
) -> list[str]:
    created = not local.exists()
    local.mkdir(parents=True, exist_ok=True)
    if any(local.iterdir()):
        raise UsageError(f"{local} is not empty: download into a new directory")
    try:
        with tempfile.TemporaryFile() as archive:
            _fetch_archive(base, live, path, archive, limit)
            writer = _DownloadWriter(local, path, limit)
            writer.write(archive)
    except BaseException:
        if created:
            with suppress(OSError):
                local.rmdir()  # only if nothing was written
        raise
    return sorted(writer.left_out)


def _fetch_archive(
    base: BaseSandbox, live: LiveProcesses, path: str, archive: IO[bytes], limit: int
) -> None:
    """Write what the sandbox's tar makes of a directory to a file of this machine."""
    most = 2 * limit + (64 << 20)  # headers and padding of many small files
    read, write = os.pipe()
    process: BaseProcess | None = None
    try:
        argv = ["tar", "-c", "-f", "-", "-C", f".{path}", "."]
        process = live.start(lambda: base.spawn(argv, fds={1: write}))
        os.close(write)
        write = -1
        deadline = time.monotonic() + TRANSFER_SECONDS
        poll = select.poll()
        poll.register(read, select.POLLIN)
        while True:
            if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                process.kill()
                raise SandboxError(f"{path} was not read within {TRANSFER_SECONDS:g} s")
            data = os.read(read, CHUNK)
            if not data:
                break
            archive.write(data)
            most -= len(data)
            if most < 0:
                process.kill()
                raise _too_large(path, limit)
        if (status := process.wait(TRANSFER_SECONDS)) not in (0, 1):  # 1: a file has changed
            process.kill()
            raise SandboxError(f"{path} was not read completely: tar ended with {status}")
    except FileNotFoundError as e:
        raise SandboxError(f"the image has no tar, which a download of {path} needs") from e
    finally:
        if process is not None:
            live.remove(process)
        for fd in (read, write):
            if fd >= 0:
                os.close(fd)
    archive.seek(0)


def _too_large(path: str, limit: int) -> DataError:
    return DataError(f"{path} has more than {limit} bytes: give a larger `limit`")


class _DownloadWriter(TreeWriter):
    """Writes an archive that code in a sandbox may have made into an empty directory."""

    def __init__(self, local: Path, path: str, limit: int) -> None:
        super().__init__(local, os.geteuid(), f"the download of {path}")
        self.limits = replace(
            self.limits, entries=MAX_ENTRIES, entries_reason="download parts of it"
        )
        self._path, self._limit, self._left = path, limit, limit
        self._links: dict[str, tuple[str, int]] = {}  # target and time; written after all files
        self.left_out: list[str] = []

    def write(self, archive: IO[bytes]) -> None:
        """Write the files, directories, and links that stay inside; note other entries in
        ``left_out``.

        Raises DataError for a broken archive, names that lead out of it, and too many bytes.
        """
        try:
            with tarfile.open(fileobj=archive, mode="r:", tarinfo=StrictTarInfo) as entries:
                while (entry := entries.next()) is not None:
                    self._write_entry(entries, entry)
                    vars(entries)["members"] = []  # otherwise tarfile keeps every entry in memory
        except (tarfile.TarError, ValueError, OverflowError, EOFError) as e:
            raise DataError(f"{self.origin} is not a complete tar archive: {e}") from e
        for name, (target, time_ns) in self._links.items():
            if self._stays_inside(name) and not os.path.lexists(self._full_path(name)):
                self._make_symlink(name, target, time_ns)
            else:
                self.left_out.append(name)
        self.finish()

    def _stays_inside(self, name: str) -> bool:
        """Return whether a link is relative and leads nowhere outside of the tree, through
        whatever other links."""
        inside, links = name.split("/")[:-1], 0
        todo = self._links[name][0].split("/")[::-1]
        if self._links[name][0].startswith("/"):
            return False
        while todo:
            part = todo.pop()
            if part in ("", "."):
                continue
            if part == "..":
                if not inside:
                    return False
                inside.pop()
                continue
            target = self._links.get("/".join([*inside, part]), ("", 0))[0]
            if not target:
                inside.append(part)
                continue
            links += 1
            if links > MAX_LINKS or target.startswith("/"):
                return False
            todo += target.split("/")[::-1]
        return True

    def _write_entry(self, entries: tarfile.TarFile, entry: tarfile.TarInfo) -> None:
        name = self.normalize(entry.name)
        if entry.isdir():
            self.limits.count_entry(self.origin)
            self.directory(name, entry.mode, mtime_ns(entry))
        elif entry.isfile():
            self._left -= max(entry.size, 0)
            source = entries.extractfile(entry)
            if self._left < 0 or source is None:
                raise _too_large(self._path, self._limit)
            with source:
                self.file(name, source, entry.size, entry.mode, mtime_ns(entry))
        elif entry.issym() and entry.linkname:
            self.limits.count_entry(self.origin)
            self._links[name] = entry.linkname, mtime_ns(entry)
        elif entry.islnk() and self.normalize(entry.linkname) in self._links:
            self.limits.count_entry(self.origin)
            self._links[name] = self._links[self.normalize(entry.linkname)]
        elif entry.islnk() and self.normalize(entry.linkname) not in self.left_out:
            self.hardlink(name, entry.linkname)
        else:
            self.limits.count_entry(self.origin)
            self.left_out.append(name)
