"""What works without Linux: reports, comparisons, the viewer and the SQL environment pass their
tests, and sandboxes say what they need. See support/without_linux for what is hidden."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.sources import PYTHONPATH, SOURCES

ROOT = Path(__file__).parents[1]
HIDING = ROOT / "tests/support/without_linux"
SUITE = (
    "tests/results/report",
    "tests/results/compare",
    "tests/results/view",
    "tests/paper/test_paper.py",
    "tests/paper/test_missing_cells.py",
    "tests/cli/test_compare_command.py",
    "tests/environments/test_sql_env.py",
    "tests/environments/test_policy_parts.py",
    "packages/sql/tests/test_sqlite_session.py",
    "packages/sql/tests/test_embedded_session.py",
    "packages/sql/tests/test_abort.py",
)
LEFT_OUT = "not slow and not sandbox and not browser and not mysql and not docker"


def run_without_linux(*words: str, seconds: float = 600) -> subprocess.CompletedProcess[str]:
    """Run ``python -m`` with these words, with what Windows lacks hidden."""
    paths = [str(HIDING), *SOURCES, *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    return subprocess.run(
        [sys.executable, "-m", *words],
        capture_output=True,
        text=True,
        timeout=seconds,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        check=False,
    )


@pytest.mark.slow("long")
def test_reports_comparisons_the_viewer_and_sql_pass_their_tests() -> None:
    done = run_without_linux(
        "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", LEFT_OUT, *SUITE
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert " passed" in done.stdout


def test_the_hidden_modules_are_hidden(tmp_path: Path) -> None:
    """Otherwise the test above would show nothing."""
    script = (
        "from intercode_sql.worker import service_start\n"
        "from intercode_sandbox.platforms import files\n"
        "from importlib import import_module\n"
        "try: import_module('intercode_sandbox.namespace.launcher')\n"
        "except ModuleNotFoundError as e: print(e)\n"
        "print(files.has_user_ids(), service_start.PASSES_DESCRIPTORS)"
    )
    file = tmp_path / "hidden.py"
    file.write_text(script)
    done = subprocess.run(
        [sys.executable, file],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": f"{HIDING}{os.pathsep}{PYTHONPATH}"},
    )
    assert done.stdout.splitlines() == [
        "No module named 'resource' (hidden)",
        "False False",
    ], done.stderr


def test_sql_is_played_and_bash_says_that_it_needs_linux(tmp_path: Path) -> None:
    words = ("intercode", "eval", "--agent=gold", "--limit=2")
    sql = run_without_linux(*words, "starter:sql", f"--out={tmp_path}/sql")
    assert sql.returncode == 0, sql.stderr
    rows = (tmp_path / "sql/trajectories.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(row)["steps"][-1]["score"] for row in rows] == [1.0, 1.0]
    assert run_without_linux("intercode", "report", f"{tmp_path}/sql").returncode == 0

    bash = run_without_linux(*words, "starter", f"--out={tmp_path}/bash")
    assert bash.returncode == 1 and "Traceback" not in bash.stderr
    assert "sandboxes need Linux, and this is win32" in bash.stderr
    assert not (tmp_path / "bash").exists()

    remote = run_without_linux(*words, "starter", "--backend=remote:http://127.0.0.1:9")
    assert remote.returncode == 1 and "Traceback" not in remote.stderr
    assert "remote sandboxes need Linux or macOS: on Windows, use WSL 2" in (remote.stderr)

    doctor = run_without_linux("intercode", "doctor")
    assert doctor.returncode == 1 and "MISSING Linux" in doctor.stdout, doctor.stderr
