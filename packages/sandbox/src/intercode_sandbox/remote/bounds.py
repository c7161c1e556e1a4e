"""What a server of remote sandboxes allows each client, and the store of images and layers."""

from __future__ import annotations

import hashlib
import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Any

from intercode_sandbox import images
from intercode_sandbox.contract import BaseSandbox, SandboxSpec
from intercode_sandbox.errors import DataError, SandboxError, UsageError
from intercode_sandbox.images.archives.streams import is_compressed
from intercode_sandbox.images.archives.tar import refuse_sparse_entries
from intercode_sandbox.images.build.capture import layer_key
from intercode_sandbox.images.build.layer_dates import redated_layer, stopped_clock_copies
from intercode_sandbox.images.build.steps import cached_step, step_path, steps_directory
from intercode_sandbox.images.cache.trees import cached_tree
from intercode_sandbox.platforms.paths import cache_root, sandbox_uid
from intercode_sandbox.supervisor.upper_layer import change_owner
from intercode_sandbox.types import Image, Layer, LayerSpec

_MAX_PROCESSES, _MAX_INODES, _MAX_OPEN_FILES = 4096, 2_000_000, 1 << 16
_ENTRY_SIZE = 512  # bytes, at least, of an inode and a name
_MAX_CLOCKS = 64  # stopped clocks for which a client's layers are dated
DIGEST = re.compile("[0-9a-f]{64}")
_REFERENCE = re.compile(r"(archive|capture):([0-9a-f]{32}|[0-9a-f]{64})(?:@([0-9]{1,11}))?")
_IMAGE = re.compile(r"host|(recipe|image):[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a client may use: all connections with one token together, and each of its sandboxes.

    ``memory`` and ``disk`` are in bytes, of one sandbox; ``cpu_seconds`` is the processor time of
    one action (None: the limit of the client). ``idle`` and ``lifetime`` are seconds without a
    request and since the start. ``connections`` are per token. ``uploads`` are the bytes of layers
    that the client may send or make while the server runs. ``network``: it may use the
    machine's network.
    """

    sandboxes: int = 64
    memory: int = 4 << 30
    disk: int = 4 << 30
    cpu_seconds: float | None = None
    idle: float = 1800.0
    lifetime: float = 6 * 3600.0
    connections: int = 32
    uploads: int = 8 << 30
    network: bool = False

    def check(self, spec: SandboxSpec) -> SandboxSpec:
        """Return the specification with the server's own limits. Raises UsageError if it asks for
        more than is allowed: with less, results would be others."""
        limits = spec.limits
        bounds = {
            "memory": self.memory,
            "disk": self.disk,
            "processes": _MAX_PROCESSES,
            "inodes": _MAX_INODES,
            "open_files": _MAX_OPEN_FILES,
        }
        for name, most in bounds.items():
            if getattr(limits, name) > most:
                option = f" (--limit {name}=SIZE)" if name in ("memory", "disk") else ""
                raise UsageError(
                    f"the limit {name}={getattr(limits, name)} is more than the {most} that this "
                    f"server allows{option}"
                )
        if spec.network != "none" and not self.network:
            raise UsageError(
                "this server allows no sandbox a network: start it with --allow-network"
            )
        cpu = limits.cpu_seconds
        if self.cpu_seconds is not None and (cpu is None or cpu > self.cpu_seconds):
            cpu = self.cpu_seconds
        return replace(spec, limits=replace(limits, cpu_seconds=cpu, cgroups=True))


@dataclass
class Client:
    """A token and what its connections use together. ``key``: a secret digest of the token.

    ``uploaded``: bytes of layers, sent or made here.
    ``unfinished``: bytes of requests whose work has not ended. ``dated``: layers that were copied
    for stopped clocks. ``archives``: digests of the layers that it has sent. What others have sent
    is none of its business, even if the server has it already. ``detached``: sandboxes without a
    connection, by their ids.
    """

    key: str
    sandboxes: int = 0
    connections: int = 0
    uploaded: int = 0
    unfinished: int = 0
    archives: set[str] = field(default_factory=set)
    detached: dict[str, Any] = field(default_factory=dict)
    clocks: set[int] = field(default_factory=set)
    dated: set[tuple[str, int]] = field(default_factory=set)
    lock: Lock = field(default_factory=Lock, repr=False)
    stage: Lock = field(default_factory=Lock, repr=False)
    """Held while files of a sandbox are copied to the server's disk, for one at a time."""
    capturing: Lock = field(default_factory=Lock, repr=False)
    """Held while a layer is made, so that no two exceed the bound together."""

    def charge(self, size: int, bounds: Bounds) -> None:
        """Count bytes on the server's disk. Raises UsageError above ``bounds.uploads``."""
        with self.lock:
            self.uploaded += size
            if self.uploaded > bounds.uploads:
                raise UsageError(
                    f"this client has stored more than {bounds.uploads} bytes of layers at the "
                    "server (--limit uploads)"
                )


class Store:
    """The images and layers of the server, by the names that clients use."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._images: dict[str, Image] = {}
        self._lock = Lock()

    def image(self, name: str, digest: str | None = None) -> Image:
        """Return an image of this server; ``digest`` is the one that the client knows.

        Raises UsageError for an image that is missing, has changed, or is a path.
        """
        if not _IMAGE.fullmatch(name):
            raise UsageError(
                f"a remote sandbox cannot have the image {name[:200]!r}, only host, recipe:NAME "
                "and image:NAME of the server; `intercode-sandbox image import` there makes it "
                "image:NAME"
            )
        with self._lock:
            image = self._images.get(name) if digest else None
            if image is None:
                image = self._images[name] = images.resolve(name)
        if digest and digest != image.digest:
            raise UsageError(f"the image {name} has changed at the server: start the run again")
        return image

    def has_layer(self, client: Client, reference: str) -> bool:
        """Return whether a client has sent or made a layer before. Raises UsageError for a text
        that is no reference."""
        kind, name, _ = _parse_reference(reference)
        if kind == "capture":
            return _captured_path(client, name) is not None
        tree = cache_root() / "layers" / _tree_name(name)
        return name in client.archives and tree.is_dir()

    def add_archive(self, client: Client, digest: str, path: Path) -> None:
        """Unpack an archive that a client has sent, with this SHA-256. Raises DataError.

        A compressed one, or sparse files, could fill the disk with more than was counted.
        """
        with path.open("rb") as file:
            if is_compressed(file.read(16)):
                raise DataError("the archive of a layer must not be compressed")
        refuse_sparse_entries(path)
        images.resolve_layer(LayerSpec("tar", path))
        client.archives.add(digest)

    def layer(self, client: Client, reference: object) -> Layer:
        """Return the layer that a client names. Raises UsageError if it is not here."""
        kind, name, hour = _parse_reference(reference)
        layer = self._undated_layer(client, kind, name)
        return layer if hour is None else self._redated(client, layer, int(hour))

    def capture(self, client: Client, reference: str, sandbox: BaseSandbox) -> None:
        """Keep the changes of a client's sandbox as a layer, unless it has made that before. Raises
        UsageError if the client has stored too much."""

        def fill(stage: Path) -> None:
            client.charge(0, self._bounds)
            sandbox.save(stage / "upper")
            client.charge(tree_size(stage / "upper"), self._bounds)
            if os.geteuid() == 0:
                change_owner(stage / "upper", sandbox_uid())

        kind, name, _ = _parse_reference(reference)
        if kind != "capture":
            raise UsageError("a layer that is sent, and not made in a sandbox")
        with client.capturing:
            cached_step(captured_key(client, name), fill)

    def _undated_layer(self, client: Client, kind: str, name: str) -> Layer:
        if kind == "archive":
            if name not in client.archives:
                _raise_missing(Path())
            return Layer(
                cached_tree(cache_root(), _tree_name(name), _raise_missing), f"sha256:{name}"
            )
        if (path := _captured_path(client, name)) is None:
            raise UsageError("the server no longer has a layer of this run: start the run again")
        return Layer(path, f"built:{path.name}")

    def _redated(self, client: Client, layer: Layer, hour: int) -> Layer:
        """Return a layer with shifted dates. Layers of the current time are shared; a client may
        have few others, because each is a copy."""
        if abs(hour - time.time()) <= 2 * 3600:
            return redated_layer(layer, cache_root() / "dated", hour)
        count = hour // 3600
        copied = layer.digest, count
        with self._lock:
            client.clocks.add(count)
            if len(client.clocks) > _MAX_CLOCKS:
                raise UsageError(f"a client may use at most {_MAX_CLOCKS} stopped clocks")
            if copied not in client.dated:
                client.charge(tree_size(layer.root), self._bounds)
                client.dated.add(copied)
            home = stopped_clock_copies(cache_root(), hour)
        return redated_layer(layer, home, hour)


def _parse_reference(reference: object) -> tuple[str, str, str | None]:
    """Return the kind of a layer, its name, and the hour of its dates."""
    found = _REFERENCE.fullmatch(reference) if isinstance(reference, str) else None
    if found is None:
        raise UsageError("the reference to a layer is not valid")
    kind, name, hour = found.groups()
    return kind, name, hour


def captured_key(client: Client, key: str) -> str:
    """Return the name in the cache of a layer that a client has captured. Other clients' have other
    names, because a client decides what is in its own."""
    return layer_key("remote", client.key, key)


def _captured_path(client: Client, key: str) -> Path | None:
    """Return the path of a layer that a client has captured, marked as in use, if it exists."""
    step = captured_key(client, key)
    if not (steps_directory() / step).is_dir():  # a name that is marked stays in memory and on disk
        return None
    path = step_path(step)
    return path if path.is_dir() else None  # it may have been removed meanwhile


def token_key(token: str | None) -> str:
    """Return the key of the client with a token."""
    return hashlib.sha256(f"intercode {token}".encode()).hexdigest()


def tree_size(root: Path) -> int:
    """Return about how many bytes of the disk the files below a directory take."""
    size = 0
    for folder, _, names in os.walk(root):
        size += _ENTRY_SIZE
        for name in names:
            with suppress(OSError):
                size += os.lstat(os.path.join(folder, name)).st_blocks * 512 + _ENTRY_SIZE
    return size


def _tree_name(digest: str) -> str:
    return f"{digest[:32]}-{sandbox_uid()}"


def _raise_missing(_: Path) -> None:
    raise SandboxError("a layer of this sandbox was not sent to the server: start the run again")
