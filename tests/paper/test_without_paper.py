"""The product without the folder ``intercode/paper`` and its entry points."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from intercode.core.packages import GYM_DISTRIBUTION
from intercode_sandbox import plugins
from intercode_sandbox.plugins import Plugin
from intercode_sandbox.registry import Registry
from support.without_paper import copy_without_paper
from test_architecture import MODULES, package_of

Run = Callable[..., str]
PARTS = (
    "agents",
    "cli",
    "core",
    "datasets",
    "environments",
    "evaluation",
    "models",
    "results",
    "sessions",
)
"""The folders of tests that are run without the authors' package."""
LEFT_OUT = ("heavy", "sandbox", "docker", "mysql", "browser", "rootfs", "network", "nl2bash")
"""Markers of tests that are not run without it, as in `make quick`."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a function that runs Python on a copy of the workspace without the package, and
    returns what it prints."""
    folder = tmp_path_factory.mktemp("without_paper")
    environment = copy_without_paper(folder)

    def run(*words: object, timeout: float = 600) -> str:
        done = subprocess.run(
            [sys.executable, *map(str, words)],
            env=environment,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr
        return done.stdout

    return run


@pytest.mark.heavy
def test_every_other_module_is_imported(run: Run) -> None:
    elsewhere = ("intercode.integrations.harbor", "intercode.integrations.verifiers")
    names = [  # those two have virtual environments of their own
        name
        for name in MODULES
        if package_of(name) not in ("paper", "lab")
        and not name.endswith("__main__")
        and not name.startswith(elsewhere)
    ]
    run("-c", f"import importlib\nfor n in {names!r}: importlib.import_module(n)")


def test_the_package_is_gone(run: Run) -> None:
    code = """
import importlib.util
from importlib.metadata import distribution
import intercode
print(intercode.__file__)
print(importlib.util.find_spec("intercode.paper"))
print([p for p in distribution("intercode-gym").entry_points if "intercode.paper" in p.value])
"""
    file, spec, points = run("-c", code).splitlines()
    assert not Path(file).is_relative_to(Path(__file__).parents[2])
    assert (spec, points) == ("None", "[]")


def test_what_is_missing_is_an_unknown_name(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    log.write_text(json.dumps({"0": {"turn_history": {}}}))
    code = f"""
from pathlib import Path
import intercode
from intercode.core import UsageError, load_log
from intercode.results.export import FORMATS
from intercode.results.report import REPORTS
try:
    intercode.make("sql", profile="original")
except UsageError as e:
    print(e)
try:
    load_log(Path({str(log)!r}))
except UsageError as e:
    print(e)
print("authors" in FORMATS, list(REPORTS))
"""
    profile, log_error, rest = run("-c", code).splitlines()
    assert profile == "unknown profile 'original'; known: standard"
    assert log_error == f"{log}: holds a dict, not episodes"
    assert rest == "False []"


@pytest.mark.slow
@pytest.mark.sandbox
def test_an_evaluation_is_played_reported_and_replayed(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run("-m", "intercode", "eval", "starter", "--agent", "gold", "--out", out)
    assert "starter" in run("-m", "intercode", "report", out)
    run("-m", "intercode", "replay", out)
    code = f"""
from pathlib import Path
from intercode.core import load_log
episodes = list(load_log(Path({str(out)!r})))
print(len(episodes), sum(e.success for e in episodes))
"""
    played, solved = map(int, run("-c", code).split())
    assert played == solved > 10


@pytest.mark.slow("long")
def test_the_unit_tests_pass(run: Run) -> None:
    """All but those of the package itself, and those that the marker ``paper`` skips."""
    markers = " and not ".join(("not slow", *LEFT_OUT))
    printed = run(
        *("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", markers),
        *(f"tests/{part}" for part in PARTS),
        timeout=3600,
    )
    passed = re.search(r"(\d+) passed", printed)
    assert passed and int(passed[1]) > 1000, printed


def test_a_name_of_the_product_precedes_that_of_a_plug_in(monkeypatch: pytest.MonkeyPatch) -> None:
    names = (
        Plugin("a", "os.path:split", "acme 1"),
        Plugin("a", "os.path:join", f"{GYM_DISTRIBUTION} 2"),
        Plugin("b", "os.path:split", "acme 1"),
        Plugin("b", "os.path:join", "other 1"),
    )
    monkeypatch.setattr(plugins, "find_plugins", lambda _group: names)
    table = Registry("thing", {}, group="g", owner=GYM_DISTRIBUTION)
    assert table.load("a").__name__ == "join" and table.origin("a") == ""
    assert table.load("b").__name__ == "split"
    assert [(p.name, p.origin) for p in table.shadowed_plugins()] == [
        ("a", "acme 1"),
        ("b", "other 1"),
    ]
