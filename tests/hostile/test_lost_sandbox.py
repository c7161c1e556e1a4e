"""An agent cannot withdraw its episode from the results by ending its own sandbox."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
from pathlib import Path

import pytest

import intercode
from intercode.core import trajectories
from intercode.core.config import EvalConfig
from intercode.core.errors import SandboxKilledError, SandboxLostError
from intercode.evaluation.evaluate.run import evaluate
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.supervisor.process_table import list_descendants
from intercode_sandbox.supervisor.watchdog import Watchdog
from support import backend
from support.sandboxes import open_test_sandbox

pytestmark = pytest.mark.sandbox

PROFILES = ("standard", pytest.param("original", marks=pytest.mark.paper))


def kill_init(sandbox: BaseSandbox) -> None:
    """End PID 1, as the kernel does if the sandbox's memory runs out."""
    kill_init_of(sandbox.supervisor_pid)  # type: ignore[attr-defined]


def kill_init_of(supervisor_pid: int) -> None:
    ended = os.pidfd_open(supervisor_pid)
    for process in list_descendants(supervisor_pid):
        if process.inner_pid == 1:
            os.kill(process.pid, signal.SIGKILL)
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    assert poll.poll(20_000), "the supervisor did not end after PID 1"
    os.close(ended)


def kill_supervisor(sandbox: BaseSandbox) -> None:
    """End the supervisor, as only something outside the sandbox can."""
    os.kill(sandbox.supervisor_pid, signal.SIGKILL)  # type: ignore[attr-defined]


@pytest.mark.parametrize("profile", PROFILES)
def test_pid_1_is_sealed(profile: str) -> None:
    with intercode.make("bash", dataset="starter", profile=profile) as env:
        env.reset(seed=0, options={"task": 0})
        files = (
            "oom_score_adj oom_adj coredump_filter autogroup clear_refs comm sched timerslack_ns"
        )
        env.step(
            f"for f in {files} task/1/oom_score_adj; do echo 1 > /proc/1/$f && echo wrote-$f; done"
        )
        assert "wrote" not in env.episode.last_observation
        env.step("cat /proc/1/oom_score_adj /proc/self/oom_score_adj")
        assert env.episode.last_observation == "0\n500\n"
        env.step("for n in HUP INT TERM KILL STOP SEGV USR1 XCPU; do kill -$n 1; done")
        env.step("echo on")
        assert env.episode.last_observation == "on\n"


@pytest.mark.namespace_only("containers have the standard profile's PID 1")
@pytest.mark.parametrize("profile", PROFILES)
def test_pid_1_executes_nothing_of_the_sandbox(profile: str) -> None:
    """PID 1 of a restored sandbox once ran the agent's ~/.bashrc with every capability."""
    with intercode.make("bash", dataset="starter", profile=profile) as env:
        env.reset(seed=0, options={"task": 0})
        files = "/root/.bashrc /root/.profile /root/.bash_profile /etc/bash.bashrc"
        env.step(f"echo touch /tmp/executed | tee {files}")
        with env.snapshot() as snapshot:
            env.restore(snapshot)
        env.step("grep Cap /proc/1/status; sleep 0.5; ls /tmp")
        assert "executed" not in env.episode.last_observation
        words = dict(
            line.split(":\t") for line in env.episode.last_observation.splitlines() if ":\t" in line
        )
        reset_pids = f"{1 << 40:016x}"  # CAP_CHECKPOINT_RESTORE, in this sandbox only
        assert words["CapBnd"] == words["CapInh"] == words["CapAmb"] == "0" * 16
        assert words["CapEff"] == words["CapPrm"] == reset_pids


@pytest.mark.namespace_only("PID 1 of a container is its supervisor")
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("mode", ["final", "per-turn", "delta"])
def test_an_ended_sandbox_is_a_failed_episode(profile: str, mode: str) -> None:
    with intercode.make("bash", dataset="starter", profile=profile, reward_mode=mode) as env:
        env.reset(seed=0, options={"task": 0})
        rewards = [env.step("echo a")[1]]
        kill_init(env.sandbox)
        observation, reward, terminated, truncated, info = env.step("echo b")
        rewards.append(reward)
        assert terminated and not truncated and info["sandbox_lost"] and info["score"] == 0.0
        assert "signal 9 ended PID 1" in observation and env.score().value == 0.0
        assert mode == "per-turn" or sum(rewards) == pytest.approx(0.0)
        env.reset(seed=0, options={"task": 0})
        assert env.step("echo on")[0] == "on\n" and "sandbox_lost" not in env.step("true")[4]


@pytest.mark.namespace_only("PID 1 of a container is its supervisor")
@pytest.mark.parametrize("name", ["python", "code", "ctf"])
def test_it_is_a_failed_episode_of_every_environment(name: str) -> None:
    with intercode.make(name, dataset="starter") as env:
        env.reset(seed=0, options={"task": 0})
        env.step("1")
        kill_init(env.sandbox)
        _, reward, terminated, _, info = env.step("1")
        assert (reward, terminated, info["sandbox_lost"]) == (0.0, True, True)


@pytest.mark.namespace_only("control groups of version 1 or 2")
def test_a_supervisor_that_was_killed_for_memory_is_the_doing_of_the_sandbox() -> None:
    """The kernel counts in the sandbox's group, and the launcher sees how the supervisor ended."""
    with open_test_sandbox() as sandbox:
        if sandbox.tier != "namespace/1":
            pytest.skip("needs control groups")
        Watchdog.unwatch(sandbox._watch)  # type: ignore[attr-defined]  # the kernel is to kill it
        killed = sandbox.run(["python3", "-c", "bytearray(3 << 30)"], timeout=30)
        assert killed.exit_code == -9
        kill_supervisor(sandbox)
        with pytest.raises(SandboxKilledError, match="memory limit"):
            for _ in range(100):
                sandbox.run(["true"])


@pytest.mark.namespace_only("PID 1 of a container is its supervisor")
def test_a_sandbox_that_ends_before_the_submission_scores_0() -> None:
    with intercode.make("bash", dataset="starter") as env:
        env.reset(seed=0, options={"task": 0})
        env.step(env.task.golds[0])
        kill_init(env.sandbox)
        _, reward, terminated, _, info = env.submit()
        assert (reward, terminated, info["sandbox_lost"]) == (0.0, True, True)


def test_a_supervisor_that_is_killed_from_outside_is_a_failure_of_the_machine() -> None:
    with intercode.make("bash", dataset="starter", backend=backend.chosen()) as env:
        env.reset(seed=0, options={"task": 0})
        env.step("echo a")
        kill_supervisor(env.sandbox)
        with pytest.raises(SandboxLostError) as caught:
            env.step("echo b")
        assert not isinstance(caught.value, SandboxKilledError)


@pytest.mark.namespace_only("the supervisor of a container may use the container's memory")
def test_a_crash_of_the_supervisor_is_the_doing_of_the_sandbox() -> None:
    """What a supervisor reads comes from the sandbox."""
    with open_test_sandbox() as sandbox:
        sandbox.run(["bash", "-c", "touch /tmp/{1..20000}"])
        pid = sandbox.supervisor_pid  # type: ignore[attr-defined]
        size = int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        command = ["prlimit", f"--pid={pid}", f"--as={size + (1 << 17)}"]
        user = sandbox.user_id if os.geteuid() == 0 else None  # type: ignore[attr-defined]
        subprocess.run(command, user=user, check=True)
        for _ in range(2):  # every later call says the same
            with pytest.raises(SandboxKilledError, match="the supervisor crashed"):
                sandbox.changes()


@pytest.mark.namespace_only("PID 1 of a container is its supervisor")
def test_an_agent_that_ends_sandboxes_has_no_better_success_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It once had 100 %, because the episodes that it could not solve became errors."""
    open_test_sandbox().close()  # skips the test if there is no sandbox
    (tmp_path / "attacker.py").write_text(_ATTACKER)
    monkeypatch.syspath_prepend(str(tmp_path))
    rows = [{"query": f"print {n}", "gold": f"echo {n}"} for n in range(4)]
    file = tmp_path / "numbers.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = EvalConfig(str(file), "attacker:Attacker", out=tmp_path / "run")
    evaluate(config, quiet=True)
    found = list(trajectories.read_trajectories(tmp_path / "run" / trajectories.TRAJECTORIES_FILE))
    ends = [t.end for t in sorted(found, key=lambda t: t.index)]
    assert ends == ["submitted", "sandbox_lost"] * 2
    assert [t.success for t in sorted(found, key=lambda t: t.index)] == [True, False] * 2
    assert all(t.error is None for t in found)


_ATTACKER = """
from hostile.test_lost_sandbox import kill_init_of, list_descendants
from intercode.agents.base import Agent
from intercode.core.types import AgentOutput
from support import traces
import os

class Attacker(Agent):
    name, wants_score, max_turns = "attacker", False, 4

    def start(self, brief):
        self.turn, self.number = 0, int(brief.query.split()[1])

    def act(self, feedback):
        self.turn += 1
        if self.turn > 1 and self.number % 2:  # ends every sandbox with a shell
            for supervisor, _ in traces.family(os.getpid()).supervisors:
                if any(p.name == "bash" for p in list_descendants(supervisor)):
                    kill_init_of(supervisor)
        return AgentOutput("submit" if self.turn > 2 else f"echo {self.number}")
"""
