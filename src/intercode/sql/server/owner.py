"""The process that owns a private database server, and ends with those who use it.

Started as a file by a bare interpreter, it knows the standard library only. It copies a data
directory, starts the server on it as an unprivileged id, and listens on a socket: every process
that uses the server holds a connection there for as long as it does. When the last one hangs up,
however it ended, the server is killed and everything is removed. If this process itself is killed,
the kernel ends the server, and the next start removes the files (see ``sweep``).

    python -I supervisor.py '{"home": …, "source": …, "program": …, "arguments": […], "user": …}'
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1  # PR_SET_PDEATHSIG
_START_SECONDS = 60.0
_LINGER_SECONDS = 3.0  # seconds for which a server waits that was given back in good order
_MAX_FILE_BYTES = 1 << 30  # bytes: no statement of an episode fills the memory file system
_RLIMIT_FSIZE = 1  # RLIMIT_FSIZE


class ServerOwner:
    """Serves until nobody holds a connection any more."""

    def __init__(self, settings: dict[str, object]) -> None:
        self._home = Path(str(settings["home"]))
        self._data = self._home / "data"
        self._socket = self._home / "server"
        self._source = Path(str(settings["source"]))
        self._user = settings["user"]
        arguments = settings["arguments"]
        assert isinstance(arguments, list)
        self._command = [
            str(settings["program"]), *map(str, arguments),
            f"--datadir={self._data}", f"--socket={self._socket}",
            f"--pid-file={self._home / 'pid'}", f"--tmpdir={self._home / 'tmp'}",
            f"--log-error={self._home / 'log'}", f"--secure-file-priv={self._home / 'none'}",
        ]  # fmt: skip
        self._server: subprocess.Popen[bytes] | None = None
        self._clients: list[socket.socket] = []
        self._last_release = 0.0

    def run(self) -> None:
        """Start the server, serve, and leave nothing behind."""
        listener = socket.socket(socket.AF_UNIX)
        try:
            listener.bind(str(self._home / "control"))
            listener.listen(128)
            try:
                ready = self._start()
            except OSError as e:
                ready = {"error": f"its data could not be laid out: {e}"}
            print(json.dumps(ready), flush=True)  # whoever started us waits for this line
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 1)
            if "error" not in ready:
                self._serve(listener)
        finally:
            if self._server is not None:
                self._server.kill()
                self._server.wait()
            for user in self._clients:
                user.close()  # so that they know it before the files are gone
            shutil.rmtree(self._home, ignore_errors=True)
            with suppress(OSError):
                self._home.parent.rmdir()  # where we were the last

    def _start(self) -> dict[str, object]:
        shutil.copytree(self._source, self._data)
        for name in ("tmp", "none"):
            (self._home / name).mkdir(exist_ok=True)
        if self._user is not None:
            for path in (self._home, self._data, *self._data.rglob("*"), self._home / "tmp"):
                os.chown(path, int(str(self._user)), int(str(self._user)))
        self._server = subprocess.Popen(
            self._command, preexec_fn=self._confine, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self._home,
        )  # fmt: skip
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self._server.poll() is None:
            with socket.socket(socket.AF_UNIX) as probe:
                try:
                    probe.connect(str(self._socket))
                except OSError:
                    time.sleep(0.01)
                else:
                    return {"socket": str(self._socket), "pid": self._server.pid}
        log = self._home / "log"
        said = log.read_text("utf-8", "replace")[-2000:] if log.exists() else "nothing"
        who = "" if self._user is None else f" (can the user id {self._user} reach {self._home}?)"
        return {"error": f"the database server did not start{who}; it said: {said}"}

    def _confine(self) -> None:
        """Between fork and exec: no privileges, no life without its owner, no endless file."""
        import resource

        os.setsid()
        resource.setrlimit(_RLIMIT_FSIZE, (_MAX_FILE_BYTES, _MAX_FILE_BYTES))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        if self._user is not None:
            os.setgroups([])
            os.setgid(int(str(self._user)))
            os.setuid(int(str(self._user)))
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    def _serve(self, listener: socket.socket) -> None:
        assert self._server is not None
        server = os.pidfd_open(self._server.pid)
        deadline = time.monotonic() + _START_SECONDS  # for the first user to come
        while self._clients or time.monotonic() < deadline:
            left = None if self._clients else max(0.0, deadline - time.monotonic())
            ears: list[socket.socket | int] = [listener, server, *self._clients]
            ready = select.select(ears, [], [], left)[0]
            if server in ready:
                return
            if listener in ready:
                self._clients.append(listener.accept()[0])
            for user in [u for u in self._clients if u in ready]:
                if not self._handle_message(user):
                    return
                if not self._clients:
                    deadline = self._last_release + _LINGER_SECONDS

    def _handle_message(self, user: socket.socket) -> bool:
        """What a user says: ``save PATH``, ``bye``, or that it has gone. False: all is over."""
        try:
            said = user.recv(4096).decode()
        except OSError:
            said = ""
        if said.startswith("save "):
            self._save(Path(said[5:].strip()))
            user.sendall(b"saved\n")
            return False
        if said.startswith("bye"):
            self._last_release = time.monotonic()
        self._clients.remove(user)
        user.close()
        return True

    def _save(self, path: Path) -> None:
        """Stop the server in good order and keep its data."""
        assert self._server is not None
        self._server.terminate()
        self._server.wait(_START_SECONDS)
        half = path.with_name(f".{path.name}.{os.getpid()}")
        shutil.copytree(self._data, half)
        half.rename(path)


def remove_orphans(base: Path) -> None:
    """Remove homes whose supervisor was killed: it holds a lock on its home while it lives."""
    for home in base.glob("run-*"):
        try:
            fd = os.open(home, os.O_RDONLY)
        except OSError:
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(home, ignore_errors=True)
        except OSError:
            pass  # alive
        finally:
            os.close(fd)


def main() -> None:
    settings = json.loads(sys.argv[1])
    for number in (signal.SIGINT, signal.SIGHUP):  # meant for the owner, whose end ends us
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    home = os.open(settings["home"], os.O_RDONLY)
    fcntl.flock(home, fcntl.LOCK_EX)
    ServerOwner(settings).run()


if __name__ == "__main__":
    main()
