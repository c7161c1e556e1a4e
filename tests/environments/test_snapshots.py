"""Snapshots of episodes: restore and fork."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

import intercode
from intercode.core.errors import EnvironmentStateError, UsageError
from intercode.core.types import Dataset, Task
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.sandboxed_env import SandboxedEnv
from intercode_sandbox.supervisor.supervised_sandbox import SupervisedSandbox
from support import traces
from support.sandboxes import SLEEPS, end_waiting, eventually, our_sandboxes

pytestmark = pytest.mark.sandbox
MINE = Dataset("mine", "bash", (Task("mine/0", "Write 5 to /five", gold="echo 5 > /five"),))


@pytest.fixture(params=["standard", pytest.param("original", marks=pytest.mark.paper)])
def env(request: pytest.FixtureRequest) -> Iterator[InterCodeEnv]:
    if request.param == "original" and not shutil.which("git"):
        pytest.skip("the original profile needs git in the image; here the machine's own")
    with intercode.make("bash", dataset=MINE, profile=request.param, max_turns=50) as one:
        one.reset(seed=3)
        yield one


def out(env: InterCodeEnv, action: str) -> str:
    return env.step(action)[0]


def test_restore_undoes_files_and_directory(env: InterCodeEnv) -> None:
    env.step("mkdir -p /tmp/a; echo 1 > /tmp/a/f; ln -s f /tmp/a/l; rm -rf /home; cd /usr")
    env.step("cd /usr")
    with env.snapshot() as snapshot:
        changed = env.step("true")[4]["changes"]
        env.step("rm -rf /tmp/a; echo 2 > /srv/x; cd /")
        env.restore(snapshot)
        assert env.step("true")[4]["changes"] == changed
        assert out(env, "pwd; cat /tmp/a/l") == "/usr\n1\n"
        env.step("echo 3 > /tmp/a/f")
        env.restore(snapshot)
        assert out(env, "cat /tmp/a/f") == "1\n"


def test_a_fork_shares_nothing_with_its_origin(env: InterCodeEnv) -> None:
    env.step("mkdir -p /tmp; echo start > /tmp/log")
    children = env.fork(3)
    try:
        for i, child in enumerate(children):
            child.step(f"echo {i} >> /tmp/log")
        assert [out(child, "cat /tmp/log") for child in children] == [
            f"start\n{i}\n" for i in range(3)
        ]
        assert out(env, "cat /tmp/log") == "start\n"
        children[1].step("echo 5 > /five; rm /tmp/log")
        rewards = [child.submit()[1] for child in children]
        assert rewards[1] == max(rewards) > rewards[0]
    finally:
        for child in children:
            child.close()


def test_turns_and_random_numbers_are_restored(env: InterCodeEnv) -> None:
    with env.snapshot() as snapshot:
        number = env.np_random.integers(1 << 30)
        for _ in range(49):
            env.step("true")
        env.restore(snapshot)
        assert env.np_random.integers(1 << 30) == number
        assert not env.step("true")[3], "one turn, not fifty, has been played"


def test_calls_in_the_wrong_state(env: InterCodeEnv) -> None:
    with pytest.raises(UsageError, match="at least 1"):
        env.fork(0)
    env.submit()
    with pytest.raises(EnvironmentStateError):
        env.snapshot()


def test_the_shell_is_restored_and_omitted_jobs_are_named() -> None:
    with intercode.make("bash", dataset=MINE) as env:
        env.reset()
        env.step("x=1; declare -A m=([k]='a b'); f() { echo \"$x ${m[k]}\"; }; set -o pipefail")
        env.step("export E=e; alias l='echo aliased'; shopt -s expand_aliases; sleep 600 &")
        env.step(SLEEPS)
        with env.snapshot() as snapshot:
            assert [name.split()[0] for name in snapshot.omitted] == ["sleep"]
            env.step("x=2; unset -f f")
            env.restore(snapshot)
        assert (
            out(env, "f; sh -c 'echo $E'; set -o | grep pipefail")
            == "1 a b\ne\npipefail       \ton\n"
        )
        assert out(env, "l; pgrep sleep || jobs") == "aliased\n"


@pytest.mark.slow
def test_a_tree_of_forks_has_independent_leaves() -> None:
    with intercode.make("bash", dataset=MINE) as root:
        root.reset()
        level = [root]
        for depth in range(3):
            children = [child for parent in level for child in parent.fork(3)]
            for i, child in enumerate(children):
                child.step(f"p=$p/{i % 3}; mkdir -p /tmp/t; touch /tmp/t/{depth}-{i}")
            if depth:
                for parent in level:
                    parent.close()
            level = children
        seen = {out(leaf, "echo $p; ls /tmp/t") for leaf in level}
        for leaf in level:
            leaf.close()
        assert len(seen) == 27


def test_nothing_outlives_a_snapshot() -> None:
    before = our_sandboxes()
    with intercode.make("bash", dataset=MINE) as env:
        env.reset()
        with env.snapshot() as snapshot:
            env.restore(snapshot)
            snapshot.close()
        assert our_sandboxes() > 0
    eventually(lambda: our_sandboxes() <= before, "no sandbox is left", 60.0)


def test_many_files_are_sealed_and_the_episode_continues(env: InterCodeEnv) -> None:
    env.step("mkdir -p /tmp/many; touch /tmp/many/{1..150}; x=kept; cd /tmp/many")
    env.step("cd /tmp/many")
    changed = env.step("true")[4]["changes"]
    with env.snapshot() as snapshot:
        assert env.step("true")[4]["changes"] == changed, "the episode itself continues"
        env.step("rm /tmp/many/1*; echo new > /tmp/many/2")
        env.restore(snapshot)
        assert env.step("true")[4]["changes"] == changed
        assert out(env, "pwd; ls | wc -l") == "/tmp/many\n150\n"
    for level in range(12):  # more than the maximum number of sealed layers
        (child,) = env.fork()
        child.step(f"echo {level} > {level}; rm {level + 100}")
        env.close()
        env = child
    left = out(env, "ls | wc -l; cat 3 11; ls 103 2>&1")
    assert left.startswith("139\n3\n11\n") and "No such file" in left
    env.close()


def _supervisor(env: InterCodeEnv) -> traces.Alive:
    """Return the process that owns those of the episode's sandbox."""
    assert isinstance(env, SandboxedEnv) and isinstance(env.sandbox, SupervisedSandbox)
    pid = env.sandbox.supervisor_pid
    return pid, traces.started(pid)


def _living(*supervisors: traces.Alive) -> list[traces.Alive]:
    end_waiting()
    return traces.living(supervisors)


def test_forks_of_many_files_are_independent_and_end() -> None:
    with intercode.make("bash", dataset=MINE) as one:
        one.reset()
        sealed = _supervisor(one)
        one.step("touch /tmp/{1..150}")
        forks = one.fork(2)
        copies = [_supervisor(fork) for fork in forks]
        assert _living(sealed, *copies) == [sealed, *copies]
        one.step("rm /tmp/1*")
        for fork in forks:
            assert out(fork, "ls /tmp | wc -l") == "150\n"
            fork.close()
        assert out(one, "ls /tmp | wc -l") == f"{150 - 62}\n"
        eventually(lambda: not _living(*copies), "the forks are gone")
        assert _living(sealed), "the episode continues on its files"
    eventually(lambda: not _living(sealed), "the sealed sandbox ends with the last one on it")
