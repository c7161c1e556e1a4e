"""The initial files of a task: written into every sandbox, and told from an agent's changes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import intercode
from intercode.core.errors import UsageError
from intercode.core.types import Dataset, Task, TreeEntry
from intercode.environments.bash.env import BashEnv

pytestmark = pytest.mark.sandbox

FILES = (
    TreeEntry("dir", "/in", 0o755, 1_700_000_000),
    TreeEntry("file", "/in/a b", 0o640, 1_700_000_000, b"text\n"),
    TreeEntry("dir", "/in/empty", 0o700, 1_700_000_000),
    TreeEntry("link", "/in/link", 0o777, 1_700_000_000, target="a b"),
    TreeEntry("file", "/new/now", 0o600, None, b"x"),
)
DATASET = Dataset("own", "bash", (Task("a", "q", "rm -r /in/empty; ls /in", initial_files=FILES),))


@pytest.fixture
def env() -> Iterator[BashEnv]:
    with intercode.make("bash", DATASET) as made:
        made.reset(options={"task": 0})
        yield made


def test_they_have_their_modes_dates_and_targets(env: BashEnv) -> None:
    found = env.step("find /in -printf '%p %m %l %Ts\\n' | sort; stat -c %a /new/now")
    dated = ("/in 755 ", "/in/a b 640 ", "/in/empty 700 ", "/in/link 777 a b")
    assert found[0].splitlines() == [f"{line} 1700000000" for line in dated] + ["600"]
    assert found[4]["changes"] == []


def test_only_what_differs_from_them_is_a_change(env: BashEnv) -> None:
    start = env.score()
    assert start.value < 1 and start.details["missed"] == ["/in/empty"]
    _, _, _, _, info = env.step("echo y > '/in/a b'; rmdir /in/empty; touch /in/more")
    assert info["changes"] == ["/in/a b", "/in/empty", "/in/more"]
    assert env.score().details["extra"] == ["/in/a b", "/in/more"]
    env.step("rm /in/more; echo text > '/in/a b'; ls /in")
    assert env.score().value == 1


def test_forks_have_them_too(env: BashEnv) -> None:
    env.step("rmdir /in/empty; ls /in")
    (fork,) = env.fork(1)
    with fork:
        assert fork.score().value == 1


@pytest.mark.paper
def test_the_original_profile_refuses_them() -> None:
    with (
        intercode.make("bash", DATASET, profile="original") as made,
        pytest.raises(UsageError, match="play it with the profile standard"),
    ):
        made.reset(options={"task": 0})


def test_a_setup_that_the_environment_does_not_run_is_refused() -> None:
    data = {"tests": ["assert f() == 1"], "entry": "f", "mode": "assert"}
    task = Task("a", "q", "def f(): return 1", setup="open('/tmp/made', 'w')", data=data)
    refused = pytest.raises(UsageError, match="a has a setup, which this environment does not run")
    with intercode.make("python", Dataset("own", "python", (task,))) as env, refused:
        env.reset(options={"task": 0})
