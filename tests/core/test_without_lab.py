"""The package without the plug-in intercode-lab, as it is after that has become a package."""

from __future__ import annotations

import configparser
import json
import os
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

import intercode
from intercode.core.packages import LAB as PACKAGE
from intercode_sandbox import plugins
from intercode_sandbox.plugins import Plugin
from intercode_sandbox.registry import OWN_DISTRIBUTION, Registry
from test_architecture import LAB, in_lab

ROOT = Path(intercode.__file__).parent


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with this package and its metadata, without the lab."""
    folder = tmp_path_factory.mktemp("without_lab")
    removed = {ROOT.joinpath(*part.split(".")) for part in LAB}
    removed |= {path.with_suffix(".py") for path in removed}
    _link(ROOT, folder / "intercode", removed)
    own = distribution(OWN_DISTRIBUTION)
    points = configparser.ConfigParser(delimiters=("=",), interpolation=None)
    points.optionxform = str  # type: ignore[assignment]
    points.read_string(own.read_text("entry_points.txt") or "")
    for group in points.sections():
        for name, reference in points.items(group):
            if in_lab(reference.partition(":")[0]):
                points.remove_option(group, name)
    info = folder / f"intercode_gym-{own.version}.dist-info"
    info.mkdir()
    info.joinpath("METADATA").write_text(own.read_text("METADATA") or "")
    with info.joinpath("entry_points.txt").open("w") as out:
        points.write(out)
    return folder


def _link(source: Path, target: Path, removed: set[Path]) -> None:
    """Link everything below ``source`` into ``target``, without some paths."""
    target.mkdir()
    for path in source.iterdir():
        if path in removed or path.name == "__pycache__":
            continue
        if any(path in gone.parents for gone in removed):
            _link(path, target / path.name, removed)
        else:
            (target / path.name).symlink_to(path)


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *words], env=environment, cwd=folder, capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip


SEARCH = f"""
import importlib.util
import intercode
print(intercode.__file__)
for name in {[f"intercode.{part}" for part in LAB]!r}:
    try:
        assert importlib.util.find_spec(name) is None, name
    except ModuleNotFoundError:
        pass
"""


@pytest.mark.heavy
def test_the_lab_is_absent_and_the_package_is_imported(folder: Path) -> None:
    done = run(folder, "-c", SEARCH)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(folder)


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
    assert listed.returncode == 0 and not listed.stderr, listed.stderr
    assert "families" not in json.loads(listed.stdout)["datasets"]
    shown = run(folder, *words, "--help")
    assert shown.returncode == 0 and "    validity  " in shown.stdout
    pages = run(folder, *words, "view", str(out), "--html", str(folder / "page.html"))
    assert pages.returncode == 0, pages.stderr


REFUSED = {
    "the dataset 'families'": "eval families --agent gold",
    "the scheme of datasets 'families'": "check families:bash@seed=0..1",
    "the option 'check.draw'": "check families:bash --draw 2",
    "the option 'check.contamination'": "check --contamination",
    "the option 'run.variants'": "eval starter --agent gold --variants 2 --out other",
    "the reward of episodes 'variants'": "eval starter --agent gold --reward variants --out more",
    "the command 'audit'": "audit starter",
    "the command 'validity'": "validity labels.jsonl",
}


@pytest.mark.slow
@pytest.mark.parametrize("subject", REFUSED)
def test_what_the_lab_adds_says_what_to_install(folder: Path, subject: str) -> None:
    done = run(folder, "-m", "intercode", *REFUSED[subject].split())
    assert done.returncode == 2 and done.stdout == "", done.stderr
    message = f"intercode: {subject} is a part of {PACKAGE}, which is not installed: "
    assert done.stderr == f"{message}pip install {PACKAGE}\n"


def test_only_the_named_package_adds_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    names = (Plugin("a", "os.path:split", "acme 1"), Plugin("a", "os.path:join", "the-lab 2"))
    monkeypatch.setattr(plugins, "find_plugins", lambda _group: names)
    table = Registry("thing", {"z": "os:sep", "a": "the-lab", "b": "the-lab"}, group="g")
    assert list(table) == ["z", "a"] and "b" in table
    assert table.load("a").__name__ == "join" and table.origin("a") == "the-lab 2"
    assert [p.origin for p in table.shadowed_plugins()] == ["acme 1"]
