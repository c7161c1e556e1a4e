"""The image `host` shows the machine's programs, but no file that tasks were read from."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import intercode
from intercode import datasets
from support.sandboxes import open_test_sandbox

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.skipif(not os.access("/usr/share", os.W_OK), reason="writes below /usr"),
]
_ROW = json.dumps({"query": "Print the word.", "gold": "echo planted-gold"})
Plant = Callable[[str], Path]


@pytest.fixture
def plant() -> Iterator[Plant]:
    """A function that makes an own directory in a directory of the machine."""
    made: list[Path] = []

    def make(parent: str) -> Path:
        made.append(Path(tempfile.mkdtemp(prefix="intercode-test-", dir=parent)))
        made[-1].chmod(0o755)
        return made[-1]

    yield make
    for folder in made:
        shutil.rmtree(folder)


def _write_rows(folder: Path) -> Path:
    rows = folder / "tasks.jsonl"
    rows.write_text(_ROW)
    rows.with_name("solution.sh").write_text("echo planted-gold")
    return rows


@pytest.mark.parametrize("parent", ["/usr/share", "/usr/src", "/usr/local", "/usr/local/share"])
def test_an_agent_finds_no_dataset_in_usr(plant: Plant, parent: str) -> None:
    rows = _write_rows(plant(parent))
    with intercode.make("bash", dataset=str(rows)) as env:
        env.reset(options={"task": 0})
        found = env.step(f"cat {rows} {rows.parent}/* ; ls {parent} > /dev/null && echo over")[0]
    assert "planted-gold" not in found and "over" in found


def test_a_file_among_programs_is_hidden_alone(plant: Plant) -> None:
    folder = plant("/usr/share")
    rows = Path("/usr/share") / f"{folder.name}.jsonl"
    try:
        rows.write_text(_ROW)
        datasets.load(str(rows))
        with open_test_sandbox() as sandbox:
            assert sandbox.run(["cat", str(rows)]).output == ""
            assert sandbox.run(["ls", "/usr/share"]).output.count("\n") > 5
    finally:
        rows.unlink()


def test_the_package_of_a_loader_is_hidden(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = plant("/usr/share")
    package = folder / f"tasks_{folder.name[-6:].lower()}"
    (package / "loaders").mkdir(parents=True)
    for file in (package / "__init__.py", package / "loaders" / "__init__.py"):
        file.write_text("")
    (package / "golds.txt").write_text("planted-gold")
    (package / "loaders" / "rows.py").write_text(
        "from intercode.core.types import Dataset, Task\n"
        "def load():\n    return Dataset('x', 'bash', (Task('x/0', 'q', gold='true'),))\n"
    )
    monkeypatch.syspath_prepend(str(folder))
    datasets.load(f"{package.name}.loaders.rows:load")
    with open_test_sandbox() as sandbox:
        found = sandbox.run(["sh", "-c", f"cat {package}/golds.txt; ls -A {package}"])
    assert "planted-gold" not in found.output and not found.output.count("loaders")


def test_sources_of_the_machine_are_hidden(plant: Plant) -> None:
    folder = plant("/usr/src")
    (folder / "gold").write_text("planted-gold")
    with open_test_sandbox() as sandbox:
        assert sandbox.run(["ls", "-A", "/usr/src"]).output == ""
