"""What a sandbox is, whatever gives the isolation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Literal, Protocol, Self

from intercode.core.types import ExecResult, FileEntry, Image, Layer, Network
from intercode.sandbox.determinism import Determinism

STANDARD_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

SCRIPT_LINK = "bash"
"""A link in a box's /dev to descriptor 62: a shell that reads its script there calls itself so."""


LimitExceeded = Literal["", "memory", "cpu", "processes", "crowd", "disk", "inodes"]
"""A limit that was met, and cost a process: its life, or a child."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on what runs in a sandbox. Sizes in bytes, times in seconds.

    ``memory`` is what all processes of a box may use together, beside what ``disk`` lets its files
    take up; ``cpu_seconds`` the processor time of one action (None: only its wall time is bounded).
    ``groups``: use control groups where they are writable; without them a watchdog of the owner
    looks at the memory a few times a second, and a process that grows fast is caught late.
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
    """What a sandbox is made of.

    ``look='docker'`` gives the box the appearance that the authors' containers had (see
    sandboxes/namespace); ``upper`` keeps the writable layer in that directory of this machine
    instead of memory: builders use it to make layers. ``determinism``: None leaves time and chance
    to the machine.
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
        """Every layer over the image's tree, the image's own among them, the lowest first."""
        return (*self.image.layers, *self.layers)


class Process(Protocol):
    """A process inside a sandbox. ``pid`` is its number inside."""

    pid: int

    def fileno(self) -> int:
        """A descriptor that can be read from once the process has ended."""
        ...

    def wait(self, timeout: float | None = None) -> int | None:
        """The exit status (negative: the signal that ended it), or None when time ran out."""
        ...

    def kill(self, number: int = 9) -> None:
        """Send a signal, unless the process has ended."""
        ...


class Sandbox(ABC):
    """A box in which code runs. Raises SandboxLostError from any method once it has gone away."""

    spec: SandboxSpec
    tier: str

    @abstractmethod
    def spawn(
        self,
        argv: Sequence[str],
        *,
        cwd: str = "/",
        env: Mapping[str, str] | None = None,
        fds: Mapping[int, int] | None = None,
    ) -> Process:
        """Start a program. ``fds`` maps descriptor numbers inside to descriptors of this process;
        0, 1 and 2 are /dev/null where they are not given. ``env`` None means the box's own."""

    @abstractmethod
    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: str = "/",
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout: float = 10.0,
    ) -> ExecResult:
        """Run a program to its end with stdout and stderr in one stream. At the time-out it and
        every process it started are killed, and what it printed is returned."""

    @abstractmethod
    def changes(self, digests: bool = True, pause: bool = False) -> dict[str, FileEntry]:
        """Every path that differs from the image and its layers, sorted. Without ``digests`` the
        content of new files is not read, and their digest is empty. ``still``: halt what runs in
        the background meanwhile."""

    @abstractmethod
    def changed_paths(self) -> list[str]:
        """The paths of ``changes``, sorted."""

    @abstractmethod
    def read_file(self, path: str, limit: int = 64 << 20) -> bytes:
        """A regular file's content; links are resolved inside the box only.

        Raises FileNotFoundError, IsADirectoryError, or OSError for what is no regular file or is
        larger than ``limit`` bytes."""

    @abstractmethod
    def write_file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Write a regular file, making its directories."""

    @abstractmethod
    def clone(self) -> Sandbox:
        """A new box with a copy of this one's files. Processes are not carried over."""

    @abstractmethod
    def processes(self) -> tuple[str, ...]:
        """The live processes in the box, as ``name (pid)``, but for PID 1 and those that were
        started with ``spawn``."""

    @abstractmethod
    def signal(self, pid: int, number: int) -> None:
        """Send a signal to a process by its number in the box, if there is one, but to PID 1."""

    @abstractmethod
    def kill_since(self, mark: int, keep: Sequence[int] = ()) -> None:
        """Kill every process started since ``mark`` (see ``mark``) but those in ``keep``."""

    @abstractmethod
    def mark(self) -> int:
        """A point in the box's life, for ``kill_since``."""

    def limit_exceeded(self) -> LimitExceeded:
        """The limit that a process of the box was killed for, or refused, since this was last
        asked. Where the machine does not count it, a refused process is told by its parent only."""
        return ""

    def storage_exhausted(self) -> Literal["", "disk", "inodes"]:
        """What the box's own files have used up: the room that they have, or their number."""
        return ""

    @abstractmethod
    def close(self) -> None:
        """End every process in the box and free it. May be called again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
