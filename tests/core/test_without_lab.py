"""The packages without the plug-in intercode-lab."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from intercode.core.packages import LAB as PACKAGE
from intercode_sandbox import plugins
from intercode_sandbox.plugins import Plugin
from intercode_sandbox.registry import Registry
from test_architecture import MODULES, package_of

STUB = """
raise ModuleNotFoundError("No module named 'intercode_lab'", name="intercode_lab")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory that hides the installed plug-in: its modules and its entry points."""
    folder = tmp_path_factory.mktemp("without_lab")
    (folder / "intercode_lab.py").write_text(STUB)
    info = folder / "intercode_lab-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: 0\n")
    return folder


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *words],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.mark.heavy
def test_every_module_is_imported_without_the_lab(folder: Path) -> None:
    elsewhere = ["intercode.integrations.harbor.provider", "intercode.integrations.verifiers"]
    if find_spec("duckdb") is None:
        elsewhere.append("intercode_sql.duckdb")
    names = [  # the first two have virtual environments of their own
        name
        for name in MODULES
        if package_of(name) != "lab"
        and not name.endswith("__main__")
        and not name.startswith(tuple(elsewhere))
    ]
    code = f"import importlib\nfor n in {names!r}: importlib.import_module(n)"
    done = run(folder, "-c", code)
    assert done.returncode == 0, done.stderr
    done = run(folder, "-c", "import intercode_lab.families")
    assert done.returncode and "No module named 'intercode_lab'" in done.stderr


@pytest.mark.slow
@pytest.mark.sandbox
def test_commands_work_without_the_lab(folder: Path) -> None:
    out = folder / "run"
    words = ("-m", "intercode")
    played = run(folder, *words, "eval", "starter", "--agent", "gold", "--out", str(out))
    assert played.returncode == 0, played.stderr
    assert run(folder, *words, "report", str(out)).returncode == 0
    checked = run(folder, *words, "check", "starter", "--limit", "2", "--json")
    assert checked.returncode == 0, checked.stderr
    assert json.loads(checked.stdout)["sound"]
    listed = run(folder, *words, "list", "--json")
    assert listed.returncode == 0 and not re.search("intercode.lab", listed.stderr)
    assert "families" not in json.loads(listed.stdout)["datasets"]
    shown = run(folder, *words, "--help")
    assert shown.returncode == 0 and "\n  check " in shown.stdout
    pages = run(folder, *words, "view", str(out), "--html", str(folder / "page.html"))
    assert pages.returncode == 0, pages.stderr


REFUSED = {
    "the dataset 'families'": "eval families --agent gold",
    "the option 'check.draw'": "check families:bash --draw 2",
    "the option 'check.contamination'": "check --contamination",
    "the option 'run.variants'": "replay run --variants 2",
    "the reward of episodes 'variants'": (
        "eval starter --agent gold --set reward=variants --out more"
    ),
    "the option 'check.audit'": "check starter --audit",
    "the option 'check.labels'": "check --labels labels.jsonl",
}


@pytest.mark.slow
@pytest.mark.parametrize("subject", REFUSED)
def test_what_the_lab_adds_says_what_to_install(folder: Path, subject: str) -> None:
    done = run(folder, "-m", "intercode", *REFUSED[subject].split())
    assert done.returncode == 2 and done.stdout == "", done.stderr
    message = f"intercode: {subject} is a part of {PACKAGE}, which is not installed: "
    assert f"{message}pip install {PACKAGE}" in done.stderr.splitlines()


def test_only_the_named_package_adds_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    names = (Plugin("a", "os.path:split", "acme 1"), Plugin("a", "os.path:join", "the-lab 2"))
    monkeypatch.setattr(plugins, "find_plugins", lambda _group: names)
    table = Registry("thing", {"z": "os:sep", "a": "the-lab", "b": "the-lab"}, group="g")
    assert list(table) == ["z", "a"] and "b" in table
    assert table.load("a").__name__ == "join" and table.origin("a") == "the-lab 2"
    assert [p.origin for p in table.shadowed_plugins()] == ["acme 1"]
