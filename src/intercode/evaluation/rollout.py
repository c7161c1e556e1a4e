"""One agent plays one episode of one environment, or several go on from one moment of it: the heart
of the project."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from intercode.agents.base import Agent, Feedback
from intercode.core.errors import BudgetError
from intercode.core.types import AgentOutput, Brief, EndReason, Score, Step, Trajectory
from intercode.environments.base.env import InterCodeEnv

AGENT_OUTPUT_FIELDS = ("message", "thought", "usage", "actor", "messages", "context")
"""What a step keeps of the move that led to it."""


def rollout(
    agent: Agent,
    env: InterCodeEnv,
    task: int | str,
    *,
    seed: int | None = None,
    max_turns: int | None = None,
) -> Trajectory:
    """Play one task to its end and record it.

    Ends when the agent submits or stops, at the turn limit (the smallest of ``max_turns``, the
    agent's and the environment's; a turn without code counts), at a limit of the episode's on
    tokens, cost or time, or, for an agent that is told its score after every turn, when that score
    is 1. A state that was never scored is scored at the end. Raises InfrastructureError when a
    sandbox or a model failed, BudgetError at a limit of the run's: such an episode has no result.
    """
    started = time.monotonic()
    env.reset(seed=seed, options={"task": task})
    agent.start(env.brief)
    return play(agent, env, max_turns=max_turns, started=started)


def rollout_branches(
    env: InterCodeEnv,
    parent: Trajectory,
    agents: Iterable[Agent],
    *,
    max_turns: int | None = None,
    score_final: bool = True,
) -> Iterator[Trajectory]:
    """Go on from this moment of a running episode once with each agent, each time from the same
    snapshot: a Trajectory for each, which names ``so_far`` as its parent.

    The continuations are played one after another in ``env``, when they are asked for; one that has
    not submitted can be branched in turn before the next is taken, so that a tree needs a snapshot
    per level and one live box. An agent is told in its brief's notes what was done so far.
    ``scored`` False leaves a state unscored that no agent has asked about.
    """
    with env.snapshot() as moment:
        for number, agent in enumerate(agents):
            if number:
                env.restore(moment)
            agent.start(brief_with_history(env.brief, parent.steps))
            ended = play(agent, env, parent.steps, max_turns=max_turns, score_final=score_final)
            yield ended.replace(parent=parent.id, branched_at=len(parent.steps))


def brief_with_history(brief: Brief, steps: Sequence[Step]) -> Brief:
    """The brief of an agent that takes over after some steps."""
    if not steps:
        return brief
    done = "\n".join(f"$ {s.action}\n{s.observation}".rstrip("\n") for s in steps)
    return replace(brief, notes=f"{brief.notes}\nDone so far:\n{done}".lstrip("\n"))


def play(
    agent: Agent,
    env: InterCodeEnv,
    previous_steps: Sequence[Step] = (),
    *,
    max_turns: int | None = None,
    score_final: bool = True,
    started: float | None = None,
) -> Trajectory:
    """Play a running episode to its end with an agent that was started; see ``rollout``.

    ``before`` are the steps that were taken already: they count, and are part of the record.
    """
    started = time.monotonic() if started is None else started
    limits = [n for n in (max_turns, agent.max_turns, env.max_turns) if n is not None]
    steps: list[Step] = list(previous_steps)
    feedback: Feedback | None = None
    score: Score | None = None
    end: EndReason = "turn_limit"
    while not limits or len(steps) < min(limits):
        try:
            move = agent.act(feedback)
        except BudgetError as e:
            if e.run_limit:
                raise
            end = "budget"
            break
        if move is None:
            end = "agent_stopped"
            break
        step, score, done = take_turn(env, move, agent.wants_score)
        steps.append(step)
        ends = agent.wants_score and getattr(agent, "ends_when_solved", True)
        if done or (ends and score is not None and score.success):
            end = "submitted" if done else "solved"
            break
        told = score if agent.wants_score else None
        feedback = Feedback(step.observation, step.valid, step.timed_out, told)
    if score is None and score_final:  # nobody has asked yet what the state is worth
        steps = score_final_state(env, steps)
    return make_trajectory(env, steps, end, time.monotonic() - started)


def make_trajectory(
    env: InterCodeEnv, steps: Sequence[Step], end: EndReason, seconds: float
) -> Trajectory:
    """The record of the episode of ``env`` with these steps, under an id of its own."""
    return Trajectory(
        task=env.task.id, index=env.index, query=env.task.query, steps=tuple(steps), end=end,
        group=env.task.group, hardness=env.task.hardness, tags=env.task.tags,
        seconds=round(seconds, 4), id=secrets.token_hex(8), seed=env.task_seed,
    )  # fmt: skip


def take_turn(
    env: InterCodeEnv, output: AgentOutput, with_score: bool
) -> tuple[Step, Score | None, bool]:
    """One turn: the step, its score where there is one, and whether the episode has ended."""
    said: dict[str, Any] = {name: getattr(output, name) for name in AGENT_OUTPUT_FIELDS}
    if output.action is None:
        step = Step(
            "", output.reply, executed=False, valid=False, exit_code=None, reward=0.0, **said
        )
        return step, None, False
    observation, _, done, _, info = env.step(output.action)
    score = Score(info["score"], info["parts"]) if "score" in info else None
    if score is None and with_score:
        score = env.score()
    step = Step(
        output.action,
        observation,
        valid=info["valid"],
        exit_code=info["exit_code"],
        timed_out=info["timed_out"],
        reward=None if score is None else score.value,
        parts={} if score is None else score.parts,
        changes=tuple(info["changes"]),
        hashes=info.get("hashes", {}),
        refused=info.get("refused", False),
        diffs={} if done else env.file_diffs(),
        **said,
    )
    return step, score, done


def score_final_state(env: InterCodeEnv, steps: list[Step]) -> list[Step]:
    """Give the final state's score to the last step, or to an empty one where there is none."""
    score = env.score()
    last = steps.pop() if steps else Step("", "", executed=False, valid=None, exit_code=None)
    return [*steps, replace(last, reward=score.value, parts=score.parts)]
