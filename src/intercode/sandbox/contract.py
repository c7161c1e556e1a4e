"""The contract that the sandboxes of all back ends fulfil."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Literal, Protocol, Self

from intercode.core.errors import SandboxError
from intercode.core.types import ExecResult, FileEntry, Image, Layer, Network
from intercode.sandbox.determinism import Determinism

STANDARD_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

SCRIPT_LINK = "bash"
"""Link in a sandbox's /dev to descriptor 62. A shell that reads its script from there has this
name."""


LimitExceeded = Literal["", "memory", "cpu", "processes", "background", "disk", "inodes"]
"""A limit because of which a process was killed or could not be started. ``background``: background
processes used up all process numbers and were killed."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on what runs in a sandbox. Sizes are in bytes, times in seconds.

    ``memory`` bounds all processes of the sandbox together, without their files, which ``disk``
    bounds. ``cpu_seconds`` is the processor time of one action (None: only its wall time is
    limited). ``cgroups``: use control groups if they are writable. Without them a watchdog thread
    of the owner checks the memory several times a second, which can be too late for a process that
    grows fast.
    """

    disk: int = 512 << 20
    inodes: int = 100_000
    processes: int = 256
    open_files: int = 1024
    file_size: int = 256 << 20
    address_space: int = 8 << 30
    output: int = 1 << 20
    memory: int = 1 << 30
    cpu_seconds: float | None = None
    cgroups: bool = True


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """The specification of a sandbox: image, layers, limits and environment.

    ``appearance``: ``docker`` imitates the containers of the original InterCode package. ``upper``:
    keep the writable layer in this directory of the machine, not in memory; image builders use it
    to make layers. ``determinism``: with None, the sandbox uses the machine's clock and random
    numbers.
    """

    image: Image
    layers: tuple[Layer, ...] = ()
    network: Network = "none"
    limits: Limits = Limits()
    hostname: str = "intercode"
    env: Mapping[str, str] = field(default_factory=dict)
    appearance: Literal["plain", "docker"] = "plain"
    upper: Path | None = None
    determinism: Determinism | None = None

    @property
    def all_layers(self) -> tuple[Layer, ...]:
        """Every layer above the image's root, including the image's own layers, the lowest
        first."""
        return (*self.image.layers, *self.layers)


class Process(Protocol):
    """A process inside a sandbox. ``pid`` is its number in the sandbox."""

    pid: int

    def fileno(self) -> int:
        """Return a descriptor that becomes readable when the process ends."""
        ...

    def wait(self, timeout: float | None = None) -> int | None:
        """Return the exit status (negative: the number of the signal that ended it), or None if the
        timeout in seconds expires first."""
        ...

    def kill(self, number: int = 9) -> None:
        """Send a signal, unless the process has ended."""
        ...


Capability = Literal["recycle", "replace_files", "save_files", "seal", "checkpoint"]
"""A feature that only some back ends have; see ``Sandbox.capabilities``."""


class SealedLayer(Protocol):
    """The files of a sealed sandbox, as a layer of new sandboxes."""

    def open(self) -> Sandbox:
        """Open a new sandbox that starts with these files."""
        ...

    def release(self) -> None:
        """Free the files once the sandboxes that use them are closed."""
        ...


class Sandbox(ABC):
    """An isolated machine in which code runs.

    ``env`` holds the environment variables of commands; ``base_trees`` are the directories of this
    machine with the initial files, the topmost first, if there are any. Every method raises
    SandboxLostError once the sandbox is gone. A method that needs a missing capability raises
    SandboxError.
    """

    spec: SandboxSpec
    tier: str
    env: Mapping[str, str]
    base_trees: Sequence[str] = ()

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The optional features of this sandbox.

        ``recycle``, ``replace_files`` and ``seal`` allow the methods of these names,
        ``save_files`` allows ``write_upper``, and ``checkpoint`` also ``spawn_checkpoint``.
        """
        return frozenset()

    @property
    def is_lost(self) -> bool:
        """Whether the sandbox is known to be gone."""
        return False

    @abstractmethod
    def spawn(
        self,
        argv: Sequence[str],
        *,
        cwd: str = "/",
        env: Mapping[str, str] | None = None,
        fds: Mapping[int, int] | None = None,
    ) -> Process:
        """Start a program.

        ``fds`` maps descriptor numbers in the sandbox to descriptors of this process; 0, 1 and 2
        are /dev/null by default. ``env``: None uses the sandbox's own environment.
        """

    @abstractmethod
    def run_bytes(
        self,
        argv: Sequence[str],
        *,
        cwd: str = "/",
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout: float = 10.0,
        until_eof: bool = False,
    ) -> tuple[bytes, int | None, int]:
        """Run a program to its end, with stdout and stderr in one stream.

        Returns the output, the exit status (None at the timeout), and the number of omitted bytes.
        At the timeout in seconds, the program and every process that it started are killed, and the
        output so far is returned. ``until_eof``: wait until nothing holds the output open any more.
        """

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: str = "/",
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout: float = 10.0,
    ) -> ExecResult:
        """Run a program like ``run_bytes`` and decode its output."""
        data, code, omitted = self.run_bytes(argv, cwd=cwd, env=env, stdin=stdin, timeout=timeout)
        text = data.decode("utf-8", "backslashreplace")
        return ExecResult(text, code, timed_out=code is None, omitted_bytes=omitted)

    @abstractmethod
    def changes(self, digests: bool = True, pause: bool = False) -> dict[str, FileEntry]:
        """Return every path that differs from the image and its layers, sorted.

        ``digests``: False leaves the digests of new files empty, without reading the files.
        ``pause``: stop background processes during the call.
        """

    @abstractmethod
    def changed_paths(self) -> list[str]:
        """Return the paths of ``changes``, sorted."""

    @abstractmethod
    def read_file(self, path: str, limit: int = 64 << 20) -> bytes:
        """Return the content of a regular file. Links are resolved inside the sandbox only.

        Raises FileNotFoundError, IsADirectoryError, or OSError for any other kind of file and for
        one larger than ``limit`` bytes.
        """

    @abstractmethod
    def write_file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Write a regular file and make its parent directories."""

    @abstractmethod
    def clone(self) -> Self:
        """Create a new sandbox with a copy of this one's files, without its processes."""

    @abstractmethod
    def processes(self) -> tuple[str, ...]:
        """List the live processes as ``name (pid)``, except PID 1 and those started with
        ``spawn``."""

    @abstractmethod
    def descendants(self, pid: int) -> list[int]:
        """Return the descendants of a process, all by their numbers in the sandbox."""

    @abstractmethod
    def signal(self, pid: int, number: int) -> None:
        """Send a signal to a process by its number in the sandbox. PID 1 and unknown numbers are
        ignored."""

    @abstractmethod
    def kill_since(self, mark: int, keep: Sequence[int] = ()) -> None:
        """Kill every process that was started since ``mark``, except those in ``keep``."""

    @abstractmethod
    def mark(self) -> int:
        """Return the current time of the sandbox, for ``kill_since``."""

    def limit_exceeded(self) -> LimitExceeded:
        """Return the limit that was exceeded since the last call.

        A process that could not be started is reported only if the machine counts such failures.
        """
        return ""

    def storage_exhausted(self) -> Literal["", "disk", "inodes"]:
        """Return which storage limit the sandbox's files have reached: bytes or number of files."""
        return ""

    def size(self) -> tuple[int, int]:
        """Return the bytes and the number of the sandbox's own files and directories."""
        raise self._missing_capability("save_files")

    def write_upper(self, directory: Path) -> None:
        """Fill an empty directory with the sandbox's own files in the format of an overlay's upper
        layer: whiteouts mark deleted paths."""
        raise self._missing_capability("save_files")

    def replace_files(self, other: Sandbox | Path) -> None:
        """Replace the files by those of another sandbox of the same back end, or of a directory in
        the format of ``write_upper``.

        Pauses all processes during the call. Raises SandboxError if that is not possible.
        """
        raise self._missing_capability("replace_files")

    def recycle(self) -> None:
        """End everything in the sandbox and reset it to the image, like a new one.

        Raises SandboxError if it cannot be reset completely; then close it.
        """
        raise self._missing_capability("recycle")

    def seal(self) -> SealedLayer:
        """End everything in the sandbox and turn its files into a layer of new sandboxes.

        The layer then owns the sandbox: release it instead of closing the sandbox. Raises
        SandboxError if a process does not end; the sandbox then remains usable.
        """
        raise self._missing_capability("seal")

    def checkpoint(self, pid: int, given_fds: Sequence[int]) -> int:
        """Write a checkpoint of a process and return its descriptor.

        ``given_fds``: numbers of descriptors that the restored process will receive. Raises
        OSError.
        """
        raise self._missing_capability("checkpoint")

    def spawn_checkpoint(
        self,
        checkpoint: int,
        argv: Sequence[str],
        *,
        cwd: str = "/",
        env: Mapping[str, str] | None = None,
        fds: Mapping[int, int] | None = None,
    ) -> Process:
        """Start a program as ``spawn`` does, and replace it by the process of a checkpoint.

        The process has the given descriptors and the files that it had open.
        """
        raise self._missing_capability("checkpoint")

    def _missing_capability(self, capability: Capability) -> SandboxError:
        return SandboxError(f"a sandbox of the tier {self.tier} cannot do this: {capability}")

    @abstractmethod
    def close(self, wait: bool = False) -> None:
        """End every process in the sandbox and free it. May be called again.

        ``wait``: return only after the last process has ended.
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
