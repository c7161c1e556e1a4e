"""`check` finds golds, tests and flags that can be read in fresh sandboxes, and missing
programs."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from intercode import datasets
from intercode.core.types import Dataset, LayerSpec, Task
from intercode.evaluation.check.dataset import check
from intercode.evaluation.check.findings import SearchCounts, TaskFinding
from intercode.evaluation.check.sandbox_search import search_sandboxes, task_secrets
from intercode.evaluation.check.task_runs import task_runners

pytestmark = pytest.mark.sandbox

GOLD = "sort -u /srv/names.txt > /srv/sorted.txt"
TEST = "assert add_up([1, 2, 3]) == 6"


def inside(dataset: Dataset, **settings: Any) -> tuple[set[tuple[str, str]], SearchCounts]:
    """Return the findings: task, and kind with the path."""
    with task_runners(dataset, settings, 1) as over:
        found, searched = search_sandboxes(over, dataset)
    return {(f.task, f"{f.kind}: {f.detail}") for f in found}, searched


def task(number: int = 0, **more: Any) -> Task:
    given: dict[str, Any] = {"query": "sort", "gold": GOLD, **more}
    return Task(f"t/{number}", **given)


def made(*tasks: Task, environment: str = "bash", **more: Any) -> Dataset:
    return Dataset("made", environment, tasks, comparable=False, **more)


def test_nothing_is_found_where_nothing_is(tmp_path: Path) -> None:
    found, searched = inside(made(task(), task(1, gold="ls -l", also=("find / -name 'x*.txt'",))))
    assert found == set() and searched == SearchCounts(sandboxes=1, texts=2, too_short=1)


def test_golds_are_found_wherever_they_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a b.sh").write_bytes(b"\0\xff# how it is done\n" + GOLD.encode() + b"\n")
    layer = (LayerSpec("dir", tmp_path),)
    files = task(0, files=layer)
    variable = task(1, setup=f"export HINT='{GOLD}'")
    written = task(2, setup=f"mkdir -p /dev/shm /tmp/.x; echo '{GOLD}' > /tmp/.x/.y")
    begun = "until grep -qa names.txt /proc/$!/cmdline; do :; done"
    process = task(3, setup=f"( exec -a '{GOLD}' sleep 500 ) & {begun}")
    other = task(4, gold=GOLD + " # by others", files=layer)
    found, searched = inside(made(files, variable, written, process, other))
    assert searched.sandboxes == 4 and searched.texts == 5
    places = {(name, text.rpartition(" stands in ")[2]) for name, text in found}
    assert ("t/0", "/deep/a b.sh") in places and ("t/2", "/tmp/.x/.y") in places
    assert ("t/1", "what its interpreter shows") in places
    assert any(name == "t/3" and where.endswith("/cmdline") for name, where in places)
    assert not any(name == "t/4" for name, _ in places)  # a similar but different text
    assert all(text.startswith("readable: a gold") for _, text in found)


def test_an_image_that_contains_a_gold_is_detected(tmp_path: Path) -> None:
    (tmp_path / "solved.sh").write_text(f"{GOLD}\n")
    (tmp_path / "Dockerfile").write_text("FROM host\nCOPY solved.sh /opt/old/x.sh\n")
    rows = tmp_path / "tasks.jsonl"
    rows.write_text(json.dumps({"query": "sort", "gold": GOLD}) + "\n")
    (tmp_path / "task.toml").write_text("")
    found, _ = inside(datasets.load(str(tmp_path)))
    assert {text for _, text in found} == {"readable: a gold stands in /opt/old/x.sh"}


def test_hidden_tests_count_as_a_whole(tmp_path: Path) -> None:
    code = "def add_up(numbers):\n    return sum(numbers)\n"
    data = {"tests": (TEST,), "entry": "add_up", "setup": "", "mode": "assert"}
    python = made(Task("p", "add", code, data=data), environment="python")
    assert inside(python)[0] == set()
    leak = {("p", "readable: a hidden test stands in /tests.py")}
    by_chance = "    return sum(numbers)\n"  # one line of the gold
    for text, expected in ((f"    {TEST}\n", leak), (by_chance, set())):
        folder = tmp_path / str(len(expected))
        folder.mkdir()
        (folder / "tests.py").write_text(text)
        shown = replace(python.tasks[0], files=(LayerSpec("dir", folder),))
        assert inside(replace(python, tasks=(shown,)))[0] == expected


def test_a_flag_in_the_files_is_the_puzzle_and_elsewhere_a_leak(tmp_path: Path) -> None:
    flag = "flag{in-plain-sight-4711}"
    (tmp_path / "log.txt").write_text(f"nothing\n{flag}\n")
    layer = (LayerSpec("dir", tmp_path, destination="/ctf"),)
    puzzle = Task("f", "find it", f"submit {flag}", flag=flag, files=layer, cwd="/ctf")
    dataset = made(puzzle, environment="ctf")
    assert inside(dataset)[0] == {("f", "flag-in-files: its flag stands in /ctf/log.txt")}
    assert check(dataset).sound


def test_programs_that_the_dataset_names_have_to_be_there() -> None:
    dataset = made(task(), programs=("sort", "no-such-one", "nor-this"))
    found, _ = inside(dataset)
    ((name, text),) = found
    assert name == "t/0" and text.startswith("lacks-program: the image lacks no-such-one, nor-this")
    report = check(made(task(gold="echo some words of text"), programs=("no-such-one",)))
    assert not report.sound and report.search == SearchCounts(1, 1, 0)


def test_the_report_says_where_a_gold_is_volatile() -> None:
    report = check(made(task(gold='echo same; date +%N > /tmp/now; echo "at $(date +%N)"')))
    details = [f.detail for f in report.faults if f.kind == "volatile"]
    assert len(details) == 1
    for words in ("output (line 2: 'at ", "what it left behind (/tmp/now)"):
        assert words in details[0]


@pytest.mark.parametrize(
    ("reward", "says"),
    [(lambda *_: 1 / 0, "(test_sandbox_search.py, line "), (lambda *_: 0.5, "of type float")],
)
def test_a_reward_that_gives_no_score_is_a_fault(reward: Any, says: str) -> None:
    report = check(made(task(gold="echo some words of text")), env_options={"reward": reward})
    assert [f.kind for f in report.faults] == ["fails"] and says in report.faults[0].detail


def test_the_secrets_of_a_task() -> None:
    long = "x = 1\nprint('a line of some length')"
    texts = {s.kind: s.lines for s in task_secrets(Task("t", "q", long, flag="abcdef", probe="ls"))}
    assert texts["a gold"] == (b"print('a line of some length')",)
    assert texts["its flag"] == (b"abcdef",) and texts["its probe"] == ()


def test_the_starter_tasks_hide_what_they_should() -> None:
    kinds = set()
    for part in ("bash", "python", "ctf"):
        found, searched = inside(datasets.load(f"starter:{part}"))
        kinds |= {text.partition(":")[0] for _, text in found}
        assert searched.texts > 60
    assert kinds <= {"flag-in-files"}


@pytest.mark.slow
@pytest.mark.nl2bash
@pytest.mark.parametrize("name", ["nl2bash:fs_1", "nl2bash:fs_4", "ic-ctf:offline", "mbpp:test"])
def test_the_authors_tasks_hide_what_they_should(
    name: str, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERCODE_DATA", str(data_dir))
    found, searched = inside(datasets.load(name), image="host")
    assert {text.partition(":")[0] for _, text in found} <= {"flag-in-files", "lacks-program"}
    assert searched.sandboxes and searched.texts > 20


def test_an_image_without_grep_is_a_note(tmp_path: Path) -> None:
    bash = Path(str(shutil.which("bash"))).resolve()
    told = subprocess.run(["ldd", str(bash)], capture_output=True, text=True, check=True).stdout
    libraries = [word for word in told.split() if word.startswith("/")]
    for name in ("bin/bash", "bin/sh", *(library.lstrip("/") for library in libraries)):
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(bash if name.startswith("bin/") else f"/{name}", target)
    found, searched = inside(made(task(gold="echo some words of text")), image=f"dir:{tmp_path}")
    assert found == {("t/0", "not-searched: the image has no grep with the options of GNU grep")}
    assert searched.sandboxes == 1


def test_findings_are_of_known_kinds() -> None:
    from intercode.evaluation.check.findings import FAULT_KINDS, NOTE_KINDS

    assert {"readable", "lacks-program"} <= FAULT_KINDS.keys()
    assert {"flag-in-files", "not-searched"} <= NOTE_KINDS.keys()
    assert TaskFinding("t", "readable", "x").kind in FAULT_KINDS
