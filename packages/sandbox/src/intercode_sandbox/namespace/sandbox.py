"""A sandbox made of Linux namespaces."""

from __future__ import annotations

import os
import platform
import socket
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from intercode_sandbox.contract import BaseSandbox, Capability, LimitExceeded, SandboxSpec
from intercode_sandbox.errors import SandboxError, SandboxUnavailableError
from intercode_sandbox.images.cache.set_user_id_trees import insert_programs
from intercode_sandbox.namespace.launcher import Launcher
from intercode_sandbox.overlay_format import copy_tree
from intercode_sandbox.platforms.forks import give_up_after_fork
from intercode_sandbox.platforms.paths import cache_root, sandbox_uid
from intercode_sandbox.supervisor import root_files
from intercode_sandbox.supervisor.connection import READ_SECONDS, SupervisorConnection
from intercode_sandbox.supervisor.control_group import ControlGroup, GroupMemory
from intercode_sandbox.supervisor.process_table import (
    HostProcess,
    is_supervisor_blocked,
    kill_blocking_processes,
)
from intercode_sandbox.supervisor.runtime import protocol
from intercode_sandbox.supervisor.supervised_sandbox import (
    SupervisedSandbox,
    refusal_error,
    unlimited_processors_error,
)
from intercode_sandbox.types import Connection

if TYPE_CHECKING:
    from intercode_sandbox.network.forwarder import Forwarder
    from intercode_sandbox.network.peers import PeerSandbox

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_cache: list[tuple[SandboxSpec, dict[str, Any]]] = []
_CACHE_SIZE = 16


def setup_request(spec: SandboxSpec) -> dict[str, Any]:
    """Return the request for a sandbox. The last few are cached, because most sandboxes are
    alike."""
    for cached_spec, request in _cache:
        if cached_spec == spec:
            return request
    files, binds = root_files.generate_root_files(spec)
    stage = cache_root() / "stage"
    stage.mkdir(exist_ok=True)
    trees = [layer.root for layer in reversed(spec.all_layers)]
    if spec.image.root is not None:
        trees.append(spec.image.root)
    if spec.users or spec.upper:  # a build step keeps the bits of what it copies
        trees = insert_programs(trees)
    layers = [str(tree) for tree in (root_files.root_tree(spec, files), *trees)]
    request = {
        "stage": str(stage),
        "layers": layers,
        "binds": binds,
        "mounts": root_files.shown_directories(spec),
        "anonymous_mounts": root_files.anonymous_mounts(spec, empty=""),  # the supervisor has one
        "limits": asdict(spec.limits),
        "network": spec.network,
        "hostname": spec.hostname,
        "appearance": spec.appearance,
        "env": root_files.environment(spec),
        "upper": str(spec.upper) if spec.upper else None,
        "deterministic": spec.determinism is not None,
    }
    if spec.network not in ("none", "host"):
        from intercode_sandbox.network.rules import parse_rules  # most sandboxes have no rules

        request["gateway"] = parse_rules(spec.network).gateway()
    if not spec.mounts and all(Path(layer).is_dir() for layer in layers):
        _cache[:] = [(spec, request), *_cache[: _CACHE_SIZE - 1]]
    return request


_MAX_LAYERS_WITH_USERS = 230
"""Limit on the layers of a sandbox with several users. The kernel passes at most 253 descriptors
with a message, one for each of these layers, and some for copies and sealed layers."""
MAX_SEALED_LAYERS = 8
"""Limit on stacked sealed layers. A sandbox that would have more starts with a copy of them."""
_MAX_COPIED_FILES, _MAX_COPIED_BYTES = 100, 1 << 20
"""Up to so many files and bytes, a copy costs no more than moving an episode to a new sandbox."""


class NamespaceLayer:
    """A sealed snapshot: the upper layer of a sandbox in which nothing runs any more, as a layer of
    other sandboxes.

    Users are counted. When the last one releases the layer, the sandbox is closed.
    """

    source: None = None

    def __init__(self, sandbox: NamespaceSandbox) -> None:
        self._sandbox = sandbox
        self._users, self._closed = 1, False
        self._lock = threading.Lock()

    @property
    def lower_layers(self) -> tuple[NamespaceLayer, ...]:
        """The sealed layers below this one, the topmost first."""
        return self._sandbox.sealed_layers

    def acquire(self) -> None:
        """Count one more user. Raises ValueError if the layer was released by all users."""
        with self._lock:
            if not self._users:
                raise ValueError("this layer was released already")
            self._users += 1

    def release(self) -> None:
        """Count one user fewer."""
        with self._lock:
            self._users -= 1
            last = not self._users
        if last:
            self._sandbox.close()

    def open(self) -> NamespaceSandbox:
        if self._closed:
            raise ValueError("these files were freed already")
        return NamespaceSandbox(self._sandbox.spec, (), (self, *self.lower_layers))

    def open_last(self) -> NamespaceSandbox:
        return self.open()

    def close(self) -> None:
        closed, self._closed = self._closed, True
        if not closed:
            self.release()

    @property
    def user_id(self) -> int:
        """The owner of the files, outside of sandboxes."""
        return self._sandbox.user_id

    @property
    def is_on_disk(self) -> bool:
        """Whether the files lie in a directory of the machine and not in memory."""
        return self._sandbox.spec.upper is not None

    def open_mount(self) -> int:
        """Return a descriptor of a new mount of the layer, for one other sandbox."""
        return self._sandbox.connection.request_fd("seal")

    def open_upper(self) -> int:
        """Return a descriptor of the layer's directory, for this process."""
        return self._sandbox.connection.request_fd("upper")

    def open_for_copy(self) -> int:
        """Return a descriptor of the layer's directory, for a copy in another sandbox."""
        return self._sandbox.open_for_copy()


def _gateway_socket(connection: SupervisorConnection, number: int) -> socket.socket:
    opened = socket.socket(fileno=connection.request_fd("gateway", number=number))
    give_up_after_fork(opened, socket.socket.close)
    return opened


class NamespaceSandbox(SupervisedSandbox):
    """A sandbox of the back end ``namespace``. Raises SandboxError if it cannot be created.

    ``copies``: descriptors of upper layers to start with copies of, the lowest first, and the owner
    of each one's files. ``sealed_layers``: layers between the image's and the sandbox's own, the
    topmost first. ``with_owners``: whether copied files keep their owners, else root of the sandbox
    owns them. ``own_user``: whether a user id that no other sandbox has is wanted. Where that is
    not possible, and for files on disk and deterministic sandboxes, it is the shared one.
    """

    _forwarder: Forwarder | None = None

    def __init__(
        self,
        spec: SandboxSpec,
        copies: Sequence[tuple[int, int]] = (),
        sealed_layers: tuple[NamespaceLayer, ...] = (),
        own_user: bool = True,
        with_owners: bool = True,
    ) -> None:
        on_disk = spec.upper is not None or any(layer.is_on_disk for layer in sealed_layers)
        request = {
            **setup_request(spec),
            "copies": len(copies),
            "without_owners": not with_owners,
            "owners": [owner for _, owner in copies] + [layer.user_id for layer in sealed_layers],
            "own_user": own_user and not on_disk and spec.determinism is None,
        }
        if spec.users and not request["own_user"]:
            raise SandboxUnavailableError(
                "a sandbox has no users besides root if it keeps files on disk or is "
                "deterministic: leave out `users`"
            )
        if spec.users and len(request["layers"]) > _MAX_LAYERS_WITH_USERS:
            raise SandboxUnavailableError(
                f"the image {spec.image.name} has {len(request['layers'])} layers, and a sandbox "
                f"with users besides root can have {_MAX_LAYERS_WITH_USERS}: build it with fewer "
                "steps, or leave out `users`"
            )
        self.spec = spec
        self.env = dict(request["env"])  # the request is one for all sandboxes that are alike
        self.base_trees = request["layers"]
        self.sealed_layers: tuple[NamespaceLayer, ...] = ()
        mounted: list[int] = []
        try:
            mounted += [layer.open_mount() for layer in sealed_layers]
            launcher = self._launcher = _launcher_for(spec)
            if spec.limits.cpus and not (spec.limits.cgroups and launcher.cgroup_directories):
                raise unlimited_processors_error("namespace/2")
            connection = launcher.create(request, [*(fd for fd, _ in copies), *mounted])
        finally:
            protocol.close_all(mounted)
        self.connection = SupervisorConnection(connection)
        for layer in sealed_layers:
            layer.acquire()
        self.sealed_layers = sealed_layers
        self.supervisor_pid = self.connection.handshake["pid"]
        self.user_id = self.connection.handshake["user"]
        if self.connection.handshake["cgroups"]:
            self.connection.memory_exceeded = partial(
                launcher.was_killed_for_memory, self.supervisor_pid
            )
        self._record_bounds(self.connection.handshake["cgroups"])
        if "gateway" in request:
            self._forwarder = self._open_forwarder(len(request["gateway"]["ports"]))

    def _open_forwarder(self, ports: int) -> Forwarder:
        """Return the way out of the sandbox, through the sockets of its gateway."""
        from intercode_sandbox.network.forwarder import Forwarder
        from intercode_sandbox.network.rules import parse_rules

        gateway: list[socket.socket] = []
        try:
            for number in range(1 + ports):
                gateway.append(_gateway_socket(self.connection, number))
            unbound = partial(_gateway_socket, self.connection)
            forwarder = Forwarder(parse_rules(self.spec.network), gateway, unbound)
        except BaseException:
            for listener in gateway:
                listener.close()
            self.close()
            raise
        weakref.finalize(self, forwarder.close_soon).atexit = False
        return forwarder

    def join(self, peers: Mapping[str, PeerSandbox]) -> None:
        """See ``PeerSandbox``. Raises ValueError without a network for peers."""
        if self._forwarder is None:
            raise ValueError("this sandbox has no network for peers")
        from intercode_sandbox.network.peers import Peer  # most sandboxes have none

        own = next((name for name, peer in peers.items() if peer is self), "")
        others = {name: Peer(peer) for name, peer in peers.items() if peer is not self}
        self._forwarder.join(own, others)

    def listening_ports(self) -> frozenset[int]:
        from intercode_sandbox.network.peers import listening_ports

        return listening_ports(self.supervisor_pid)

    def connect_from_peer(self, port: int) -> socket.socket:
        from intercode_sandbox.network.rules import OWN_ADDRESS

        return self._connected(host=OWN_ADDRESS, port=port)

    def connections(self) -> list[Connection]:
        return [] if self._forwarder is None else self._forwarder.connections()

    def _record_bounds(self, groups: Mapping[str, str]) -> None:
        """Set the tier from the control group, and start a watchdog for what it does not bound: the
        memory alone, if the files are in memory, too."""
        self.tier = "namespace/1" if groups else "namespace/2"
        template = self.connection.handshake["template"]
        self._group = ControlGroup(groups, template) if groups else None
        memory, shared = self.spec.limits.memory, None
        is_bounded = bool(groups) and self.spec.upper is not None
        if groups and not is_bounded:
            with suppress(OSError):  # the sandbox has ended already
                shared = GroupMemory(groups, memory)
        self._start_watchdog(self.spec, None if is_bounded else memory, shared)

    def _poll_limit_exceeded(self) -> LimitExceeded:
        watched = super()._poll_limit_exceeded()  # both, because both may have killed it
        return (self._group.limit_exceeded() if self._group else "") or watched

    def _list_processes(self) -> list[HostProcess]:
        members = self._group.members() if self._group else []
        return members or super()._list_processes()

    def _unblock(self) -> None:
        if self._group is None or not is_supervisor_blocked(
            self.supervisor_pid, self._list_processes()
        ):
            super()._unblock()
        elif self._group.freeze():
            try:
                kill_blocking_processes(self.supervisor_pid, self._group.members)
            finally:
                self._group.thaw()
        else:
            kill_blocking_processes(self.supervisor_pid, super()._list_processes)

    @property
    def capabilities(self) -> frozenset[Capability]:
        more: set[Capability] = {"terminal", "connect", "listen", "mounts", "rules"}
        if self.spec.users:
            more.add("users")
        if len(self.sealed_layers) < MAX_SEALED_LAYERS:
            more.add("seal")
        if platform.machine() == "x86_64":
            more.add("checkpoint")
        return super().capabilities | more

    def open_for_copy(self) -> int:
        """Return a descriptor of the upper layer, for a copy in another sandbox. It is a mount if
        that may have another user id, which needs one of its own to read the files."""
        return self.connection.request_fd("seal" if self._launcher.has_user_ids else "upper")

    def fork(self) -> Self:
        return self._copy(flatten=len(self.sealed_layers) >= MAX_SEALED_LAYERS)

    def _copy(self, flatten: bool, with_owners: bool = True) -> Self:
        """Return a new sandbox with a copy of the files. ``flatten``: also of the sealed layers,
        which the new sandbox has in common with this one otherwise."""
        spec = replace(self.spec, upper=None)
        sources: list[NamespaceLayer | NamespaceSandbox] = [self]
        if flatten:
            sources[:0] = reversed(self.sealed_layers)
        copies: list[tuple[int, int]] = []
        try:
            copies += [(source.open_for_copy(), source.user_id) for source in sources]
            on_disk = any(layer.is_on_disk for layer in self.sealed_layers)
            with self._paused():
                return type(self)(
                    spec,
                    copies,
                    () if flatten else self.sealed_layers,
                    own_user=self.spec.upper is None and not on_disk,
                    with_owners=with_owners,
                )
        finally:
            protocol.close_all([fd for fd, _ in copies])

    def should_seal(self) -> bool:
        if "seal" not in self.capabilities:
            return False
        size, files = self.size()
        return files > _MAX_COPIED_FILES or size > _MAX_COPIED_BYTES

    def seal(self) -> NamespaceLayer:
        try:
            self.connection.request("end_all")
        except OSError as e:
            raise SandboxError(f"a sandbox with {e.strerror} cannot be sealed") from e
        return NamespaceLayer(self)

    def recycle(self) -> None:
        """Recycle the sandbox; see ``BaseSandbox``. The namespaces stay."""
        if (
            self.sealed_layers
            or self.spec.upper
            or self.spec.mounts
            or self.spec.appearance != "plain"
            or self.limit_exceeded()
        ):
            raise SandboxError(
                "only a plain sandbox without mounts that exceeded no limit can be recycled"
            )
        try:
            self.connection.request("recycle", seconds=READ_SECONDS)
        except OSError as e:
            raise refusal_error(e, "recycled") from e

    def replace_files(self, source: BaseSandbox | Path) -> None:
        """Replace the files; see ``BaseSandbox``. Waiting processes get a new root directory."""
        if self.sealed_layers or self.spec.upper or self.spec.appearance != "plain":
            raise SandboxError("only the files of a plain sandbox can be replaced")
        with _open_upper(source, self.user_id, self._launcher) as upper:
            try:
                self.connection.request("replace_files", [upper], seconds=READ_SECONDS)
            except OSError as e:
                raise refusal_error(e, "given other files") from e

    def save(self, directory: Path) -> None:
        if self.spec.users and os.geteuid() != 0:  # who cannot read the files of other users
            with self._copy(flatten=True, with_owners=False) as copy:
                copy._save_layers(directory)
        else:
            self._save_layers(directory)

    def _save_layers(self, directory: Path) -> None:
        uppers: list[int] = []
        target = os.open(directory, _DIRECTORY)
        try:
            uppers += [layer.open_upper() for layer in reversed(self.sealed_layers)]
            uppers.append(self.connection.request_fd("upper"))
            for upper in uppers:
                os.lseek(upper, 0, os.SEEK_SET)  # the supervisor reads through the same open file
                copy_tree(upper, target)
        finally:
            protocol.close_all([target, *uppers])

    @contextmanager
    def _paused(self) -> Iterator[None]:
        """Pause everything in the sandbox; with a control group also the supervisor."""
        if self._group is None or not self._group.freeze():
            with super()._paused():
                yield
            return
        try:
            yield
        finally:
            self._group.thaw()

    def close(self, wait: bool = False) -> None:
        super().close(wait)
        if self._forwarder is not None:
            self._forwarder.close()
        if self._group is not None:
            self._group.close()
        layers, self.sealed_layers = self.sealed_layers, ()
        for layer in layers:
            layer.release()


def _launcher_for(spec: SandboxSpec) -> Launcher:
    if not spec.users:
        return Launcher.get()
    try:
        return Launcher.get(users=True)
    except SandboxError as e:
        remedy = "use Linux 5.19 or later, or " if os.geteuid() == 0 else ""
        raise SandboxUnavailableError(
            f"no sandbox with users besides root on this machine: {e}; {remedy}leave out `users`"
        ) from e


@contextmanager
def _open_upper(other: BaseSandbox | Path, user: int, launcher: Launcher) -> Iterator[int]:
    """Open the upper layer of a sandbox, or the one that a directory holds, for the sandbox with
    this user id."""
    upper = -1
    try:
        if isinstance(other, Path) and user == sandbox_uid():
            upper = os.open(other, _DIRECTORY)
        elif isinstance(other, Path):
            upper = launcher.map_path(other, user)
        elif not isinstance(other, NamespaceSandbox) or other.sealed_layers:
            raise SandboxError(
                "files can only be copied from a plain namespace sandbox or a directory"
            )
        elif other.user_id == user:
            upper = other.connection.request_fd("upper")
        elif other.spec.upper is not None:
            upper = launcher.map_path(other.spec.upper / "upper", user)
        else:
            mount = other.connection.request_fd("seal")
            try:
                upper = launcher.map_mount(mount, user)
            finally:
                os.close(mount)
        yield upper
    finally:
        if upper >= 0:
            os.close(upper)
