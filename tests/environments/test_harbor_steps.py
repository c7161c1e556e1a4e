"""Harbor's tasks with several steps, in one episode."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from intercode.agents.baselines import GoldAgent
from intercode.core.errors import DataError, TaskSetupError
from intercode.evaluation.check.dataset import check
from intercode.evaluation.rollout import rollout
from intercode.integrations.harbor.env import HarborEnv
from intercode.integrations.harbor.preparation import run_health_check
from intercode.integrations.harbor.tasks.steps import (
    HealthCheck,
    StepConfig,
    combine_rewards,
    is_passed,
)
from intercode_sandbox.contract import BaseSandbox
from support.fake_clock import FakeClock
from support.harbor import STEPS_TOML, write_steps_task

pytestmark = pytest.mark.sandbox


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HarborEnv]:
    folder = write_steps_task(tmp_path_factory.mktemp("harbor") / "words")
    with HarborEnv(f"harbor:{folder}") as opened:
        yield opened


def test_a_step_follows_each_submission(env: HarborEnv) -> None:
    query, info = env.reset()
    assert info["task"] == "words" and query == "Write first." and "3 steps" in env.brief.notes
    shown, *_ = env.step("cat given.txt; echo first > out.txt; cat set-up.txt")
    assert shown.startswith("given\n") and "set-up.txt" in shown
    assert env.score().value == pytest.approx(1 / 3)
    shown, reward, terminated, _, _ = env.step("submit")
    assert (shown, reward, terminated) == ("Write second.", 0.0, False)
    shown, *_ = env.step("cat set-up.txt out.txt; ls -A; ls /tests; echo other > out.txt")
    assert shown.startswith("/app -two\nfirst\n") and "tests-were-here" not in shown
    assert "'/tests': No such file" in shown
    assert env.step("submit")[0] == "Write third."  # without a min_reward
    env.step("echo third > out.txt")
    _, reward, terminated, _, info = env.step("submit")
    assert (reward, terminated) == (pytest.approx(2 / 3), True)
    assert info["parts"] == {"reward": pytest.approx(2 / 3)}
    assert env.score().details["steps"] == {
        "one": {"reward": 1.0},
        "two": {"reward": 0.0},
        "three": {"reward": 1.0},
    }


def test_a_step_that_misses_its_minimum_ends_the_task(env: HarborEnv) -> None:
    env.reset()
    shown, reward, terminated, *_ = env.step("submit")
    assert (reward, terminated) == (0.0, True) and "Write" not in shown


def test_the_gold_plays_every_step_and_a_snapshot_holds_them(
    env: HarborEnv, tmp_path: Path
) -> None:
    golds = {task.id: task.solution_actions for task in env.dataset.tasks}
    played = rollout(GoldAgent(golds=golds), env, 0)
    assert played.success and [s.action for s in played.steps].count("submit") == 3
    env.reset()
    env.step("echo first > out.txt")
    env.step("submit")
    with env.snapshot() as snapshot:
        env.save_snapshot(snapshot, tmp_path / "saved")
    env.step("echo second > out.txt")
    (other,) = env.fork()
    with other:
        assert other.step("submit")[0] == "Write third."
        assert other.score().value == pytest.approx(2 / 3)
    env.restore(env.load_snapshot(tmp_path / "saved"))
    assert env.score().value == pytest.approx(1 / 3)
    assert env.step("submit")[0] == "Write third."


@pytest.mark.slow
def test_check_plays_every_step(env: HarborEnv) -> None:
    assert check(env.dataset).faults == ()


def test_a_step_that_cannot_begin(tmp_path: Path) -> None:
    first = {"steps__one__workdir__setup.sh": "echo no such service; exit 3\n"}
    folder = write_steps_task(tmp_path / "first", **first)
    with (
        HarborEnv(f"harbor:{folder}") as env,
        pytest.raises(TaskSetupError, match=r"step 'one' ended with 3: 'no such service'"),
    ):
        env.reset()
    folder = write_steps_task(tmp_path / "second", **{"steps__two__workdir__setup.sh": "exit 3\n"})
    with HarborEnv(f"harbor:{folder}") as env:
        env.reset()
        env.step("echo first > out.txt")
        shown, reward, terminated, *_ = env.step("submit")
        assert (reward, terminated) == (pytest.approx(1 / 3), True)
        assert "setup.sh of step 'two' ended with 3" in shown


def test_a_health_check_waits_between_its_runs() -> None:
    clock = FakeClock()
    check = HealthCheck(
        "echo x >> /tmp/runs; exit 3", interval=7, start_period=60, start_interval=25, retries=2
    )
    with (
        BaseSandbox.open("host") as sandbox,
        pytest.raises(TaskSetupError, match="failed 2 times in a row and ended with 3"),
    ):
        try:
            run_health_check(sandbox, check, "/", clock=clock)
        finally:
            assert sandbox.read("/tmp/runs", 100) == b"x\n" * 5
    assert clock.slept == [25, 25, 25, 7]


def test_health_checks(tmp_path: Path) -> None:
    """The first waits for a file that a process of the set-up writes; that of step two fails."""
    toml = STEPS_TOML.replace(
        '"one"',
        """"one"
healthcheck = { command = "test -e ready", start_period_sec = 60, start_interval_sec = 0.05 }""",
    )
    toml = toml.replace(
        '"two"',
        """"two"
healthcheck = { command = "echo x >> runs; exit 7", interval_sec = 0, retries = 2 }""",
    )
    folder = write_steps_task(
        tmp_path / "t",
        **{
            "task.toml": toml + "[environment.healthcheck]\ncommand = 'touch before'\n",
            "steps__one__workdir__setup.sh": (
                "ls before || exit\n(sleep 0.3; >ready) > log 2>&1 &\n"
            ),
        },
    )
    with HarborEnv(f"harbor:{folder}") as env:
        env.reset()
        assert env.step("ls ready; echo first > out.txt")[0] == "ready\n"
        shown, _, terminated, *_ = env.step("submit")
        assert terminated and "exit 7' failed 2 times in a row and ended with 7" in shown
        assert env.scored_sandbox.read("/app/runs", 10) == b"x\nx\n"
    toml = "[environment.healthcheck]\ncommand = 'exit 5'\nretries = 1\n"
    bad = write_steps_task(tmp_path / "bad", **{"task.toml": toml + STEPS_TOML})
    with HarborEnv(f"harbor:{bad}") as env, pytest.raises(TaskSetupError, match="'exit 5' failed"):
        env.reset()


def test_rewards_are_combined_as_in_harbor() -> None:
    steps = [StepConfig("a", {"reward": 0.5}), StepConfig("b", {"style": 1}), StepConfig("c")]
    for strategy, rewards, combined in (
        ("mean", [{"reward": 0.25}], {"reward": 0.25}),  # Harbor ends the task here
        ("mean", [{"reward": 0.6}], {"reward": 0.2}),
        (
            "mean",
            [{"reward": 0.6}, {"style": 1.0}, {"reward": 0.9}],
            {"reward": 0.5, "style": pytest.approx(1 / 3)},
        ),
        ("mean", [{"reward": 0.6}, {}], {"reward": 0.2}),
        ("final", [{"reward": 0.6}], {"reward": 0.0}),
        ("final", [{"reward": 0.25}], {"reward": 0.25}),
        ("final", [{"reward": 0.6}, {"style": 1.0}, {"reward": 0.9}], {"reward": 0.9}),
    ):
        assert combine_rewards(steps, strategy, rewards) == pytest.approx(combined)
    assert is_passed(steps[0], {"reward": 0.5}) and not is_passed(steps[1], {"reward": 1.0})
    assert is_passed(steps[2], {"x": 0.0}) and not is_passed(steps[2], {})


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"task.toml": STEPS_TOML.replace("two", "One")}, "several steps have the name 'one'"),
        ({"task.toml": STEPS_TOML.replace("two", "../x")}, "not the name of a directory"),
        (
            {"task.toml": "multi_step_reward_strategy = 'best'\n"},
            "must be one of mean, final, not 'best'",
        ),
        (
            {"task.toml": STEPS_TOML.replace("1.0", "'all'")},
            r"steps\[0\]\.min_reward' must be a number or an object, not 'all'",
        ),
        ({"steps__two__instruction.md": ""}, r"steps/two/instruction\.md"),
        (
            {"task.toml": STEPS_TOML + "healthcheck = {}"},
            r"'steps\[2\]\.healthcheck' has no 'command'",
        ),
        (
            {"task.toml": STEPS_TOML + "healthcheck = { command = 'x', retries = 0.5 }"},
            "retries' must be a whole number from 0 to 1000, not 0.5",
        ),
        ({"tests__test.sh": ""}, r"steps/one has no tests/test\.sh"),
    ],
)
def test_broken_steps_are_errors(tmp_path: Path, files: dict[str, str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        HarborEnv(f"harbor:{write_steps_task(tmp_path / 't', **files)}")
