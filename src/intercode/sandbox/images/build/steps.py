"""The steps of which an image is built: each a layer, made once and kept by what went into it."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from intercode.core.errors import DataError, SandboxError
from intercode.core.paths import cache_root, sandbox_uid
from intercode.core.types import Image, Layer
from intercode.sandbox.contract import SandboxSpec
from intercode.sandbox.images.archives.tree_writer import TreeWriter
from intercode.sandbox.images.build.layer_stack import LayerStack
from intercode.sandbox.images.cache.remove_tree import remove_tree
from intercode.sandbox.images.cache.trees import file_lock, mark_in_use
from intercode.sandbox.supervisor import root_files

MAX_STEPS = 300
"""Linux stacks at most 500 trees, and a task's own files come on top."""
MAX_DEPTH = 500
"""Directories in each other that a step may hold, as an archive may."""
_VERSION = "1"
"""Of how steps are made: what another version made is not used."""


@dataclass(frozen=True)
class BuildBase:
    """What a step begins with: an image and the layers of the steps before. ``generation`` tells
    apart what is built again from what was built before."""

    image: Image
    layers: tuple[Layer, ...] = ()
    generation: str = ""

    def with_layer(self, layer: Layer) -> BuildBase:
        """The ground after another step. Raises DataError for more than the kernel can stack."""
        if len(self.layers) >= MAX_STEPS:
            raise DataError(f"an image of more than {MAX_STEPS} steps: join some of them into one")
        return replace(self, layers=(*self.layers, layer))

    @property
    def cache_key(self) -> str:
        """A name for all that it is made of."""
        names = (layer.digest for layer in self.layers)
        return step_key("ground", self.generation, self.image.digest, *names)

    @cached_property
    def stack(self) -> LayerStack:
        """What a box on it would see, but for the machine's own trees under the image ``host``."""
        trees = [layer.root for layer in reversed((*self.image.layers, *self.layers))]
        if self.image.root is not None:
            return LayerStack([*trees, self.image.root])
        files, _ = root_files.generate_root_files(SandboxSpec(self.image))
        return LayerStack([*trees, root_files.cached_tree(files)])


def step_key(*parts: str) -> str:
    """A name for what is made of these parts by this machine's sandbox id."""
    text = "\0".join((_VERSION, str(sandbox_uid()), *parts))
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def steps_directory() -> Path:
    """The directory of the cache that holds steps."""
    path = cache_root() / "built"
    path.mkdir(exist_ok=True)
    return path


def step_path(name: str) -> Path:
    """Where the cache has a step, which nobody removes while this process lives."""
    mark_in_use(cache_root(), f"built/{name}")
    return steps_directory() / name


def cached_step(name: str, fill: Callable[[Path], None]) -> Layer:
    """The layer ``name`` of the cache, made by ``fill`` if it is not there.

    ``fill`` gets a directory of its own with the empty directories ``upper``, where the layer is to
    be made, and ``work``. Other processes wait meanwhile; what one left that was killed is removed.
    """
    final = step_path(name)
    layer = Layer(final, f"built:{name}")
    if final.is_dir():
        return layer
    with file_lock(steps_directory() / f"{name}.lock"):
        if final.is_dir():
            return layer
        for left in steps_directory().glob(f"{name}.half-*"):
            _remove_stage(left)
        stage = Path(tempfile.mkdtemp(prefix=f"{name}.half-", dir=steps_directory()))
        try:
            _prepare_stage(stage)
            fill(stage)
            _check_depth(stage / "upper")
            (stage / "upper").rename(final)
        except OSError as e:
            raise SandboxError(f"a step could not be built under {steps_directory()}: {e}") from e
        finally:
            _remove_stage(stage)
    return layer


def discard_step(layer: Path) -> None:
    """Give a step up. Boxes that use it keep it: it goes to another name, and is removed by
    `intercode image prune`."""
    with suppress(FileNotFoundError):
        layer.rename(Path(tempfile.mkdtemp(prefix="former-", dir=layer.parent), layer.name))


def _prepare_stage(stage: Path) -> None:
    for path in (stage, stage / "upper", stage / "work"):
        path.mkdir(exist_ok=True)
        path.chmod(0o755)
        os.chown(path, sandbox_uid(), sandbox_uid())


def _check_depth(tree: Path) -> None:
    """Raise DataError for a tree that is deeper than what reads it goes."""
    todo = [(os.fspath(tree), 0)]
    while todo:
        folder, depth = todo.pop()
        if depth > MAX_DEPTH:
            raise DataError(f"what was made lies more than {MAX_DEPTH} directories deep")
        with suppress(PermissionError), os.scandir(folder) as found:
            todo += [
                (entry.path, depth + 1) for entry in found if entry.is_dir(follow_symlinks=False)
            ]


def _remove_stage(stage: Path) -> None:
    with suppress(OSError):  # what is left is removed by `intercode image prune`
        remove_tree(stage)


class StepWriter:
    """Writes files of a step over a ground, without a box: directories above them stay what they
    are, and links on the way are followed as in the image."""

    def __init__(self, ground: BuildBase, upper: Path) -> None:
        self.stack = ground.stack
        self._written = {""}
        self._host_paths = {"dev", "proc", "sys"}
        if ground.image.root is None:
            _, binds = root_files.generate_root_files(SandboxSpec(ground.image))
            self._host_paths |= {target.lstrip("/") for _, target in binds}
        self.writer = TreeWriter(upper, sandbox_uid(), str(upper))
        self.writer.directory("", 0o755, self._mtime_ns(""))

    def _mtime_ns(self, name: str) -> int:
        found = self.stack.find(name)
        return found[1].st_mtime_ns if found else time.time_ns()

    def directory(self, name: str, mode: int, when: int) -> None:
        """A directory, as it is where it is there already, and all directories above it. Times are
        in nanoseconds."""
        self.ensure_parents(f"{name}/", when)
        if name and self.stack.find(name) is None:
            self.writer.directory(name, mode, when)

    def ensure_parents(self, name: str, when: int) -> None:
        """Every directory above a path, made at ``when`` where the image has none. Raises DataError
        where something else stands there, or what a box shows there is not the image's."""
        parts = name.split("/")
        for i in range(1, len(parts) + 1):
            top = "/".join(parts[:i])
            if top in self._host_paths:
                raise DataError(
                    f"/{name}: a box shows the machine's own /{top}: choose another place"
                )
        for i in range(1, len(parts)):
            folder = "/".join(parts[:i])
            if folder in self._written:
                continue
            found = self.stack.find(folder)
            if found is not None and not stat.S_ISDIR(found[1].st_mode):
                raise DataError(f"/{folder} is no directory in the image: nothing goes below it")
            mode, then = (found[1].st_mode, found[1].st_mtime_ns) if found else (0o755, when)
            self.writer.directory(folder, mode, then)
            self._written.add(folder)

    def finish(self) -> None:
        """Give directories their modes and times."""
        self.writer.finish()
