"""Layers that only a sandbox can make: what a set-up script leaves behind, and the repository in
which the ``original`` profile sees changes. Each is made once and kept by content."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from intercode import images
from intercode.builders import dates
from intercode.errors import DataError, SandboxError
from intercode.paths import cache_root, sandbox_uid
from intercode.sandboxes.base import SandboxSpec
from intercode.sandboxes.namespace.sandbox import NamespaceSandbox
from intercode.sessions import git_view
from intercode.sessions.fresh import FreshBashSession
from intercode.types import Image, Layer, LayerSpec

_SCRIPT_SECONDS = 600.0


def task_layer(spec: LayerSpec, image: Image, now: int | None = None) -> Layer:
    """The layer that a task asks for, whatever its kind. ``now``: what a clock that stands shows,
    in seconds since the epoch; None for the real time.

    Raises DataError where a set-up script fails.
    """
    layer = _script_layer(spec.path, image) if spec.kind == "script" else images.layer(spec)
    if not spec.fresh:
        return layer
    # what is dated for a standing clock does not age: each hour has a home of its own
    home = "dated" if now is None else f"dated-{now // 3600}"
    return dates.fresh(layer, cache_root() / home, now)


def _script_layer(path: Path, image: Image) -> Layer:
    """Run a script as root of ``/`` on the image and keep what it changed."""
    try:
        script = path.read_bytes()
    except OSError as e:
        raise DataError(f"the set-up script {path} cannot be read: {e.strerror}") from e

    def work(sandbox: NamespaceSandbox) -> None:
        sandbox.write_file("/dev/shm/setup", script, 0o755)
        result = sandbox.run(["/bin/bash", "/dev/shm/setup"], timeout=_SCRIPT_SECONDS)
        if not result.ok:
            raise DataError(
                f"the set-up script {path} failed ({result.exit_code}): {result.output[-500:]!r}"
            )

    return _build(_key("script", image.digest, hashlib.sha256(script).hexdigest()), image, (), work)


def git_layer(image: Image, layers: tuple[Layer, ...]) -> Layer:
    """The repository over an image and its layers as the authors' image has it, reset once."""

    def work(sandbox: NamespaceSandbox) -> None:
        sandbox.write_file("/.gitignore", git_view.IGNORE_FILE.encode())
        git_view.prepare(FreshBashSession(sandbox))

    key = _key("git", image.digest, *(layer.digest for layer in layers))
    return _build(key, image, layers, work)


def _key(*parts: str) -> str:
    return hashlib.sha256("\0".join((str(sandbox_uid()), *parts)).encode()).hexdigest()[:32]


def _build(
    key: str, image: Image, layers: tuple[Layer, ...], work: Callable[[NamespaceSandbox], None]
) -> Layer:
    """What ``work`` changes in a fresh box, as a layer. Made once; other processes wait for it."""
    home = cache_root() / "built"
    home.mkdir(exist_ok=True)
    final = home / key
    layer = Layer(final, f"built:{key}")
    if final.is_dir():
        return layer
    with open(home / f"{key}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if final.is_dir():
            return layer
        stage = Path(tempfile.mkdtemp(prefix=f"{key}.", dir=home))
        try:
            for name in ("upper", "work"):
                (stage / name).mkdir()
            for path in (stage, stage / "upper", stage / "work"):
                path.chmod(0o755)
                os.chown(path, sandbox_uid(), sandbox_uid())
            spec = SandboxSpec(image, layers, look="docker", upper=stage)
            sandbox = NamespaceSandbox(spec)
            try:
                work(sandbox)
            finally:
                sandbox.close(wait=True)
            (stage / "upper").rename(final)
        except OSError as e:
            raise SandboxError(f"a layer could not be built under {home}: {e}") from e
        finally:
            _remove(stage)
    return layer


def _remove(stage: Path) -> None:
    with suppress(OSError):
        (stage / "work" / "work").chmod(0o700)
    shutil.rmtree(stage, ignore_errors=True)
