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

from . import files, mounts, overlay_changes, processes, protocol
from . import syscalls as sys_
from .hardening import set_limits
from .isolation import Isolation

TYPE_CHECKING = False  # the module typing would double this process's memory
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_ENDING_MS = 500  # for PID 1 to have ended, once nothing can be started any more
_COMMAND_OOM_SCORE = b"500"  # where memory runs out, rather a command than what controls the box


def run_supervisor(
    launcher: socket.socket,
    given: tuple[dict[str, Any], list[int]] | None,
    stage: str,
    own_network: bool,
    plain: bool,
    program: int,
) -> NoReturn:
    """Be a keeper: get ready, wait for a request if none is ``given``, and serve its owner until it
    hangs up."""
    status = 1
    owner = None
    try:
        blank: Isolation | Exception
        try:
            blank = Isolation(stage, own_network, plain, program)
        except Exception as e:  # told to whoever asks
            blank = e
        spec, fds = given or protocol.receive(launcher)
        launcher.close()
        owner = socket.socket(fileno=fds[0])
        if isinstance(blank, Exception):
            raise blank
        keeper = Supervisor(owner, spec, blank, fds[1:])
        protocol.send(owner, {"ok": True, "pid": os.getpid(), "groups": spec["groups"]})
        keeper.serve()
        status = 0
    except EOFError:
        status = 0
    except BaseException as e:
        if owner is not None:
            with contextlib.suppress(OSError):
                protocol.send(owner, {"ok": False, "error": f"{type(e).__name__}: {e}"})
    finally:
        os._exit(status)


class Supervisor:
    def __init__(
        self, owner: socket.socket, spec: dict[str, Any], blank: Isolation, given: list[int]
    ) -> None:
        self.owner = owner
        self.children: dict[int, tuple[int, int]] = {}  # pidfd -> (pid, status descriptor)
        self.fdinfo, self.oom_score_fd, self.init = blank.fdinfo, blank.oom_score_fd, blank.init
        self.network = blank.network
        socket.sethostname(spec["hostname"])
        copies = spec["copies"]
        layout = mounts.RootLayout(spec, given[:copies], given[copies:])
        protocol.close_all(given)
        self.spec, self.hidden_directory = spec, layout.hidden_directory
        self.uppers, self.lower = layout.uppers, layout.lower
        mounts.change_root(layout.root)
        if spec["look"] == "docker":
            processes.open_terminal()
            self.init.run_shell(spec["limits"], spec["env"])
        set_limits(spec["limits"])
        if spec["steady"]:
            sys_.disable_address_randomization()
        self.root = os.open("/", _DIRECTORY)
        if spec["steady"]:
            files.visit_directories(self.root)
        self.init_fd = os.pidfd_open(self.init.pid)
        self.stopped_pids: list[int] = []
        self.poll = select.poll()
        self.poll.register(owner, select.POLLIN)
        self.poll.register(self.init_fd, select.POLLIN)

    # ------------------------------------------------------------------ serving
    def serve(self) -> None:
        """Answer requests until the owner hangs up or the box ends."""
        while True:
            for fd, _ in self.poll.poll():
                if fd == self.owner.fileno():
                    self._handle_request()
                elif fd == self.init_fd:
                    return
                elif fd in self.children:
                    self._reap(fd)

    def _handle_request(self) -> None:
        request, fds = protocol.receive(self.owner)
        handler: Callable[..., tuple[dict[str, Any], list[int]]]
        try:
            handler = getattr(self, "do_" + request.pop("do"))
            answer, out = handler(fds=fds, **request)
        except Exception as e:  # a request that cannot be met must not cost the box
            code = getattr(e, "errno", None) or errno.EINVAL
            answer, out = {"ok": False, "errno": code, "error": getattr(e, "strerror", str(e))}, []
        finally:
            protocol.close_all(fds)
        try:
            protocol.send(self.owner, answer, out)
        except OSError as e:
            if not out:
                raise
            # too many descriptors of this id are under way (a box can see to that): say so
            protocol.send(self.owner, {"ok": False, "errno": e.errno, "error": str(e)})
        finally:
            protocol.close_all(out)

    def _reap(self, pidfd: int) -> None:
        pid, status_fd = self.children.pop(pidfd)
        self.poll.unregister(pidfd)
        _, status = os.waitpid(pid, 0)
        with contextlib.suppress(OSError):
            os.write(status_fd, struct.pack("i", os.waitstatus_to_exitcode(status)))
        protocol.close_all((pidfd, status_fd))

    # ----------------------------------------------------------------- requests
    def do_spawn(
        self, fds: list[int], argv: list[str], cwd: str, env: dict[str, str], targets: list[int]
    ) -> tuple[dict[str, Any], list[int]]:
        """Start a program. The first descriptor gets the exit status, the others are for it."""
        status_fd = os.dup(fds[0])
        try:
            os.write(self.oom_score_fd, _COMMAND_OOM_SCORE)
            pid = processes.spawn(argv, cwd, env, dict(zip(targets, fds[1:], strict=True)))
            os.write(self.oom_score_fd, b"0")
        except BaseException as e:
            os.close(status_fd)
            if getattr(e, "errno", None) == errno.ENOMEM:
                self._exit_if_init_ended()
            raise
        pidfd = os.pidfd_open(pid)
        self.children[pidfd] = (pid, status_fd)
        self.poll.register(pidfd, select.POLLIN)
        return {"ok": True, "pid": self._inner_pid(pidfd), "child": pid}, []

    def _exit_if_init_ended(self) -> None:
        """Nothing can be started in a box whose PID 1 is ending, which takes until its processes
        are collected: the box has gone then, and that is what its owner is to see."""
        for pidfd in list(self.children):
            if _is_ready(pidfd, 0):
                self._reap(pidfd)
        if _is_ready(self.init_fd, _ENDING_MS):
            os._exit(0)

    def _inner_pid(self, pidfd: int) -> int:
        """What the box calls the process behind a descriptor."""
        fd = os.open(str(pidfd), os.O_RDONLY, dir_fd=self.fdinfo)
        with open(fd) as f:
            fields = dict(line.split(":", 1) for line in f)
        return int(fields["NSpid"].split()[-1])

    def do_kill(self, fds: list[int], child: int, number: int) -> tuple[dict[str, Any], list[int]]:
        if any(pid == child for pid, _ in self.children.values()):
            os.kill(child, number)
        return {"ok": True}, []

    def do_signal(self, fds: list[int], pid: int, number: int) -> tuple[dict[str, Any], list[int]]:
        """Send a signal to a process by its number in the box, but to PID 1."""
        processes.signal_process(pid, number)
        return {"ok": True}, []

    def do_kill_since(
        self, fds: list[int], mark: int, keep: list[int]
    ) -> tuple[dict[str, Any], list[int]]:
        processes.kill_since(mark, keep, self.init)
        return {"ok": True}, []

    def do_freeze(self, fds: list[int], on: bool) -> tuple[dict[str, Any], list[int]]:
        self._freeze(on)
        return {"ok": True}, []

    def _freeze(self, on: bool) -> None:
        if on:
            self.stopped_pids += processes.stop_all()
        else:
            processes.resume(self.stopped_pids)
            self.stopped_pids = []

    def do_processes(self, fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        return {"ok": True, "processes": self._background_processes()}, []

    def _background_processes(self) -> list[str]:
        """What runs in the box and was not started from here."""
        return processes.process_names({self._inner_pid(pidfd) for pidfd in self.children})

    def do_changes(
        self, fds: list[int], digests: bool, still: bool
    ) -> tuple[dict[str, Any], list[int]]:
        """What changed; ``still``: with all that runs in the background halted meanwhile."""
        halted = still and bool(self._background_processes())
        if halted:
            self._freeze(True)
        try:
            return {
                "ok": True,
                "rows": overlay_changes.list_changes(self.uppers, self.lower, digests),
            }, []
        finally:
            if halted:
                self._freeze(False)

    def do_changed_paths(self, fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        """The paths of what changed."""
        rows = overlay_changes.list_changes(self.uppers, self.lower, False)
        return {"ok": True, "paths": [row[0] for row in rows]}, []

    def do_upper(self, fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        return {"ok": True}, [os.dup(self.uppers[0])]

    def do_size(self, fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        """What the box's own files take up and what they still may: bytes, and how many."""
        info = os.fstatvfs(self.uppers[0])
        return {
            "ok": True,
            "bytes": (info.f_blocks - info.f_bfree) * info.f_frsize,
            "files": info.f_files - info.f_ffree,
            "bytes_left": info.f_bavail * info.f_frsize,
            "files_left": info.f_favail if info.f_files else None,
        }, []

    def do_seal(self, fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        """A detached mount of the upper layer; nothing may be able to write there any more."""
        return {"ok": True}, [sys_.clone_mount(self.uppers[0])]

    def do_open(self, fds: list[int], path: str) -> tuple[dict[str, Any], list[int]]:
        return {"ok": True}, [files.open_regular(self.root, path)]

    def do_write(self, fds: list[int], path: str, mode: int) -> tuple[dict[str, Any], list[int]]:
        files.write_file(self.root, path, fds[0], mode)
        return {"ok": True}, []

    def do_end_all(self, fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        """End all that runs in the box. Raises OSError for what does not end."""
        if left := processes.kill_all(self.init):
            raise OSError(errno.EBUSY, f"live processes: {', '.join(left)}")
        for pidfd in list(self.children):
            self._reap(pidfd)
        return {"ok": True}, []

    def do_recycle(self, fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        """End all that runs and begin again on the image, in the same namespaces. Raises OSError
        where something would be left of what was; the box is of no use then."""
        self.do_end_all(fds)
        if self.network.was_used():
            raise OSError(errno.EBUSY, "its network was used")
        sys_.unshare(sys_.CLONE_NEWIPC)
        self._replace_root([])
        self.init.reset_pid_counter()
        return {"ok": True}, []

    def do_replace_files(self, fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        """Begin again on the image, with the files of other uppers, while processes wait."""
        self._replace_root(fds)
        return {"ok": True}, []

    def _replace_root(self, copies: list[int]) -> None:
        protocol.close_all([*self.uppers, self.root])
        base = self.hidden_directory
        self.uppers, self.hidden_directory = mounts.remount_root(self.spec, base, copies)
        os.close(base)
        self.root = os.open("/", _DIRECTORY)

    def do_end(self, fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        """End the box and wait until its last process is gone and its files are released."""
        os.kill(self.init.pid, signal.SIGKILL)
        os.waitpid(self.init.pid, 0)
        raise EOFError


def _is_ready(fd: int, milliseconds: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(milliseconds))
