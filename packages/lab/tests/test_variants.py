"""Variants of tasks: their script, their soundness, and whether solutions hold in them."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest

from intercode.cli import main
from intercode.core.errors import SandboxUnavailableError, UsageError
from intercode.core.types import Dataset, Task
from intercode.datasets import load
from intercode.evaluation.check.task_runs import TaskRunner
from intercode_lab.families.choices import Choices
from intercode_lab.variants.bash.listing import Entry
from intercode_lab.variants.bash.plan import VariantPlan, edited_text
from intercode_lab.variants.tasks import VariantTasks, find_variants

SETUP = "mkdir -p /srv/mill/logs /srv/mill/old; printf 'a\\nb\\n' > /srv/mill/logs/a.log"
QUERY = "How many files whose name ends in .log are there under /srv/mill, at any depth?"
ROWS = [
    {"id": "count", "query": QUERY, "setup": SETUP, "gold": "find /srv/mill -name '*.log' | wc -l"},
    {"id": "sum", "query": "What is 1 + 2?", "gold": "echo $((1 + 2))"},
]
ENTRIES = {
    entry.path: entry
    for entry in (
        Entry("/srv/mill", True, 0o755, 0, 0.0),
        Entry("/srv/mill/a.log", False, 0o644, 4, 0.0, "a\nb\n"),
        Entry("/srv/mill/b.csv", False, 0o644, 16, 0.0, "x,y\n1,2\n3,4\n"),
    )
}


def _script(seed: int, task: str = "t") -> str:
    plan = VariantPlan(Task(task, QUERY, "find /srv/mill -name '*.log' | wc -l"), ENTRIES, seed)
    return plan.script


def _dataset(directory: Path) -> Path:
    path = directory / "tasks.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def test_choices_are_the_same_on_every_machine() -> None:
    choices = Choices("files", "t", 1)
    assert [choices.index(1000) for _ in range(4)] == FROZEN_CHOICES
    assert sorted(choices.some("abc", 5)) == ["a", "b", "c"]


def test_a_script_depends_on_task_and_seed_only() -> None:
    assert _script(1) == _script(1)
    assert len({_script(1), _script(2), _script(1, "other")}) == 3
    assert hashlib.sha256(_script(1).encode()).hexdigest()[:16] == FROZEN_SCRIPT


def test_a_script_adds_files_that_the_gold_counts(tmp_path: Path) -> None:
    """Bash runs it on a copy of the files: it ends without an error, twice with the same files."""
    listings = []
    for name in ("one", "two"):
        top = tmp_path / name / "srv" / "mill"
        top.mkdir(parents=True)
        for entry in ENTRIES.values():
            if entry.text is not None:
                (top / entry.name).write_text(entry.text)
        script = _script(1).replace("/srv/mill", str(top))
        subprocess.run(["bash", "-c", script], check=True, env={"PATH": os.environ["PATH"]})
        paths = sorted(path for path in top.rglob("*") if path.is_file())
        listings.append([(p.relative_to(top), p.read_bytes(), p.stat().st_mode) for p in paths])
    assert listings[0] == listings[1]
    logs = [path for path, _, _ in listings[0] if path.suffix == ".log"]
    assert len(logs) > 1
    assert any(len(path.parts) > 1 for path in logs)


def test_edited_texts_keep_their_form() -> None:
    choices = Choices("contents")
    table = "name,price\nbolt,3\nnut,2\n"
    for _ in range(20):
        edited = edited_text("parts.csv", table, [], choices).splitlines()
        assert edited[0] == "name,price"
        assert all(line.count(",") == 1 for line in edited)
        assert edited_text("list.txt", "/etc/a\n/etc/b\n", ["x"], choices) == "/etc/a\n/etc/b\n"
        assert edited_text("a.json", "{}\n", ["x"], choices) == "{}\n"
        code = edited_text("a.sh", "#!/bin/sh\nls\n", ["x"], choices).splitlines()
        assert [line for line in code if not line.startswith("#")] == ["ls"]
        assert code[0] == "#!/bin/sh"
    assert edited_text("a.txt", "one\ntwo\n", ["x"], choices) != "one\ntwo\n"


@pytest.mark.sandbox
@pytest.mark.heavy
def test_sound_variants_are_found(tmp_path: Path) -> None:
    variants = VariantTasks(load(str(_dataset(tmp_path)), "bash"))
    runner = TaskRunner(variants.dataset, {"image": "host"})
    try:
        count, total = (find_variants(variants, runner, index, 2) for index in (0, 1))
        assert len(count.seeds) == 2
        assert not count.alike
        assert (total.seeds, total.reason) == ((), "the task is about no files or rows of its own")
        assert runner.run(0, "find /srv/mill -name '*.log' | wc -l").output == "1\n"
        runner.reset(0, count.seeds[0])
        assert int(runner.run_here("find /srv/mill -name '*.log' | wc -l").output) > 1
    finally:
        runner.env.close()


@pytest.mark.sandbox
@pytest.mark.heavy
def test_a_seed_is_replaced_if_golds_disagree_there(tmp_path: Path) -> None:
    row = ROWS[0] | {"also": ["ls /srv/mill/logs/*.log | wc -l"]}
    path = tmp_path / "tasks.jsonl"
    path.write_text(json.dumps(row) + "\n")
    variants = VariantTasks(load(str(path), "bash"))
    runner = TaskRunner(variants.dataset, {"image": "host"})
    try:
        found = find_variants(variants, runner, 0, 1)
        assert "golds 1 and 2 disagree" in {r.reason for r in found.replaced}
    finally:
        runner.env.close()


@pytest.mark.sandbox
@pytest.mark.heavy
def test_what_is_right_by_luck_does_not_hold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run of the gold holds, a printed constant does not; success stays as it was."""
    path = _dataset(tmp_path)
    run = tmp_path / "run"
    evaluate = ["eval", str(path), "--agent", "gold", "--image", "host", "--out", str(run)]
    assert main([*evaluate, "--parallel", "1"]) == 0
    assert main(["replay", str(run), "--variants", "2"]) == 0
    report = json.loads((run / "variants.json").read_text())
    assert report["holds_elsewhere"]["share"] == 1.0
    assert [len(e["held"]) for e in report["episodes"]] == [2, 0]
    text = (run / "trajectories.jsonl").read_text()
    lucky = tmp_path / "lucky"
    lucky.mkdir()
    (lucky / "run.json").write_text((run / "run.json").read_text())
    (lucky / "trajectories.jsonl").write_text(
        text.replace(json.dumps(ROWS[0]["gold"]), json.dumps("echo 1"))
    )
    capsys.readouterr()
    assert main(["replay", str(lucky), "--variants", "2"]) == 0
    assert "echo 1" in capsys.readouterr().out
    report = json.loads((lucky / "variants.json").read_text())
    assert report["holds_elsewhere"]["share"] == 0.0
    assert report["solved"] == 2
    assert (lucky / "trajectories.jsonl").read_text().count('"reward"') == text.count('"reward"')


def test_a_machine_without_sandboxes_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no property of a task: a figure of nothing would be written otherwise."""
    variants = VariantTasks(load(str(_dataset(tmp_path)), "bash"))
    runner = TaskRunner(variants.dataset, {"image": "host"})

    def fail(*_: object) -> None:
        raise SandboxUnavailableError("no sandbox works on this machine")

    monkeypatch.setattr(runner, "reset", fail)
    with pytest.raises(SandboxUnavailableError):
        find_variants(variants, runner, 0, 1)


def test_variants_need_an_environment_that_has_them_and_a_number(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'ctf' have no variants"):
        VariantTasks(Dataset("d", "ctf", ()))
    assert main(["check", str(_dataset(tmp_path)), "--variants", "0"]) == 2
    assert main(["replay", str(tmp_path), "--score", "standard"]) == 2
    assert main(["replay", str(tmp_path), "--score", "nosuch", "--out", str(tmp_path / "o")]) == 2


FROZEN_CHOICES = [987, 291, 580, 139]
FROZEN_SCRIPT = "98df0598221be2f1"
