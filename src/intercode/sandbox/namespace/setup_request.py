"""What a keeper is told of the box that it is to make."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from intercode.core.paths import cache_root
from intercode.sandbox.contract import SandboxSpec
from intercode.sandbox.supervisor import root_files

_cache: list[tuple[SandboxSpec, dict[str, Any]]] = []
_CACHE_SIZE = 16


def setup_request(spec: SandboxSpec) -> dict[str, Any]:
    """What the keeper is told. Kept for the last few kinds of box, as most boxes are alike."""
    for known, told in _cache:
        if known == spec:
            return told
    files, binds = root_files.generate_root_files(spec)
    stage = cache_root() / "stage"
    stage.mkdir(exist_ok=True)
    layers = [
        str(root_files.cached_tree(files)),
        *(str(layer.root) for layer in reversed(spec.all_layers)),
    ]
    if spec.image.root is not None:
        layers.append(str(spec.image.root))
    told = {
        "stage": str(stage),
        "layers": layers,
        "binds": binds,
        "shown": root_files.anonymous_mounts(spec),
        "limits": asdict(spec.limits),
        "network": spec.network,
        "hostname": spec.hostname,
        "look": spec.appearance,
        "env": root_files.environment(spec),
        "upper": str(spec.upper) if spec.upper else None,
        "steady": spec.determinism is not None,
    }
    if all(Path(layer).is_dir() for layer in layers):
        _cache[:] = [(spec, told), *_cache[: _CACHE_SIZE - 1]]
    return told
