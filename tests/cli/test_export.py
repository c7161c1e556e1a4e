"""Commands that write files: each names its files, and refuses what a line cannot hold."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from intercode.cli import main
from intercode.cli.export import known_formats
from support.view_runs import write_run

PAGE = Path(__file__).parents[2] / "docs" / "exports.md"


@pytest.fixture
def log(recorded_dir: Path) -> str:
    return str(recorded_dir / "bash" / "ic_bash_multiturn_gpt-4_10_turns_fs_2.json")


@pytest.mark.paper
def test_an_export_prints_its_records_and_what_is_left_out(
    log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a.jsonl"
    assert main(["export", log, "--to", "chat", "--which", "all", "--out", str(out)]) == 0
    assert f"wrote 53 records to {out}" in capsys.readouterr().err
    assert len(out.read_text().splitlines()) == 53


@pytest.mark.paper
def test_mistakes_are_reported_in_one_line(
    log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "a")
    for words, message in (
        (["--to", "atiff"], "did you mean 'atif'"),
        (["--to", "atif", "--messages-only"], "--messages-only is for the format chat"),
        (["--format", "atif"], "the option is now --to FORMAT"),
        (["--to", "tokens"], "no turn of these episodes holds token ids"),
    ):
        assert main(["export", log, *words, "--out", out]) == 2
        assert message in capsys.readouterr().err
    assert main(["export", log, "--to", "bundle", "--out", str(tmp_path / "a.tar.gz")]) == 2
    assert "is not a run directory" in capsys.readouterr().err
    (tmp_path / "b.tar.gz").write_text("no archive")
    assert main(["replay", str(tmp_path / "b.tar.gz")]) == 2
    assert "cannot be read as a bundle" in capsys.readouterr().err
    assert main(["export", log, "--to", "leaderboard", "--out", out]) == 2


@pytest.mark.paper
def test_a_report_writes_latex_and_draws(
    log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra data")
    table, figures = tmp_path / "t.tex", tmp_path / "figures"
    words = ["report", log, "--format", "latex", "--out", str(table), "--plot", str(figures)]
    assert main(words) == 0
    assert "\\toprule" in table.read_text()
    assert (figures / "nl2bash-by-turn.svg").is_file()
    assert f"wrote {figures / 'nl2bash-by-turn.svg'}" in capsys.readouterr().err


@pytest.mark.paper
def test_a_report_as_json_names_the_missing_cells(
    log: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", log, "--format", "json"]) == 0
    tables = {t["name"]: t for t in json.loads(capsys.readouterr().out)}
    rows = tables["missing-cells"]["rows"]
    (row,) = [r for r in rows if r["table"].startswith("Bash") and r["row"] == "gpt-4, Try"]
    assert row["cells"] == "fs_1, fs_3, fs_4, all"
    assert (
        row["log that would give them"] == "ic_bash_multiturn_gpt-4_10_turns_{fs_1,fs_3,fs_4}.json"
    )


def test_the_page_and_the_help_list_every_format(capsys: pytest.CaptureFixture[str]) -> None:
    page = PAGE.read_text("utf-8")
    assert [name for name in known_formats() if f"| `{name}` |" not in page] == []
    assert main(["export", "--help"]) == 0
    assert ", ".join(known_formats()) in " ".join(capsys.readouterr().out.split())


def test_the_command_is_imported_without_the_formats() -> None:
    code = "import sys, intercode.cli.export; print('intercode.results' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_directory_of_runs_is_refused_with_all_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in "abcd":
        write_run(tmp_path / "runs" / name)
    out = tmp_path / "new" / "a.jsonl"
    words = ["--to", "chat", "--which", "all", "--out", str(out)]
    assert main(["export", str(tmp_path / "runs"), *words]) == 2
    said = capsys.readouterr().err
    assert "holds 4 runs" in said and all(f"runs/{name}" in said for name in "abcd")
    assert main(["export", str(tmp_path / "runs" / "a"), *words]) == 0 and out.is_file()
