"""Goes on from a step of a recorded episode in another way: by other actions or another agent."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from intercode.agents import open_agent
from intercode.agents.base import Agent, Feedback
from intercode.core import logs, trajectories
from intercode.core.errors import UsageError
from intercode.core.registry import unknown_name_error
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
    is_native,
    open_recorded_env,
    repeat_step,
)
from intercode.evaluation.rollout import rollout_branches
from intercode.models import open_model


@dataclass(frozen=True)
class BranchOptions:
    """What is asked for. Steps are counted from 1.

    ``edits``: actions that take the place of recorded ones. ``after``: how many steps are executed
    as recorded first (None: up to the first edit). ``agent`` plays on from there; None means the
    remaining recorded actions.
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
    """What came of it. ``prefix``: the steps in common, beside their record; ``made``: the new
    episode, written to ``out``."""

    parent: Trajectory
    trajectory: Trajectory
    prefix: tuple[StepComparison, ...]
    out: Path

    @property
    def shared_steps(self) -> int:
        """How many steps the two have in common."""
        return self.trajectory.branched_at or 0


def branch(
    paths: Sequence[Path],
    branch_options: BranchOptions,
    options: ReplayOptions,
    out: Path | None = None,
) -> BranchResult:
    """Execute an episode again up to a step, go on differently, and write the new episode.

    ``out``: the directory of its run; None for one below ``runs``. Raises UsageError for what
    cannot be: no such episode or step, or an episode that this package has not recorded.
    """
    parent = find_episode(paths, branch_options.episode)
    after = _fork_point(parent, branch_options)
    with open_recorded_env(parent, options) as env:
        agent = _continuing_agent(parent, branch_options, after, env.dataset)
        env.reset(seed=parent.seed, options={"task": parent.index})
        came: list[Step] = []
        for step in parent.steps[:after]:
            came.append(repeat_step(env, step) if step.executed else step)
        prefix = tuple(compare_step(parent, k, step) for k, step in enumerate(came))
        so_far = parent.replace(steps=tuple(came), id=parent.id or parent.task)
        (made,) = rollout_branches(env, so_far, [agent], max_turns=branch_options.max_turns)
        facts = {**env.result_metadata(), **_branch_metadata(parent, branch_options)}
    facts = to_jsonable({**facts, "branch_of": so_far.id, "branched_at": after})
    out = out or unused_directory(Path("runs"), f"branch-{_safe_name(so_far.id)}-{after}", facts)
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    trajectories.write_run_metadata(out, {**facts, "started": now})
    log = out / trajectories.TRAJECTORIES_FILE
    made = made.replace(run=facts, epoch=_next_epoch(log, made.task, parent.epoch))
    trajectories.append_trajectory(log, made)
    return BranchResult(parent, made, prefix, out)


def _next_epoch(log: Path, task: str, epoch: int) -> int:
    """The parent's epoch, or the next one that is free: the same branch made once more is another
    sample of it."""
    taken = (
        {t.epoch for t in trajectories.read_trajectories(log) if t.task == task}
        if log.exists()
        else set()
    )
    while epoch in taken:
        epoch += 1
    return epoch


def find_episode(paths: Sequence[Path], name: str | None) -> Trajectory:
    """The episode with an id, or the only one of a task. None: the only one there is."""
    found = [t for file in logs.find_logs(paths) for t in logs.load_log(file) if is_native(t)]
    if not found:
        raise UsageError("no episode that this package has recorded: only those can be branched")
    wanted = [t for t in found if name is None or name in (t.id, t.task)]
    if not wanted:
        raise unknown_name_error(
            "episode", str(name), [n for t in found for n in (t.id, t.task) if n]
        )
    if len(wanted) > 1:
        some = ", ".join(f"{t.task} ({t.id or 'without id'})" for t in wanted[:5])
        raise UsageError(f"{len(wanted)} episodes are meant: give --episode with one of {some}")
    return wanted[0]


def _fork_point(parent: Trajectory, asked: BranchOptions) -> int:
    """After how many steps the new episode goes its own way. Raises UsageError."""
    for k in asked.edits:
        if not 1 <= k <= parent.turns:
            raise UsageError(f"no step {k} to edit: {parent.task} has steps 1 to {parent.turns}")
    if asked.after is None and not asked.edits:
        raise UsageError("say where to branch: --edit K='COMMAND', or --from K with --agent NAME")
    after = min(asked.edits) - 1 if asked.after is None else asked.after
    most = parent.turns - (parent.end == "submitted")
    if not 0 <= after <= most:
        raise UsageError(f"no branch after step {after}: {parent.task} is open after 0 to {most}")
    if any(k <= after for k in asked.edits):
        raise UsageError(f"an edited step has to come after step {after}, where the branch begins")
    if not asked.edits and asked.agent is None:
        raise UsageError(f"after step {after}, who plays on? give --agent NAME or --edit K=COMMAND")
    return after


def _continuing_agent(
    parent: Trajectory, asked: BranchOptions, after: int, dataset: Dataset
) -> Agent:
    """Who plays on: the recorded and edited actions, and after the last edit the agent."""
    until = parent.turns if asked.agent is None else max(asked.edits, default=after)
    moves = [
        AgentOutput(
            asked.edits.get(k, step.action if step.executed else None), reply=step.observation
        )
        for k, step in enumerate(parent.steps[after:until], start=after + 1)
    ]
    if asked.agent is None:
        return ScriptedAgent(moves, any(s.reward is not None for s in parent.steps[:-1]))
    model = open_model(asked.model, asked.base_url) if asked.model else None
    golds = {t.id: (t.solution,) for t in dataset.tasks if t.solution is not None}
    agent = open_agent(
        asked.agent, asked.agent_options, model=model, golds=golds, max_turns=asked.max_turns
    )
    return ScriptedAgent(moves, agent.wants_score, agent) if moves else agent


class ScriptedAgent:
    """Plays given moves, whatever comes of them; then lets another agent play, if there is one."""

    name: ClassVar[str] = "script"

    def __init__(
        self, moves: Sequence[AgentOutput], wants_score: bool, then: Agent | None = None
    ) -> None:
        self._remaining, self._next_agent, self.wants_score = list(moves), then, wants_score
        self.max_turns = then.max_turns if then else None

    def start(self, brief: Brief) -> None:
        """Nothing is asked of the brief but by the agent that comes after."""
        if self._next_agent:
            self._next_agent.start(brief)

    def act(self, feedback: Feedback | None) -> AgentOutput | None:
        """The next move."""
        if self._remaining:
            return self._remaining.pop(0)
        return self._next_agent.act(feedback) if self._next_agent else None


def _branch_metadata(parent: Trajectory, asked: BranchOptions) -> dict[str, Any]:
    kept = {k: v for k, v in parent.run.items() if k in ("seed", "version", "tasks_in_dataset")}
    return {
        **kept,
        "agent": asked.agent or "edited",
        "model": asked.model,
        "max_turns": asked.max_turns,
        "agent_options": asked.agent_options or EMPTY_MAPPING,
        "edits": {str(k): v for k, v in asked.edits.items()},
    }


def _safe_name(text: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in text)
