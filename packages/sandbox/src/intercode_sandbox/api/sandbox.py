"""``intercode_sandbox.Sandbox``: an isolated machine in which a program runs commands."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from intercode_sandbox.api import snapshots, transfer
from intercode_sandbox.api.execution import LiveProcesses, OutputCallback, make_command, run_command
from intercode_sandbox.api.forwarding import ForwardedPort
from intercode_sandbox.api.live_sandboxes import record_live, remove_record
from intercode_sandbox.api.process import SandboxProcess, TerminalSize
from intercode_sandbox.api.results import Result
from intercode_sandbox.api.secrets import Secrets, redact_errors
from intercode_sandbox.backends import attach_sandbox, open_sandbox, resolve_image
from intercode_sandbox.contract import BaseSandbox, Capability, CopiedFiles, Limits, SandboxSpec
from intercode_sandbox.deprecation import renamed_arguments
from intercode_sandbox.errors import SandboxError, SandboxLostError, UsageError
from intercode_sandbox.platforms.forks import refuse_inherited
from intercode_sandbox.streams import encode
from intercode_sandbox.types import Connection, FileEntry, FileInfo, Network, ResourceUsage
from intercode_sandbox.validation import check_timeout

Files = Mapping[str, str | bytes | Path]
"""Files for a sandbox, by their paths in it: the text, the bytes, or the path of a local file or
directory."""
DEFAULT_TIMEOUT = 60.0


class Sandbox:
    """An isolated machine in which a program runs commands.

    ``image``: the root file system: ``host`` (the programs of this machine), ``dir:/path``,
    ``dockerfile:DIR``, ``recipe:NAME``, ``HOST/NAME:TAG`` of a registry, or any other form of
    docs/images.md. ``network``: ``none``, ``host`` for the machine's own, or rules such
    as ``allow:git.example.org,*.example.com:443``; see docs/network.md. ``limits``: see
    ``Limits``. ``env``: environment variables of all commands, besides those of the image.
    ``files``: written before the first command; see ``Files``. ``backend``: ``auto`` (the
    strongest isolation tier that works), ``namespace``, ``docker``, ``podman``, ``chroot``,
    ``landlock``, ``remote:URL``, or a reference to one of your own. ``users``: the sandbox has
    other users than root, for the parameter ``user`` of ``run`` and ``spawn``. ``mounts``:
    directories of this machine that the sandbox shows read-only, by their paths in it.
    ``secrets``: environment variables of ``run`` and ``spawn`` whose values no record has; a
    ``Result`` shows ``[secret NAME]`` in their place. Forks have them, files and snapshots do not.

    Raises UsageError for an image that does not exist, SandboxError if no sandbox can be opened.
    Every method raises SandboxLostError once the sandbox is gone, its subclass SandboxKilledError
    if what ran in it has ended it, and UsageError in a forked child of the process that opened it.

    >>> from intercode_sandbox import Sandbox
    >>> with Sandbox("host") as sandbox:
    ...     sandbox.run("echo hi").output
    'hi\\n'
    """

    @renamed_arguments(back_end="backend")
    def __init__(
        self,
        image: str = "host",
        *,
        network: Network = "none",
        limits: Limits | None = None,
        env: Mapping[str, str] | None = None,
        files: Files | None = None,
        backend: str = "auto",
        users: bool = False,
        mounts: Mapping[str, str | Path] | None = None,
        secrets: Mapping[str, str] | None = None,
    ) -> None:
        given = Secrets(secrets)
        spec = SandboxSpec(
            resolve_image(image, backend),
            network=network,
            limits=limits or Limits(),
            env=env or {},
            users=users,
            mounts=mounts or {},
        )
        self._attach(open_sandbox(spec, backend), given)
        try:
            self.write_files(files or {})
        except BaseException:
            self.close()
            raise

    def _attach(self, base: BaseSandbox, secrets: Secrets) -> None:
        self.secrets, self._owner = secrets, os.getpid()
        self._base: BaseSandbox | None = base
        self._is_closed, self._released = False, ""
        self._parts: set[SandboxProcess | ForwardedPort] = set()
        self.live = LiveProcesses()
        self._record = record_live(base)

    @classmethod
    def from_base(cls, base: BaseSandbox, secrets: Secrets | None = None) -> Self:
        """Return this interface for an open sandbox of a back end, which it then owns."""
        sandbox = cls.__new__(cls)
        sandbox._attach(base, secrets or Secrets(None))
        return sandbox

    def release(self) -> BaseSandbox:
        """Return the sandbox of the back end for another owner. This interface, its processes and
        its forwarded ports are closed."""
        base = self.base
        self._released = "this sandbox was given back, and may be another's now"
        self._is_closed = True
        remove_record(self._record)
        self._close_parts()
        self._base = None
        return base

    def _close_parts(self) -> None:
        while self._parts:
            with suppress(KeyError, SandboxError):  # another thread closes it
                self._parts.pop().close()

    # ------------------------------------------------------------------ properties
    @property
    def base(self) -> BaseSandbox:
        """The sandbox of the back end. Raises SandboxLostError after ``release``, UsageError in a
        forked child."""
        refuse_inherited(self._owner)
        if self._base is None:
            raise SandboxLostError(self._released)
        return self._base

    def __repr__(self) -> str:
        base: BaseSandbox | None = getattr(self, "_base", None)
        if base is None:
            return "<Sandbox, closed>"
        return f"<Sandbox of {base.spec.image.name}, {base.tier}{', closed' * base.is_lost}>"

    @property
    def image(self) -> str:
        """The name of the image."""
        return self.base.spec.image.name

    @property
    def limits(self) -> Limits:
        """The limits on what runs in the sandbox."""
        return self.base.spec.limits

    @property
    def tier(self) -> str:
        """The isolation tier, such as ``namespace/1``; see docs/isolation-tiers.md."""
        return self.base.tier

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The optional features of the back end; see ``BaseSandbox.capabilities``."""
        return self.base.capabilities

    @property
    def is_lost(self) -> bool:
        """Whether the sandbox is known to be gone."""
        return self._is_closed or self._is_inherited or self.base.is_lost

    @property
    def _is_inherited(self) -> bool:
        """Whether it belongs to a process from which this one was forked, which alone can use
        it."""
        return self._owner != os.getpid()

    # -------------------------------------------------------------------- commands
    @redact_errors
    def run(
        self,
        command: str | Sequence[str],
        *,
        stdin: str | bytes = b"",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | int | None = None,
        timeout: float | None = DEFAULT_TIMEOUT,
        merge_stderr: bool = False,
        on_output: OutputCallback | None = None,
    ) -> Result:
        """Run a command to its end and return its output.

        ``command``: a text for ``/bin/sh -c``, or a program and its arguments. ``stdin``: its
        input. ``cwd``: its directory (None: that of the image). ``env``: variables besides those of
        the sandbox. ``user``: a name or number, if the sandbox has ``users`` (None: root).
        ``timeout``: seconds until the command is killed with everything that it has started (None:
        no limit); the result has the output so far. ``merge_stderr``: stderr is part of stdout, in
        the order of writing.
        ``on_output``: called with each piece of output as it arrives, and the name of its stream;
        if it raises, the command is killed.

        Several threads may run commands in one sandbox. A command that fails is a result like any
        other, also a text if /bin/sh is gone (status 127). Raises OSError if the program or ``cwd``
        cannot be used, UsageError for an unknown user, MissingCapabilityError for another user
        than root in a sandbox that was opened without ``users``.
        """
        check_timeout(timeout)
        made = make_command(
            self.base,
            command,
            stdin=stdin,
            cwd=cwd,
            env=env,
            user=user,
            merge_stderr=merge_stderr,
            secrets=self.secrets,
        )
        return run_command(self.base, self.live, made, timeout, on_output)

    @redact_errors
    def spawn(
        self,
        command: str | Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | int | None = None,
        merge_stderr: bool = False,
        terminal: bool | TerminalSize = False,
    ) -> SandboxProcess:
        """Start a program and return without waiting for it.

        ``terminal``: run it on a pseudo-terminal of 24 rows and 80 columns, or of the given
        number of rows and columns; raises MissingCapabilityError without ``terminal``. The other
        parameters and errors are those of ``run``.
        """
        made = make_command(
            self.base,
            command,
            cwd=cwd,
            env=env,
            user=user,
            merge_stderr=merge_stderr,
            secrets=self.secrets,
        )
        process = SandboxProcess(self.base, self.live, made, terminal)
        process.on_close = self._parts.discard
        self._parts.add(process)
        return process

    # ----------------------------------------------------------------------- files
    @redact_errors
    def read(self, path: str, limit: int = 64 << 20, *, user: str | int | None = None) -> bytes:
        """Return the content of a regular file. Links are resolved inside the sandbox.

        ``user``: read it with the rights of a user; see ``run``. Raises FileNotFoundError,
        IsADirectoryError, PermissionError, or OSError for any other kind of file and for one larger
        than ``limit`` bytes.
        """
        if user is None:
            return transfer.read(self.base, path, limit)
        return transfer.read_as(self.base, self.live, path, limit, user)

    @redact_errors
    def write(
        self, path: str, data: str | bytes, mode: int = 0o644, *, user: str | int | None = None
    ) -> None:
        """Write a regular file and make its parent directories.

        An existing file is written in place, so that its other names have the content, too. It
        stays as it was if the disk has no room.

        ``user``: write it with the rights of a user, to whom new files and directories then belong;
        see ``run``. A file of another user that it may write keeps its owner and mode, and a full
        disk empties it.
        """
        content = encode(data) if isinstance(data, str) else data
        if user is None:
            transfer.write(self.base, path, content, mode)
        else:
            transfer.write_as(self.base, self.live, path, content, mode, user)

    @redact_errors
    def write_files(self, files: Files) -> None:
        """Write several files or trees; see ``Files``."""
        transfer.write_files(self.base, self.live, files)

    @redact_errors
    def stat(self, path: str, *, follow: bool = True) -> FileInfo:
        """Return what a path is: kind, mode, size, time. ``follow``: of a symbolic link, what it
        leads to. Raises FileNotFoundError, or OSError for a path that cannot be reached and one in
        /proc, MissingCapabilityError without ``listing``."""
        return transfer.describe(self.base, path, follow)

    def exists(self, path: str) -> bool:
        """Return whether there is something at a path; a link that leads nowhere is nothing.
        Raises as ``stat`` does."""
        try:
            self.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    @redact_errors
    def list_files(self, path: str) -> dict[str, FileInfo]:
        """Return the names in a directory, sorted, with what each of them is; links are not
        followed. Needs no program of the image. Raises NotADirectoryError, or as ``stat`` does."""
        return transfer.list_files(self.base, path)

    @redact_errors
    def remove(self, path: str, *, recursive: bool = False, user: str | int | None = None) -> None:
        """Remove a file, a link, or with ``recursive`` a directory and all in it. Needs no program
        of the image. ``user``: with the rights of a user, by ``rm`` of the image; see ``run``.
        Raises FileNotFoundError, IsADirectoryError without ``recursive``, OSError if something
        cannot be removed, SandboxError if the image has no ``rm`` for ``user``."""
        transfer.remove(self.base, self.live, path, recursive, user)

    @redact_errors
    def upload(self, local: str | Path, path: str) -> None:
        """Copy a file or directory of this machine to ``path``.

        A directory is merged into an existing one, with its modes and links; that needs tar in the
        image. Raises UsageError if there is nothing at ``local``, OSError or SandboxError if it
        cannot be written.
        """
        transfer.upload(self.base, self.live, Path(local), path)

    @redact_errors
    def download(
        self, path: str, local: str | Path, limit: int = transfer.DEFAULT_LIMIT
    ) -> list[str]:
        """Copy the file or directory at ``path`` to ``local`` on this machine.

        A directory goes into a new or empty one, and needs tar in the image. Regular files,
        directories and relative links inside the tree are written: another link, or a pipe, that
        hostile code has left would lead a reader on this machine elsewhere. Returns the names of
        what was left out, relative to ``path``; empty for a file. Raises as ``read`` does,
        DataError for more than ``limit`` bytes in a directory.
        """
        return transfer.download(self.base, self.live, path, Path(local), limit)

    def changes(self) -> dict[str, FileEntry]:
        """Return every path that differs from the image, sorted: what ``files`` and uploads have
        written, too. Deleted paths have the kind ``gone``."""
        return self.base.changes()

    # ------------------------------------------------------------------- snapshots
    def snapshot(self) -> snapshots.Snapshot:
        """Copy the files. The sandbox continues, with its processes, which are paused meanwhile and
        are not part of the snapshot. Raises MissingCapabilityError without ``fork``."""
        return snapshots.Snapshot(self.base.snapshot())

    @redact_errors
    def restore(self, snapshot: snapshots.Snapshot) -> None:
        """Replace the files by those of a snapshot, which may be of another sandbox on the same
        image and back end. Live processes continue with the new files. Raises
        MissingCapabilityError without ``restore``, SandboxError if it is not possible."""
        self.base.restore(snapshot.files)

    @classmethod
    def from_snapshot(
        cls, snapshot: snapshots.Snapshot, *, secrets: Mapping[str, str] | None = None
    ) -> Self:
        """Open a new sandbox with the files, limits and variables of a snapshot's sandbox, which
        has no secrets but those given here."""
        given = Secrets(secrets)
        return cls.from_base(snapshot.files.open(), given)

    @redact_errors
    def fork(self, n: int = 1) -> list[Self]:
        """Return ``n`` new sandboxes with copies of the files, limits and variables.

        They share nothing with this one and each other. Processes are not copied. Raises
        MissingCapabilityError without ``fork``.
        """
        if n < 1:
            raise UsageError(f"fork takes a number of at least 1, not {n!r}")
        forks: list[Self] = []
        try:
            for _ in range(n):
                forks.append(self.from_base(self.base.fork(), self.secrets))
        except BaseException:
            for fork in forks:
                fork.close()
            raise
        return forks

    @redact_errors
    def save(self, path: str | Path, limit: int | None = None) -> None:
        """Write the files that differ from the image to a new file, for ``load``.

        The file is a tar archive; see docs/sandbox.md. ``limit``: how many bytes the files may have
        in all, with the holes of sparse files; by default twice the limit ``disk``. Raises
        DataError if they have more, UsageError if ``path`` exists or no file can be made there,
        MissingCapabilityError without ``save``. An error leaves no file.
        """
        if "fork" not in self.capabilities:
            snapshots.save(self.base, Path(path), limit)
            return
        copy = CopiedFiles(self.base.fork())
        try:
            snapshots.save(copy.source, Path(path), limit)
        finally:
            copy.close()

    @classmethod
    @renamed_arguments(back_end="backend")
    def load(
        cls,
        path: str | Path,
        image: str = "host",
        *,
        network: Network = "none",
        limits: Limits | None = None,
        env: Mapping[str, str] | None = None,
        backend: str = "auto",
        users: bool = False,
        mounts: Mapping[str, str | Path] | None = None,
        secrets: Mapping[str, str] | None = None,
    ) -> Self:
        """Open a new sandbox with the files that ``save`` wrote, on the same image.

        The parameters are those of ``Sandbox``, without ``files``. A file from elsewhere is safe
        to load: nothing in it runs before a command runs it in the sandbox. Raises UsageError if it
        was saved from another image, DataError if it is broken, holds what no sandbox saves, or has
        more files than ``limits`` allow.
        """
        given = Secrets(secrets)
        found = resolve_image(image, backend)
        spec = SandboxSpec(
            found,
            network=network,
            limits=limits or Limits(),
            env=env or {},
            users=users,
            mounts=mounts or {},
        )

        def open_with(files: Path) -> BaseSandbox:
            return open_sandbox(spec, backend, files)

        loaded = snapshots.load(Path(path), found, spec.limits.inodes, open_with)
        return cls.from_base(loaded, given)

    @redact_errors
    def forward(
        self, target: int | str, *, host: str = "127.0.0.1", port: int = 0
    ) -> ForwardedPort:
        """Forward a port of this machine to a server in the sandbox, also without a network.

        ``target``: a TCP port of the sandbox's loopback device, or the path of a Unix socket in it.
        ``host``, ``port``: the address to listen at (0: a free port); everybody who reaches it can
        use the server. A connection is closed at once if no server listens. Raises OSError if the
        address is in use, MissingCapabilityError without ``connect``.
        """
        forwarded = ForwardedPort(self.base, target, host, port)
        forwarded.on_close = self._parts.discard
        self._parts.add(forwarded)
        return forwarded

    @redact_errors
    def listen(self, port: int = 0) -> socket.socket:
        """Return a socket that listens at a port of the sandbox's loopback device (0: a free one).

        Programs in the sandbox connect to it and this process accepts, so they reach one service of
        yours without a network. Close it yourself. Raises OSError if the port is taken,
        MissingCapabilityError without ``listen``.
        """
        if type(port) is not int or not 0 <= port <= 65535:
            raise UsageError(f"port is a number up to 65535, not {port!r}")
        return self.base.listen(port)

    def processes(self) -> dict[int, str]:
        """Return the names of the live processes by their numbers in the sandbox, except live
        programs of ``run`` and ``spawn`` and what those have started. Raises MissingCapabilityError
        without ``processes``."""
        names = (entry.rpartition(" (") for entry in self.base.processes())
        left_out = self.live.descendants(self.base)
        return {n: name for name, _, end in names if (n := int(end[:-1])) not in left_out}

    @redact_errors
    def kill(self, pid: int, number: int = signal.SIGKILL) -> None:
        """Send a signal to a process by its number in the sandbox. One that has ended is ignored.
        Raises MissingCapabilityError without ``processes``."""
        if type(pid) is not int or pid < 2:
            raise UsageError(f"pid is the number of a process, from 2, not {pid!r}")
        if not isinstance(number, int) or not 1 <= number <= 64:
            raise UsageError(f"number is that of a signal, such as signal.SIGTERM, not {number!r}")
        self.base.signal(pid, number)

    def usage(self) -> ResourceUsage:
        """Return what the sandbox uses now: processor time in seconds, memory and disk in bytes.
        Raises MissingCapabilityError without ``usage``."""
        return self.base.usage()

    def connections(self) -> list[Connection]:
        """Return the last 1000 connections to other hosts that programs made or tried to make, the
        earliest first. Empty unless the network has rules, since nothing is known then."""
        return self.base.connections()

    # ------------------------------------------------------------------------- end
    def detach(self) -> str:
        """Leave the sandbox running and return its id, for ``attach``. This interface is closed;
        programs continue, without their streams.

        A sandbox that nobody attaches to ends after the idle time of its server. Raises
        MissingCapabilityError except with the back end ``remote:URL``.
        """
        identifier = self.base.detach()
        self.release()
        self._released = (
            f"this sandbox was detached: Sandbox.attach({identifier!r}, URL) returns it"
        )
        return identifier

    @classmethod
    def attach(
        cls, identifier: str, backend: str, *, secrets: Mapping[str, str] | None = None
    ) -> Self:
        """Return the sandbox that ``detach`` has left running at a server, ``remote:URL``, for a
        program with the same token. Raises SandboxLostError if there is none; after another
        error it can be attached by the same id. ``processes`` does not list what the earlier owner
        started with ``spawn``, and ``kill`` needs its number. Give ``secrets`` again."""
        given = Secrets(secrets)
        return cls.from_base(attach_sandbox(identifier, backend), given)

    def close(self, wait: bool = False) -> None:
        """End every process in the sandbox and free its files, the streams of its processes and
        its forwarded ports. May be called again. Does nothing in a forked child.

        ``wait``: return only after the last process has ended.
        """
        if self._is_inherited:
            return
        self._is_closed = True
        remove_record(self._record)
        if self._base is not None:
            self._base.close(wait)
        self._close_parts()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
