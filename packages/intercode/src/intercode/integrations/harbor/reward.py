"""The reward of a Harbor task: what its verifier wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from intercode.core.types import Score, State, Task, TestResult
from intercode.integrations.harbor.tasks.steps import MAIN_REWARD, Rewards, combine_rewards
from intercode.integrations.harbor.tasks.task_directory import HarborPayload
from intercode.integrations.harbor.tasks.task_toml import Config


def standard(task: Task, agent: State, _gold: State) -> Score:
    """Return the number that the verifier wrote.

    Of several numbers this is the one called ``reward``, or else their mean; all of them become
    parts. 0 if the verifier wrote no readable number, or if its result does not count (see
    ``run_verifier``). Of a task with steps, these are the numbers that ``combine_rewards`` returns,
    and the details have those of each step as ``steps``. The details have the exit status of the
    verifier as ``verifier`` and the reason and its output as ``said``. ``protected`` says whether
    each verifier had a sandbox of its own. ``trusted`` has the directories of which a verifier may
    have executed anything that the agent put there: none, or the root directory.
    """
    config = HarborPayload.of(task).config
    rewards = step_rewards(agent.tests) if config.steps else []
    protected = not runs_among_agent_files(config, len(rewards))
    details: dict[str, Any] = {
        "verifier": agent.exit_code,
        "said": agent.output,
        "protected": protected,
        "trusted": [] if protected else ["/"],
    }
    if config.steps:
        details["steps"] = dict(zip((step.name for step in config.steps), rewards, strict=False))
        parts = combine_rewards(config.steps, config.reward_strategy, rewards) if rewards else {}
    else:
        parts = {} if agent.failed else {test.test: _number(test) for test in agent.tests}
    if not parts:
        return Score(0.0, {MAIN_REWARD: 0.0}, details)
    value = parts.get(MAIN_REWARD, sum(parts.values()) / len(parts))
    return Score(value, parts, details)


def runs_among_agent_files(config: Config, steps: int | None = None) -> bool:
    """Return whether a verifier of a task runs in a sandbox with the agent's files; of a task with
    steps, one of the first ``steps``, or of all."""
    owners = config.steps[: None if steps is None else max(steps, 1)] or (config,)
    return any(owner.separate is None for owner in owners)


def step_tests(name: str, rewards: Rewards) -> tuple[TestResult, ...]:
    """Return the rewards of a step as results, of which each is named ``STEP/REWARD``."""
    return tuple(TestResult(f"{name}/{k}", v >= 1.0, repr(v)) for k, v in rewards.items())


def step_rewards(tests: Sequence[TestResult]) -> list[Rewards]:
    """Return the rewards of each step, in order: the inverse of ``step_tests``."""
    steps: dict[str, dict[str, float]] = {}
    for test in tests:
        step, _, name = test.test.partition("/")
        steps.setdefault(step, {})[name] = _number(test)
    return list(steps.values())


def _number(test: TestResult) -> float:
    return float(test.output or 0.0)
