"""Selecting among tasks of families, which have no end."""

from __future__ import annotations

from pathlib import Path

import pytest

from intercode.cli import main


def test_tasks_without_end_are_not_evaluated(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    spec = "families:bash/trail[difficulty=1]"
    assert main(["eval", spec, "--agent", "gold"]) == 2
    assert f"as in {spec}@seed=0..99" in capsys.readouterr().err
    assert main(["eval", "families", "--agent", "gold"]) == 2
    assert "as in families:bash@seed=0..99" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
