"""Several sandboxes on a private network, which are one state."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, cast

from intercode_sandbox.api.process import SandboxProcess
from intercode_sandbox.api.process_log import ProcessLog
from intercode_sandbox.api.sandbox import DEFAULT_TIMEOUT, Files, Sandbox
from intercode_sandbox.api.snapshots import Snapshot
from intercode_sandbox.backends import open_sandbox, resolve_image
from intercode_sandbox.contract import Limits, SandboxSpec
from intercode_sandbox.errors import SandboxError, UnknownNameError, UsageError
from intercode_sandbox.network.peers import PeerSandbox
from intercode_sandbox.types import Network
from intercode_sandbox.validation import check_timeout

Command = str | Sequence[str]
_PEER_PORTS = 64  # of other services that one can reach
_NAME = re.compile(r"[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?\Z")
_CHECK_PAUSE = 0.02
_SHOWN = 2000  # characters of a log in an error
_LOG_SECONDS = 1.0  # in which the last output of a program that has ended is read


class ServiceError(SandboxError):
    """A service of a group did not become ready; the message ends with its output.

    >>> from intercode_sandbox import SandboxGroup, Service, ServiceError
    >>> try:
    ...     SandboxGroup({"web": Service(command="exit 3", health="false")})
    ... except ServiceError as e:
    ...     print(e)
    the service 'web' has ended with status 3 before it was ready; it printed nothing
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A sandbox of a group, and the program in it that serves the others.

    ``image``, ``limits``, ``env``, ``files``, ``users`` and ``mounts`` are those of ``Sandbox``.

    Attributes:
        command: What runs in it, a text for ``/bin/sh -c`` or a program and its arguments, which
            the entry point of the image precedes; empty: nothing by itself.
        health: A command that succeeds when the service is ready; empty: it is ready at once.
        depends_on: Services that are ready before the command starts.
        network: ``none``, or rules for hosts outside of the group.
        user: The user of the command; None: root.
        cwd: The directory of the command; None: that of the image.
        start_timeout: Seconds until it has to be ready.
        once: It is ready when the command has ended with status 0, and is not run in forks.

    >>> from intercode_sandbox import Service
    >>> Service(command=["python3", "-m", "http.server", "80"], depends_on=["db"]).image
    'host'
    """

    image: str = "host"
    command: Command = ""
    health: Command = ""
    depends_on: Sequence[str] = ()
    network: Network = "none"
    env: Mapping[str, str] = field(default_factory=dict)
    files: Files = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    users: bool = False
    user: str | int | None = None
    cwd: str | None = None
    mounts: Mapping[str, str | Path] = field(default_factory=dict)
    start_timeout: float = 60.0
    once: bool = False


class SandboxGroup:
    """Several sandboxes with names on a private network.

    Each reaches the others by their names, at every TCP port at which they listen, and nothing
    else, unless the rules of its service name hosts. Snapshots and forks are of all together, taken
    while everything in the group is paused. ``group["web"]`` is the ``Sandbox`` of a service; the
    group closes it.

    Args:
        services: The services by their names, which are host names in lower case.
        backend: One whose sandboxes have networks of their own; ``auto`` for the strongest one.

    Raises:
        UsageError: A name is no host name, or a service depends on an unknown one or on itself.
        ServiceError: A service does not become ready.
        SandboxUnavailableError: Sandboxes have no networks of their own here.

    >>> from intercode_sandbox import SandboxGroup, Service
    >>> serve = "python3 -m http.server 80"
    >>> ready = "python3 -c 'import socket; socket.create_connection((\\"127.0.0.1\\", 80))'"
    >>> fetch = "from urllib.request import urlopen; print(urlopen('http://web/a').read())"
    >>> with SandboxGroup({
    ...     "web": Service(command=serve, health=ready, files={"/srv/a": "one"}, cwd="/srv"),
    ...     "agent": Service(depends_on=["web"]),
    ... }) as group:
    ...     print(group["agent"].run(["python3", "-c", fetch]).stdout)
    b'one'
    <BLANKLINE>
    """

    def __init__(self, services: Mapping[str, Service], *, backend: str = "auto") -> None:
        def opened(name: str) -> Sandbox:
            service = services[name]
            sandbox = Sandbox.from_base(open_sandbox(_spec(service, name, backend), backend))
            try:
                sandbox.write_files(service.files)
            except BaseException:
                sandbox.close()
                raise
            return sandbox

        self._begin(dict(services), opened, lambda _: True)

    def _begin(
        self,
        services: dict[str, Service],
        opened: Callable[[str], Sandbox],
        runs: Callable[[str], bool],
    ) -> None:
        self._services, self._order = services, _start_order(services)
        self._sandboxes: dict[str, Sandbox] = {}
        self._processes: dict[str, SandboxProcess] = {}
        self._logs: dict[str, ProcessLog] = {}
        try:
            for name in self._order:
                self._sandboxes[name] = opened(name)
            peers = {name: self._peer(name) for name in self._order}
            for peer in peers.values():
                peer.join(peers)
            self._start(runs)
        except BaseException:
            self.close()
            raise

    def _peer(self, name: str) -> PeerSandbox:
        """The back end's side of a service; ``open_sandbox`` has refused one without rules."""
        return cast(PeerSandbox, self._sandboxes[name].base)

    def __getitem__(self, name: str) -> Sandbox:
        self._check(name)
        return self._sandboxes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._services)

    def __repr__(self) -> str:
        return f"<SandboxGroup of {', '.join(self._services)}>"

    def _check(self, name: str) -> None:
        if name not in self._services:
            known = ", ".join(self._services)
            raise UnknownNameError(f"the group has no service {name!r}; known: {known}")

    # -------------------------------------------------------------------- services
    def is_running(self, name: str) -> bool:
        """Return whether the command of a service runs.

        Args:
            name: The service.

        Raises:
            UnknownNameError: The group has no such service.
        """
        self._check(name)
        process = self._processes.get(name)
        return process is not None and process.wait(0) is None

    def log(self, name: str) -> str:
        """Return the last 64 KiB that the command of a service has printed since it was started.

        Args:
            name: The service.

        Raises:
            UnknownNameError: The group has no such service.
        """
        self._check(name)
        return self._logs[name].text() if name in self._logs else ""

    def stop(self, name: str) -> None:
        """Kill the command of a service and every other process in its sandbox.

        Args:
            name: The service.

        Raises:
            UnknownNameError: The group has no such service.
        """
        self._check(name)
        if name in self._processes:
            self._processes.pop(name).close()
        sandbox = self._sandboxes[name]
        while left := sandbox.processes():
            for pid in left:
                sandbox.kill(pid)

    def start(self, name: str) -> None:
        """Start the command of a service, if it does not run, and return when it is ready.

        Args:
            name: The service.

        Raises:
            UnknownNameError: The group has no such service.
            ServiceError: It does not become ready.
        """
        self._check(name)
        if not self.is_running(name):
            self._spawn(name)
        self._await(name)

    def _start(self, runs: Callable[[str], bool]) -> None:
        """Start services, each when those are ready on which it depends, and wait for all."""
        for name in self._order:
            if runs(name) and self._services[name].command:
                for other in self._services[name].depends_on:
                    if runs(other):
                        self._await(other)
                self._spawn(name)
        for name in self._order:
            if runs(name):
                self._await(name)

    def _spawn(self, name: str) -> None:
        service, sandbox = self._services[name], self._sandboxes[name]
        command = service.command
        if not isinstance(command, str):
            command = [*sandbox.base.spec.image.entrypoint, *command]
        if name in self._processes:
            self._processes.pop(name).close()
        process = sandbox.spawn(command, cwd=service.cwd, user=service.user, merge_stderr=True)
        process.close_input()
        self._processes[name], self._logs[name] = process, ProcessLog(process)

    def _await(self, name: str) -> None:
        """Return when a service is ready."""
        service, process = self._services[name], self._processes.get(name)
        if not service.command and not service.health:
            return
        end = time.monotonic() + service.start_timeout
        if service.once:
            status = process.wait(service.start_timeout) if process else 0
            if status is None:
                raise self._error(name, f"has not ended within {service.start_timeout:g} s")
            if status:
                raise self._error(name, f"has ended with status {status}")
            return
        while service.health:
            left = end - time.monotonic()
            if process is not None and (status := process.wait(0)) is not None:
                raise self._error(name, f"has ended with status {status} before it was ready")
            if left <= 0:
                raise self._error(name, f"was not ready within {service.start_timeout:g} s")
            limit = min(left, DEFAULT_TIMEOUT)
            if self._sandboxes[name].run(service.health, timeout=limit).ok:
                return
            time.sleep(_CHECK_PAUSE)

    def _error(self, name: str, reason: str) -> ServiceError:
        if name in self._logs and not self.is_running(name):
            self._logs[name].wait(_LOG_SECONDS)
        printed = self.log(name)[-_SHOWN:].strip()
        shown = f"it printed:\n{printed}" if printed else "it printed nothing"
        return ServiceError(f"the service {name!r} {reason}; {shown}")

    # -------------------------------------------------------------------- snapshots
    @contextmanager
    def _paused(self) -> Iterator[None]:
        """Pause everything in the group, so that copies of all its sandboxes are of one moment."""
        with ExitStack() as stack:
            for name in self._order:
                stack.enter_context(self._peer(name).paused())
            yield

    def _running(self) -> frozenset[str]:
        """Return the services that a copy starts again."""
        names = (name for name in self._order if not self._services[name].once)
        return frozenset(name for name in names if self.is_running(name))

    def snapshot(self) -> GroupSnapshot:
        """Copy the files of all sandboxes at one moment, and note which services run."""
        files: dict[str, Snapshot] = {}
        try:
            with self._paused():
                for name in self._order:
                    files[name] = self._sandboxes[name].snapshot()
        except BaseException:
            for snapshot in files.values():
                snapshot.close()
            raise
        return GroupSnapshot(self._services, files, self._running())

    def restore(self, snapshot: GroupSnapshot) -> None:
        """Return to a snapshot of this group or one of its forks: end all processes, replace the
        files, and start the services again that ran then.

        Args:
            snapshot: A snapshot of a group with the same services.

        Raises:
            UsageError: The snapshot is of a group with other services.
            ServiceError: A service does not become ready.
        """
        if snapshot._services != self._services:
            raise UsageError("the snapshot is of a group with other services")
        for name in self._order:
            self.stop(name)
        for name in self._order:
            self._sandboxes[name].restore(snapshot.files[name])
        self._start(snapshot._runs)

    def fork(self, n: int = 1) -> list[Self]:
        """Return ``n`` groups with the files of this one, each on a network of its own.

        They are of one moment. Services that run here are started again there from their files,
        except those that run once; other processes are not copied.

        Args:
            n: How many.

        Raises:
            UsageError: ``n`` is less than 1.
            ServiceError: A service does not become ready.
        """
        if n < 1:
            raise UsageError(f"fork takes a number of at least 1, not {n!r}")
        copies: list[dict[str, Sandbox]] = [{} for _ in range(n)]
        forks: list[Self] = []
        runs = self._running()
        try:
            with self._paused():
                for name in self._order:
                    for at, sandbox in enumerate(self._sandboxes[name].fork(n)):
                        copies[at][name] = sandbox
            for copy in copies:
                forks.append(self._of(self._services, copy.pop, runs.__contains__))
        except BaseException:
            for group in forks:
                group.close()
            for copy in copies:
                for sandbox in copy.values():
                    sandbox.close()
            raise
        return forks

    @classmethod
    def from_snapshot(cls, snapshot: GroupSnapshot) -> Self:
        """Open a new group with the files of a snapshot, and start the services that ran then.

        Args:
            snapshot: A snapshot that is not closed.

        Raises:
            ServiceError: A service does not become ready.
        """

        def opened(name: str) -> Sandbox:
            return Sandbox.from_snapshot(snapshot.files[name])

        return cls._of(snapshot._services, opened, snapshot._runs)

    @classmethod
    def _of(
        cls,
        services: dict[str, Service],
        opened: Callable[[str], Sandbox],
        runs: Callable[[str], bool],
    ) -> Self:
        group = cls.__new__(cls)
        group._begin(services, opened, runs)
        return group

    def close(self) -> None:
        """Close all sandboxes. May be called again."""
        for sandbox in self._sandboxes.values():
            sandbox.close()
        for log in self._logs.values():
            log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class GroupSnapshot:
    """The files of a group at one moment. ``SandboxGroup.snapshot`` takes it,
    ``SandboxGroup.restore`` and ``SandboxGroup.from_snapshot`` use it any number of times. Close it
    to free the copies.

    Attributes:
        files: The snapshot of each service's sandbox, by its name.

    >>> from intercode_sandbox import GroupSnapshot, SandboxGroup, Service
    >>> def undo(group: SandboxGroup, before: GroupSnapshot) -> None:
    ...     group.restore(before)
    >>> with SandboxGroup({"a": Service(), "b": Service()}) as group:
    ...     with group.snapshot() as before:
    ...         group["a"].write("/x", "new")
    ...         undo(group, before)
    ...     print(group["a"].exists("/x"))
    False
    """

    def __init__(
        self,
        services: dict[str, Service],
        files: Mapping[str, Snapshot],
        running: frozenset[str],
    ) -> None:
        self.files, self._services, self._running = files, services, running

    def _runs(self, name: str) -> bool:
        """Return whether the command of a service ran."""
        return name in self._running

    def close(self) -> None:
        """Free the files. May be called again."""
        for files in self.files.values():
            files.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _start_order(services: Mapping[str, Service]) -> list[str]:
    """Return the names, each after those on which it depends. Raises UsageError."""
    if not services:
        raise UsageError("a group has at least one service")
    for name, service in services.items():
        if not _NAME.match(name):
            raise UsageError(
                f"the name of a service is a host name in lower case, not {name!r}: use letters, "
                "digits, - and _"
            )
        check_timeout(service.start_timeout, f"start_timeout of the service {name!r}")
        if service.once and not service.command:
            raise UsageError(f"the service {name!r} runs once: give it a command")
        if isinstance(service.depends_on, str):
            raise UsageError(f"the service {name!r}: depends_on is a list of names")
        for other in service.depends_on:
            if other not in services:
                raise UsageError(
                    f"the service {name!r} depends on {other!r}, which the group has not"
                )
    order: list[str] = []
    while len(order) < len(services):
        ready = [
            name
            for name, service in services.items()
            if name not in order and all(other in order for other in service.depends_on)
        ]
        if not ready:
            left = ", ".join(name for name in services if name not in order)
            raise UsageError(f"services depend on each other in a circle: {left}")
        order += ready
    return order


def _spec(service: Service, name: str, backend: str) -> SandboxSpec:
    """Return the specification of the sandbox of a service."""
    if service.network == "none":
        network = f"allow:peers={_PEER_PORTS}"
    elif service.network.startswith("allow:"):
        network = f"{service.network},peers={_PEER_PORTS}"
    else:
        raise UsageError(
            f"the service {name!r}: its network is 'none' or rules, not {service.network!r}: a "
            "group has a network of its own"
        )
    return SandboxSpec(
        resolve_image(service.image, backend),
        network=network,
        limits=service.limits,
        hostname=name.replace("_", "-"),
        env=service.env,
        users=service.users,
        mounts=service.mounts,
    )
