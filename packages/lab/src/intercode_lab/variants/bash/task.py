"""Makes variants of a Bash task."""

from __future__ import annotations

from dataclasses import replace

from intercode.core.types import Task
from intercode.environments.base.sandboxed_env import SandboxedEnv
from intercode_lab.variants.bash.listing import read_entries
from intercode_lab.variants.bash.plan import VariantPlan
from intercode_lab.variants.making.makers import VariantMaker


def make_variant(env: SandboxedEnv, seed: int) -> Task | None:
    """Return the task of an environment, which has been reset to it, with other files.

    The result's ``setup`` runs that of the task and then changes the files. None if the task is
    about no files of its own, so that all its variants would be alike.
    """
    task = env.task
    workspace = env.open_workspace()
    try:
        entries = read_entries(workspace.sandbox, task)
    finally:
        workspace.close()
    if not any(entry.is_directory for entry in entries.values()):
        return None
    script = VariantPlan(task, entries, seed).script
    return replace(task, setup="\n".join(filter(None, (task.setup, script))))


MAKER = VariantMaker(make_variant)
