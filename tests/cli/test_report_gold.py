"""``intercode report --with-gold``: mistakes, and episodes of which nothing can be shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from intercode.cli import main
from support.view_runs import write_run


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--with-gold", "--format", "csv"], "--with-gold prints texts, not csv"),
        (["--failed"], "--failed needs --with-gold"),
        (["--out", "report.html"], "intercode view ... --html report.html"),
    ],
)
def test_mistakes(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path / "a")
    assert main(["report", str(tmp_path), *words]) == 2
    assert said in capsys.readouterr().err


def test_an_episode_that_cannot_be_played_again_has_a_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path / "a", dataset=str(tmp_path / "lost`` ```.jsonl"))
    assert main(["report", str(tmp_path), "--with-gold", "--failed", "--format", "markdown"]) == 0
    out = capsys.readouterr().out
    section = out[out.index("### starter/text/1: not solved by react with m-1") :]
    assert "\n````text\nPrint the number 1.\n\nnote: " in section and "lost`` ```.jsonl" in section
    assert "starter/text/3:" not in out  # it is solved
