"""Layers of tasks that are made in a sandbox: the changes of a set-up script. Each is made once and
cached by content."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

from intercode.core.errors import DataError
from intercode.core.types import Image, Layer, LayerSpec, Network
from intercode_sandbox import images
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.images.build import layer_dates
from intercode_sandbox.images.build.capture import captured_layer, layer_key
from intercode_sandbox.platforms.paths import cache_root, sandbox_uid

_SCRIPT_SECONDS = 600.0


def task_layer(spec: LayerSpec, image: Image, now: int | None = None) -> Layer:
    """Return the layer that a task asks for.

    ``now`` is the time of a stopped clock, in seconds since the epoch; None for the real time. A
    process reads the files of a layer once an hour, because files that are to look new get new
    dates. Raises DataError if a set-up script fails.
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
    cache = cache_root()
    home = cache / "dated" if now is None else layer_dates.stopped_clock_copies(cache, now)
    return layer_dates.redated_layer(layer, home, now)


def _script_layer(path: Path, image: Image) -> Layer:
    """Run a script as root of ``/`` on the image and return its changes as a layer."""
    try:
        script = path.read_bytes()
    except OSError as e:
        raise DataError(f"the set-up script {path} cannot be read: {e.strerror}") from e

    def work(sandbox: BaseSandbox) -> None:
        sandbox.write("/dev/shm/setup", script, 0o755)
        result = sandbox.run(["/bin/bash", "/dev/shm/setup"], timeout=_SCRIPT_SECONDS)
        if not result.ok:
            raise DataError(
                f"the set-up script {path} failed ({result.exit_code}): {result.output[-500:]!r}"
            )

    return captured_layer(
        layer_key("script", image.digest, hashlib.sha256(script).hexdigest()), image, (), work
    )


def setup_layer(
    code: str, cwd: str, image: Image, layers: tuple[Layer, ...], network: Network
) -> Layer:
    """Return the changes of a task's set-up, run once in ``cwd`` over an image and layers.

    Raises DataError if it fails.
    """

    def work(sandbox: BaseSandbox) -> None:
        result = sandbox.run(["/bin/bash", "-c", code], cwd=cwd, timeout=_SCRIPT_SECONDS)
        if not result.ok:
            raise DataError(
                f"the set-up {code!r} failed ({result.exit_code}): {result.output[-500:]!r}; "
                "one that needs a network runs with network='host' only"
            )

    parts = (code, cwd, network, image.digest, *(layer.digest for layer in layers))
    return captured_layer(layer_key("setup", *parts), image, layers, work, network)
