"""One process per sandbox, outside its process namespace: sets the box up, starts commands in it,
reads and writes its files, and takes the box down when its owner goes away.

Commands are the keeper's own children, so nothing in the box can see, signal or trace what
controls it. PID 1 of the box only collects orphans; when it ends, the kernel ends all the others.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import socket
import struct

from . import changes, files, inside, mounts, wire
from . import syscalls as sys_
from .hardening import harden

TYPE_CHECKING = False  # the module typing would double this process's memory
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

_NAMESPACES = (
    sys_.CLONE_NEWUSER | sys_.CLONE_NEWNS | sys_.CLONE_NEWPID | sys_.CLONE_NEWIPC
    | sys_.CLONE_NEWUTS | sys_.CLONE_NEWCGROUP
)  # fmt: skip
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FIRST_TO_GO = b"500"  # where memory runs out, rather a command than what controls the box


def run(owner: socket.socket, spec: dict[str, Any], copy_from: int | None) -> NoReturn:
    """Be a keeper until the owner hangs up. Never returns."""
    status = 1
    try:
        keeper = Keeper(owner, spec, copy_from)
        wire.send(owner, {"ok": True, "pid": os.getpid(), "groups": spec["groups"]})
        keeper.serve()
        status = 0
    except EOFError:
        status = 0
    except BaseException as e:
        with contextlib.suppress(OSError):
            wire.send(owner, {"ok": False, "error": f"{type(e).__name__}: {e}"})
    finally:
        os._exit(status)


class Keeper:
    def __init__(self, owner: socket.socket, spec: dict[str, Any], copy_from: int | None) -> None:
        self.owner = owner
        self.spec = spec
        self.children: dict[int, tuple[int, int]] = {}  # pidfd -> (pid, status descriptor)
        self.fdinfo = os.open("/proc/self/fdinfo", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._enter_namespaces()
        sys_.prctl(sys_.PR_SET_PDEATHSIG, signal.SIGKILL)
        self.init = inside.start_init(spec)
        layout = mounts.Layout(spec, copy_from)
        self.upper, self.lower = layout.upper, layout.lower
        self.init.mount_proc(layout.root)
        self._change_root(layout.root)
        if spec["look"] == "docker":
            inside.open_terminal()
        self.init.go()
        harden(spec["limits"])
        self.root = os.open("/", _DIRECTORY)
        self.init_fd = os.pidfd_open(self.init.pid)
        self.stopped: list[int] = []
        self.poll = select.poll()
        self.poll.register(owner, select.POLLIN)
        self.poll.register(self.init_fd, select.POLLIN)

    def _enter_namespaces(self) -> None:
        uid, gid = os.geteuid(), os.getegid()
        sys_.prctl(sys_.PR_SET_DUMPABLE, 1)  # or the kernel would not let us write our own id map
        own_network = self.spec["network"] != "host"
        sys_.unshare(_NAMESPACES | (sys_.CLONE_NEWNET if own_network else 0))
        for name, text in (
            ("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1"),
        ):  # fmt: skip
            with open(f"/proc/self/{name}", "w") as f:
                f.write(text)
        self.sacrifice = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
        sys_.prctl(sys_.PR_SET_DUMPABLE, 0)
        socket.sethostname(self.spec["hostname"])
        if own_network:
            _loopback_up()

    def _change_root(self, root: str) -> None:
        os.chdir(root)
        sys_.pivot_root(".", ".")
        sys_.umount(".")
        os.chdir("/")

    # ------------------------------------------------------------------ serving
    def serve(self) -> None:
        """Answer requests until the owner hangs up or the box ends."""
        while True:
            for fd, _ in self.poll.poll():
                if fd == self.owner.fileno():
                    self._answer()
                elif fd == self.init_fd:
                    return
                else:
                    self._reap(fd)

    def _answer(self) -> None:
        request, fds = wire.receive(self.owner)
        handler: Callable[..., tuple[dict[str, Any], list[int]]]
        handler = getattr(self, "do_" + request.pop("do"))
        try:
            answer, out = handler(fds=fds, **request)
        except Exception as e:  # a request that cannot be met must not cost the box
            code = getattr(e, "errno", None) or errno.EINVAL
            answer, out = {"ok": False, "errno": code, "error": getattr(e, "strerror", str(e))}, []
        finally:
            wire.close_all(fds)
        try:
            wire.send(self.owner, answer, out)
        except OSError as e:
            if not out:
                raise
            # too many descriptors of this id are under way (a box can see to that): say so
            wire.send(self.owner, {"ok": False, "errno": e.errno, "error": str(e)})
        finally:
            wire.close_all(out)

    def _reap(self, pidfd: int) -> None:
        pid, status_fd = self.children.pop(pidfd)
        self.poll.unregister(pidfd)
        _, status = os.waitpid(pid, 0)
        with contextlib.suppress(OSError):
            os.write(status_fd, struct.pack("i", os.waitstatus_to_exitcode(status)))
        wire.close_all((pidfd, status_fd))

    # ----------------------------------------------------------------- requests
    def do_spawn(
        self, fds: list[int], argv: list[str], cwd: str, env: dict[str, str], targets: list[int]
    ) -> tuple[dict[str, Any], list[int]]:
        """Start a program. The first descriptor gets the exit status, the others are for it."""
        status_fd = os.dup(fds[0])
        try:
            os.write(self.sacrifice, _FIRST_TO_GO)
            pid = inside.spawn(argv, cwd, env, dict(zip(targets, fds[1:], strict=True)))
            os.write(self.sacrifice, b"0")
        except BaseException:
            os.close(status_fd)
            raise
        pidfd = os.pidfd_open(pid)
        self.children[pidfd] = (pid, status_fd)
        self.poll.register(pidfd, select.POLLIN)
        return {"ok": True, "pid": self._number_inside(pidfd), "child": pid}, []

    def _number_inside(self, pidfd: int) -> int:
        """What the box calls the process behind a descriptor."""
        fd = os.open(str(pidfd), os.O_RDONLY, dir_fd=self.fdinfo)
        with open(fd) as f:
            fields = dict(line.split(":", 1) for line in f)
        return int(fields["NSpid"].split()[-1])

    def do_kill(self, fds: list[int], child: int, number: int) -> tuple[dict[str, Any], list[int]]:
        if any(pid == child for pid, _ in self.children.values()):
            os.kill(child, number)
        return {"ok": True}, []

    def do_kill_since(
        self, fds: list[int], mark: int, keep: list[int]
    ) -> tuple[dict[str, Any], list[int]]:
        inside.signal_since(mark, keep, signal.SIGKILL)
        return {"ok": True}, []

    def do_freeze(self, fds: list[int], on: bool) -> tuple[dict[str, Any], list[int]]:
        self._freeze(on)
        return {"ok": True}, []

    def _freeze(self, on: bool) -> None:
        if on:
            self.stopped += inside.stop_all()
        else:
            inside.wake(self.stopped)
            self.stopped = []

    def do_processes(self, fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        own = {self._number_inside(pidfd) for pidfd in self.children}
        return {"ok": True, "processes": inside.names(own)}, []

    def do_changes(self, fds: list[int], digests: bool) -> tuple[dict[str, Any], list[int]]:
        return {"ok": True, "rows": changes.changes(self.upper, self.lower, digests)}, []

    def do_upper(self, fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        return {"ok": True}, [os.dup(self.upper)]

    def do_open(self, fds: list[int], path: str) -> tuple[dict[str, Any], list[int]]:
        return {"ok": True}, [files.open_regular(self.root, path)]

    def do_write(self, fds: list[int], path: str, mode: int) -> tuple[dict[str, Any], list[int]]:
        files.write(self.root, path, fds[0], mode)
        return {"ok": True}, []

    def do_end(self, fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        """End the box and wait until its last process is gone and its files are released."""
        os.kill(self.init.pid, signal.SIGKILL)
        os.waitpid(self.init.pid, 0)
        raise EOFError


def _loopback_up() -> None:
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        request = struct.pack("16sH14x", b"lo", 0x1 | 0x40)  # IFF_UP | IFF_RUNNING
        fcntl.ioctl(s, 0x8914, request)  # SIOCSIFFLAGS
