"""After any sequence of changes, restoring a snapshot gives the same state by hash.

benchmarks/soak_snapshots.py tries more sequences.
"""

from __future__ import annotations

import pytest

from intercode.core.types import Dataset, Task
from intercode.environments.bash.env import BashEnv
from support import backend
from support.changing import goes_back, state_of

pytestmark = pytest.mark.sandbox
TASKS = Dataset("any", "bash", (Task("any/0", "Do anything.", gold="true"),))


@pytest.mark.slow
@pytest.mark.parametrize("session", ["persistent", "fresh-carried"])
def test_restore_undoes_any_sequence_of_changes(session: str) -> None:
    count = backend.some({"persistent": 40, "fresh-carried": 20}[session])
    with BashEnv(TASKS, session=session, hashes=True, timeout=0.3) as env:  # type: ignore[arg-type]
        for seed in range(count):
            if seed % 10 == 0:
                env.reset()
            goes_back(env, seed)


@pytest.mark.parametrize(
    "action",
    [
        "x=1",
        "cd /usr",
        "f() { :; }",
        "shopt -s nullglob",
        "echo > /tmp/x",
        "alias a=b",
        "umask 077",
    ],
)
def test_the_state_hash_covers_the_change(action: str) -> None:
    with BashEnv(TASKS, hashes=True) as env:
        env.reset()
        before = state_of(env)
        env.step("true")
        assert state_of(env) == before
        env.step(action)
        assert state_of(env) != before
