"""A back end WITHOUT ISOLATION in about 100 lines: programs of this machine, run in a directory
as this user. They see the whole machine. Limits and network settings have no effect."""

import fcntl
import hashlib
import os
import stat
import subprocess
import weakref
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from intercode_sandbox import BaseSandbox, ProgramSpec, SandboxSpec
from intercode_sandbox.errors import SandboxLostError
from intercode_sandbox.types import FileEntry

_GONE = FileEntry("gone")
_QUIET = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
_KINDS: dict[int, Any] = {stat.S_IFDIR: "dir", stat.S_IFLNK: "link", stat.S_IFREG: "file"}


class UnisolatedProcess(subprocess.Popen[bytes]):
    """A process of this machine. Signals go to it and to what it has started."""

    def fileno(self) -> int:
        if "_pidfd" not in vars(self):
            self._pidfd = os.pidfd_open(self.pid)
            weakref.finalize(self, os.close, self._pidfd)
        return self._pidfd

    def wait(self, timeout: float | None = None) -> int | None:  # type: ignore[override]
        with suppress(subprocess.TimeoutExpired):
            return super().wait(timeout)
        return None

    def kill(self, number: int = 9) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)


class UnisolatedSandbox(BaseSandbox):
    """A directory in which programs run without isolation."""

    def __init__(self, spec: SandboxSpec) -> None:
        self.spec, self.tier, self._home = spec, "unisolated", TemporaryDirectory()
        self._root, self.script_path = Path(self._home.name, "files"), f"{self._home.name}/bash"
        Path(self._root, "tmp").mkdir(parents=True)
        os.symlink("/proc/self/fd/62", self.script_path)
        for layer in spec.all_layers:
            subprocess.run(["cp", "-a", f"{layer.root}/.", self._root], check=True)
        self.env = {"PATH": os.environ["PATH"], **spec.image.env, **spec.env}
        self._initial, self._started = self._files(), list[UnisolatedProcess]()

    def _path(self, path: str) -> Path:
        return Path(path if path.startswith(self._home.name) else f"{self._root}/{path}")

    def start(self, program: ProgramSpec) -> Any:
        if not self._root.exists():
            raise SandboxLostError("the sandbox is closed")
        process = UnisolatedProcess(
            program.argv,
            cwd=self._path(program.cwd),
            env=self.env if program.env is None else program.env,
            **_QUIET,
            start_new_session=True,
            close_fds=False,
            preexec_fn=lambda: _give(program.fds),
        )
        self._started.append(process)
        return process

    def read(self, path: str, limit: int = 64 << 20) -> bytes:
        if self._path(path).is_fifo() or self._path(path).stat().st_size > limit:
            raise OSError(f"{path} is no file of at most {limit} bytes")
        return self._path(path).read_bytes()

    def write(self, path: str, data: bytes, mode: int = 0o644) -> None:
        self._path(path).parent.mkdir(parents=True, exist_ok=True)
        self._path(path).write_bytes(data)
        self._path(path).chmod(mode)

    def changes(self, digests: bool = True, pause: bool = False) -> dict[str, FileEntry]:
        now, old = self._files(), self._initial
        return {p: e for p in sorted(now | old) if (e := now.get(p, _GONE)) != old.get(p)}

    def _files(self) -> dict[str, FileEntry]:
        return {f"/{path.relative_to(self._root)}": _entry(path) for path in self._root.rglob("*")}

    def close(self, wait: bool = False) -> None:
        for process in self._started:
            process.kill()
        self._home.cleanup()


def _give(fds: Mapping[int, int]) -> None:
    for number in (n for n in range(3, 1024) if os.path.exists(f"/proc/self/fd/{n}")):
        os.set_inheritable(number, False)
    for number, high in [(n, fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 99)) for n, fd in fds.items()]:
        os.dup2(high, number)


def _entry(path: Path) -> FileEntry:
    info = path.lstat()
    kind = _KINDS.get(stat.S_IFMT(info.st_mode), "fifo")
    digest = hashlib.sha256(path.read_bytes()).hexdigest() if kind == "file" else ""
    link, size = (os.readlink(path) if kind == "link" else ""), info.st_size * (kind == "file")
    return FileEntry(kind, info.st_mode & 0o7777, size, digest, link)
