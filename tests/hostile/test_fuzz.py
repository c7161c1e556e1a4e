"""A small run of the fuzzer; ``make soak`` has the long one."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from hostile import fuzz
from support import backend
from support.sandboxes import open_test_sandbox

pytestmark = pytest.mark.sandbox
SEEDS = fuzz.corpus()
ACTIONS: dict[str, Callable[[random.Random], str]] = {
    "random": fuzz.random_bytes,
    "mutated": lambda rng: fuzz.mutated(rng, SEEDS),
}


@pytest.fixture
def run() -> Iterator[fuzz.Fuzz]:
    open_test_sandbox().close()  # skips the test if there is no sandbox
    opened = fuzz.Fuzz(20_240, backend.chosen())
    yield opened
    opened.close()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ACTIONS)
def test_200_actions(run: fuzz.Fuzz, kind: str) -> None:
    rng = random.Random(4)
    run.run([ACTIONS[kind](rng) for _ in range(200)])
    assert not run.faults, "\n".join(run.faults)
    assert run.counts["actions"] == 200 and run.counts["statuses checked"] > 0
    assert run.counts["states checked"] > 0


def test_a_false_status_would_be_noticed(run: fuzz.Fuzz) -> None:
    """The check detects a shell whose statuses are not what its commands ask for."""
    false = 'builtin() { [ "$1" != exit ] || set -- exit 0; command builtin "$@"; }'
    run.subjects[:] = run.subjects[:1]
    assert run.subjects[0].session.run(false, 60).exit_code == 0
    run.check_seconds = 60
    run.run(["echo 250"] * 3)
    assert any("the status 0" in fault for fault in run.faults), run.faults
