"""Prewarmed workspaces: used, expected, and limited in number per process."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import pytest

import intercode
from intercode.core.types import Dataset, Task
from intercode.environments.base import workspaces
from intercode.environments.base.workspaces import Prewarmer, SandboxWorkspace
from intercode.sessions.bash.persistent import BashSession
from support import traces
from support.sandboxes import eventually, open_test_sandbox

pytestmark = pytest.mark.sandbox


class WorkspaceFactory:
    """Creates real workspaces and remembers them."""

    def __init__(self) -> None:
        self.made: list[SandboxWorkspace] = []
        self._lock = threading.Lock()

    def make(self) -> SandboxWorkspace:
        sandbox = open_test_sandbox()
        workspace = SandboxWorkspace(sandbox, BashSession(sandbox))
        with self._lock:
            self.made.append(workspace)
        return workspace


@pytest.fixture
def factory() -> Iterator[WorkspaceFactory]:
    factory = WorkspaceFactory()
    open_test_sandbox().close()  # skips the test if there is no sandbox
    yield factory
    for workspace in factory.made:
        workspace.close()


def test_a_workspace_for_the_same_key_is_used(factory: WorkspaceFactory) -> None:
    prewarmer = Prewarmer()
    prewarmer.prepare("a", factory.make)
    prewarmer.prepare("a", factory.make)
    assert prewarmer._prewarmed is not None
    workspace = prewarmer._prewarmed.result()  # one that has not begun is cancelled
    assert prewarmer.take_prewarmed("a") is workspace
    assert factory.made == [workspace]
    assert workspace.session.run("echo on", 60).output == "on\n"
    prewarmer.close()


def test_no_workspace_is_prewarmed_above_the_limit(
    factory: WorkspaceFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = list(workspaces._process_pool().waiting)  # kept, so that their number stays
    monkeypatch.setattr(workspaces, "_MAX_WAITING", len(earlier) + 2)
    prewarmers = [Prewarmer() for _ in range(4)]
    for _ in range(2):  # in turns: the first two find theirs again
        for prewarmer in prewarmers:
            prewarmer.prepare("a", factory.make)
        waiting = [prewarmer for prewarmer in prewarmers if prewarmer._prewarmed is not None]
        assert waiting == prewarmers[:2]
        for prewarmer in prewarmers:  # the others create a workspace on demand
            workspace = prewarmer.take_prewarmed("a") or factory.make()
            assert workspace.session.run("echo on", 60).output == "on\n"
    assert len(factory.made) == 8
    assert not set(prewarmers) & set(workspaces._process_pool().waiting)


def test_no_workspace_is_prewarmed_for_a_key_that_is_not_expected_again(
    factory: WorkspaceFactory,
) -> None:
    prewarmer = Prewarmer()
    expected = []
    for key in "aabbccdef":
        prewarmer.acquire(key, factory.make).close()
        expected.append(prewarmer._prewarmed is not None)
    prewarmer.close()
    # the second of each pair, until keys no longer come in pairs
    assert expected == [True, False, True, False, True, False, True, False, False]


def test_tasks_with_different_setups_share_a_prewarmed_workspace() -> None:
    tasks = tuple(Task(f"d/{i}", "q", "true", setup=f"variable={i}") for i in range(2))
    with intercode.make("bash", dataset=Dataset("d", "bash", tasks)) as env:
        env.reset(options={"task": 0})
        prewarmed = env._workspaces.prewarmer._prewarmed.result()
        env.reset(options={"task": 1})
        assert env.episode.workspace is prewarmed
        assert env.step("echo $variable")[0] == "1\n"


def test_a_dropped_environment_leaves_no_prewarmed_sandbox() -> None:
    env = intercode.make("bash")
    env.reset()  # takes a workspace, and prewarms the next one
    prewarmed = env._workspaces.prewarmer._prewarmed
    pid = prewarmed.result().sandbox.supervisor_pid
    assert traces.started(pid)
    del env, prewarmed
    gc.collect()
    eventually(lambda: not traces.started(pid), "the prewarmed sandbox has ended")


@pytest.mark.namespace_only("containers are not recycled")
def test_golds_run_in_a_recycled_sandbox_and_agents_in_new_ones() -> None:
    task = Task("d/0", "q", "echo 1 > /tmp/f; sleep 99 & cat /tmp/f", setup="ls /tmp; ls /proc")
    with intercode.make("bash", dataset=Dataset("d", "bash", (task,)), use_gold_cache=False) as env:
        agents, golds = set(), list[SandboxWorkspace]()
        for _ in range(3):
            env.reset()
            agents.add(env.sandbox.supervisor_pid)
            assert env.step("ls /tmp; echo 1 > /tmp/f; cat /tmp/f; ps -e | wc -l")[0] != ""
            env.step(task.gold)
            assert env.score().value == 1
            golds.append(env._workspaces.gold_prewarmer._prewarmed.result())
            assert not golds[-1].sandbox.changes() and not golds[-1].sandbox.processes()
        pids = {gold.sandbox.supervisor_pid for gold in golds}
        assert len(agents) == 3 and len(pids) == 1 and not agents & pids
        env.reset()  # an unused workspace of golds is closed with the environment
    eventually(lambda: golds[-1].sandbox.is_lost, "the sandbox of the golds has ended")
