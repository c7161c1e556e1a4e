"""The proof of drawn tasks: that of our families, what it finds in bad ones, how it goes on."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import intercode
from intercode import datasets
from intercode.cli import main
from intercode.core.errors import DataError, UsageError
from intercode.evaluation.check.dataset import check
from intercode_lab.families import family as family_module
from intercode_lab.proofs.families import Proof, ProofReport, prove
from intercode_lab.proofs.tables import (
    blind_share,
    blind_verdict,
    family_faults,
    proof_tables,
    tasks_needed,
)
from intercode_lab.proofs.tasks import BLIND_TRIES
from intercode_sandbox.registry import Registry
from support.sandboxes import eventually
from support.traces import living, started

BAD_FAMILIES = """
from intercode_lab.families.bash.bash_task import bash_task
from intercode_lab.families.family import family, Family
from intercode_lab.families.file_tree import FileTree

def _task(draw, gold, shown="", **more):
    tree = FileTree()
    tree.file("f", f"{draw.world.index(10**9)} {shown}\\n")
    return bash_task(draw, (f"Do {draw.query.index(10**9)}.",), gold, tree, **more)

@family("bash")
def fixed_answer(draw):
    return _task(draw, "echo 7")

@family("bash")
def wrong_further_gold(draw):
    return _task(draw, "cat f", also=("ls",))

@family("bash")
def gold_from_world(draw):
    return _task(draw, f"cat f; echo {draw.world.index(10**9)}")

@family("bash")
def bad_turns(draw):
    return _task(draw, "cat f", turns=("cat f", "ls"))

@family("bash")
def readable_gold(draw):
    return _task(draw, "cat f; echo the end of a long gold", "cat f; echo the end of a long gold")

@family("bash", blind=0.5)
def not_hidden(draw):
    return _task(draw, "cat f", turns=("ls", "cat f"))

FAMILIES = tuple(v for v in globals().values() if isinstance(v, Family))
"""


@pytest.fixture
def bad(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    path = tmp_path / "bad_families.py"
    path.write_text(BAD_FAMILIES)
    registry = Registry("environment with task families", {"bash": f"{path}:FAMILIES"})
    monkeypatch.setattr(family_module, "FAMILIES", registry)
    return tmp_path / "proofs.jsonl"


@pytest.mark.sandbox
@pytest.mark.heavy
@pytest.mark.parametrize(
    "families",
    [
        "bash",
        "ctf",
        "python",
        "sql",
        "code/shortened-runs",
        pytest.param("code", marks=pytest.mark.slow),
    ],
)
def test_a_task_of_each_family_is_sound(families: str) -> None:
    report = check(datasets.load(f"families:{families}@seed=3"), cache_golds=False)
    assert report.faults == ()


@pytest.mark.sandbox
@pytest.mark.heavy
def test_faults_of_families_are_found(bad: Path) -> None:
    report = prove("families:bash", 5, bad, settings={}, parallel=1)
    kinds: dict[str, set[str]] = {}
    for task, fault in report.all_faults:
        kinds.setdefault(task.split("/")[2], set()).add(fault.split(":")[0])
    assert kinds == {
        "fixed-answer": {"alike-variants"},
        "wrong-further-gold": {"golds-disagree"},
        "gold-from-world": {"variant-differs"},
        "bad-turns": {"turns-below-1"},
        "readable-gold": {"readable"},
    }
    found = dict(family_faults(report))
    assert found["families/bash/not-hidden"].startswith(
        "blind: at least 0.566, above the bound 0.500"
    )
    assert found["families/bash/bad-turns"].startswith("difficulty-flat")


def test_a_fault_of_many_tasks_is_shown_once() -> None:
    faults = tuple((f"families/bash/trail/1/{n}", "same") for n in range(3))
    proof = Proof("families/bash/links/1/0", "families/bash/links", 1, *"dw", (), *[0] * 7)
    report = ProofReport("families:bash", (), (proof,), (*faults, (proof.task, "other")))
    assert proof_tables(report)[-1].rows == (
        ("families/bash/trail/1/0 and 2 more", "same"),
        (proof.task, "other"),
    )


@pytest.mark.sandbox
@pytest.mark.heavy
def test_a_proof_goes_on_where_it_was_interrupted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "proofs.jsonl"
    command = ["check", "families:ctf/trail-of-notes", "--draw", "2", "--out", str(out), "--json"]
    assert main(command) == 0
    whole = out.read_text()
    first = json.loads(capsys.readouterr().out)
    assert first["tasks"] == 2 and first["sound"]
    out.write_text(whole[: whole.index("\n") + 30])  # ended in the middle of a line
    assert main(command) == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["task"] for row in rows] == [p["task"] for p in first["proofs"]]
    assert rows[0] == json.loads(whole.splitlines()[0])  # not proven again
    assert main([*command[:-1]]) == 0
    shown = capsys.readouterr().out
    assert "2 of 2 drawn tasks are sound" in shown and "undecided: needs 73 tasks" in shown
    assert out.read_text().count("\n") == 2


@pytest.mark.slow
def test_processes_prove_the_same_and_end_with_their_owner(tmp_path: Path) -> None:
    one, two = (
        prove("families:sql/joining", 2, tmp_path / str(n), settings={}, parallel=n).proofs
        for n in (1, 2)
    )
    assert [replace(proof, seconds=0.0) for proof in one] == [
        replace(proof, seconds=0.0) for proof in two
    ]
    command = ["check", "families:sql/joining", "--draw", "100", "--out", tmp_path / "killed"]
    with subprocess.Popen([sys.executable, "-m", "intercode", *command]) as owner:
        children = Path(f"/proc/{owner.pid}/task/{owner.pid}/children")
        eventually(lambda: len(children.read_text().split()) == 3, "two processes and the tracker")
        processes = tuple((int(pid), started(int(pid))) for pid in children.read_text().split())
        owner.kill()
    eventually(lambda: not living(processes), "all processes have ended")


@pytest.mark.slow
def test_a_script_without_a_main_guard_gets_an_error_that_names_it(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from pathlib import Path\n"
        "from intercode_lab.proofs.families import prove\n"
        "prove('families:sql', 1, Path('proofs.jsonl'), settings={}, parallel=2)\n"
    )
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True)
    lines = [line for line in done.stderr.splitlines() if "InfrastructureError" in line]
    assert done.returncode == 1 and 'under `if __name__ == "__main__":`' in lines[-1], done.stderr


def blind_proofs(solved: list[int]) -> list[Proof]:
    """Return a proof for each number of blind golds that solved its task."""
    return [
        Proof(f"t/1/{n}", "t", 1, "", "", (), BLIND_TRIES, count, 1, 1, 1, 1, 0.1)
        for n, count in enumerate(solved)
    ]


@pytest.mark.parametrize(("bound", "needed"), [(0.1, 35), (0.05, 73), (0.02, 189)])
def test_a_bound_needs_enough_tasks_that_no_blind_gold_solves(bound: float, needed: int) -> None:
    assert tasks_needed(bound) == needed
    for tasks, verdict in (needed, "proven"), (needed - 1, f"undecided: needs {needed} tasks"):
        share = blind_share(blind_proofs([0] * tasks))
        assert share is not None and share.samples == tasks * BLIND_TRIES
        assert blind_verdict(share, bound) == verdict


def test_tries_of_one_task_are_not_counted_as_independent() -> None:
    spread = blind_share(blind_proofs([1] * 20 + [0] * 60))
    clustered = blind_share(blind_proofs([4] * 5 + [0] * 75))
    assert spread is not None and clustered is not None and spread.value == clustered.value
    assert spread.high is not None and clustered.high is not None and spread.high < clustered.high
    assert blind_verdict(spread, 0.1) == "proven"
    assert blind_verdict(clustered, 0.1) == "undecided: needs more than 80 tasks"


def test_a_share_is_too_high_only_if_its_whole_interval_is() -> None:
    for solved, verdict in (
        ([4] * 8 + [1] * 2, "too high"),
        ([2] * 3 + [0] * 7, "undecided: needs more than 10 tasks"),
    ):
        share = blind_share(blind_proofs(solved))
        assert share is not None and blind_verdict(share, 0.3).startswith(verdict)


def test_mistakes_are_refused_before_anything_is_played(tmp_path: Path) -> None:
    out = tmp_path / "x"
    with pytest.raises(UsageError, match="a specification without @seed="):
        prove("families:bash@seed=3", 1, out, settings={})
    out.write_text("{}\n")
    with pytest.raises(DataError, match=r"x:1 is not a proof"):
        prove("families:bash", 1, out, settings={})


@pytest.mark.sandbox
def test_output_after_a_change_costs_nothing() -> None:
    drawn = datasets.load("families:bash@seed=1")
    tasks = [task for task in drawn.tasks if task.data.get("compare") == "changes"]
    assert len(tasks) == 14
    with intercode.make("bash", drawn, recycle=True) as env:
        for task in tasks:
            env.reset(options={"task": task.id})
            env.execute(task.gold)
            env.execute("ls")
            assert env.score().success, task.id
        env.reset(options={"task": "families/bash/failing-check/2/1"})
        first, second = (turn for turn in env.task.data["turns"] if "sed" in turn)
        env.execute(first)
        assert env.score().value < 1
        env.execute(f"{second}; cat service.conf")
        assert env.score().success
