"""Refuses tasks that name their files by absolute paths where programs see the files elsewhere."""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from intercode.core.errors import UsageError
from intercode.core.types import Layer, Task
from intercode.sessions.paths import program_root
from intercode_sandbox.contract import BaseSandbox


def require_relative_paths(task: Task, sandbox: BaseSandbox) -> None:
    """Raise UsageError if a task needs absolute paths of its files, as every probe does, and
    programs in the sandbox see them below another directory."""
    if not (root := program_root(sandbox)):
        return
    path = "/" if task.probe else _named_path(task, sandbox.spec.layers)
    if path:
        raise UsageError(
            f"{task.id} needs its file or directory {path} at this path, and a sandbox of the tier "
            f"{sandbox.tier} shows it to programs below {root} only: play it "
            "with --backend namespace, container or chroot (`intercode doctor` says how)"
        )


def _named_path(task: Task, layers: tuple[Layer, ...]) -> str:
    """Return a path that begins in the root directory and that the task names; empty if it names
    none."""
    names, targets = set[str](), set[str]()
    for layer in layers:
        own_names, own_targets = _inspect_layer(layer.root)
        names |= own_names
        targets |= own_targets
    for path in (task.cwd, *(entry.path for entry in task.initial_files)):
        names.add(path.strip("/").partition("/")[0])
    names.discard("")
    if not names:
        return ""
    alternatives = "|".join(map(re.escape, sorted(names)))
    form = re.compile(rf"(?<![\w.~/-])/(?:{alternatives})(?![\w.-])[\w./-]*")
    texts = [*_texts(task), *sorted(targets)]
    found = next(filter(None, map(form.search, texts)), None)
    return found[0].rstrip(".") if found else ""


def _texts(task: Task) -> Iterator[str]:
    """Yield what the task says or runs."""
    yield task.query
    yield from task.golds
    if task.setup:
        yield task.setup
    yield json.dumps(dict(task.data), default=str)


@functools.lru_cache(256)
def _inspect_layer(root: Path) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names in the root directory of a layer, and the absolute targets of its links."""
    return frozenset(os.listdir(root)), frozenset(_absolute_targets(root))


def _absolute_targets(root: Path) -> Iterable[str]:
    for above, directories, files in os.walk(root):
        for name in (*directories, *files):
            path = Path(above, name)
            if path.is_symlink() and (target := os.readlink(path)).startswith("/"):
                yield target
