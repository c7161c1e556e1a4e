"""The product without the folder ``intercode/paper`` and its entry points."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from intercode.core.packages import GYM
from intercode_sandbox import plugins
from intercode_sandbox.plugins import Plugin
from intercode_sandbox.registry import Registry
from test_architecture import MODULES, package_of

HIDE = 'import sys\nsys.modules["intercode.paper"] = None\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory that hides the entry points of the product."""
    folder = tmp_path_factory.mktemp("without_paper")
    info = folder / "intercode_gym-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {GYM}\nVersion: 0\n")
    return folder


def run(folder: Path, code: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", HIDE + code], env=environment, cwd=folder, capture_output=True,
        text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.heavy
def test_every_other_module_is_imported(folder: Path) -> None:
    elsewhere = ("intercode.integrations.harbor", "intercode.integrations.verifiers")
    names = [  # those two have virtual environments of their own
        name
        for name in MODULES
        if package_of(name) not in ("paper", "lab")
        and not name.endswith("__main__")
        and not name.startswith(elsewhere)
    ]
    run(folder, f"import importlib\nfor n in {names!r}: importlib.import_module(n)")


def test_episodes_are_played_and_scored(folder: Path) -> None:
    code = """
import intercode
with intercode.make("sql") as env:
    env.reset(options={"task": 0})
    env.step(env.task.golds[0])
    print(env.submit()[1])
"""
    assert run(folder, code) == "1.0\n"


def test_what_is_missing_is_an_unknown_name(folder: Path) -> None:
    code = """
import json
from pathlib import Path
import intercode
from intercode.core import UsageError, load_log
from intercode.results.export import FORMATS
from intercode.results.report import REPORTS
try:
    intercode.make("sql", profile="original")
except UsageError as e:
    print(e)
log = Path("log.json")
log.write_text(json.dumps({"0": {"turn_history": {}}}))
try:
    load_log(log)
except UsageError as e:
    print(e)
print("authors" in FORMATS, list(REPORTS))
"""
    profile, log, rest = run(folder, code).splitlines()
    assert profile == "unknown profile 'original'; known: standard"
    assert log == "log.json: holds a dict, not episodes"
    assert rest == "False []"


def test_a_name_of_the_product_precedes_that_of_a_plug_in(monkeypatch: pytest.MonkeyPatch) -> None:
    names = (
        Plugin("a", "os.path:split", "acme 1"),
        Plugin("a", "os.path:join", f"{GYM} 2"),
        Plugin("b", "os.path:split", "acme 1"),
        Plugin("b", "os.path:join", "other 1"),
    )
    monkeypatch.setattr(plugins, "find_plugins", lambda _group: names)
    table = Registry("thing", {}, group="g", owner=GYM)
    assert table.load("a").__name__ == "join" and table.origin("a") == ""
    assert table.load("b").__name__ == "split"
    assert [(p.name, p.origin) for p in table.shadowed_plugins()] == [
        ("a", "acme 1"),
        ("b", "other 1"),
    ]
