"""Runs that record how each turn changed files."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

import intercode
from intercode.cli import main
from intercode.core.config import EvalConfig
from intercode.evaluation.evaluate.run import evaluate

pytestmark = pytest.mark.sandbox
MADE = {"/f": "new file\n@@ -0,0 +1 @@\n+1"}


@pytest.fixture
def dataset(tmp_path: Path) -> str:
    path = tmp_path / "files.json"
    path.write_text(json.dumps([{"query": "make /f", "gold": "echo 1 > /f"}]))
    return str(path)


def test_diffs_are_recorded_on_request_and_do_not_change_the_run(
    dataset: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = ["eval", dataset, "--agent", "gold", "--out", str(tmp_path / "run")]
    assert main(plain) == 0
    assert main([*plain, "--epochs", "2", "--set", "record_diffs=true"]) == 0
    run = intercode.load_run(tmp_path / "run")
    assert [t.steps[0].diffs for t in run.episodes] == [{}, MADE]
    assert all(t.success and t.steps[0].changes == ("/f",) for t in run.episodes)
    assert "diffs" not in run.episodes[1].run
    capsys.readouterr()
    assert main(["show", str(tmp_path / "run"), "0", "--epoch", "1"]) == 0
    assert "  /f\n    new file\n    @@ -0,0 +1 @@\n    +1" in capsys.readouterr().out


def test_a_resumed_run_keeps_its_settings(dataset: str, tmp_path: Path) -> None:
    out = evaluate(
        EvalConfig(dataset, "gold", out=tmp_path / "run", env_options={"record_diffs": True}),
        quiet=True,
    )
    (out / "trajectories.jsonl").unlink()
    assert main(["eval", "--resume", str(out)]) == 0
    assert intercode.load_run(out).episodes[0].steps[0].diffs == MADE


def test_play_keeps_them_too(dataset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "echo 2 > /f\nundo\necho 1 > /f\necho 3 >> /f\nsubmit\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert (
        main(["play", dataset, "--set", "record_diffs=true", "--out", str(tmp_path / "run")]) == 0
    )
    steps = intercode.load_run(tmp_path / "run").episodes[0].steps
    assert [s.diffs for s in steps] == [MADE, {"/f": "@@ -1 +1,2 @@\n 1\n+3"}, {}]


def test_an_environment_without_files_has_none(tmp_path: Path) -> None:
    config = EvalConfig(
        "starter:sql", "gold", limit=1, out=tmp_path / "run", env_options={"record_diffs": True}
    )
    run = intercode.load_run(evaluate(config, quiet=True))
    assert all(step.diffs == {} for t in run.episodes for step in t.steps)
