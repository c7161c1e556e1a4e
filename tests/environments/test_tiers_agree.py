"""Golds observe and earn the same on the tiers ``chroot`` and ``namespace``.

``benchmarks/compare_tiers.py`` compares recorded episodes of models.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

import intercode
from intercode import datasets
from intercode.agents import open_agent
from intercode.core.errors import InterCodeError
from intercode.core.types import Trajectory
from intercode.environments.base.env import InterCodeEnv
from intercode.evaluation.rollout import rollout
from intercode_sandbox import SandboxSpec, images, open_sandbox
from support.sandboxes import open_test_sandbox

pytestmark = [pytest.mark.sandbox, pytest.mark.namespace_only("compares two tiers of its own")]
EVERY = {"bash": 7, "python": 9, "ctf": 5, "code": 8}
"""Of how many tasks of an environment one is played."""


@pytest.fixture
def tiers() -> tuple[str, str]:
    """The tiers to compare. Skips the test on a machine that lacks one of them."""
    open_test_sandbox().close()
    try:
        open_sandbox(SandboxSpec(images.resolve("host")), "chroot").close()
    except InterCodeError as e:
        pytest.skip(f"no tier chroot on this machine: {e}")
    return "namespace", "chroot"


@pytest.mark.slow
@pytest.mark.parametrize("environment", EVERY)
def test_golds_of_the_starter_suites_do_the_same(environment: str, tiers: tuple[str, str]) -> None:
    tasks = datasets.load(f"starter:{environment}").tasks
    tasks = [t for t in tasks if t.group != "java"][:: EVERY[environment]]  # its compiler is slow
    with ExitStack() as opened:
        envs = [opened.enter_context(_env(environment, tier)) for tier in tiers]
        for task in tasks:
            one, other = (_play(env, task.id) for env in envs)
            assert list(_seen(one)) == list(_seen(other)), task.id
            assert one.success and other.success, task.id


def _env(environment: str, tier: str) -> InterCodeEnv:
    return intercode.make(environment, dataset=f"starter:{environment}", backend=tier)


def _play(env: InterCodeEnv, task: str) -> Trajectory:
    golds = {t.id: (t.solution,) for t in env.dataset.tasks if t.solution is not None}
    return rollout(open_agent("gold", golds=golds), env, task, seed=7)


def _seen(episode: Trajectory) -> Iterator[tuple[str, str, float | None]]:
    """Yield what an agent sees of each step."""
    for step in episode.steps:
        yield step.action, step.observation, step.score_value
