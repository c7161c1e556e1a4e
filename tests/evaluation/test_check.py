"""`check` finds each kind of fault, and reports none in sound tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest

from intercode import datasets
from intercode.cli import main
from intercode.core.errors import SandboxLostError, UsageError
from intercode.core.types import Dataset, Score, State, Step, Task
from intercode.environments import ENVIRONMENTS
from intercode.environments.bash.env import BashEnv
from intercode.evaluation.check.dataset import TaskCheck, check, compare_with_baseline
from intercode.evaluation.check.findings import FAULT_KINDS, CheckReport, findings_in_output
from intercode.evaluation.check.task_runs import TaskRun
from support.fake_clock import FakeClock

pytestmark = pytest.mark.sandbox


def made(*golds: str | None, **more: Any) -> Dataset:
    """Return a dataset on this machine's programs with a task for each gold."""
    tasks = (Task(f"t/{n}", f"query {n}", gold, **more) for n, gold in enumerate(golds))
    return Dataset("made", "bash", tuple(tasks), comparable=False)


def kinds(report: CheckReport, task: str = "t/0") -> set[str]:
    return {f.kind for f in report.faults if f.task == task}


def test_sound_tasks_have_no_fault() -> None:
    report = check(made("echo a", "echo b > /tmp/b", also=("printf 'a\\n'",)))
    assert report.sound and report.unsound == () and report.counts() == {}
    assert report.tasks == 2 and set(report.fingerprints) == {"t/0", "t/1"}
    assert report.metadata["reward"] == "bash-standard" and report.metadata["image"] == "host"
    assert compare_with_baseline(report, report.fingerprints, "then").sound
    changed = compare_with_baseline(report, {"t/1": "0" * 16, "t/9": "1"}, "then")
    assert [(f.task, f.kind) for f in changed.faults] == [("t/1", "volatile")]


@pytest.mark.parametrize(
    ("gold", "expected"),
    [
        ("echo out; exit 3", {"fails"}),
        ("no-such-program-here", {"fails", "missing-program"}),
        ("cat /no/such/file; echo done", {"missing-file"}),
        ("true", {"noop-scores-1"}),
        ("od -An -N8 -tx8 /dev/urandom", {"volatile", "gold-below-1"}),
        ("od -An -N8 -tx8 /dev/urandom > /tmp/drawn", {"volatile", "gold-below-1"}),
        ("sleep 30", {"time-out"}),
        (None, {"no-gold"}),
    ],
)
def test_each_fault_of_a_gold(gold: str | None, expected: set[str]) -> None:
    report = check(made(gold), timeout=0.8 if gold == "sleep 30" else 30.0)
    assert kinds(report) == expected
    assert not report.sound and report.unsound == ("t/0",)
    assert report.counts() == dict.fromkeys(sorted(expected, key=list(FAULT_KINDS).index), 1)


def test_a_gold_with_varying_results_does_not_score_1() -> None:
    assert kinds(check(made("date +%N"))) == {"volatile", "gold-below-1"}


def test_the_second_run_of_a_gold_begins_in_another_second() -> None:
    clock = FakeClock()
    found = TaskCheck(0, Task("t/0", "q"), clock)
    found.wait_for_second_run()
    assert clock.slept == [], "there was no first run"
    found.first_run = TaskRun(clock.date() - 0.25, "", 0, False)
    found.wait_for_second_run()
    found.wait_for_second_run()
    assert clock.slept == [pytest.approx(0.85), pytest.approx(0.0)]


def test_further_golds_are_checked() -> None:
    report = check(made("echo a", also=("echo b", "date +%N", "cat /no/such; echo c")))
    assert {(f.kind, f.detail[:14]) for f in report.faults} == {
        ("also-below-1", "further gold 2"),
        ("missing-file", "further gold 3"),
    }


def test_further_golds_with_another_result_and_the_causes_of_failures_are_named() -> None:
    tasks = (
        Task("differ", "print a", "echo a", ("echo b",)),
        Task("syntax", "print b", "if then"),
        Task("probe", "print c", "echo c", probe="# facts\nexit 3\n"),
    )
    report = check(Dataset("causes", "bash", tasks))
    found = {f.task: f.detail for f in (*report.faults, *report.notes)}
    assert found["differ"].startswith("further gold 1 scores 0.") and "differ" not in report.unsound
    assert "exit status 2, after it printed: " in found["syntax"] and "if then" in found["syntax"]
    assert "ended with status 3 and printed nothing" in found["probe"]
    assert "it is the script 'exit 3 …'" in found["probe"]


def test_a_reward_that_cannot_compare_two_golds_is_no_fault() -> None:
    def reward(task: Task, agent: State, gold: State) -> Score:
        if agent.exit_code:
            raise KeyError("an agent's state has no exit status")
        return Score(float(agent.output == gold.output != ""))

    task = Task("a", "print a", "echo a", ("echo a; false",))
    report = check(Dataset("d", "bash", (task,)), env_options={"reward": reward})
    assert (report.faults, report.notes) == ((), ())


def test_exit_status_1_is_a_note() -> None:
    report = check(made("echo differs; false"))
    assert report.sound and [f.kind for f in report.notes] == ["status-1"]


def test_faults_of_the_rows() -> None:
    tasks = (
        Task("a", "print x", "echo x"),
        Task("a", "print  X", "echo X"),
        Task("b", " ", "echo x "),
    )
    report = check(Dataset("rows", "bash", tasks))
    assert kinds(report, "a") == {"duplicate-id", "duplicate-query"}
    assert kinds(report, "b") == {"empty-query", "duplicate-gold"}


def test_what_error_messages_say() -> None:
    for output, kind in (
        ("bash: line 3: xyz: command not found\n", "missing-program"),
        ("find: 'rename': No such file or directory\n", "missing-program"),
        ("ls: cannot access '/x y': No such file or directory", "missing-file"),
        ("xargs: /system: Permission denied", "not-permitted"),
        ("curl: (6) Could not resolve host: example.com", "network"),
        (";; no servers could be reached", "network"),
    ):
        assert [f.kind for f in findings_in_output("t", f"before\n{output}\nafter")] == [kind]
    assert findings_in_output("t", "a file about: No such file or directories\nfine") == []


class Flaky(BashEnv):
    """An environment whose sandbox is lost in its first ``left`` actions."""

    left: ClassVar[int] = 0

    def execute(self, action: str) -> Step:
        if Flaky.left:
            Flaky.left -= 1
            raise SandboxLostError("gone")
        return super().execute(action)


@pytest.mark.parametrize(("losses", "found"), [(1, set()), (2, {"sandbox-failed"})])
def test_a_sandbox_that_fails_is_tried_again_once(
    losses: int, found: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENVIRONMENTS._entries, "flaky", f"{__name__}:Flaky")
    monkeypatch.setattr(Flaky, "left", losses)
    report = check(Dataset("flaky", "flaky", made("echo a").tasks), parallel=1)
    assert kinds(report) == found


def test_bad_arguments() -> None:
    with pytest.raises(UsageError, match="parallel is 0"):
        check(made("echo a"), parallel=0)
    with pytest.raises(UsageError, match="limit is 0"):
        check(made("echo a"), limit=0)
    with pytest.raises(UsageError, match="holds no task"):
        check(made())


def test_options_that_exclude_each_other_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "starter", "--out", "proofs.jsonl"]) == 2
    said = "--out is for --draw or --labels, not for the check of tasks"
    assert said in capsys.readouterr().err


@pytest.mark.slow
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    good.write_text(json.dumps({"query": "print a", "gold": "echo a"}) + "\n")
    bad.write_text(json.dumps({"query": "print b", "gold": "true"}) + "\n")
    assert main(["check", str(good), "--json"]) == 0
    earlier = json.loads(capsys.readouterr().out)
    assert earlier["sound"] is True and earlier["tasks"] == 1 and len(earlier["fingerprints"]) == 1
    assert main(["check", str(good), str(bad)]) == 1
    text = capsys.readouterr().out
    assert "good.jsonl: 1 of 1 tasks are sound" in text
    assert "bad.jsonl: 0 of 1 tasks are sound" in text and "noop-scores-1" in text
    earlier["fingerprints"] = dict.fromkeys(earlier["fingerprints"], "other")
    then = tmp_path / "then.json"
    then.write_text(json.dumps(earlier))
    assert main(["check", str(good), "--baseline", str(then)]) == 1
    assert "differs from what it did" in capsys.readouterr().out
    then.write_text(json.dumps({"prints": earlier["fingerprints"]}))  # the key of version 0.1.0
    assert main(["check", str(good), "--baseline", str(then)]) == 1
    assert "differs from what it did" in capsys.readouterr().out
    then.write_text("no json")
    for words, says in (
        (["check"], "name a dataset"),
        (["check", str(good), "--baseline", str(then)], "the output of `intercode check --json`"),
        (["check", "startr"], "did you mean 'starter'"),
    ):
        assert main(words) == 2
        errors = capsys.readouterr().err
        assert errors.count("\n") == 1 and says in errors


@pytest.mark.slow
def test_the_starter_suite_is_sound() -> None:
    report = check("starter")
    assert report.faults == ()
    assert report.tasks == len(datasets.load("starter")) >= 40
