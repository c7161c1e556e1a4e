"""One agent plays one episode of one environment: the heart of the project."""

from __future__ import annotations

import time
from typing import Any

from intercode.agents.base import Agent, Feedback
from intercode.envs.base import InterCodeEnv
from intercode.types import EndReason, Move, Score, Step, Trajectory


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
    agent's and the environment's; a turn without code counts), or, for an agent that is told its
    score after every turn, when that score is 1. A state that was never scored is scored at the
    end. Raises InfrastructureError when a sandbox or a model failed: such an episode has no result.
    """
    started = time.monotonic()
    env.reset(seed=seed, options={"task": task})
    agent.start(env.brief)
    limits = [n for n in (max_turns, agent.max_turns, env.max_turns) if n is not None]
    steps: list[Step] = []
    feedback: Feedback | None = None
    score: Score | None = None
    end: EndReason = "turn_limit"
    while not limits or len(steps) < min(limits):
        move = agent.act(feedback)
        if move is None:
            end = "agent_stopped"
            break
        step, score, done = take(env, move, agent.wants_score)
        steps.append(step)
        if done or (agent.wants_score and score is not None and score.success):
            end = "submitted" if done else "solved"
            break
        feedback = Feedback(step.observation, step.valid, step.timed_out, score)
    if score is None:  # nobody has asked yet what the state is worth
        steps = score_last(env, steps)
    return Trajectory(
        task=env.task.id,
        index=env.index,
        query=env.task.query,
        steps=tuple(steps),
        end=end,
        group=env.task.group,
        hardness=env.task.hardness,
        seconds=round(time.monotonic() - started, 4),
    )


def take(env: InterCodeEnv, move: Move, scored: bool) -> tuple[Step, Score | None, bool]:
    """One turn: the step, its score where there is one, and whether the episode has ended."""
    said: dict[str, Any] = {"message": move.message, "thought": move.thought, "usage": move.usage}
    if move.action is None:
        step = Step("", move.reply, executed=False, valid=False, exit_code=None, reward=0.0, **said)
        return step, None, False
    observation, _, done, _, info = env.step(move.action)
    score = Score(info["score"], info["parts"]) if "score" in info else None
    if score is None and scored:
        score = env.score()
    step = Step(
        move.action,
        observation,
        valid=info["valid"],
        exit_code=info["exit_code"],
        timed_out=info["timed_out"],
        reward=None if score is None else score.value,
        parts={} if score is None else score.parts,
        changes=tuple(info["changes"]),
        **said,
    )
    return step, score, done


def score_last(env: InterCodeEnv, steps: list[Step]) -> list[Step]:
    """Give the final state's score to the last step, or to an empty one where there is none."""
    score = env.score()
    last = steps.pop() if steps else Step("", "", executed=False, valid=None, exit_code=None)
    values = {name: getattr(last, name) for name in Step.__dataclass_fields__}
    return [*steps, Step(**{**values, "reward": score.value, "parts": score.parts})]
