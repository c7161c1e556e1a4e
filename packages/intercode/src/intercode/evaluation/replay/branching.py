"""Branches off from a step of a recorded episode, with other actions or another agent."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from intercode.agents import open_agent
from intercode.agents.base import Agent
from intercode.core import logs, trajectories
from intercode.core.errors import UsageError
from intercode.core.logs.formats import is_native
from intercode.core.types import (
    EMPTY_MAPPING,
    AgentOutput,
    Brief,
    Dataset,
    Step,
    Trajectory,
    to_jsonable,
)
from intercode.evaluation.evaluate.run_directory import unused_directory
from intercode.evaluation.replay.log_replay import StepComparison, compare_step
from intercode.evaluation.replay.recorded_environments import (
    ReplayOptions,
    open_recorded_env,
    repeat_step,
    reset_to_task,
)
from intercode.evaluation.rollout import rollout_branches
from intercode.models import open_model
from intercode_sandbox.registry import unknown_name_error


@dataclass(frozen=True)
class BranchOptions:
    """Where and how to branch off. Steps are counted from 1.

    ``edits`` are actions that replace recorded ones. The first ``after`` steps are executed as
    recorded (None: up to the first edit). ``agent`` continues from there; None means the remaining
    recorded actions.
    """

    episode: str | None = None
    edits: Mapping[int, str] = field(default_factory=dict)
    after: int | None = None
    agent: str | None = None
    agent_options: Mapping[str, Any] = field(default_factory=dict)
    model: str | None = None
    base_url: str | None = None
    max_turns: int | None = None


@dataclass(frozen=True)
class BranchResult:
    """A new episode, written to ``out``. ``prefix`` compares the common steps with their record."""

    parent: Trajectory
    trajectory: Trajectory
    prefix: tuple[StepComparison, ...]
    out: Path

    @property
    def shared_steps(self) -> int:
        """The number of common steps."""
        return self.trajectory.branched_at or 0


def branch(
    paths: Sequence[Path],
    branch_options: BranchOptions,
    options: ReplayOptions,
    out: Path | None = None,
) -> BranchResult:
    """Execute an episode again up to a step, branch off, and write the new episode.

    ``out`` is the directory of its run (None: one below ``runs``). Raises UsageError for an episode
    or a step that does not exist, and for an episode that this package has not recorded.
    """
    parent = find_episode(paths, branch_options.episode)
    after = _fork_point(parent, branch_options)
    with open_recorded_env(parent, options) as env:
        agent = _continuing_agent(parent, branch_options, after, env.dataset)
        reset_to_task(env, parent)
        steps = tuple(repeat_step(env, parent, turn) for turn in range(after))
        prefix = tuple(compare_step(parent, k, step) for k, step in enumerate(steps))
        if after in parent.restarts:
            reset_to_task(env, parent)
        restarts = tuple(n for n in parent.restarts if n <= after)
        start = parent.replace(steps=steps, restarts=restarts, id=parent.id or parent.task)
        (trajectory,) = rollout_branches(env, start, [agent], max_turns=branch_options.max_turns)
        metadata = {**env.result_metadata(), **_branch_metadata(parent, branch_options)}
    metadata = to_jsonable({**metadata, "branch_of": start.id, "branched_at": after})
    out = out or unused_directory(Path("runs"), f"branch-{_safe_name(start.id)}-{after}", metadata)
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    trajectories.write_run_metadata(out, {**metadata, "started": now})
    log = out / trajectories.TRAJECTORIES_FILE
    epoch = _next_epoch(log, trajectory.task, parent.epoch)
    trajectory = trajectory.replace(run=metadata, epoch=epoch)
    trajectories.append_trajectory(log, trajectory)
    return BranchResult(parent, trajectory, prefix, out)


def _next_epoch(log: Path, task: str, epoch: int) -> int:
    """Return the parent's epoch, or the next unused one. Repeated branches are samples."""
    used_epochs = (
        {t.epoch for t in trajectories.read_trajectories(log) if t.task == task}
        if log.exists()
        else set()
    )
    while epoch in used_epochs:
        epoch += 1
    return epoch


def find_episode(paths: Sequence[Path], name: str | None) -> Trajectory:
    """Return the episode with an id, or the only one of a task, or for None the only one at all."""
    episodes = [t for file in logs.find_logs(paths) for t in logs.load_log(file) if is_native(t)]
    if not episodes:
        raise UsageError(
            "there is no episode that this package has recorded: only those can be branched"
        )
    matches = [t for t in episodes if name is None or name in (t.id, t.task)]
    if not matches:
        raise unknown_name_error(
            "episode", str(name), [n for t in episodes for n in (t.id, t.task) if n]
        )
    if len(matches) > 1:
        listed = ", ".join(
            f"{t.id or 'without id'} ({t.task}, epoch {t.epoch})" for t in matches[:5]
        )
        raise UsageError(f"{len(matches)} episodes match: give --episode with one of {listed}")
    return matches[0]


def _fork_point(parent: Trajectory, request: BranchOptions) -> int:
    """Return after how many steps the new episode branches off. Raises UsageError."""
    for k in request.edits:
        if not 1 <= k <= parent.turns:
            raise UsageError(f"no step {k} to edit: {parent.task} has steps 1 to {parent.turns}")
    if request.after is None and not request.edits:
        raise UsageError("give where to branch: --edit K='COMMAND', or --from K with --agent NAME")
    after = min(request.edits) - 1 if request.after is None else request.after
    last = parent.turns - (parent.end == "submitted")
    for k in request.edits:
        if restart := next((n for n in parent.restarts if after < n < k), None):
            raise UsageError(
                f"step {k} comes after the restart that followed step {restart}, so it does not "
                f"follow from step {after}: edit one of the steps {after + 1} to {restart}, or "
                f"give --from {restart}"
            )
    if not 0 <= after <= last:
        raise UsageError(
            f"cannot branch after step {after}: {parent.task} has the steps 0 to {last}"
        )
    if any(k <= after for k in request.edits):
        raise UsageError(f"an edited step has to come after step {after}, where the branch begins")
    if not request.edits and request.agent is None:
        raise UsageError(f"nothing to play after step {after}: give --agent or --edit")
    return after


def _continuing_agent(
    parent: Trajectory, request: BranchOptions, after: int, dataset: Dataset
) -> Agent:
    """Return an agent that plays recorded and edited actions, and then lets the chosen agent
    continue."""
    end = next((n for n in parent.restarts if n > after), parent.turns)
    until = end if request.agent is None else max(request.edits, default=after)
    outputs = [
        AgentOutput(
            request.edits.get(k, step.action if step.executed else None), reply=step.observation
        )
        for k, step in enumerate(parent.steps[after:until], start=after + 1)
    ]
    if request.agent is None:
        return ScriptedAgent(outputs, any(s.score is not None for s in parent.steps[:-1]))
    model = open_model(request.model, request.base_url) if request.model else None
    golds = {t.id: t.solution_actions for t in dataset.tasks if t.solution_actions}
    agent = open_agent(
        request.agent, request.agent_options, model=model, golds=golds, max_turns=request.max_turns
    )
    return ScriptedAgent(outputs, agent.wants_score, agent) if outputs else agent


class ScriptedAgent(Agent):
    """Plays given actions regardless of their observations, then lets another agent continue, if
    any."""

    def __init__(
        self,
        outputs: Sequence[AgentOutput],
        wants_score: bool,
        next_agent: Agent | None = None,
    ) -> None:
        self._remaining, self._next_agent, self.wants_score = list(outputs), next_agent, wants_score
        self.stops_itself = next_agent is None or next_agent.stops_itself
        if next_agent:
            self.max_turns, self.max_restarts = next_agent.max_turns, next_agent.max_restarts

    def start(self, brief: Brief) -> None:
        """Start the agent that continues."""
        if self._next_agent:
            self._next_agent.start(brief)

    def act(self, feedback: Step | None) -> AgentOutput | None:
        """Return the next action."""
        if self._remaining:
            return self._remaining.pop(0)
        return self._next_agent.act(feedback) if self._next_agent else None

    def restart(self, feedback: Step) -> bool:
        """Return whether the agent that continues begins the task again."""
        return self._next_agent is not None and self._next_agent.restart(feedback)


def _branch_metadata(parent: Trajectory, request: BranchOptions) -> dict[str, Any]:
    inherited = {
        k: v for k, v in parent.run.items() if k in ("seed", "version", "tasks_in_dataset")
    }
    return {
        **inherited,
        "agent": request.agent or "edited",
        "model": request.model,
        "max_turns": request.max_turns,
        "agent_options": request.agent_options or EMPTY_MAPPING,
        "edits": {str(k): v for k, v in request.edits.items()},
    }


def _safe_name(text: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in text)
