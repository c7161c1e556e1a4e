"""Removes images from an engine whose trees were removed from the cache.

A task's set-up files are copied once an hour to keep their dates recent
(sandbox/images/build/layer_dates.py), and each copy becomes an image. Removed images are imported
again when they are needed.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from intercode_sandbox.container.engine import ContainerEngine
from intercode_sandbox.container.image_import import IMAGE_LABEL, TREES_LABEL
from intercode_sandbox.errors import SandboxError


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
