"""Layers that only a sandbox can make: what a set-up script leaves behind, and the repository in
which the ``original`` profile sees changes. Each is made once and kept by content."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

from intercode.core.errors import DataError
from intercode.core.paths import cache_root, sandbox_uid
from intercode.core.types import Image, Layer, LayerSpec, Network
from intercode.sandbox import images
from intercode.sandbox.images.build import layer_dates
from intercode.sandbox.images.build.capture import captured_layer, layer_key
from intercode.sandbox.supervisor.client import SupervisedSandbox
from intercode.sessions.bash import git_status
from intercode.sessions.bash.original import OriginalBashSession

_SCRIPT_SECONDS = 600.0


def task_layer(spec: LayerSpec, image: Image, now: int | None = None) -> Layer:
    """The layer that a task asks for, whatever its kind. ``now``: what a clock that stands shows,
    in seconds since the epoch; None for the real time.

    A process looks at its files once an hour, as those that are to look new are dated anew.
    Raises DataError where a set-up script fails.
    """
    hour = int(time.time()) // 3600
    key = (spec, image.digest, sandbox_uid(), now)
    known = _layer_cache.get(key)
    if known is None or known[0] != hour:
        _layer_cache[key] = known = (hour, _make_task_layer(spec, image, now))
    return known[1]


_layer_cache: dict[tuple[LayerSpec, str, int, int | None], tuple[int, Layer]] = {}


def _make_task_layer(spec: LayerSpec, image: Image, now: int | None) -> Layer:
    layer = _script_layer(spec.path, image) if spec.kind == "script" else images.resolve_layer(spec)
    if not spec.shift_dates:
        return layer
    # what is dated for a standing clock does not age: each hour has a home of its own
    home = "dated" if now is None else f"dated-{now // 3600}"
    return layer_dates.redated_layer(layer, cache_root() / home, now)


def _script_layer(path: Path, image: Image) -> Layer:
    """Run a script as root of ``/`` on the image and keep what it changed."""
    try:
        script = path.read_bytes()
    except OSError as e:
        raise DataError(f"the set-up script {path} cannot be read: {e.strerror}") from e

    def work(sandbox: SupervisedSandbox) -> None:
        sandbox.write_file("/dev/shm/setup", script, 0o755)
        result = sandbox.run(["/bin/bash", "/dev/shm/setup"], timeout=_SCRIPT_SECONDS)
        if not result.ok:
            raise DataError(
                f"the set-up script {path} failed ({result.exit_code}): {result.output[-500:]!r}"
            )

    return captured_layer(
        layer_key("script", image.digest, hashlib.sha256(script).hexdigest()), image, (), work
    )


def setup_layer(
    code: str, cwd: str, image: Image, layers: tuple[Layer, ...], network: Network = "none"
) -> Layer:
    """What the set-up of a task changes when it runs once in ``cwd``, over an image and layers.

    Raises DataError where it fails.
    """

    def work(sandbox: SupervisedSandbox) -> None:
        result = sandbox.run(["/bin/bash", "-c", code], cwd=cwd, timeout=_SCRIPT_SECONDS)
        if not result.ok:
            raise DataError(
                f"the set-up {code!r} failed ({result.exit_code}): {result.output[-500:]!r}; "
                "one that needs a network runs with network='host' only"
            )

    parts = (code, cwd, network, image.digest, *(layer.digest for layer in layers))
    return captured_layer(layer_key("setup", *parts), image, layers, work, network)


def git_layer(image: Image, layers: tuple[Layer, ...]) -> Layer:
    """The repository over an image and its layers as the authors' image has it, reset once."""

    def work(sandbox: SupervisedSandbox) -> None:
        sandbox.write_file("/.gitignore", git_status.IGNORE_FILE.encode())
        git_status.prepare(OriginalBashSession(sandbox))

    key = layer_key("git", image.digest, *(layer.digest for layer in layers))
    return captured_layer(key, image, layers, work)
