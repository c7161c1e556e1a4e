"""What is particular to re-executing recorded Capture-the-Flag episodes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from intercode.core.logs.authors import SKIP_ACTION
from intercode.core.types import Step, Trajectory
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.replay.comparison import StepComparison
from intercode.environments.base.replay.rules import ReplayRules

_NETWORK_COMMAND = re.compile(
    r"(?<![\w.-])(?:nc|netcat|curl|wget|ping|dig|nslookup|whois|telnet|apt(?:-get)?|pip3?)\s+\S"
    r"|\bgit\s+clone|https?://|/dev/tcp"
)
_CAUSES = (
    ("what somebody had put there", r"Image-ExifTool|__pycache__|shark", "recorded"),
    ("what somebody had put there", r"shark", "action"),
    ("another architecture", r"no such architecture", "replayed"),
    ("version of bash or Python", r"unexpected end of file$", "recorded"),
    ("version of bash or Python", r"\^{3}", "replayed"),
    ("chance", r"convertme\.py", "action"),
)
"""Causes with a sign by which a step shows them, and in which of its texts; the first counts."""


class CtfReplayRules(ReplayRules):
    """Everything is executed as recorded; what is submitted is compared with the task's flag."""

    def play(self, env: InterCodeEnv, step: Step) -> tuple[str, float | None]:
        observation, _, _, _, info = env.step(step.action)
        return observation, None if step.reward is None else info.get("score", 0.0)

    def stable(self, trajectory: Trajectory, turn: int) -> bool:
        """A step needs no network where neither it nor one before it has asked for some: what is
        downloaded, or is not, shows in what follows."""
        return not any(uses_network(s) for s in trajectory.steps[: turn + 1])

    def notes(self, steps: Sequence[StepComparison]) -> list[str]:
        found = recorded_wins(steps)
        lost = [win for win in found if not win.reproduced]
        if not found:
            return []
        names = ", ".join(f"{w.task}{'' if w.offline else ' (network or files)'}" for w in lost)
        return [
            f"of {len(found)} recorded wins whose flag was printed before it was submitted "
            f"{len(found) - len(lost)} print it again; not so: {names or 'none'}."
        ]

    def cause(self, step: StepComparison) -> str:
        if getattr(step, "stable", None) is False:
            return "network"
        for cause, sign, text in _CAUSES:
            if re.search(sign, getattr(step, text)):
                return cause
        return super().cause(step)


def uses_network(step: Step) -> bool:
    """Whether a step asks for something beyond the box."""
    submits = step.action.startswith("submit") or step.action == SKIP_ACTION
    return not submits and _NETWORK_COMMAND.search(step.action) is not None


@dataclass(frozen=True, slots=True)
class RecordedWin:
    """A recorded win whose flag was printed before it was submitted.

    ``again``: whether the replay printed it as well; ``offline``: whether that needed no network.
    """

    task: str
    reproduced: bool
    offline: bool


def recorded_wins(checks: Sequence[StepComparison]) -> list[RecordedWin]:
    """Of all recorded wins among the steps of a replay, those whose flag was printed first."""
    found = []
    for task in dict.fromkeys(c.task for c in checks):
        steps = [c for c in checks if c.task == task]
        last = steps[-1]
        flag = last.action.removeprefix("submit").strip()
        printed = [c for c in steps[:-1] if flag in c.recorded]
        if (last.recorded_reward or 0.0) < 1.0 or not printed:
            continue
        again = any(flag in c.replayed for c in steps[:-1])
        found.append(RecordedWin(task, again, all(bool(c.stable) for c in steps)))
    return found
