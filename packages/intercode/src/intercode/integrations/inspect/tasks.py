"""Defines InterCode's environments as Inspect tasks: ``inspect eval intercode/bash --model …``."""

from __future__ import annotations

from typing import Any, cast

import anyio
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import SandboxEnvironmentSpec, sandbox

from intercode import datasets
from intercode.agents import accepts_parameter, open_agent
from intercode.agents.parsing import full_query
from intercode.core.errors import UsageError
from intercode.core.trajectories import trajectory_from_row, trajectory_to_row
from intercode.core.types import Score as EpisodeScore
from intercode.core.types import Trajectory
from intercode.datasets.endless import require_fixed
from intercode.environments import make
from intercode.environments.base.env import InterCodeEnv
from intercode.evaluation.rollout import play
from intercode.integrations.inspect.environment_sandbox import EnvironmentConfig, EnvironmentSandbox
from intercode.integrations.inspect.model import InspectModel, to_inspect_message
from intercode.models.base import Message

_STORE_KEY = "intercode"
"""The key in a sample's store under which the trajectory of the episode is saved."""
_MAX_ERROR_SHARE = 0.1
"""The share of samples that may end in an error before Inspect fails the whole run.

A few datasets have tasks whose gold never ends or whose files are missing. Their errors must not
discard the other samples. Inspect's ``--fail-on-error`` overrides this value.
"""
_NAME_PREFIX = "" if "site-packages" in __file__ else "intercode/"
"""The prefix of task names. Inspect adds it, except to packages installed in editable mode."""


@task(name=f"{_NAME_PREFIX}bash")
def bash(
    dataset: str = "starter", agent: str = "try-again", max_turns: int | None = None, **options: Any
) -> Task:
    """Bash: do what a sentence asks for (NL2Bash: ``-T dataset=nl2bash:fs_1``).

    Args:
        dataset: The specification of the dataset, as for ``intercode.make``.
        agent: The name of the agent, as for ``strategy``.
        max_turns: The turn limit of an episode; None: that of the agent and the environment.
        **options: Settings of the environment, such as ``image``, ``network`` and ``profile``, and
            ``backend`` of its sandboxes.

    Raises:
        UsageError: The dataset is of another environment, or it or a setting does not exist.

    >>> from intercode.integrations.inspect import bash, code, ctf, python, sql
    >>> [task(max_turns=5).dataset.name for task in (bash, sql, python, ctf, code)]
    ['starter', 'starter', 'starter', 'starter', 'starter']
    """
    return _task("bash", dataset, agent, max_turns, options)


@task(name=f"{_NAME_PREFIX}sql")
def sql(
    dataset: str = "starter", agent: str = "try-again", max_turns: int | None = None, **options: Any
) -> Task:
    """SQL: answer a question (Spider: ``-T dataset=spider``).

    Args:
        dataset: The specification of the dataset.
        agent: The name of the agent.
        max_turns: The turn limit of an episode; None: that of the agent and the environment.
        **options: Settings of the environment.

    Raises:
        UsageError: The dataset is of another environment, or it or a setting does not exist.
    """
    return _task("sql", dataset, agent, max_turns, options)


@task(name=f"{_NAME_PREFIX}python")
def python(
    dataset: str = "starter", agent: str = "try-again", max_turns: int | None = None, **options: Any
) -> Task:
    """Python: write a function that passes hidden tests (MBPP: ``-T dataset=mbpp``).

    Args:
        dataset: The specification of the dataset.
        agent: The name of the agent.
        max_turns: The turn limit of an episode; None: that of the agent and the environment.
        **options: Settings of the environment.

    Raises:
        UsageError: The dataset is of another environment, or it or a setting does not exist.
    """
    return _task("python", dataset, agent, max_turns, options)


@task(name=f"{_NAME_PREFIX}ctf")
def ctf(
    dataset: str = "starter", agent: str = "react", max_turns: int | None = None, **options: Any
) -> Task:
    """Capture the Flag (IC-CTF: ``-T dataset=ic-ctf``).

    Args:
        dataset: The specification of the dataset.
        agent: The name of the agent.
        max_turns: The turn limit of an episode; None: that of the agent and the environment.
        **options: Settings of the environment.

    Raises:
        UsageError: The dataset is of another environment, or it or a setting does not exist.
    """
    return _task("ctf", dataset, agent, max_turns, options)


@task(name=f"{_NAME_PREFIX}code")
def code(
    dataset: str = "starter", agent: str = "try-again", max_turns: int | None = None, **options: Any
) -> Task:
    """Code: write programs in another language than Python (docs/languages.md).

    Args:
        dataset: The specification of the dataset.
        agent: The name of the agent.
        max_turns: The turn limit of an episode; None: that of the agent and the environment.
        **options: Settings of the environment.

    Raises:
        UsageError: The dataset is of another environment, or it or a setting does not exist.
    """
    return _task("code", dataset, agent, max_turns, options)


@task(name=f"{_NAME_PREFIX}environment")
def environment(
    name: str,
    dataset: str = "starter",
    agent: str = "try-again",
    max_turns: int | None = None,
    **options: Any,
) -> Task:
    """Any registered environment: ``-T name=NAME -T dataset=DATASET``.

    Args:
        name: The name of the environment, as `intercode list` prints it.
        dataset: The specification of the dataset, as for ``intercode.make``.
        agent: The name of the agent, as for ``strategy``.
        max_turns: The turn limit of an episode; None: that of the agent and the environment.
        **options: Settings of the environment, such as ``image``, ``network`` and ``profile``, and
            ``backend`` of its sandboxes.

    Raises:
        UsageError: The dataset is of another environment, or it or a setting does not exist.

    >>> from intercode.integrations.inspect import environment
    >>> environment("bash", max_turns=5).dataset.name  # any environment of `intercode list`
    'starter'
    """
    return _task(name, dataset, agent, max_turns, options)


def _task(
    environment: str, dataset: str, agent: str, max_turns: int | None, options: dict[str, Any]
) -> Task:
    """Return the Inspect task for a dataset.

    ``options`` are settings of the environment, such as ``image``, ``network`` and ``profile``, and
    ``backend`` of its sandboxes.
    """
    chosen = datasets.load(dataset, environment)
    if chosen.environment != environment:
        raise UsageError(f"{dataset} is a dataset of {chosen.environment}, not of {environment}")
    require_fixed(chosen)
    config = EnvironmentConfig(environment=environment, dataset=dataset, settings=options)
    with make(environment, chosen, **options) as env:
        samples = [
            Sample(
                id=t.id,
                input=full_query(env.brief_of(t)),
                metadata={"task": t.id, "group": t.group, "hardness": t.hardness},
            )
            for t in chosen.tasks
        ]
    return Task(
        dataset=MemoryDataset(samples, name=chosen.name),
        solver=strategy(agent, max_turns),
        scorer=reward(),
        sandbox=SandboxEnvironmentSpec("intercode-environment", config),
        metadata={"dataset_hash": chosen.hash},
        fail_on_error=_MAX_ERROR_SHARE,
    )


@solver(name=f"{_NAME_PREFIX}strategy")
def strategy(agent: str = "try-again", max_turns: int | None = None, **options: Any) -> Solver:
    """Plays a sample with an InterCode agent and Inspect's model, in the sample's environment.

    Args:
        agent: A name such as ``single-turn``, ``try-again``, ``react`` or ``plan-solve``.
        max_turns: The turn limit of an episode; None: that of the agent and the environment.
        **options: Those of the agent.

    Raises:
        UsageError: The sample is of no task of this package. The solver raises it.

    >>> from inspect_ai import Task
    >>> from intercode.integrations.inspect import bash, reward, strategy
    >>> samples = bash()
    >>> solver = strategy("react", max_turns=5)
    >>> task = Task(samples.dataset, solver=solver, scorer=reward(), sandbox=samples.sandbox)
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001
        env = _sample_env()
        model = InspectModel() if accepts_parameter(agent, "model") else None
        player = open_agent(
            agent,
            options,
            model=model,
            max_turns=max_turns,
            golds={env.task.id: env.task.solution_actions},
        )

        def work() -> Trajectory:
            player.start(env.brief)
            return play(player, env, max_turns=max_turns)

        episode = await anyio.to_thread.run_sync(work)
        state.store.set(_STORE_KEY, trajectory_to_row(episode))
        messages = [cast(Message, m) for step in episode.steps for m in step.messages]
        state.messages = [to_inspect_message(m) for m in messages] or state.messages
        last = next((s.action for s in reversed(episode.steps) if s.action), "")
        state.output = ModelOutput.from_content(model.name if model else agent, last)
        state.completed = True
        if model is not None and model.limit is not None:
            raise model.limit
        return state

    return solve


@scorer(
    name=f"{_NAME_PREFIX}reward",
    metrics={"reward": [mean(), stderr()], "success": [mean(), stderr()]},
)
def reward() -> Scorer:
    """Scores a sample with the environment's reward, and with ``success``, whether that is 1.

    If ``strategy`` played the sample, the score is the best reward of its episode. If another
    solver worked in the sandbox, the current state of the sandbox is scored. In environments that
    score an answer, the solver's answer is submitted first. Golds and tests never enter the
    sandbox.

    Raises:
        UsageError: The sample is of no task of this package. The scorer raises it.
    """

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001
        episode: object = state.store.get(_STORE_KEY)
        if episode is not None:
            played = trajectory_from_row(episode)
            return _to_score(played.score, {"end": played.end, "turns": played.turns})
        env, answer = _sample_env(), state.output.completion

        def work() -> EpisodeScore:
            submitted = env.finish(answer).score if env.expects_answer else None
            return submitted or env.score()

        final = await anyio.to_thread.run_sync(work)
        return _to_score(final.value, dict(final.parts), answer)

    return score


def _to_score(value: float, metadata: dict[str, Any], answer: str | None = None) -> Score:
    solved = float(value >= 1 - 1e-9)
    return Score(value={"reward": value, "success": solved}, answer=answer, metadata=metadata)


def _sample_env() -> InterCodeEnv:
    """Return the environment of the running sample. Raises UsageError if it has none."""
    try:
        return sandbox().as_type(EnvironmentSandbox).env
    except TypeError as e:
        raise UsageError("this sample has a plain sandbox: run one of intercode's tasks") from e
