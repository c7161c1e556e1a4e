"""`intercode doctor`, as far as one machine can test it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from intercode.cli import main
from intercode_sandbox.command.doctor import print_findings
from intercode_sandbox.doctor_checks import diagnose
from intercode_sandbox.tiers.remedies import user_namespace_fix
from intercode_sandbox.tiers.tier_table import Finding


@pytest.mark.slow
@pytest.mark.sandbox
def test_a_machine_that_runs_sandboxes_has_all_that_is_needed() -> None:
    findings = {f.name: f for f in diagnose()}
    assert findings["a sandbox"].ok, findings["a sandbox"].detail
    assert "opened in" in findings["a sandbox"].detail
    assert all(f.ok for f in findings.values() if f.needed)
    assert all(f.fix for f in findings.values() if not f.ok)


@pytest.mark.parametrize("name", ["file", "file/below", "/proc/none"])
def test_a_cache_that_cannot_be_made_is_a_line(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    cache = str(tmp_path / name)  # an absolute path stays one
    done = subprocess.run(
        [sys.executable, "-m", "intercode", "doctor"],
        env={**os.environ, "INTERCODE_CACHE": cache},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("MISSING cache"))
    assert cache in line
    assert "Set INTERCODE_CACHE to a directory that this user can write to" in line
    assert "a sandbox  " in done.stdout
    last = done.stdout.splitlines()[-1]
    assert last.startswith("Not well: what is needed is missing: cache")


@pytest.mark.parametrize(
    ("needed", "last"),
    [(False, "All is well: "), (True, "Not well: what is needed is missing: b.")],
)
def test_the_last_line_says_whether_all_is_well(
    needed: bool, last: str, capsys: pytest.CaptureFixture[str]
) -> None:
    findings = [Finding("a", True, ""), Finding("b", False, "", "install b", needed)]
    assert print_findings(findings, as_json=False) == needed
    assert capsys.readouterr().out.splitlines()[-1].startswith(last)


@pytest.mark.slow
@pytest.mark.sandbox
def test_doctor_tries_a_dataset(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "starter", "--json"]) == 0
    last = json.loads(capsys.readouterr().out)[-1]
    assert last["ok"] and "image host, reset in" in last["detail"]
    assert main(["doctor", "startr"]) == 1
    assert "did you mean 'starter'" in capsys.readouterr().out


def test_doctor_tries_a_dataset_whose_tasks_run_in_no_sandbox(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["doctor", "starter:sql", "--json"]) == 0
    last = json.loads(capsys.readouterr().out)[-1]
    assert last["ok"] and last["detail"].startswith("40 tasks, reset in ")


def test_another_package_named_intercode_is_reported(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "intercode_bench-0.2.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: intercode-bench\nVersion: 0.2\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert metadata.version("intercode-bench") == "0.2"
    assert main(["doctor"]) == 1
    text = capsys.readouterr().out
    assert "0.2 is installed too" in text and "pip uninstall intercode-bench" in text


def test_settings_that_forbid_user_namespaces_are_named(tmp_path: Path) -> None:
    assert user_namespace_fix(tmp_path) == ""
    for name, value in (
        ("kernel/apparmor_restrict_unprivileged_userns", "1"),
        ("kernel/unprivileged_userns_clone", "1"),
        ("user/max_user_namespaces", "0"),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(value + "\n")
    assert user_namespace_fix(tmp_path) == (
        "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 and "
        "sysctl -w user.max_user_namespaces=10000"
    )
