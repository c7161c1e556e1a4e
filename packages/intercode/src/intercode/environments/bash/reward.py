"""The reward of Bash: as the paper meant success, with partial credit."""

from __future__ import annotations

from typing import Any

from intercode.core.types import TRUNCATED_CHANGES, Score, State, Task
from intercode.environments.base.progress.files import FileProgress, same_entry
from intercode.environments.base.progress.partial import partial_credit, retained_share
from intercode.environments.bash.outputs import (
    accepts_output,
    expects_output,
    is_other_form,
    output_progress,
)

_OUTPUT_WEIGHT = 0.4
"""What the output counts in tasks that ask for both output and changes."""
_HARM_TO_ANSWER = 0.2
"""What a change costs beside the answer of a task that asks for no change."""


def standard(task: Task, agent: State, gold: State) -> Score:
    """Return 1 if output and changes are those of the gold, else how far the agent came.

    Outputs are equal when they have the same lines in any order, apart from blanks inside a line.
    The column ``compare`` says where they are compared in another way; see COMPARISONS. Changes
    are equal when the same paths changed to the same kind, content, link target and permissions.
    An agent with more changes than can be listed has none that are right. A file that is too large
    to be read is wrong, and the details name it as ``unread``.

    Below 1, doing nothing earns 0, and so does a state that is farther from the gold's than the
    initial one. The page Partial credit describes the parts.
    """
    theirs, ours = (
        {path: entry.kind for path, entry in state.files.items()}.items() for state in (gold, agent)
    )
    common = ours & theirs
    wrong = sorted(p for p, _ in common if not same_entry(agent.files[p], gold.files[p]))
    missed, extra = (sorted(path for path, _ in paths) for paths in (theirs - ours, ours - theirs))
    details: dict[str, Any] = {"missed": missed, "extra": extra, "wrong": wrong}
    if unread := sorted(path for path, entry in agent.files.items() if entry.is_unread):
        details["unread"] = unread
    right_output = accepts_output(task, agent, gold)
    right_changes = not (missed or extra or wrong) and TRUNCATED_CHANGES not in agent.files
    files = FileProgress(agent, gold)
    printed = 1.0 if right_output else output_progress(task, agent, gold)
    details["similarity"] = printed
    asks_for_output = expects_output(task, gold)
    if not files.paths:
        weights = float(asks_for_output), _HARM_TO_ANSWER
    else:
        weights = (_OUTPUT_WEIGHT, 1 - _OUTPUT_WEIGHT) if asks_for_output else (0.0, 1.0)
    if right_output and right_changes:
        share = weights[0] if files.paths else 1.0
        return Score(1.0, {"output": share, "changes": 1 - share}, details)
    asks_for_anything = asks_for_output or bool(files.paths)
    if right_changes and asks_for_anything and is_other_form(task, agent, gold):
        value = partial_credit(1.0, right=True)
        return Score(value, {"other_form": value}, details)
    changes = files.share if TRUNCATED_CHANGES not in agent.files else -1.0
    parts = {"output": weights[0] * printed, "changes": weights[1] * changes}
    factor = retained_share(len(files.destroyed))
    if files.paths and changes < 0:
        factor = 0.0  # the files are farther from the gold's than the initial ones
    value = partial_credit(sum(parts.values())) * factor
    scaled = {name: round(partial_credit(1.0) * factor * part, 12) for name, part in parts.items()}
    return Score(round(value, 12), scaled, {**details, "destroyed": files.destroyed})
