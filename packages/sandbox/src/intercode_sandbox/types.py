"""The values that sandboxes take and return, as frozen dataclasses without behaviour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from intercode_sandbox.hidden_files import hidden_paths
from intercode_sandbox.valid_text import replace_surrogates

Rows = tuple[tuple[Any, ...], ...]
"""The rows of an SQL result. Values have the types in which the database returned them."""

Network = str
"""``none``, ``host`` for the network of this machine, or ``allow:`` with the hosts that can be
reached; see ``intercode_sandbox.network.rules.parse_rules``."""


@dataclass(frozen=True, slots=True)
class ExecResult:
    """The output of a command and how it ended.

    ``output``: stdout and stderr in the order of writing, or stdout alone if ``stderr`` is not
    None. ``exit_code``: None if the command did not end by itself. ``omitted_bytes``: the number of
    bytes that were dropped because the output was too long. ``note``: remarks of the sandbox to the
    agent, each a line in square brackets. ``rows``: the rows that an SQL statement returned, or
    None. ``timed_out``: it was killed at its time limit; ``silent``: it was killed before, because
    it wrote nothing for ``Limits.idle_timeout`` seconds.
    """

    output: str
    exit_code: int | None
    timed_out: bool = False
    omitted_bytes: int = 0
    stderr: str | None = None
    note: str = ""
    rows: Rows | None = None
    silent: bool = False

    @property
    def ok(self) -> bool:
        return self.exit_code == 0

    @property
    def observation(self) -> str:
        """The text that an agent sees: output, stderr, and the note on lines of its own. It holds
        no lone surrogate."""
        text = self.output + (self.stderr or "")
        note = "\n" * bool(self.note and text and not text.endswith("\n")) + self.note
        return replace_surrogates(text + note)


TRUNCATED_CHANGES = "[more changes: the list is too long]"
"""The last name in a list of changes that omits the rest. No path has it, and no gold."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A path in a sandbox that was created, changed or deleted.

    ``kind``: ``gone`` if the path was deleted. ``digest``: the SHA-256 of a regular file's content;
    a text that begins with ``unread`` if ``is_unread``, and empty where digests were not asked for.
    ``target``: the target of a symbolic link. ``new``: the path does not exist in the image or its
    layers.
    """

    kind: Literal["file", "dir", "link", "fifo", "socket", "device", "gone"]
    mode: int = 0
    size: int = 0
    digest: str = ""
    target: str = ""
    new: bool = True

    @property
    def is_unread(self) -> bool:
        """Whether the content is not known: two such entries may be equal and their contents not.

        A listing hashes 512 MiB of files, and then 512 MiB more of files up to 1 MiB. The first
        512 MiB of a file do not count while they are zeros. Directories more than 100 levels deep
        are not read.

        >>> from intercode_sandbox.types import FileEntry
        >>> FileEntry("file", 0o644, 1 << 40, "unread:1099511627776").is_unread
        True
        """
        return self.digest.startswith("unread")


@dataclass(frozen=True, slots=True)
class FileInfo:
    """What a path of a sandbox is.

    Attributes:
        kind: The kind of file.
        mode: The permissions.
        size: The size in bytes; of a symbolic link, that of its target's path.
        modified: When the content changed last, in seconds since 1970.
        target: The path in a symbolic link, else empty.

    >>> from intercode_sandbox import Sandbox
    >>> with Sandbox("host", files={"/work/a.txt": "one"}) as sandbox:
    ...     info = sandbox.stat("/work/a.txt")
    >>> info.kind, info.size
    ('file', 3)
    """

    kind: Literal["file", "dir", "link", "fifo", "socket", "device"]
    mode: int
    size: int
    modified: float
    target: str = ""


@dataclass(frozen=True, slots=True)
class LayerSpec:
    """The source from which a layer of files is built.

    ``kind``: a ``dir`` is copied, a ``tar`` is unpacked, and a ``script`` runs as root in ``/`` of
    a sandbox, where its changes become the layer. ``path``: the directory or file on this machine.
    ``shift_dates``: shift the dates of the files as if set-up had finished two hours ago.

    For a ``dir`` only: ``destination`` is the directory of the sandbox to copy to. ``exclude``
    lists names to leave out at any depth. ``executable`` lists files, relative to ``path``, that
    get the mode 0755; other files get 0644.
    """

    kind: Literal["dir", "tar", "script"]
    path: Path
    shift_dates: bool = False
    destination: str = "/"
    exclude: tuple[str, ...] = ()
    executable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Layer:
    """Files over an image: an unpacked tree, owned by the sandbox's user id.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from intercode_sandbox import SandboxSpec, open_sandbox, resolve_image
    >>> from intercode_sandbox.types import Layer
    >>> with TemporaryDirectory() as directory:
    ...     _ = Path(directory, "hello.txt").write_text("hi")
    ...     Path(directory).chmod(0o755)  # the mode of / in the sandbox
    ...     layer = Layer(Path(directory), digest="my layer")
    ...     with open_sandbox(SandboxSpec(resolve_image("host"), layers=(layer,))) as sandbox:
    ...         print(sandbox.read("/hello.txt"))
    b'hi'
    """

    root: Path
    digest: str


@dataclass(frozen=True, slots=True)
class Image:
    """A root file system that is ready to use.

    ``root``: the directory with the unpacked files, owned by the sandbox's user id (None: the image
    consists of this machine's own programs). ``env``, ``cwd``: environment variables and working
    directory of programs, unless a task names others. ``layers``: layers over the files, the lowest
    first; only if ``root`` is None. ``hidden``: files of this machine that sandboxes do not show.
    ``entrypoint``: the program that a container of the image starts, which a sandbox starts only
    if it is asked to.

    >>> from intercode_sandbox import resolve_image
    >>> image = resolve_image("host")
    >>> image.name, image.root
    ('host', None)
    """

    name: str
    digest: str
    root: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = "/"
    layers: tuple[Layer, ...] = ()
    hidden: tuple[Path, ...] = field(default_factory=hidden_paths)
    entrypoint: tuple[str, ...] = ()


# What a sandbox uses of the machine.
@dataclass(frozen=True, slots=True)
class ResourceUsage:
    """What a sandbox uses now.

    Attributes:
        cpu_seconds: Processor time since it was opened, without that of background processes which
            have ended after the process that started them.
        memory: Resident bytes of its processes, each with its share of shared pages.
        processes: The number of its processes.
        disk: Bytes of its own files.
        files: The number of its own files and directories.

    >>> from intercode_sandbox import Sandbox
    >>> with Sandbox("host", files={"/work/a.txt": "one"}) as sandbox:
    ...     usage = sandbox.usage()
    >>> usage.files > 0  # the file and its directory
    True
    """

    cpu_seconds: float
    memory: int
    processes: int
    disk: int
    files: int


# What a sandbox reaches.
@dataclass(frozen=True, slots=True)
class Connection:
    """A connection that a program of a sandbox made, or tried to make, to another host.

    Attributes:
        host: The name, or the address where the program used one.
        port: The number of the port; 0 for a name that was looked up and is not allowed.
        address: Where it led.
        sent: Bytes that the sandbox sent.
        received: Bytes that the sandbox received.
        refused: Why it was refused, ended, or not made; else empty.
        is_open: Whether it continues.

    >>> from intercode_sandbox import Connection
    >>> Connection("git.example.org", 22, refused="the rules do not allow port 22").sent
    0
    """

    host: str
    port: int
    address: str = ""
    sent: int = 0
    received: int = 0
    refused: str = ""
    is_open: bool = False
