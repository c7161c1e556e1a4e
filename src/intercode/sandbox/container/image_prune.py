"""Removes from an engine the images whose trees are no longer kept here.

The files of a task's set-up are copied once an hour, so that they do not age (sandbox/images/build/layer_dates.py),
and each copy becomes an image of the engine; images of a user's own go, too. What is removed and
needed once more is imported again.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from intercode.core.errors import SandboxError
from intercode.sandbox.container.engine import Engine
from intercode.sandbox.container.image_import import IMAGE_LABEL, TREES_LABEL


def prune_images(engine: Engine, cache: Path, everything: bool = False) -> list[str]:
    """Remove images that were made of trees in ``cache``: where one of these is gone, or with
    ``everything`` in any case; one that a container uses stays. Names what went.

    Raises SandboxError where the engine does not answer.
    """
    form = "{{.Repository}}:{{.Tag}}"
    found = engine.run("images", "--filter", f"label={IMAGE_LABEL}", "--format", form).split()
    gone: list[str] = []
    for name in sorted(set(found), reverse=True):  # boxes before the bases that they lie on
        with suppress(SandboxError):  # a container has it, or another process removes it
            trees = [tree for tree in _image_trees(engine, name) if tree.is_relative_to(cache)]
            if any(everything or not tree.is_dir() for tree in trees):
                engine.run("rmi", name)
                gone.append(name)
    return gone


def _image_trees(engine: Engine, name: str) -> list[Path]:
    labels = json.loads(engine.run("image", "inspect", "--format", "{{json .Config.Labels}}", name))
    return [Path(path) for path in json.loads(labels.get(TREES_LABEL, "[]"))]
