"""The contract of environments: what a new one implements, and who fulfils it."""

from __future__ import annotations

import inspect
from functools import cached_property

import pytest

from intercode.core import ActionLanguage, EnvironmentDescription, ExecResult, Score, State, Task
from intercode.core.errors import UsageError
from intercode.core.types import Dataset
from intercode.environments import ENVIRONMENTS, check_env
from intercode.environments.base.contract import BranchingEnvironment
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.episode import Episode
from intercode.environments.base.profiles import Profile
from intercode.environments.base.sandboxed_env import SandboxedEnv
from intercode.environments.ray.node_env import NodeEnv

NUMBERS = Dataset("numbers", "stack", (Task("numbers/1", "Count to two.", "1 2"),))


class Stack:
    """The words of all actions."""

    cwd = ""

    def __init__(self) -> None:
        self.words: list[str] = []

    def run(self, action: str, timeout: float) -> ExecResult:
        self.words += action.split()
        return ExecResult(" ".join(self.words), 0)

    def changed_paths(self) -> list[str]:
        return []

    def state_hash(self) -> str:
        return " ".join(self.words)

    def abort(self) -> None:
        pass

    def close(self) -> None:
        pass


class BareEnv(InterCodeEnv):
    """Opens workspaces."""

    name = "stack"
    description = EnvironmentDescription(
        ActionLanguage("words"), judged="The words are judged.", reward=f"{__name__}:same"
    )

    def open_workspace(self) -> Stack:
        return Stack()


class StackProfile(Profile):
    """Compares words."""

    def open_session(self, sandbox: object, task: Task, state: object) -> None:
        pass

    def agent_state(self, episode: Episode, last: ExecResult | None, answer: str | None) -> State:
        return State(last.output if last else "")

    def gold_states(self, episode: Episode) -> list[State]:
        return [State(str(gold)) for gold in episode.task.golds]


class StackEnv(BareEnv):
    """Keeps words."""

    standard_profile = StackProfile


def same(_task: Task, agent: State, gold: State) -> Score:
    return Score(float(agent.output == gold.output))


def test_an_environment_asks_its_profile_and_opens_workspaces() -> None:
    assert _abstract_methods(InterCodeEnv) == {"open_workspace"}
    assert _abstract_methods(SandboxedEnv) == set()
    assert _abstract_methods(Profile) == {"open_session", "agent_state", "gold_states"}


def test_no_environment_overrides_a_hidden_method() -> None:
    hidden = {
        (kind.__name__, name)
        for entry in ENVIRONMENTS
        for kind in ENVIRONMENTS.load(entry).__mro__
        for name, value in vars(kind).items()
        if name.startswith("_") and not name.startswith("__") and name != "_abc_impl"
        if callable(value) or isinstance(value, property | cached_property)
        if any(name in vars(base) for base in kind.__mro__[1:])
    }
    assert hidden == set()


def test_without_a_sandbox_a_profile_and_one_method_are_enough() -> None:
    check_env(StackEnv(NUMBERS))
    with StackEnv(NUMBERS) as env:
        env.reset(options={"task": 0})
        env.step("1")
        (fork,) = env.fork()
        with env.snapshot() as snapshot, fork:
            assert [fork.step("2")[0], env.step("3")[0]] == ["1 2", "1 3"]
            assert [fork.submit()[1], env.submit()[1]] == [1.0, 0.0]
            env.restore(snapshot)
            assert (env.step("2")[0], env.submit()[1]) == ("1 2", 1.0)


def test_an_environment_without_a_whole_profile_is_refused() -> None:
    class Half(Profile):
        def open_session(self, sandbox: object, task: Task, state: object) -> None:
            pass

    with pytest.raises(UsageError, match="BareEnv has no standard_profile"):
        BareEnv(NUMBERS)
    with pytest.raises(UsageError, match="Half lacks agent_state, gold_states"):
        type("HalfEnv", (BareEnv,), {"standard_profile": Half})(NUMBERS)


def _abstract_methods(base: type) -> set[str]:
    return {n for n, m in inspect.getmembers(base) if getattr(m, "__isabstractmethod__", False)}


@pytest.mark.parametrize("environment", [InterCodeEnv, NodeEnv])
def test_local_and_remote_environments_have_every_method(environment: type) -> None:
    methods = {
        name
        for protocol in BranchingEnvironment.__mro__
        for name, value in vars(protocol).items()
        if callable(value) and not name.startswith("_")
    }
    assert {"execute", "finish", "snapshot", "score"} <= methods
    for name in methods:
        expected = inspect.signature(getattr(BranchingEnvironment, name)).parameters
        given = inspect.signature(getattr(environment, name)).parameters
        assert list(given)[: len(expected)] == list(expected), name


def test_an_environment_has_at_most_four_methods_to_implement() -> None:
    required = {
        name
        for base in (InterCodeEnv, Profile)
        for name in dir(base)
        if getattr(getattr(base, name, None), "__isabstractmethod__", False)
    }
    assert required == {"open_workspace", "open_session", "agent_state", "gold_states"}
