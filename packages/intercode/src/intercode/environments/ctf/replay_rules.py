"""Replay rules of recorded Capture-the-Flag episodes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from intercode.core.logs.steps import SKIP_ACTION
from intercode.core.types import Step, Trajectory
from intercode.environments.base.replay.comparison import StepComparison
from intercode.environments.base.replay.rules import ReplayRules

_NETWORK_COMMAND = re.compile(
    r"(?<![\w.-])(?:nc|netcat|curl|wget|ping|dig|nslookup|whois|telnet|apt(?:-get)?|pip3?)\s+\S"
    r"|\bgit\s+clone|https?://|/dev/tcp"
)
CAUSES = (
    ("version of bash or Python", r"unexpected end of file$", "recorded"),
    ("version of bash or Python", r"\^{3}", "replayed"),
)
"""Causes, each with a pattern and the text of a step in which it is searched. The first match
counts."""


class CtfReplayRules(ReplayRules):
    """Knows what needs a network, and which recorded wins printed their flag."""

    def stable(self, trajectory: Trajectory, turn: int) -> bool:
        """Return whether neither the step nor one before it used the network.

        A later step depends on what was downloaded, or was not.
        """
        return not any(uses_network(s) for s in trajectory.steps[: turn + 1])

    def notes(self, steps: Sequence[StepComparison]) -> list[str]:
        wins = recorded_wins(steps)
        lost = [win for win in wins if not win.reproduced]
        if not wins:
            return []
        names = ", ".join(f"{w.task}{'' if w.offline else ' (network or files)'}" for w in lost)
        return [
            f"of {len(wins)} recorded wins whose flag was printed before it was submitted "
            f"{len(wins) - len(lost)} print it again; not so: {names or 'none'}."
        ]

    def cause(self, step: StepComparison) -> str:
        if step.stable is False:
            return "network"
        return first_cause(CAUSES, step) or super().cause(step)


def first_cause(causes: Sequence[tuple[str, str, str]], step: StepComparison) -> str:
    """Return the first of several causes that a step shows; empty if it shows none."""
    found = (cause for cause, sign, text in causes if re.search(sign, getattr(step, text)))
    return next(found, "")


def uses_network(step: Step) -> bool:
    """Return whether a step uses something outside the sandbox."""
    submits = step.action.startswith("submit") or step.action == SKIP_ACTION
    return not submits and _NETWORK_COMMAND.search(step.action) is not None


@dataclass(frozen=True, slots=True)
class RecordedWin:
    """A recorded win whose flag was printed before it was submitted.

    ``reproduced``: whether the replay printed it as well. ``offline``: whether that needed no
    network.
    """

    task: str
    reproduced: bool
    offline: bool


def recorded_wins(checks: Sequence[StepComparison]) -> list[RecordedWin]:
    """Return those recorded wins among the steps of a replay whose flag was printed first."""
    wins = []
    for task in dict.fromkeys(c.task for c in checks):
        steps = [c for c in checks if c.task == task]
        last = steps[-1]
        flag = last.action.removeprefix("submit").strip()
        printed = [c for c in steps[:-1] if flag in c.recorded]
        if (last.recorded_reward or 0.0) < 1.0 or not printed:
            continue
        reproduced = any(flag in c.replayed for c in steps[:-1])
        wins.append(RecordedWin(task, reproduced, all(bool(c.stable) for c in steps)))
    return wins
