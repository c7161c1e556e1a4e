"""The contract that the sandboxes of all back ends fulfil."""

from __future__ import annotations

import os
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol, Self

from intercode_sandbox.determinism import Determinism
from intercode_sandbox.errors import (
    MissingCapabilityError,
    SandboxError,
    SandboxUnavailableError,
    UsageError,
)
from intercode_sandbox.long_output import Collector
from intercode_sandbox.silence import Silence
from intercode_sandbox.streams import BaseProcess, communicate, decode, memory_file
from intercode_sandbox.types import (
    Connection,
    ExecResult,
    FileEntry,
    FileInfo,
    Image,
    Layer,
    Network,
    ResourceUsage,
)
from intercode_sandbox.users import User
from intercode_sandbox.validation import (
    check_limits,
    check_limits_type,
    check_mounts,
    check_network,
    check_variables,
    read_limits,
)

STANDARD_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ROOT_VARIABLE = "SANDBOX_ROOT"
SCRIPT_FD = 62
"""Descriptor from which a shell or interpreter in a sandbox reads its script."""

LimitExceeded = Literal[
    "",
    "memory",
    "cpu",
    "processes",
    "background",
    "disk",
    "inodes",
    "shared_memory",
    "file_size",
    "open_files",
    "address_space",
    "idle_timeout",
]
"""A limit because of which a process was killed, refused something or not started. ``background``:
background processes used up all process numbers and were killed. ``shared_memory``: that of
/dev/shm, 64 MiB, where its files do not count towards ``disk``."""


def _limit(default: int | float | None, least: float, most: int = (1 << 63) - 1) -> Any:
    """Declare a limit. ``least`` and ``most``: the values between which every back end opens a
    sandbox and runs a shell and Python. The supervisor reads no larger number."""
    return field(default=default, metadata={"least": least, "most": most})


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on what runs in a sandbox. Sizes are in bytes, times in seconds.

    The process that opened the sandbox checks its memory several times a second. A text such as
    ``2g`` is taken as on the command line.

    Attributes:
        disk: Size of the sandbox's files in all.
        inodes: Number of its files and directories.
        processes: Number of processes at one time.
        open_files: Number of descriptors of each process.
        file_size: Size of each file.
        address_space: Size of the address space of each process.
        output: What is kept of each stream of an action.
        memory: Memory of all processes together.
        cpu_seconds: Processor time of one action (None: only its wall time is limited).
        idle_timeout: How long an action may write nothing before it is killed as at its time limit
            (None: no limit).
        cpus: How many processors all processes use at one time (None: all of the machine); it needs
            a control group.
        cgroups: Whether control groups are used if they are writable: what grows faster than the
            memory is checked is then bounded by ``memory`` plus ``disk``.

    Raises:
        UsageError: Another value, or one out of its range.
    """

    disk: int = _limit(512 << 20, least=1 << 20)
    inodes: int = _limit(100_000, least=64, most=1 << 53)  # of a tmpfs
    processes: int = _limit(256, least=5, most=1 << 22)  # of Linux
    open_files: int = _limit(1024, least=64)
    file_size: int = _limit(256 << 20, least=64 << 10)
    address_space: int = _limit(8 << 30, least=32 << 20)
    output: int = _limit(1 << 20, least=512)
    memory: int = _limit(1 << 30, least=16 << 20)
    cpu_seconds: float | None = _limit(None, least=0.1)
    idle_timeout: float | None = _limit(None, least=0.1)
    cpus: float | None = _limit(None, least=0.01, most=1 << 13)  # of Linux
    cgroups: bool = True

    def __post_init__(self) -> None:
        names = [limit.name for limit in fields(self) if limit.metadata]
        texts = {name: getattr(self, name) for name in names}
        texts = {name: value for name, value in texts.items() if isinstance(value, str)}
        for name, value in read_limits(texts, names).items():
            object.__setattr__(self, name, value)
        check_limits(self)


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """The specification of a sandbox: image, layers, limits and environment.

    Attributes:
        image: The root file system.
        layers: Layers of files over the image, the lowest first.
        network: ``none``, ``host`` or rules, as in ``Sandbox``.
        limits: Limits on what runs in it.
        hostname: The name of the machine that programs see.
        env: Environment variables of programs, besides those of the image.
        users: Whether it has other users than root; see ``ProgramSpec``.
        appearance: ``plain``, or ``docker`` to imitate the containers of Docker.
        mounts: Directories of this machine to show read-only, by their paths in the sandbox.
        upper: Keep the writable layer in this directory of the machine, not in memory (None); image
            builders use it to make layers.
        determinism: The clock and random numbers (None: those of the machine).

    Raises:
        UsageError: A network or path that sandboxes cannot have, a limit out of its range, or a
            variable without text.
    """

    image: Image
    layers: tuple[Layer, ...] = ()
    network: Network = "none"
    limits: Limits = Limits()
    hostname: str = "intercode"
    env: Mapping[str, str] = field(default_factory=dict)
    users: bool = False
    appearance: Literal["plain", "docker"] = "plain"
    mounts: Mapping[str, str | Path] = field(default_factory=dict)
    upper: Path | None = None
    determinism: Determinism | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "network", check_network(self.network))
        check_limits_type(self.limits)
        check_variables(self.env)
        check_mounts(self.mounts)
        object.__setattr__(self, "mounts", dict(self.mounts))

    @property
    def all_layers(self) -> tuple[Layer, ...]:
        """Every layer above the image's root, including the image's own layers, the lowest
        first."""
        return (*self.image.layers, *self.layers)


Capability = Literal[
    "listing",
    "processes",
    "fork",
    "restore",
    "recycle",
    "seal",
    "save",
    "checkpoint",
    "terminal",
    "connect",
    "listen",
    "usage",
    "users",
    "mounts",
    "rules",
    "script",
    "detach",
]
"""A feature that only some back ends have; see ``BaseSandbox.capabilities``.

>>> from intercode_sandbox import Capability, Sandbox
>>> needed: Capability = "fork"
>>> with Sandbox("host") as sandbox:
...     copies = sandbox.fork(2) if needed in sandbox.capabilities else []
>>> for copy in copies:
...     copy.close()
"""


class BaseSnapshot(Protocol):
    """The files of a sandbox at one time, for new sandboxes and for ``BaseSandbox.restore``.

    >>> from intercode_sandbox import BaseSnapshot, SandboxSpec, open_sandbox, resolve_image
    >>> def copies(snapshot: BaseSnapshot, count: int):
    ...     return [snapshot.open() for _ in range(count)]
    >>> with open_sandbox(SandboxSpec(resolve_image("host"))) as sandbox:
    ...     snapshot = sandbox.snapshot()
    ...     for copy in copies(snapshot, 2):
    ...         copy.close()
    ...     snapshot.close()
    """

    @property
    def source(self) -> BaseSandbox | Path | None:
        """The sandbox or directory that holds the files, for ``BaseSandbox.restore``. None: they
        can only be opened in a new sandbox."""
        ...

    def open(self) -> BaseSandbox:
        """Open a new sandbox with these files.

        Raises:
            ValueError: The snapshot is closed.
        """
        ...

    def open_last(self) -> BaseSandbox:
        """Open a new sandbox as ``open`` does, for the last time."""
        ...

    def close(self) -> None:
        """Free the files. Sandboxes that were opened keep them. May be called again."""
        ...


class Checkpoint(Protocol):
    """A process that was written down, for ``BaseSandbox.spawn``."""

    def close(self) -> None:
        """Free it. May be called again."""


@dataclass(frozen=True, slots=True)
class ProgramSpec:
    """A program that a sandbox starts.

    Attributes:
        argv: The program and its arguments.
        cwd: Its directory.
        env: Its environment variables (None: those of the sandbox).
        fds: Descriptors of this process, by their numbers in the sandbox; 0, 1 and 2 are /dev/null
            by default, and no others are open.
        user: Who runs it (None: root).
        checkpoint: What is restored in its place: the process has the given descriptors and the
            files that it had open.
        on_terminal: Whether descriptor 0 is its controlling terminal.
    """

    argv: Sequence[str]
    cwd: str = "/"
    env: Mapping[str, str] | None = None
    fds: Mapping[int, int] = field(default_factory=dict)
    user: User | None = None
    checkpoint: Checkpoint | None = None
    on_terminal: bool = False


_WHERE: dict[Capability, str] = {
    "detach": 'run `intercode-sandbox serve`, and open it with backend="remote:URL"',
    "users": "the back end namespace has it",
    **dict.fromkeys(
        ("connect", "listen", "terminal"), "the back ends namespace, docker and podman have it"
    ),
}
"""Where a capability is that many back ends lack."""


class BaseSandbox(ABC):
    """An isolated machine in which code runs.

    A back end sets ``spec``, ``tier`` and ``env``, and implements ``start``, ``read``, ``write``,
    ``changes`` and ``close``. ``run`` is built on them. The other methods belong to a capability,
    and raise MissingCapabilityError in a back end without it. Every method raises SandboxLostError
    once the sandbox is gone.

    Programs see the sandbox's files at its own paths, or below the directory that the variable
    ROOT_VARIABLE in ``env`` names; relative paths lead to the same files in every back end.

    Attributes:
        spec: The specification.
        tier: The name of the isolation tier.
        env: The environment variables of commands.
        base_trees: The directories of this machine with the initial files, the topmost first, if
            there are any.
        script_path: Where a program opens its descriptor SCRIPT_FD. A shell is started in the
            directory of that path and opens it by its last part, after which it names itself in
            messages.
        shares_files: Whether it sees what is written to a file that it was given.
    """

    spec: SandboxSpec
    tier: str
    env: Mapping[str, str]
    base_trees: Sequence[str] = ()
    script_path: str = f"/dev/fd/{SCRIPT_FD}"
    shares_files: bool = True

    @classmethod
    def open(cls, image: str = "host", backend: str = "auto", **settings: Any) -> BaseSandbox:
        """Open a sandbox on an image.

        Args:
            image: The image, such as ``host``, ``recipe:nl2bash`` or ``dockerfile:/path``.
            backend: The back end, as in ``intercode_sandbox.open_sandbox``.
            **settings: Fields of SandboxSpec: ``network``, ``limits``, ``env`` and so on.

        Raises:
            UsageError: The image does not exist.
            SandboxError: The sandbox cannot be created.
        """
        package = import_module("intercode_sandbox")  # by name, because it imports this module
        spec = SandboxSpec(package.resolve_image(image, backend), **settings)
        sandbox: BaseSandbox = package.open_sandbox(spec, backend)
        return sandbox

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The optional features of this sandbox, most of them named after their method.

        ``processes`` also stands for ``descendants``, ``signal`` and ``kill_since``, ``fork`` for
        ``snapshot``, ``restore`` for ``replace_files``. ``terminal`` is ``open_terminal``,
        ``users`` and ``checkpoint`` are parameters of ``spawn``, too, and ``listing`` is
        ``file_info``, ``list_directory`` and ``remove``. ``mounts`` is a setting of the
        specification, and ``rules`` a network of it. ``script``: programs cannot open a
        descriptor by name; what is written to ``script_path`` is what the next program that opens
        it reads.
        """
        return frozenset()

    @property
    def is_lost(self) -> bool:
        """Whether the sandbox is known to be gone."""
        return False

    # ------------------------------------------------------------------ programs
    def run(
        self,
        command: str | Sequence[str],
        *,
        cwd: str = "/",
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout: float = 10.0,
        user: User | None = None,
    ) -> ExecResult:
        """Run a program like ``run_bytes`` and decode its output.

        Args:
            command: A text for ``/bin/sh -c``, or a program and its arguments.
            cwd: Its directory.
            env: Its environment variables (None: those of the sandbox).
            stdin: Its input.
            timeout: Seconds until it is killed.
            user: Who runs it (None: root).

        Raises:
            OSError: The program or ``cwd`` cannot be used.
        """
        data, code, omitted = self.run_bytes(
            command, cwd=cwd, env=env, stdin=stdin, timeout=timeout, user=user
        )
        return ExecResult(decode(data), code, timed_out=code is None, omitted_bytes=omitted)

    def run_bytes(
        self,
        command: str | Sequence[str],
        *,
        cwd: str = "/",
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout: float = 10.0,
        until_eof: bool = False,
        user: User | None = None,
        silence: Silence | None = None,
    ) -> tuple[bytes, int | None, int]:
        """Run a program to its end, with stdout and stderr in one stream.

        At the timeout, the program and every process that it started are killed (only the program
        without the capability ``processes``), and the output so far is returned.

        Args:
            command: A text for ``/bin/sh -c``, or a program and its arguments.
            cwd: Its directory.
            env: Its environment variables (None: those of the sandbox).
            stdin: Its input.
            timeout: Seconds until it is killed.
            until_eof: Whether to wait until nothing holds the output open any more.
            user: Who runs it (None: root).
            silence: How long it may write nothing before it ends as at the timeout (None: no
                limit).

        Returns:
            The output, the exit status (None at the timeout), and the number of omitted bytes.

        Raises:
            OSError: The program or ``cwd`` cannot be used.
        """
        argv = ["/bin/sh", "-c", command] if isinstance(command, str) else command
        mark, collector = self.mark(), Collector(self.spec.limits.output)
        read, write = os.pipe()
        try:
            fds = {1: write, 2: write}
            with memory_file(stdin) as source:
                if stdin:
                    fds[0] = source.fileno()
                process = self.spawn(argv, cwd=cwd, env=env, fds=fds, user=user)
            os.close(write)
            write = -1
            if communicate(process, {read: collector}, timeout, until_eof, silence):
                return collector.bytes(), process.wait(), collector.dropped
            if "processes" in self.capabilities:
                self.kill_since(mark, keep=self.started_by_earlier(mark))
            else:
                process.kill()
            communicate(process, {read: collector}, 1.0)
            return collector.bytes(), None, collector.dropped
        finally:
            for fd in (read, write):
                if fd >= 0:
                    os.close(fd)

    def spawn(
        self,
        argv: Sequence[str],
        *,
        cwd: str = "/",
        env: Mapping[str, str] | None = None,
        fds: Mapping[int, int] | None = None,
        user: User | None = None,
        checkpoint: Checkpoint | None = None,
        on_terminal: bool = False,
    ) -> BaseProcess:
        """Start a program; see ``ProgramSpec``.

        Args:
            argv: The program and its arguments.
            cwd: Its directory.
            env: Its environment variables (None: those of the sandbox).
            fds: Descriptors of this process, by their numbers in the sandbox (None: there are
                none).
            user: Who runs it (None: root).
            checkpoint: What is restored in its place.
            on_terminal: Whether descriptor 0 is its controlling terminal.

        Raises:
            OSError: The program or ``cwd`` cannot be used.
            MissingCapabilityError: The sandbox lacks ``users``, ``checkpoint`` or ``terminal``, and
                is asked for it.
        """
        if user is not None and "users" not in self.capabilities:
            raise self._missing_capability("users", f"run a program as {user.name!r}")
        if checkpoint is not None and "checkpoint" not in self.capabilities:
            raise self._missing_capability("checkpoint", "continue a process of another sandbox")
        if on_terminal and "terminal" not in self.capabilities:
            raise self._missing_capability("terminal", "run a program on a terminal")
        return self.start(ProgramSpec(argv, cwd, env, fds or {}, user, checkpoint, on_terminal))

    @abstractmethod
    def start(self, program: ProgramSpec) -> BaseProcess:
        """Do what ``spawn`` does, which has checked that the sandbox has the capabilities.

        Args:
            program: The program.

        Raises:
            OSError: The program or its directory cannot be used.
        """

    def open_script(self) -> tuple[int, int]:
        """Open a pipe from which one program reads its script.

        Returns:
            Its reading end, which the program gets as SCRIPT_FD and opens at ``script_path``, and
            its writing end.
        """
        return os.pipe()

    # --------------------------------------------------------------------- files
    @abstractmethod
    def read(self, path: str, limit: int = 64 << 20) -> bytes:
        """Return the content of a regular file. Links are resolved inside the sandbox only.

        Args:
            path: The absolute path of the file.
            limit: The most bytes that it may have.

        Raises:
            FileNotFoundError: There is no such file.
            IsADirectoryError: It is a directory.
            OSError: It is another kind of file, or larger than ``limit``.
        """

    @abstractmethod
    def write(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Write a regular file and make its parent directories.

        Args:
            path: The absolute path of the file.
            data: Its content.
            mode: Its permissions.

        Raises:
            OSError: It cannot be written.
        """

    def file_info(self, path: str, follow: bool = True) -> FileInfo:
        """Return what a path is.

        Args:
            path: The absolute path.
            follow: Whether a symbolic link stands for what it leads to.

        Raises:
            OSError: There is nothing at the path, it cannot be reached, or it is in /proc.
        """
        raise self._missing_capability("listing", "look at a file without a program")

    def list_directory(self, path: str) -> dict[str, FileInfo]:
        """Return the names in a directory, sorted by their bytes, with what each of them is. Links
        are not followed.

        Args:
            path: The absolute path of the directory.

        Raises:
            OSError: The path is not that of a directory, cannot be reached, or is in /proc.
        """
        raise self._missing_capability("listing", "list a directory without a program")

    def remove(self, path: str, recursive: bool = False) -> None:
        """Remove a file, a link or a directory.

        Args:
            path: The absolute path.
            recursive: Whether a directory is removed with all in it.

        Raises:
            OSError: It cannot be removed, is in /proc, or something is mounted in it.
        """
        raise self._missing_capability("listing", "remove a file without a program")

    @abstractmethod
    def changes(self, digests: bool = True, pause: bool = False) -> dict[str, FileEntry]:
        """Return every path that differs from the image and its layers, sorted.

        A list that would be too long ends with the name TRUNCATED_CHANGES.

        Args:
            digests: Whether new files are read for their digests; without that, these are empty.
            pause: Whether background processes stop meanwhile.
        """

    def changed_paths(self) -> list[str]:
        """Return the paths of ``changes``, sorted. The list may be truncated earlier."""
        return list(self.changes(digests=False))

    def storage_exhausted(self) -> Literal["", "disk", "inodes", "shared_memory"]:
        """Return which storage limit the sandbox's files have reached: bytes, number of files, or
        that of /dev/shm where it is a file system of its own."""
        return ""

    def size(self) -> tuple[int, int] | None:
        """Return the bytes and the number of the sandbox's own files and directories; None if the
        back end does not count them."""
        return None

    # ----------------------------------------------------------------- snapshots
    def fork(self) -> BaseSandbox:
        """Create a new sandbox with a copy of this one's files, without its processes."""
        raise self._missing_capability("fork", "copy its files to a new sandbox")

    def snapshot(self) -> BaseSnapshot:
        """Keep a copy of the files. The sandbox continues, with its processes."""
        return CopiedFiles(self.fork())

    def seal(self) -> BaseSnapshot:
        """End everything in the sandbox and keep its files without a copy.

        The snapshot then owns the sandbox: close the snapshot instead.

        Raises:
            SandboxError: A process does not end; the sandbox then remains usable.
        """
        raise self._missing_capability("seal", "keep its files without a copy")

    def should_seal(self) -> bool:
        """Return whether ``seal`` is possible and costs less than ``snapshot``, because the files
        are many or large."""
        return False

    def restore(self, snapshot: BaseSnapshot) -> None:
        """Replace the files by those of a snapshot, in place. Processes are paused meanwhile.

        Args:
            snapshot: The snapshot.

        Raises:
            SandboxError: The snapshot is sealed, or of a sandbox of another back end.
        """
        if snapshot.source is None:
            raise SandboxError("a sealed snapshot can only be opened in a new sandbox")
        self.replace_files(snapshot.source)

    def replace_files(self, source: BaseSandbox | Path) -> None:
        """Replace the files by those of another sandbox or of a directory.

        Args:
            source: A sandbox of the same back end, or a directory in the format of ``save``.

        Raises:
            SandboxError: It is not possible.
        """
        raise self._missing_capability("restore", "replace its files while programs run in it")

    def save(self, directory: Path) -> None:
        """Write the sandbox's own files in the format of an overlay's upper layer: whiteouts mark
        deleted paths.

        Args:
            directory: An empty directory of this machine.
        """
        raise self._missing_capability("save", "write its files to a directory")

    def recycle(self) -> None:
        """End everything in the sandbox and reset it to the image, like a new one.

        Raises:
            SandboxError: It cannot be reset completely; then close it.
        """
        raise self._missing_capability("recycle", "reset it for the next episode")

    # ----------------------------------------------------------------- processes
    def mark(self) -> int:
        """Begin an action: return the current time of the sandbox, for ``kill_since``."""
        return time.monotonic_ns()

    def kill_since(self, mark: int, keep: Sequence[int] = ()) -> None:
        """Kill every process that was started since a mark.

        Args:
            mark: What ``mark`` returned.
            keep: The numbers of processes that are not killed.
        """
        raise self._missing_capability(
            "processes", "end the processes that an action leaves behind"
        )

    def processes(self) -> tuple[str, ...]:
        """List the live processes as ``name (pid)``, except PID 1 and those started with
        ``spawn``."""
        raise self._missing_capability(
            "processes", "list the processes that an action leaves behind"
        )

    def descendants(self, pid: int) -> list[int]:
        """Return the descendants of a process, all by their numbers in the sandbox.

        Args:
            pid: The number of the process.
        """
        raise self._missing_capability("processes", "find the processes that a program has started")

    def started_by_earlier(self, mark: int) -> list[int]:
        """Return what processes from before a mark have started, as far as that can be seen.

        Args:
            mark: What ``mark`` returned.
        """
        return []

    def signal(self, pid: int, number: int) -> None:
        """Send a signal to a process. PID 1 and unknown numbers are ignored.

        Args:
            pid: The number of the process in the sandbox.
            number: The number of the signal.
        """
        raise self._missing_capability(
            "processes", "interrupt a process that it did not start itself"
        )

    def limit_exceeded(self) -> LimitExceeded:
        """Return the limit that was exceeded since the last call.

        A process that could not be started is reported only where the machine counts such failures.
        """
        return ""

    def checkpoint(self, pid: int, given_fds: Sequence[int]) -> Checkpoint:
        """Write a checkpoint of a process. The caller closes it.

        Args:
            pid: The number of the process in the sandbox.
            given_fds: Numbers of descriptors that the restored process will receive.

        Raises:
            OSError: The process cannot be written down, for example because it runs (EBUSY).
        """
        raise self._missing_capability("checkpoint", "move a live process to another sandbox")

    def open_terminal(self, size: tuple[int, int]) -> tuple[int, int]:
        """Open a terminal.

        Args:
            size: Its numbers of rows and columns.

        Returns:
            Its master side, and the other side for a program that is started ``on_terminal``.
        """
        raise self._missing_capability("terminal", "run a program on a terminal")

    def connect(self, address: int | str) -> socket.socket:
        """Return a connection to a server in the sandbox.

        Args:
            address: A port of its loopback device, or the absolute path of a Unix socket.

        Raises:
            OSError: No server listens there.
        """
        raise self._missing_capability("connect", "connect to a server in it")

    def listen(self, port: int = 0) -> socket.socket:
        """Return a socket that listens at a port of the sandbox's loopback device.

        Programs in the sandbox connect to it, and the caller accepts. It is the only way out of a
        sandbox without a network.

        Args:
            port: The number of the port (0: a free one).

        Raises:
            OSError: The port is taken.
        """
        raise self._missing_capability("listen", "serve programs in it at a port")

    def connections(self) -> list[Connection]:
        """Return the connections to other hosts that programs made or tried to make, the earliest
        first, if the network has rules; else nothing is known of them."""
        return []

    def usage(self) -> ResourceUsage:
        """Return what the sandbox uses now."""
        raise self._missing_capability("usage", "measure what it uses")

    def detach(self) -> str:
        """Leave the sandbox running without this process, and return the id with which another one
        attaches to it. This object is closed then. After an error it still owns the sandbox."""
        raise self._missing_capability("detach", "leave it running without its owner")

    def _missing_capability(self, capability: Capability, purpose: str) -> MissingCapabilityError:
        return MissingCapabilityError(
            f"a sandbox of the tier {self.tier} lacks the capability {capability!r}, which is "
            f"needed to {purpose}: {_WHERE.get(capability, 'use another back end')}"
        )

    # ----------------------------------------------------------------------- end
    @abstractmethod
    def close(self, wait: bool = False) -> None:
        """End every process in the sandbox and free it. May be called again.

        Args:
            wait: Return only after the last process has ended.
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def mounts_error(tier: str) -> SandboxUnavailableError:
    """Return the error for mounts where a sandbox cannot have them."""
    return SandboxUnavailableError(
        f"a sandbox of the tier {tier} cannot show directories of this machine: use namespace, "
        "docker or podman, or copy them with `files` in place of `mounts`"
    )


def refuse_rules(spec: SandboxSpec, tier: str) -> None:
    """Raise SandboxUnavailableError for a network with rules, where a sandbox cannot have one."""
    if spec.network not in ("none", "host"):
        raise SandboxUnavailableError(
            f"a sandbox of the tier {tier} has no gateway, which the rules of a network need: use "
            f"the back end namespace, or network='none' or 'host' in place of {spec.network!r:.80}"
        )


class CopiedFiles:
    """A snapshot that is a sandbox with a copy of the files, in which nothing runs."""

    def __init__(self, copy: BaseSandbox) -> None:
        self._copy: BaseSandbox | None = copy

    @property
    def source(self) -> BaseSandbox:
        """The sandbox with the copy. Raises UsageError after ``close`` or ``open_last``."""
        if self._copy is None:
            raise UsageError("the snapshot is closed: its files were freed")
        return self._copy

    def open(self) -> BaseSandbox:
        return self.source.fork()

    def open_last(self) -> BaseSandbox:
        copy, self._copy = self.source, None
        return copy

    def close(self) -> None:
        if self._copy is not None:
            self._copy.close()
        self._copy = None
