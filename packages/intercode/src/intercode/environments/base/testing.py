"""Checks that an environment satisfies the contract. A test of an environment calls them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from intercode.core.errors import EnvironmentStateError, UsageError
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.workspaces import SandboxWorkspace
from intercode_sandbox.checks import expect_error, require

_FORBIDDEN_INFO_KEYS = (
    "gold",
    "golds",
    "also",
    "flag",
    "solution",
    "time",
    "seconds",
    "date",
    "pid",
)


def check_env(env: InterCodeEnv) -> None:
    """Check an environment with Gymnasium's ``check_env`` and against InterCode's contract.

    Args:
        env: The environment, which needs a task with a gold. It is closed at the end.

    Raises:
        AssertionError: The environment does not satisfy the contract.
    """
    try:
        _check_description(env)
        _check_gymnasium(env)
        _check_tasks(env)
        _check_scoring(env)
        _check_order(env)
        _check_turns(env)
        _check_closing(env)
    finally:
        env.close()
    env.close()
    expect_error(EnvironmentStateError, lambda: env.step("true"), "step after close")
    expect_error(EnvironmentStateError, env.score, "score after close")
    env.reset()
    env.close()


def _check_description(env: InterCodeEnv) -> None:
    require(
        env.description is not InterCodeEnv.description,
        f"{type(env).__name__} does not describe itself, so no model can play it: set its "
        "attribute `description` to an EnvironmentDescription(language, judged=...)",
    )
    brief = env.brief_of(env.dataset.tasks[0])
    require(brief.environment == env.name, f"the brief is of {brief.environment!r}")
    require(bool(brief.description.judged), "the description does not say what is judged")


def _check_gymnasium(env: InterCodeEnv) -> None:
    from gymnasium.utils.env_checker import check_env as gymnasium_check

    for seed in (None, 7):
        try:
            env.reset(seed=seed)
            env.action_space.seed(seed)
            gymnasium_check(env, skip_render_check=env.spec is None)
        except (TypeError, ValueError, AttributeError) as e:
            raise AssertionError(f"Gymnasium's check with seed {seed}: {e}") from e
    first, second = (env.reset(seed=3) for _ in "ab")
    require(first == second, "two resets with the same seed differ")


def _check_tasks(env: InterCodeEnv) -> None:
    tasks = env.dataset.tasks
    last = len(tasks) - 1
    for choice, index in ((0, 0), (last, last), (tasks[0].id, 0), (tasks[last].id, last)):
        query, info = env.reset(options={"task": choice})
        require(info["index"] == index, f"task {choice!r} gives the position {info['index']}")
        require(info["task"] == env.task.id == tasks[index].id, f"task {choice!r} gives {info}")
        require(tasks[index].query.startswith(query), "the first observation is not the query")
        _check_info(env, info)
    for wrong in (len(tasks), -1, 0.5, True, ["x"]):
        what = f"reset with task {wrong!r}"
        expect_error(UsageError, lambda w=wrong: env.reset(options={"task": w}), what)  # type: ignore[misc]
    typo = tasks[0].id + "x"
    message = expect_error(UsageError, lambda: env.reset(options={"task": typo}), "an unknown task")
    require(tasks[0].id in message, f"the error for {typo!r} suggests no similar name: {message}")


def _check_scoring(env: InterCodeEnv) -> None:
    env.reset(options={"task": 0})
    first = env.score()
    require(first == env.score(), "score() twice gives two results")
    _, reward, terminated, truncated, info = env.step(env.action_space.sample())
    _check_info(env, info)
    error = env.episode.action_error
    why = f": {error.type}: {error.message}\n{error.traceback}" if error else ""
    require(not terminated and not truncated, f"the first action ends the episode{why}")
    require(reward == 0.0, f"an action that does not submit gets the reward {reward}")
    expected = env.score()
    for _ in range(2):
        require(env.score() == expected, "score() changes what it scores")
    observation, reward, terminated, truncated, info = env.submit()
    require(terminated and not truncated, "submit does not end the episode")
    require(reward == expected.value, f"submit gives {reward}, score() gave {expected.value}")
    require(info["parts"] == dict(expected.parts), "submit's info lacks the parts of the reward")
    require(observation in env.observation_space, "submit's observation is not in the space")
    _check_info(env, info)
    env.reset(options={"task": 0})
    require(env.score() == first, "a new episode gets another score than the one before it")
    _, reward, terminated, _, info = env.step("  submit  some words ")
    if info.get("refused"):
        require(
            not terminated and reward == 0.0, "a refused answer ends the episode or has a reward"
        )
        env.score()
        terminated = env.submit()[2]
    require(terminated, "the action `submit some words` does not end the episode")


def _check_order(env: InterCodeEnv) -> None:
    expect_error(EnvironmentStateError, lambda: env.step("true"), "step after submit")
    expect_error(EnvironmentStateError, env.submit, "submit after submit")
    env.reset()
    for wrong in (None, 1, b"true"):
        expect_error(UsageError, lambda w=wrong: env.step(w), f"the action {wrong!r}")  # type: ignore[misc]
    *_, terminated, _, _ = env.step("submitted")
    require(not terminated, "`submitted` counts as `submit`")


def _check_turns(env: InterCodeEnv) -> None:
    before, env.max_turns = env.max_turns, 2
    try:
        env.reset(options={"task": 0})
        ends = [env.step(env.action_space.sample())[2:4] for _ in range(2)]
        require(ends == [(False, False), (False, True)], f"max_turns=2 ends like this: {ends}")
        expect_error(EnvironmentStateError, lambda: env.step("true"), "step after the turn limit")
        env.score()
    finally:
        env.max_turns = before


class _WatchedSession:
    """A session that runs a command in its sandbox when it is closed."""

    def __init__(self, workspace: SandboxWorkspace) -> None:
        self._workspace, self.found = workspace, list[bool]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._workspace.session, name)

    def close(self) -> None:
        self.found.append(not self._workspace.sandbox.is_lost)
        if self.found[-1]:
            self._workspace.sandbox.spawn(["/bin/sh", "-c", ":"]).wait()
        self._workspace.session.close()


def _check_closing(env: InterCodeEnv) -> None:
    for end in (env.reset, env.close):
        env.reset(options={"task": 0})
        env.step(env.action_space.sample())
        workspace = env.episode.workspace
        if not isinstance(workspace, SandboxWorkspace):
            return
        watched = _WatchedSession(workspace)
        env.episode.workspace = replace(workspace, session=watched, recycle=False)
        end()
        require(watched.found == [True], "a session is closed once, while its sandbox is open")


def _check_info(env: InterCodeEnv, info: dict[str, Any]) -> None:
    for key in info:
        require(
            key not in _FORBIDDEN_INFO_KEYS, f"info has the key {key!r}, which agents must not see"
        )
    try:
        text = json.dumps(info)
    except TypeError as e:
        raise AssertionError(f"info cannot be written as JSON: {e}") from e
    for gold in env.task.golds:
        inside = len(gold) > len("ls -l") and json.dumps(gold)[1:-1] in text
        require(not inside, f"info holds the gold of {env.task.id}")
