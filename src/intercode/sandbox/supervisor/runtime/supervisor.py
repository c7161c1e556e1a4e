"""The supervisor of one sandbox, a process outside the sandbox's process namespace. It sets the
sandbox up, starts commands in it, reads and writes its files, and ends it when the owner
disconnects.

Commands are children of the supervisor, so nothing in the sandbox can see, signal or trace the
supervisor. PID 1 of the sandbox only collects orphans. When it ends, the kernel kills all other
processes of the sandbox.
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
from .isolation import Isolation

TYPE_CHECKING = False  # importing typing would double this process's memory
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_ENDING_MS = 500  # wait for PID 1 to end once no process can be started
_COMMAND_OOM_SCORE = b"500"  # if memory runs out, the kernel kills a command first


def run_supervisor(
    launcher: socket.socket,
    given: tuple[dict[str, Any], list[int]] | None,
    stage: str,
    own_network: bool,
    plain: bool,
    program: int,
) -> NoReturn:
    """Run a supervisor: prepare the isolation, wait for a request unless it is ``given``, and serve
    the owner until it closes the connection."""
    status = 1
    owner = None
    try:
        isolation: Isolation | Exception
        try:
            isolation = Isolation(stage, own_network, plain, program)
        except Exception as e:  # reported to the next request
            isolation = e
        spec, fds = given or protocol.receive(launcher)
        launcher.close()
        owner = socket.socket(fileno=fds[0])
        if isinstance(isolation, Exception):
            raise isolation
        supervisor = Supervisor(owner, spec, isolation, fds[1:])
        protocol.send(owner, {"ok": True, "pid": os.getpid(), "cgroups": spec["cgroups"]})
        supervisor.serve()
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
    """Sets up one sandbox and answers the requests of its owner.

    ``given`` are the descriptors of the first request: ``spec["copies"]`` upper layers to copy,
    then mounts of sealed layers.
    """

    def __init__(
        self, owner: socket.socket, spec: dict[str, Any], isolation: Isolation, given: list[int]
    ) -> None:
        self.owner = owner
        self.children: dict[int, tuple[int, int]] = {}  # pidfd: (pid, status descriptor)
        self.fdinfo, self.oom_score_fd, self.init = (
            isolation.fdinfo,
            isolation.oom_score_fd,
            isolation.init,
        )
        self.network = isolation.network
        socket.sethostname(spec["hostname"])
        copies = spec["copies"]
        layout = mounts.RootLayout(spec, given[:copies], given[copies:])
        protocol.close_all(given)
        self.spec, self.hidden_directory = spec, layout.hidden_directory
        self.uppers, self.lower = layout.uppers, layout.lower
        mounts.change_root(layout.root)
        if spec["appearance"] == "docker":
            processes.open_terminal()
            self.init.run_shell(spec["limits"], spec["env"])
        sys_.set_limits(spec["limits"])
        if spec["deterministic"]:
            sys_.disable_address_randomization()
        self.root = os.open("/", _DIRECTORY)
        if spec["deterministic"]:
            files.visit_directories(self.root)
        self.init_fd = os.pidfd_open(self.init.pid)
        self.stopped_pids: list[int] = []
        self.poll = select.poll()
        self.poll.register(owner, select.POLLIN)
        self.poll.register(self.init_fd, select.POLLIN)

    # ------------------------------------------------------------------ serve
    def serve(self) -> None:
        """Answer requests until the owner closes the connection or the sandbox ends."""
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
        except Exception as e:  # a failed request must not end the sandbox
            code = getattr(e, "errno", None) or errno.EINVAL
            answer, out = {"ok": False, "errno": code, "error": getattr(e, "strerror", str(e))}, []
        finally:
            protocol.close_all(fds)
        try:
            protocol.send(self.owner, answer, out)
        except OSError as e:
            if not out:
                raise
            # the kernel limits how many descriptors of a user are being passed at a time, and a
            # sandbox can use up this limit
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
        """Start a program. The first descriptor receives its exit status; the others are passed to
        it."""
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
        """Exit if PID 1 is ending, which tells the owner that the sandbox is gone.

        While PID 1 ends, no process can be started. It ends only when all other processes of the
        sandbox have been collected, so this first collects the ended children.
        """
        for pidfd in list(self.children):
            if _is_ready(pidfd, 0):
                self._reap(pidfd)
        if _is_ready(self.init_fd, _ENDING_MS):
            os._exit(0)

    def _inner_pid(self, pidfd: int) -> int:
        """Return the number in the sandbox of the process of a pidfd."""
        fd = os.open(str(pidfd), os.O_RDONLY, dir_fd=self.fdinfo)
        with open(fd) as f:
            fields = dict(line.split(":", 1) for line in f)
        return int(fields["NSpid"].split()[-1])

    def do_kill(self, fds: list[int], child: int, number: int) -> tuple[dict[str, Any], list[int]]:
        if any(pid == child for pid, _ in self.children.values()):
            os.kill(child, number)
        return {"ok": True}, []

    def do_signal(self, fds: list[int], pid: int, number: int) -> tuple[dict[str, Any], list[int]]:
        """Send a signal to a process by its number in the sandbox, but not to PID 1."""
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
        """Return ``name (pid)`` of every process that the supervisor itself did not start."""
        return processes.process_names({self._inner_pid(pidfd) for pidfd in self.children})

    def do_changes(
        self, fds: list[int], digests: bool, pause: bool
    ) -> tuple[dict[str, Any], list[int]]:
        """List the changes. ``pause``: stop background processes during the call."""
        paused = pause and bool(self._background_processes())
        if paused:
            self._freeze(True)
        try:
            return {
                "ok": True,
                "rows": overlay_changes.list_changes(self.uppers, self.lower, digests),
            }, []
        finally:
            if paused:
                self._freeze(False)

    def do_changed_paths(self, fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        """List the changed paths."""
        rows = overlay_changes.list_changes(self.uppers, self.lower, False)
        return {"ok": True, "paths": [row[0] for row in rows]}, []

    def do_upper(self, fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        return {"ok": True}, [os.dup(self.uppers[0])]

    def do_size(self, fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        """Return the bytes and files that the sandbox uses and has left."""
        info = os.fstatvfs(self.uppers[0])
        return {
            "ok": True,
            "bytes": (info.f_blocks - info.f_bfree) * info.f_frsize,
            "files": info.f_files - info.f_ffree,
            "bytes_left": info.f_bavail * info.f_frsize,
            "files_left": info.f_favail if info.f_files else None,
        }, []

    def do_seal(self, fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        """Return a detached mount of the upper layer. The owner makes sure beforehand that no
        process can still write to the layer."""
        return {"ok": True}, [sys_.clone_mount(self.uppers[0])]

    def do_open(self, fds: list[int], path: str) -> tuple[dict[str, Any], list[int]]:
        return {"ok": True}, [files.open_regular(self.root, path)]

    def do_write(self, fds: list[int], path: str, mode: int) -> tuple[dict[str, Any], list[int]]:
        files.write_file(self.root, path, fds[0], mode)
        return {"ok": True}, []

    def do_end_all(self, fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        """End all processes. Raises OSError if one does not end."""
        if left := processes.kill_all(self.init):
            raise OSError(errno.EBUSY, f"live processes: {', '.join(left)}")
        for pidfd in list(self.children):
            self._reap(pidfd)
        return {"ok": True}, []

    def do_recycle(self, fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        """End all processes and reset the sandbox to the image, in the same namespaces. Raises
        OSError if it cannot be reset completely; the sandbox is unusable then."""
        self.do_end_all(fds)
        if self.network.was_used():
            raise OSError(errno.EBUSY, "the network of the sandbox was used")
        sys_.unshare(sys_.CLONE_NEWIPC)
        self._replace_root([])
        self.init.reset_pid_counter()
        return {"ok": True}, []

    def do_replace_files(self, fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        """Reset the files to the image with copies of the upper layers ``fds``, the lowest first.
        All processes must be paused."""
        self._replace_root(fds)
        return {"ok": True}, []

    def _replace_root(self, copies: list[int]) -> None:
        protocol.close_all([*self.uppers, self.root])
        base = self.hidden_directory
        self.uppers, self.hidden_directory = mounts.remount_root(self.spec, base, copies)
        os.close(base)
        self.root = os.open("/", _DIRECTORY)

    def do_end(self, fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        """End the sandbox, and wait until its last process is gone and its files are released."""
        os.kill(self.init.pid, signal.SIGKILL)
        os.waitpid(self.init.pid, 0)
        raise EOFError


def _is_ready(fd: int, milliseconds: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(milliseconds))
