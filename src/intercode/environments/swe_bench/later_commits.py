"""Removes what is later than a task's commit from the git repositories of its image."""

from __future__ import annotations

import hashlib
from pathlib import Path

from intercode.core.errors import TaskImageError
from intercode.core.types import Image, Layer, Task
from intercode.datasets.swe_bench.rows import DIRECTORY
from intercode.sandbox.contract import BaseSandbox, Limits
from intercode.sandbox.images.build.capture import captured_layer, layer_key

_SCRIPT = Path(__file__).with_name("remove_later_commits.sh")
_PLACE = "/dev/shm/remove_later_commits"
_SECONDS = 1800.0


def later_commits_layer(
    task: Task, image: Image, layers: tuple[Layer, ...], limits: Limits
) -> Layer:
    """Return the layer that removes later commits from all repositories over an image, made once.

    Each repository keeps its checked out commit, the history of that, and the references into that
    history or the history of the task's commit. Other references, reflogs and objects are gone.
    Raises TaskImageError if git cannot do that.
    """
    script = _SCRIPT.read_bytes()
    commit = task.data["base_commit"]

    def work(sandbox: BaseSandbox) -> None:
        sandbox.write(_PLACE, script, 0o755)
        result = sandbox.run(["/bin/sh", _PLACE, commit, DIRECTORY], timeout=_SECONDS)
        if not result.ok:
            ended = "did not end" if result.timed_out else f"ended with {result.exit_code}"
            raise TaskImageError(
                f"{task.id}: removing later commits from its image {ended}, so an agent could find "
                f"the fix there: {result.output[-500:].strip()!r}"
            )

    digest = hashlib.sha256(script).hexdigest()
    key = layer_key(
        "later-commits", image.digest, digest, commit, *(layer.digest for layer in layers)
    )
    return captured_layer(key, image, layers, work, limits=limits)
