"""``tools/steady.py``: tests beside busy loops, with processes that are stopped meanwhile."""

from __future__ import annotations

import runpy
import sys
import tempfile
from pathlib import Path

import pytest

STEADY = runpy.run_path(str(Path(__file__).parents[1] / "tools" / "steady.py"))
SHORT = ["--rounds", "2", "--loops", "0", "--longest", "0.1", "--", sys.executable, "-c"]

CONTINUED = """
import signal, subprocess, sys
child = "import ctypes, signal; ctypes.CDLL(None).prctl(15, bytes([255]) + b') S 1'); signal.signal(signal.SIGCONT, lambda *_: exit()); [signal.pause() for _ in iter(int, 1)]"
print("1 passed" if subprocess.run([sys.executable, "-c", child]).returncode == 0 else "1 failed")
"""  # noqa: E501
"""Ends only after its child was stopped and continued, for which it waits without a limit. The
child gives itself a name that is no text."""


@pytest.fixture(autouse=True)
def _outputs_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_a_process_of_the_command_is_stopped_and_continued(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert STEADY["main"]([*SHORT, CONTINUED]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(";")[0] for line in lines[:2]] == [
        "round 1: 1 passed",
        "round 2: 1 passed",
    ]
    assert lines[2:] == ["2 of 2 rounds passed"]


def test_a_failed_round_names_its_tests_and_keeps_the_output(
    capsys: pytest.CaptureFixture[str],
) -> None:
    failing = (
        "print('FAILED tests/a.py::test_b[1 2] - assert 1 == 2\\n1 failed, 3 passed'); exit(1)"
    )
    assert STEADY["main"]([*SHORT, failing]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("round 1: 1 failed, 3 passed;")
    assert lines[1] == "  tests/a.py::test_b[1 2]"
    output = Path(lines[2].removeprefix("  output: "))
    assert "assert 1 == 2" in output.read_text()
    assert lines[-2:] == ["0 of 2 rounds passed", "  2 of 2: tests/a.py::test_b[1 2]"]


def test_a_command_that_runs_no_test_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert STEADY["main"]([*SHORT, "exit(5)"]) == 1
    assert "no tests ran" in capsys.readouterr().out
