"""The steps of image builds: each is a layer, built once and cached by its inputs."""

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

from intercode_sandbox.contract import SandboxSpec
from intercode_sandbox.errors import DataError, SandboxError
from intercode_sandbox.images.archives import set_user_id
from intercode_sandbox.images.archives.tree_writer import TreeWriter
from intercode_sandbox.images.build.layer_stack import LayerStack
from intercode_sandbox.images.cache.remove_tree import remove_tree
from intercode_sandbox.images.cache.trees import file_lock, mark_in_use
from intercode_sandbox.platforms.paths import cache_root, sandbox_uid
from intercode_sandbox.supervisor import root_files
from intercode_sandbox.types import Image, Layer

MAX_STEPS = 300
"""Limit on the steps of an image. Linux stacks at most 500 trees; a task's layers need some."""
MAX_DEPTH = 500
"""Limit on nested directories in a step, as in archives."""
_VERSION = "1"
"""Version of the build process: steps of another version are not used."""


@dataclass(frozen=True)
class BuildBase:
    """The input of a step: an image and the layers of the previous steps.

    ``generation`` distinguishes forced builds from earlier ones.
    """

    image: Image
    layers: tuple[Layer, ...] = ()
    generation: str = ""

    def with_layer(self, layer: Layer) -> BuildBase:
        """Return the base after another step. Raises DataError for more than ``MAX_STEPS``."""
        if len(self.layers) >= MAX_STEPS:
            raise DataError(f"the image has more than {MAX_STEPS} steps: combine some of them")
        return replace(self, layers=(*self.layers, layer))

    @property
    def cache_key(self) -> str:
        """A digest of the image and layers."""
        names = (layer.digest for layer in self.layers)
        return step_key("ground", self.generation, self.image.digest, *names)

    @cached_property
    def stack(self) -> LayerStack:
        """The files that a sandbox would see, without this machine's programs for ``host``."""
        trees = [layer.root for layer in reversed((*self.image.layers, *self.layers))]
        if self.image.root is not None:
            return LayerStack([*trees, self.image.root])
        spec = SandboxSpec(self.image)
        files, _ = root_files.generate_root_files(spec)
        return LayerStack([*trees, root_files.root_tree(spec, files)])


def step_key(*parts: str) -> str:
    """Return the name of a step in the cache, from its inputs and the sandbox's id."""
    text = "\0".join((_VERSION, str(sandbox_uid()), *parts))
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def steps_directory() -> Path:
    """Return the directory of steps in the cache."""
    path = cache_root() / "built"
    path.mkdir(exist_ok=True)
    return path


def step_path(name: str) -> Path:
    """Return the path of a step in the cache, and mark the step as in use by this process."""
    mark_in_use(cache_root(), f"built/{name}")
    return steps_directory() / name


def cached_step(name: str, fill: Callable[[Path], None]) -> Layer:
    """Return the layer ``name`` of the cache; ``fill`` builds it if it is absent.

    ``fill`` receives a directory with the empty subdirectories ``upper``, for the layer, and
    ``work``. Other processes wait until it is done. What a killed process left is removed.
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
            _clean_tree(stage / "upper")
            (stage / "upper").rename(final)
        except OSError as e:
            raise SandboxError(f"a step could not be built under {steps_directory()}: {e}") from e
        finally:
            _remove_stage(stage)
    return layer


def discard_step(layer: Path) -> None:
    """Rename a step so that `image prune` removes it later; running sandboxes keep it."""
    with suppress(FileNotFoundError):
        layer.rename(Path(tempfile.mkdtemp(prefix="former-", dir=layer.parent), layer.name))


def _prepare_stage(stage: Path) -> None:
    for path in (stage, stage / "upper", stage / "work"):
        path.mkdir(exist_ok=True)
        path.chmod(0o700 if path == stage else 0o755)  # until set-id bits are replaced
        os.chown(path, sandbox_uid(), sandbox_uid())


def _clean_tree(tree: Path) -> None:
    """Replace set-id bits by their attribute. Raise DataError for a tree with more than
    ``MAX_DEPTH`` nested directories."""
    todo = [(os.fspath(tree), 0)]
    while todo:
        folder, depth = todo.pop()
        if depth > MAX_DEPTH:
            raise DataError(f"the step is more than {MAX_DEPTH} directories deep")
        mode = stat.S_IMODE(os.lstat(folder).st_mode)
        if mode & 0o700 != 0o700:  # as in unpacked images, the owner can enter every directory
            os.chmod(folder, mode | 0o700)
        with os.scandir(folder) as found:
            for entry in found:
                if entry.is_dir(follow_symlinks=False):
                    todo.append((entry.path, depth + 1))
                else:
                    set_user_id.replace_bit(entry.path, entry.stat(follow_symlinks=False))


def _remove_stage(stage: Path) -> None:
    with suppress(OSError):  # `intercode-sandbox image prune` removes the rest
        remove_tree(stage)


class StepWriter:
    """Writes the files of a step over a base, without a sandbox.

    Existing parent directories keep their modes and times.
    """

    def __init__(self, base: BuildBase, upper: Path) -> None:
        self.stack = base.stack
        self._written = {""}
        self._host_paths = {"dev", "proc", "sys"}
        if base.image.root is None:
            _, binds = root_files.generate_root_files(SandboxSpec(base.image))
            self._host_paths |= {target.lstrip("/") for _, target in binds}
        self.writer = TreeWriter(upper, sandbox_uid(), str(upper), keeps_programs=True)
        self.writer.directory("", 0o755, self._mtime_ns(""))

    def _mtime_ns(self, name: str) -> int:
        found = self.stack.find(name)
        return found[1].st_mtime_ns if found else time.time_ns()

    def directory(self, name: str, mode: int, when: int) -> None:
        """Create a directory, unless the image has it, and its parents. ``when`` is in
        nanoseconds."""
        self.ensure_parents(f"{name}/", when)
        if name and self.stack.find(name) is None:
            self.writer.directory(name, mode, when)

    def ensure_parents(self, name: str, when: int) -> None:
        """Write the directories above a path. Those that the image lacks get the time ``when``.

        Raises DataError if one of them is not a directory in the image, or if a sandbox shows files
        of this machine there.
        """
        parts = name.split("/")
        for i in range(1, len(parts) + 1):
            top = "/".join(parts[:i])
            if top in self._host_paths:
                raise DataError(
                    f"/{name}: in a sandbox, /{top} is this machine's own: choose another path"
                )
        for i in range(1, len(parts)):
            folder = "/".join(parts[:i])
            if folder in self._written:
                continue
            found = self.stack.find(folder)
            if found is not None and not stat.S_ISDIR(found[1].st_mode):
                raise DataError(
                    f"/{folder} is not a directory in the image, so it cannot contain {name}"
                )
            mode, then = (found[1].st_mode, found[1].st_mtime_ns) if found else (0o755, when)
            self.writer.directory(folder, mode, then)
            self._written.add(folder)

    def finish(self) -> None:
        """Set modes and times of directories."""
        self.writer.finish()
