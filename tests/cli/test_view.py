"""``intercode view``: the file, the served page, and the messages."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from intercode.cli import main
from support.view_runs import write_run


def test_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path / "runs" / "a")
    assert main(["view", str(tmp_path / "runs"), "--html", str(tmp_path / "a.html")]) == 0
    assert "wrote " in capsys.readouterr().err
    assert (tmp_path / "a.html").read_text("utf-8").startswith("<!doctype html>")


def test_what_cannot_be_read_gets_a_note_and_no_more_than_a_few(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path / "runs" / "a")
    export = tmp_path / "runs" / "train.jsonl"
    export.write_text('{"messages": []}\n' * 30)
    page = str(tmp_path / "a.html")
    assert main(["view", str(tmp_path / "runs"), "--html", page]) == 0
    (note, _) = capsys.readouterr().err.splitlines()
    assert note == f"Note: {export}: left out, because it is no log"
    assert main(["view", str(tmp_path / "runs" / "a"), str(export), "--html", page]) == 0
    *notes, _ = capsys.readouterr().err.splitlines()
    assert len(notes) == 6 and notes[-1] == "Note: 25 further problems"


@pytest.mark.slow
def test_a_page_until_ctrl_c(tmp_path: Path) -> None:
    write_run(tmp_path / "a")
    words = [sys.executable, "-m", "intercode", "view", str(tmp_path / "a")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            with urllib.request.urlopen(url, timeout=20) as page:
                assert b"<title>InterCode</title>" in page.read()
            os.kill(process.pid, signal.SIGINT)
            assert process.wait(20) == 0
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere"], "no such file or directory: nowhere"),
        ([], "PATH"),
        (["DIR", "--html", "x.html", "--port", "1"], "--port cannot be used with --html"),
        (["DIR", "--port", "70000"], "port 70000 is not available"),
    ],
)
def test_mistakes(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(write_run(tmp_path / "a"))
    assert main(["view", *(run if w == "DIR" else w for w in words)]) == 2
    assert said in capsys.readouterr().err


def test_help_gives_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", "--help"]) == 0
    out = capsys.readouterr().out
    assert "intercode view runs/a --html a.html" in out and "Ctrl-C ends the server" in out
