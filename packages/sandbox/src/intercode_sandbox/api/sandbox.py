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

    Every method raises SandboxLostError once the sandbox is gone, its subclass SandboxKilledError
    if what ran in it has ended it, and UsageError in a forked child of the process that opened it
    and for a path in the sandbox that is not absolute.

    Args:
        image: The root file system: ``host`` (the programs of this machine), ``dir:/path``,
            ``dockerfile:DIR``, ``recipe:NAME``, ``HOST/NAME:TAG`` of a registry, or any other form
            of docs/images.md.
        network: ``none``, ``host`` for the machine's own, or rules such as
            ``allow:git.example.org,*.example.com:443``; see docs/network.md.
        limits: Limits on what runs in it (None: the defaults of ``Limits``).
        env: Environment variables of all commands, besides those of the image.
        files: What is written before the first command, by path: a text, bytes, or the ``Path`` of
            a file or directory of this machine.
        backend: ``auto`` (the strongest isolation tier that works), ``namespace``, ``docker``,
            ``podman``, ``chroot``, ``landlock``, ``remote:URL``, or a reference to one of your own.
        users: Whether it has other users than root, for the parameter ``user`` of its methods.
        mounts: Directories of this machine that it shows read-only, by their paths in it.
        secrets: Environment variables of ``run`` and ``spawn`` whose values no record has; a
            ``Result`` shows ``[secret NAME]`` in their place. Forks have them, files and snapshots
            do not.

    Raises:
        UsageError: The image does not exist, or a value is not of its form.
        SandboxError: No sandbox can be opened.

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
        """Return this interface for an open sandbox of a back end, which it then owns.

        Args:
            base: The sandbox of the back end.
            secrets: Variables of commands whose values are shown nowhere (None: there are none).
        """
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
        """The sandbox of the back end.

        Raises:
            SandboxLostError: The sandbox was released or detached.
            UsageError: This process is a forked child of its owner.
        """
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

        Several threads may run commands in one sandbox. A command that fails is a result like any
        other, also a text if /bin/sh is gone (status 127).

        Args:
            command: A text for ``/bin/sh -c``, or a program and its arguments.
            stdin: The input of the command.
            cwd: Its directory (None: that of the image).
            env: Variables besides those of the sandbox.
            user: A name or number, if the sandbox has ``users`` (None: root).
            timeout: Seconds until the command is killed with everything that it has started (None:
                no limit); the result has the output so far.
            merge_stderr: Whether stderr is part of stdout, in the order of writing.
            on_output: Called with each piece of output as it arrives, and the name of its stream;
                if it raises, the command is killed.

        Returns:
            The output, the exit status, and the limit that was exceeded.

        Raises:
            OSError: The program or ``cwd`` cannot be used.
            UsageError: There is no such user, or a value is not of its form.
            MissingCapabilityError: ``user`` is not root, and the sandbox was opened without
                ``users``.
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

        Args:
            command: A text for ``/bin/sh -c``, or a program and its arguments.
            cwd: Its directory (None: that of the image).
            env: Variables besides those of the sandbox.
            user: A name or number, if the sandbox has ``users`` (None: root).
            merge_stderr: Whether stderr is part of stdout, in the order of writing.
            terminal: True: run it on a pseudo-terminal of 24 rows and 80 columns; a pair: of that
                number of rows and columns.

        Raises:
            OSError: The program or ``cwd`` cannot be used.
            UsageError: There is no such user, or a value is not of its form.
            MissingCapabilityError: The sandbox lacks ``terminal``, or other users than root.
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

        Args:
            path: The absolute path of the file.
            limit: The most bytes that it may have.
            user: Read it with the rights of this user, as in ``run`` (None: root).

        Raises:
            FileNotFoundError: There is no such file.
            IsADirectoryError: It is a directory.
            PermissionError: The user may not read it.
            OSError: It is another kind of file, or larger than ``limit``.
            MissingCapabilityError: ``user`` is not root, and the sandbox was opened without
                ``users``.
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

        Args:
            path: The absolute path of the file.
            data: Its content; a text is encoded as UTF-8.
            mode: Its permissions.
            user: Write it with the rights of this user, as in ``run`` (None: root). New files and
                directories then belong to the user. A file of somebody else that the user may write
                keeps its owner and mode, and a full disk empties it.

        Raises:
            IsADirectoryError: The path is that of a directory.
            OSError: It cannot be written, or is larger than the limit ``file_size``.
            MissingCapabilityError: ``user`` is not root, and the sandbox was opened without
                ``users``.
        """
        content = encode(data) if isinstance(data, str) else data
        if user is None:
            transfer.write(self.base, path, content, mode)
        else:
            transfer.write_as(self.base, self.live, path, content, mode, user)

    @redact_errors
    def write_files(self, files: Files) -> None:
        """Write several files or trees.

        Args:
            files: What to write, by path: a text, bytes, or the ``Path`` of a file or directory of
                this machine.

        Raises:
            UsageError: There is nothing at a path of this machine.
            OSError: A file cannot be written.
            SandboxError: A directory cannot be written, for example without tar in the image.
        """
        transfer.write_files(self.base, self.live, files)

    @redact_errors
    def stat(self, path: str, *, follow: bool = True) -> FileInfo:
        """Return what a path is: kind, mode, size in bytes, time.

        Args:
            path: The absolute path.
            follow: Whether a symbolic link stands for what it leads to.

        Raises:
            FileNotFoundError: There is nothing at the path.
            OSError: The path cannot be reached, or is in /proc.
            MissingCapabilityError: The sandbox lacks ``listing``.
        """
        return transfer.describe(self.base, path, follow)

    def exists(self, path: str) -> bool:
        """Return whether there is something at a path; a link that leads nowhere is nothing.

        Args:
            path: The absolute path.

        Raises:
            OSError: The path cannot be reached, or is in /proc.
            MissingCapabilityError: The sandbox lacks ``listing``.
        """
        try:
            self.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    @redact_errors
    def list_files(self, path: str) -> dict[str, FileInfo]:
        """Return what is in a directory. Needs no program of the image.

        Args:
            path: The absolute path of the directory.

        Returns:
            The sorted names, with what each of them is; links are not followed.

        Raises:
            NotADirectoryError: The path is not that of a directory.
            FileNotFoundError: There is nothing at the path.
            OSError: The path cannot be reached, or is in /proc.
            MissingCapabilityError: The sandbox lacks ``listing``.
        """
        return transfer.list_files(self.base, path)

    @redact_errors
    def remove(self, path: str, *, recursive: bool = False, user: str | int | None = None) -> None:
        """Remove a file, a link or a directory. Needs no program of the image, unless ``user`` is
        given.

        Args:
            path: The absolute path.
            recursive: Whether a directory is removed with all in it.
            user: Remove it with the rights of this user, by ``rm`` of the image (None: as root).

        Raises:
            FileNotFoundError: There is nothing at the path.
            IsADirectoryError: It is a directory, and ``recursive`` is False.
            OSError: Something cannot be removed.
            SandboxError: The image has no ``rm`` for ``user``.
            MissingCapabilityError: The sandbox lacks ``listing``, or other users than root.
        """
        transfer.remove(self.base, self.live, path, recursive, user)

    @redact_errors
    def upload(self, local: str | Path, path: str) -> None:
        """Copy a file or directory of this machine into the sandbox.

        A directory is merged into an existing one, with its modes and links; that needs tar in the
        image.

        Args:
            local: The file or directory of this machine.
            path: The absolute path of the copy in the sandbox.

        Raises:
            UsageError: There is no file or directory at ``local``.
            OSError: The file cannot be written.
            SandboxError: The directory cannot be written.
        """
        transfer.upload(self.base, self.live, Path(local), path)

    @redact_errors
    def download(
        self, path: str, local: str | Path, limit: int = transfer.DEFAULT_LIMIT
    ) -> list[str]:
        """Copy a file or directory of the sandbox to this machine.

        A directory needs tar in the image. Regular files, directories and relative links inside the
        tree are written: another link, or a pipe, that hostile code has left would lead a reader on
        this machine elsewhere.

        Args:
            path: The absolute path in the sandbox.
            local: The path of the copy on this machine; that of a directory is new or empty.
            limit: The most bytes of the file, or of all files of the directory.

        Returns:
            The names of what was left out, relative to ``path``; none for a file.

        Raises:
            FileNotFoundError: There is nothing at ``path``.
            OSError: It is no file or directory, or a file of more than ``limit`` bytes.
            DataError: A directory has more than ``limit`` bytes.
            UsageError: ``local`` is a directory that is not empty.
            SandboxError: The image has no tar, or the directory cannot be read completely.
        """
        return transfer.download(self.base, self.live, path, Path(local), limit)

    def changes(self) -> dict[str, FileEntry]:
        """Return every path that differs from the image, sorted: what ``files`` and uploads have
        written, too. Deleted paths have the kind ``gone``.
        """
        return self.base.changes()

    # ------------------------------------------------------------------- snapshots
    def snapshot(self) -> snapshots.Snapshot:
        """Copy the files. The sandbox continues, with its processes, which are paused meanwhile and
        are not part of the snapshot.

        Raises:
            MissingCapabilityError: The sandbox lacks ``fork``.
            TooManyChangesError: More files have changed than can be listed.
        """
        return snapshots.Snapshot(self.base.snapshot())

    @redact_errors
    def restore(self, snapshot: snapshots.Snapshot) -> None:
        """Replace the files by those of a snapshot. Live processes continue with the new files.

        Args:
            snapshot: A snapshot of this sandbox, or of another one on the same image and back end.

        Raises:
            MissingCapabilityError: The sandbox lacks ``restore``.
            SandboxError: It is not possible, for example because the back ends differ.
        """
        self.base.restore(snapshot.files)

    @classmethod
    def from_snapshot(
        cls, snapshot: snapshots.Snapshot, *, secrets: Mapping[str, str] | None = None
    ) -> Self:
        """Open a new sandbox with the files, limits and variables of a snapshot's sandbox.

        Args:
            snapshot: The snapshot.
            secrets: The secrets of the new sandbox (None: it has none); a snapshot keeps none.

        Raises:
            UsageError: The snapshot is closed.
            SandboxError: No sandbox can be opened.
        """
        given = Secrets(secrets)
        return cls.from_base(snapshot.files.open(), given)

    @redact_errors
    def fork(self, n: int = 1) -> list[Self]:
        """Return new sandboxes with copies of the files, limits and variables.

        They share nothing with this one and each other. Processes are not copied.

        Args:
            n: The number of new sandboxes, at least 1.

        Raises:
            MissingCapabilityError: The sandbox lacks ``fork``.
            TooManyChangesError: More files have changed than can be listed.
            UsageError: ``n`` is less than 1.
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

        The file is a tar archive; see docs/sandbox.md. An error leaves no file.

        Args:
            path: The path of the new file on this machine.
            limit: The most bytes of the files in all, with the holes of sparse files (None: twice
                the limit ``disk``).

        Raises:
            DataError: The files have more than ``limit`` bytes.
            UsageError: ``path`` exists, or no file can be made there.
            SandboxError: Writing the file fails.
            MissingCapabilityError: The sandbox lacks ``save``.
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

        A file from elsewhere is safe to load: nothing in it runs before a command runs it in the
        sandbox.

        Args:
            path: The saved file.
            image: The image of the sandbox that was saved.
            network: As in ``Sandbox``, like the parameters that follow.
            limits: Limits on what runs in the new sandbox (None: the defaults).
            env: Environment variables of all commands.
            backend: The back end of the new sandbox.
            users: Whether it has other users than root.
            mounts: Directories of this machine that it shows read-only.
            secrets: Variables of commands whose values are shown nowhere; the file has none.

        Raises:
            UsageError: There is no such file, or it was saved from another image.
            DataError: The file is broken, holds what no sandbox saves, or has more files than
                ``limits`` allow.
            SandboxError: No sandbox can be opened.
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

        A connection is closed at once if no server listens.

        Args:
            target: A TCP port of the sandbox's loopback device, or the path of a Unix socket in it.
            host: The address of this machine to listen at; everybody who reaches it can use the
                server.
            port: The port to listen at (0: a free one).

        Raises:
            OSError: The address is in use.
            UsageError: ``target`` is neither a port nor an absolute path.
            MissingCapabilityError: The sandbox lacks ``connect``.
        """
        forwarded = ForwardedPort(self.base, target, host, port)
        forwarded.on_close = self._parts.discard
        self._parts.add(forwarded)
        return forwarded

    @redact_errors
    def listen(self, port: int = 0) -> socket.socket:
        """Return a socket that listens at a port of the sandbox's loopback device.

        Programs in the sandbox connect to it and this process accepts, so they reach one service of
        yours without a network. Close it yourself.

        Args:
            port: The number of the port (0: a free one).

        Raises:
            OSError: The port is taken.
            UsageError: ``port`` is no number up to 65535.
            MissingCapabilityError: The sandbox lacks ``listen``.
        """
        if type(port) is not int or not 0 <= port <= 65535:
            raise UsageError(f"port is a number up to 65535, not {port!r}")
        return self.base.listen(port)

    def processes(self) -> dict[int, str]:
        """Return the names of the live processes by their numbers in the sandbox, except live
        programs of ``run`` and ``spawn`` and what those have started.

        Raises:
            MissingCapabilityError: The sandbox lacks ``processes``.
        """
        names = (entry.rpartition(" (") for entry in self.base.processes())
        left_out = self.live.descendants(self.base)
        return {n: name for name, _, end in names if (n := int(end[:-1])) not in left_out}

    @redact_errors
    def kill(self, pid: int, number: int = signal.SIGKILL) -> None:
        """Send a signal to a process. One that has ended is ignored.

        Args:
            pid: The number of the process in the sandbox, from 2.
            number: The number of the signal.

        Raises:
            UsageError: ``pid`` or ``number`` is no such number.
            MissingCapabilityError: The sandbox lacks ``processes``.
        """
        if type(pid) is not int or pid < 2:
            raise UsageError(f"pid is the number of a process, from 2, not {pid!r}")
        if not isinstance(number, int) or not 1 <= number <= 64:
            raise UsageError(f"number is that of a signal, such as signal.SIGTERM, not {number!r}")
        self.base.signal(pid, number)

    def usage(self) -> ResourceUsage:
        """Return what the sandbox uses now: processor time in seconds, memory and disk in bytes.

        Raises:
            MissingCapabilityError: The sandbox lacks ``usage``.
        """
        return self.base.usage()

    def connections(self) -> list[Connection]:
        """Return the last 1000 connections to other hosts that programs made or tried to make, the
        earliest first. Empty unless the network has rules, since nothing is known then."""
        return self.base.connections()

    # ------------------------------------------------------------------------- end
    def detach(self) -> str:
        """Leave the sandbox running and return its id, for ``attach``. This interface is closed;
        programs continue, without their streams.

        A sandbox that nobody attaches to ends after the idle time of its server.

        Raises:
            MissingCapabilityError: The back end is not ``remote:URL``.
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
        """Return the sandbox that ``detach`` has left running at a server.

        ``processes`` does not list what the earlier owner started with ``spawn``, and ``kill``
        needs its number.

        Args:
            identifier: The id that ``detach`` returned to a program with the same token.
            backend: The server, ``remote:URL``.
            secrets: The secrets of the sandbox, which the server does not keep.

        Raises:
            SandboxLostError: There is no such sandbox. After another error it can be attached by
                the same id.
            UsageError: The back end has no detached sandboxes.
        """
        given = Secrets(secrets)
        return cls.from_base(attach_sandbox(identifier, backend), given)

    def close(self, wait: bool = False) -> None:
        """End every process in the sandbox and free its files, the streams of its processes and
        its forwarded ports. May be called again. Does nothing in a forked child.

        Args:
            wait: Return only after the last process has ended.
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
