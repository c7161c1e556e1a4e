"""Imports trees of this machine into an engine as an image. Nothing is pulled.

The engine reads an archive in the format of `docker save`, with one layer per tree. The user of all
sandboxes owns every entry. Whiteouts of an overlay become those of the image format.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import platform
import tarfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from intercode_sandbox.container.container_spec import ContainerSpec, Tree
from intercode_sandbox.container.engine import ContainerEngine
from intercode_sandbox.errors import SandboxError
from intercode_sandbox.overlay_format import write_layer
from intercode_sandbox.platforms.paths import cache_root, sandbox_uid

SANDBOX_REPOSITORY, BASE_REPOSITORY = "localhost/intercode/sandbox", "localhost/intercode/base"
IMAGE_LABEL, TREES_LABEL = "intercode.image", "intercode.trees"
"""Labels of images: their name, and the directories of which they are made."""
_SECONDS = 1800.0  # timeout for loading an image
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_known_images: set[tuple[str, str]] = set()


@dataclass(frozen=True, slots=True)
class _Layer:
    """A tree as a layer, with the digest and size of its archive. ``in_engine``: the engine has the
    layer already."""

    tree: Tree
    digest: str
    size: int
    in_engine: bool = False


def ensure_image(engine: ContainerEngine, layout: ContainerSpec, force: bool = False) -> str:
    """Return the name of the image with the trees of a container, and import it if the engine lacks
    it. ``force``: ask the engine even if this process has seen the image. Raises SandboxError."""
    name = f"{SANDBOX_REPOSITORY}:{layout.image_key}"
    if (engine.name, name) in _known_images and not force:
        return name
    with _locked(f"{engine.name}-{layout.image_key}"):
        if not _has_image(engine, name):
            try:
                layers = [_measure_layer(tree) for tree in reversed(layout.trees)]
            except OSError as e:
                raise SandboxError(f"the sandbox could not be set up: {e}") from e
            _load_image(engine, name, [_ensure_base_image(engine, layers[0]), *layers[1:]])
    _known_images.add((engine.name, name))
    return name


def _ensure_base_image(engine: ContainerEngine, layer: _Layer) -> _Layer:
    """Import the lowest tree, which is large, as an image of its own, so that it is read once for
    all images on top of it."""
    name = f"{BASE_REPOSITORY}:{layer.digest[:24]}"
    with _locked(f"{engine.name}-{layer.digest[:24]}"):
        if not _has_image(engine, name):
            _load_image(engine, name, [layer])
    return replace(layer, in_engine=True)


def _has_image(engine: ContainerEngine, name: str) -> bool:
    return bool(engine.run("images", "--quiet", name))


def _load_image(engine: ContainerEngine, name: str, layers: Sequence[_Layer]) -> None:
    read, write = os.pipe()
    failed: list[BaseException] = []

    def feed() -> None:
        try:
            with open(write, "wb", buffering=1 << 20) as out:
                _write_archive(out, name, layers)
        except BrokenPipeError:
            pass  # the engine reports why it stopped reading
        except BaseException as e:
            failed.append(e)

    thread = threading.Thread(target=feed, name="intercode-import")
    source = open(read, "rb")  # noqa: SIM115  # closed before the thread is waited for
    thread.start()
    try:
        engine.run("load", "--quiet", stdin=source, seconds=_SECONDS)
    except SandboxError:
        for layer in layers:
            _record_path(layer.tree).unlink(missing_ok=True)
        raise
    finally:
        source.close()
        thread.join()
    if failed:
        raise SandboxError(f"the image {name} cannot be read: {failed[0]}") from failed[0]


def _write_archive(out: IO[bytes], name: str, layers: Sequence[_Layer]) -> None:
    """Write an archive in the format of `docker save`. A layer that the engine has is left
    empty."""
    trees = [str(layer.tree.path) for layer in layers]
    config = json.dumps(
        {
            "architecture": _MACHINES.get(platform.machine(), platform.machine()),
            "os": "linux",
            "config": {
                "Labels": {IMAGE_LABEL: name, TREES_LABEL: json.dumps(trees)},
                "WorkingDir": "/",
            },
            "rootfs": {
                "type": "layers",
                "diff_ids": [f"sha256:{layer.digest}" for layer in layers],
            },
            "history": [{"created_by": "intercode"} for _ in layers],
        }
    ).encode()
    about = f"{hashlib.sha256(config).hexdigest()}.json"
    parts = [f"{layer.digest}/layer.tar" for layer in layers]
    manifest = json.dumps([{"Config": about, "RepoTags": [name], "Layers": parts}]).encode()
    with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        for path, data in (("manifest.json", manifest), (about, config)):
            _add_member(archive, path, len(data), io.BytesIO(data))
        for path, layer in dict(
            zip(parts, layers, strict=True)
        ).items():  # a repeated tree is written once
            if layer.in_engine:
                _add_member(archive, path, 0, io.BytesIO())
                continue
            read, write = os.pipe()
            thread = threading.Thread(target=_feed_layer, args=(layer.tree, write), daemon=True)
            with open(read, "rb") as source:
                thread.start()
                _add_member(archive, path, layer.size, source)
            thread.join()


def _add_member(archive: tarfile.TarFile, path: str, size: int, source: IO[bytes]) -> None:
    info = tarfile.TarInfo(path)
    info.size = size
    archive.addfile(info, source)


def _feed_layer(tree: Tree, write: int) -> None:
    with suppress(BrokenPipeError), open(write, "wb", buffering=1 << 20) as out:
        write_layer(out, tree.path)


def _measure_layer(tree: Tree) -> _Layer:
    """Return a tree's layer. Digest and size are cached."""
    record = _record_path(tree)
    with suppress(OSError, ValueError):
        digest, size = record.read_text().split()
        return _Layer(tree, digest, int(size))
    sink = _DigestSink()
    write_layer(sink, tree.path)
    partial = record.with_name(f"{record.name}.{os.getpid()}.{threading.get_ident()}")
    partial.write_text(f"{sink.sum.hexdigest()} {sink.size}")
    partial.replace(record)
    return _Layer(tree, sink.sum.hexdigest(), sink.size)


def _record_path(tree: Tree) -> Path:
    home = cache_root() / "containers" / "layers"
    home.mkdir(parents=True, exist_ok=True)
    identity = f"{sandbox_uid()}\0{tree.path}\0{tree.digest}"
    return home / hashlib.sha256(identity.encode("utf-8", "surrogateescape")).hexdigest()[:32]


class _DigestSink(io.RawIOBase):
    """A file that keeps only the digest and the size of what is written."""

    def __init__(self) -> None:
        self.sum, self.size = hashlib.sha256(), 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.sum.update(data)
        self.size += len(data)
        return len(data)


@contextmanager
def _locked(name: str) -> Iterator[None]:
    """Hold a lock in the cache. Other processes wait for it; the lock ends with its holder."""
    home = cache_root() / "containers" / "locks"
    home.mkdir(parents=True, exist_ok=True)
    with (home / name).open("ab") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


# Removes images from an engine whose trees were removed from the cache.
#
# A task's set-up files are copied once an hour to keep their dates recent
# (images/build/layer_dates.py), and each copy becomes an image. Removed images are imported
# again when they are needed.
def prune_images(engine: ContainerEngine, cache: Path, everything: bool = False) -> list[str]:
    """Remove images of which a tree in ``cache`` is missing, or with ``everything`` all images of
    trees in it, except those that a container uses. Return their names.

    Raises SandboxError if the engine does not answer.
    """
    form = "{{.Repository}}:{{.Tag}}"
    names = engine.run("images", "--filter", f"label={IMAGE_LABEL}", "--format", form).split()
    removed: list[str] = []
    # images of sandboxes first, then their base images
    for name in sorted(set(names), reverse=True):
        with suppress(SandboxError):  # a container uses it, or another process removes it
            trees = [tree for tree in _image_trees(engine, name) if tree.is_relative_to(cache)]
            if any(everything or not tree.is_dir() for tree in trees):
                engine.run("rmi", name)
                removed.append(name)
    return removed


def _image_trees(engine: ContainerEngine, name: str) -> list[Path]:
    labels = json.loads(engine.run("image", "inspect", "--format", "{{json .Config.Labels}}", name))
    return [Path(path) for path in json.loads(labels.get(TREES_LABEL, "[]"))]
