"""A machine that can open no sandbox: the run fails before anything is written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from intercode.core.config import EvalConfig
from intercode.core.errors import SandboxUnavailableError
from intercode.evaluation.evaluate.run import evaluate
from intercode_sandbox import SandboxSpec, open_sandbox
from intercode_sandbox.backends import ENVIRONMENT_VARIABLE
from intercode_sandbox.contract import BaseSandbox

_BROKEN = """
from intercode.core.errors import SandboxError

def broken(spec, files=None):
    raise SandboxError("mount tmpfs: Permission denied")
"""


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    file = tmp_path / "tasks.jsonl"
    rows = [{"query": f"print {n}", "gold": f"echo {n}"} for n in range(3)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


@pytest.fixture
def broken(tmp_path: Path) -> str:
    """Return a back end that can open no sandbox."""
    file = tmp_path / "broken.py"
    file.write_text(_BROKEN)
    return f"{file}:broken"


def test_a_run_without_sandboxes_fails_before_it_writes(
    tasks: Path, broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, broken)
    with pytest.raises(SandboxUnavailableError, match="mount tmpfs: Permission denied; "):
        evaluate(EvalConfig(str(tasks), "gold", out=tmp_path / "run"), quiet=True)
    assert not (tmp_path / "run").exists()


@pytest.mark.sandbox
def test_a_resumed_run_keeps_its_data(
    tasks: Path, broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    evaluate(EvalConfig(str(tasks), "gold", limit=1, out=out), quiet=True)
    before = {p.name: p.read_bytes() for p in out.iterdir() if p.name != ".lock"}
    with monkeypatch.context() as patch:
        patch.setattr("intercode.evaluation.evaluate.sandbox_check.open_sandbox", _fail(broken))
        with pytest.raises(SandboxUnavailableError):
            evaluate(EvalConfig(str(tasks), "gold", out=out), quiet=True)
    after = {p.name: p.read_bytes() for p in out.iterdir() if p.name != ".lock"}
    assert after["trajectories.jsonl"] == before["trajectories.jsonl"]
    assert after["history.jsonl"] == before["history.jsonl"]
    evaluate(EvalConfig(str(tasks), "gold", out=out), quiet=True)
    assert len((out / "trajectories.jsonl").read_text().splitlines()) == 3


def _fail(reference: str) -> Callable[[SandboxSpec, str], BaseSandbox]:
    return lambda spec, _kind: open_sandbox(spec, reference)


@pytest.mark.sandbox
def test_the_error_names_what_doctor_would_change(tasks: Path, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only the sandboxes of root have a user id that a directory can keep out")
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    words = ["eval", str(tasks), "--agent", "gold", "--out", str(tmp_path / "run")]
    # Without this right, all sandboxes run as one user, which reaches their files by path.
    shared_user = ["setpriv", "--bounding-set", "-mknod"]
    done = subprocess.run(
        [*shared_user, sys.executable, "-m", "intercode", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "INTERCODE_CACHE": str(private / "cache")},
    )
    assert done.returncode == 1, done.stdout
    assert "could not be set up" in done.stderr and f"chmod o+x {private}" in done.stderr
    assert not (tmp_path / "run").exists()
