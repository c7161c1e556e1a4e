"""Text in reports and exports that would stop an encoder or command a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from intercode.cli import main
from intercode.core import trajectories
from intercode.core.types import Dataset, Step, Task
from intercode.integrations.harbor.export.tasks import write_tasks
from intercode.results import report
from intercode.results.export import export
from intercode.results.export.bundle.bundle import read_bundle, write_bundle
from intercode.results.export.bundle.leaderboard import write_leaderboard
from intercode.results.rendering import render
from intercode.results.safe_text import encode_text, neutralise_formula
from intercode.results.tables import Table
from intercode_sandbox.valid_text import replace_surrogates
from support.talks import run_in, talk

LONE = "a\udc80b \ud800 c"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Write a run with lone surrogates in metadata, query, action, observation and messages."""
    out = run_in(tmp_path / "run", (1.0,), model=f"m/{LONE}", dataset=f"d{LONE}")
    told = talk()
    steps = [
        Step(
            f"{s.action} {LONE}",
            LONE,
            score=s.score,
            thought=LONE,
            messages=tuple({**m, "content": f"{m.get('content') or ''}{LONE}"} for m in s.messages),
        )
        for s in told.steps
    ]
    episode = told.replace(
        steps=tuple(steps), query=LONE, run={}, task=f"t/{LONE}", index=7, id="e7"
    )
    trajectories.append_trajectory(out / trajectories.TRAJECTORIES_FILE, episode)
    return out


@pytest.mark.paper
@pytest.mark.parametrize("to", ["atif", "authors", "chat", "inspect", "tokens"])
def test_every_format_writes_lone_surrogates_as_replacements(
    run: Path, tmp_path: Path, to: str
) -> None:
    if to == "inspect":
        pytest.importorskip("inspect_ai", reason="pip install 'intercode-gym[inspect]'")
    suffix = {"chat": ".jsonl", "tokens": ".jsonl", "inspect": ".eval"}.get(to, "")
    options = {"which": "all"} if to == "chat" else {}
    result = export(run, to, tmp_path / f"out{suffix}", **options)
    assert any("U+FFFD" in note for note in result.omitted)
    if to in ("tokens", "inspect"):
        assert result.records > 0
        return
    text = "".join(file.read_text("utf-8") for file in result.files)
    assert "a\ufffdb \ufffd c" in text and "\\ud" not in text


def test_an_export_of_plain_text_is_the_recorded_text(tmp_path: Path) -> None:
    result = export(run_in(tmp_path / "run"), "atif", tmp_path / "out")
    assert not any("U+FFFD" in note for note in result.omitted)


@pytest.mark.parametrize("style", list(report.RENDERERS))
def test_reports_and_the_page_hold_no_surrogate(
    run: Path, tmp_path: Path, style: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "report"
    assert main(["report", str(run), "--stats", "--format", style, "--out", str(out)]) == 0
    assert "m/a\ufffdb" in out.read_text("utf-8")
    page = tmp_path / "page.html"
    assert main(["view", str(run), "--html", str(page)]) == 0
    page.read_text("utf-8")
    assert main(["compare", str(run), str(run), "--json"]) == 0
    capsys.readouterr().out.encode()


def test_a_bundle_and_the_leaderboard_hold_a_run_with_surrogates(run: Path, tmp_path: Path) -> None:
    bundle = write_bundle(run, tmp_path / "b.tar.gz")
    assert read_bundle(bundle.path).metadata["model"] == f"m/{LONE}"  # unchanged
    page = write_leaderboard([bundle.path], tmp_path / "page").read_text("utf-8")
    assert "m/a\ufffdb" in page


def test_harbor_tasks_hold_escaped_bytes_as_they_were(tmp_path: Path) -> None:
    task = Task(id="t/0", query="find \udcff", flag="f\udcff")
    write_tasks(Dataset("t", "ctf", (task,)), tmp_path, base="debian")
    (found,) = tmp_path.rglob("instruction.md")
    assert b"find \xff" in found.read_bytes()


def test_text_helpers() -> None:
    assert replace_surrogates("é\U0001f600") == "é\U0001f600"
    assert encode_text("a\udcff") == b"a\xff" and encode_text("\ud800é") == "\ufffdé".encode()
    for text in ("=1+1", "+cmd", "-2+3", "@SUM(1)", "\tx", "\rx", "\n=x"):
        assert neutralise_formula(text) == f"'{text}"
    for text in ("", "-", "-1.5", "+3", "1e5", "a=b", "nl2bash"):
        assert neutralise_formula(text) == text


def test_csv_neutralises_text_and_leaves_numbers() -> None:
    evil = "=cmd|' /C calc'!A1"
    table = Table(evil, "t", ("@x", "n"), ((evil, -1.5), ("-", None), ("+1", -3)))
    rows = list(csv.reader(io.StringIO(render([table], "csv"))))
    name = f"'{evil}"
    assert rows == [
        ["table", "'@x", "n"],
        [name, name, "-1.5"],
        [name, "-", ""],
        [name, "+1", "-3"],
    ]
    assert json.loads(render([table], "json"))[0]["rows"][0]["@x"] == evil


def test_a_model_named_as_a_formula_is_text_in_the_report(tmp_path: Path) -> None:
    evil = '=HYPERLINK("http://x","y")'
    run = run_in(tmp_path / "run", agent="@a", model=evil, dataset="starter")
    text = report.render(report.build([run], stats=True), "csv")
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
    assert f"'{evil}" in cells and "'@a" in cells
    assert not any(cell.startswith(("=", "@")) for cell in cells)
