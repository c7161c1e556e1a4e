"""``intercode replay --edit`` and ``--from``: branches off from a recorded episode."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from intercode_sandbox.lines import split_lines

if TYPE_CHECKING:
    from intercode.core.types import Step
    from intercode.evaluation.replay.branching import BranchOptions, BranchResult
    from intercode.evaluation.replay.log_replay import StepComparison
    from intercode.evaluation.replay.recorded_environments import ReplayOptions

NOT_DETERMINISTIC = (
    "not recorded as deterministic, so time and chance differ: see `intercode eval --set "
    "deterministic=true`"
)
REWARDS_EQUAL = "every reward is equal: only observations or states differ"
_SHOWN_LINES = 12
_ACTION_SHOWN = 60


def edit(text: str) -> tuple[int, str]:
    """Parse ``K=COMMAND``."""
    number, mark, action = text.partition("=")
    if not mark or not number.isdigit() or int(number) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form K=COMMAND, K from 1")
    return int(number), action


def step_count(text: str) -> int:
    """Parse a number of steps."""
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of steps")
    return int(text)


def is_requested(args: argparse.Namespace) -> bool:
    """Return whether the arguments ask for a branch."""
    return bool(args.edit) or args.after is not None or args.agent is not None


def handle(
    args: argparse.Namespace, options: ReplayOptions, agent_options: Mapping[str, Any]
) -> int:
    """Branch off, save the new episode, and print what changed."""
    from intercode.evaluation.replay.branching import BranchOptions, branch

    request = BranchOptions(
        args.episode,
        dict(args.edit),
        args.after,
        args.agent,
        agent_options,
        args.model,
        args.base_url,
        args.max_turns,
    )
    result = branch(args.files, request, options, args.out)
    for check in result.prefix:
        if not check.same:
            what = ", ".join(check.differs_in)
            print(
                f"warning: step {check.turn + 1} differs from its record ({what})", file=sys.stderr
            )
    _print_branch(result, request)
    return 0


def _print_branch(result: BranchResult, request: BranchOptions) -> None:
    parent, child = result.parent, result.trajectory
    print(
        f"{parent.task}: {result.shared_steps} steps in common, then {request.agent or 'as edited'}"
    )
    for k in range(result.shared_steps, max(child.turns, parent.turns)):
        old = parent.steps[k] if k < parent.turns else None
        new = child.steps[k] if k < child.turns else None
        print(f"  step {k + 1}: {_format_change(old, new)}")
        if old and new and old.observation != new.observation:
            print(indent(_diff(old.observation, new.observation)))
    print(f"reward {parent.score:g} -> {child.score:g}; ended: {parent.end} -> {child.end}")
    print(f"Trajectory: {child.id} in {result.out}")


def _format_change(old: Step | None, new: Step | None) -> str:
    if new is None:
        return "not played"
    action = " ".join(new.action.split())[:_ACTION_SHOWN] or "(no code)"
    if old is None:
        return f"new: {action}"
    changes = [] if old.action == new.action else ["action"]
    changes += [] if old.observation == new.observation else ["observation"]
    if old.hashes and old.hashes.get("state") != new.hashes.get("state"):
        changes.append("state")
    if old.score_value != new.score_value:
        scores = map(_format_reward, (old.score_value, new.score_value))
        changes.append(f"reward {' -> '.join(scores)}")
    return f"{action}: {', '.join(changes) + ' changed' if changes else 'the same'}"


def _format_reward(reward: float | None) -> str:
    return "none" if reward is None else f"{reward:g}"


def describe_mismatch(check: StepComparison) -> str:
    """Describe which step differs, in what, and why."""
    name, what = f"{check.task} {check.episode}".strip(), ", ".join(check.differs_in)
    return f"{name}, step {check.turn + 1}, in {what} ({check.cause})"


def format_difference(check: StepComparison) -> str:
    """Describe in a few lines what differs in a step."""
    lines = [f"$ {check.action}"]
    if not check.same_observation:
        lines.append(_diff(check.recorded, check.replayed))
    if not check.same_reward:
        old, new = _format_reward(check.recorded_reward), _format_reward(check.replayed_reward)
        lines.append(f"reward {old}, now {new}")
    if "state" in check.differs_in:
        old, new = (h.get("state", "none") for h in (check.recorded_hashes, check.replayed_hashes))
        lines.append(f"state {old}, now {new}")
    if check.later_steps:
        lines.append(_describe_stop(check))
    return "\n".join(lines)


def _describe_stop(check: StepComparison) -> str:
    """Say after how many steps the comparison of an episode stopped, and why."""
    left = check.later_steps
    later = "the step after it" if left == 1 else f"the {left} steps after it"
    if check.ended_early:
        return f"{later} could not be executed: the difference has ended the episode"
    rewards = "equal" if check.same_later_rewards else "different"
    return f"{later} began in another state: only rewards were compared, and are {rewards}"


def indent(text: str) -> str:
    """Indent a text below the line above it."""
    return "\n".join(f"      {line}" for line in split_lines(text))


def _diff(old: str, new: str) -> str:
    lines = list(difflib.unified_diff(split_lines(old), split_lines(new), lineterm="", n=1))[2:]
    if not lines:
        return "(differs in line ends)"
    more = len(lines) - _SHOWN_LINES
    return "\n".join(lines[:_SHOWN_LINES] + ([f"... {more} more lines"] if more > 0 else []))
