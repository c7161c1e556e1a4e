"""The contract of environments: what a new one implements, and who fulfils it."""

from __future__ import annotations

import inspect

import pytest

from intercode.environments.base.contract import BranchingEnvironment
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.profiles import SandboxProfile
from intercode.environments.base.sandboxed_env import SandboxedEnv
from intercode.evaluation.ray.remote_env import NodeEnv


@pytest.mark.parametrize("base", [InterCodeEnv, SandboxProfile])
def test_a_new_environment_implements_at_most_five_methods(base: type) -> None:
    assert 0 < len(_abstract_methods(base)) <= 5


def test_an_environment_with_a_sandbox_asks_its_profile() -> None:
    assert _abstract_methods(SandboxedEnv) == set()


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
