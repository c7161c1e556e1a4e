"""Small tasks that the tests of runs play."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from intercode.core import trajectories
from intercode.core.types import Trajectory


@pytest.fixture
def squares(tmp_path: Path) -> str:
    """A file of eight small tasks, ``sums/0`` to ``sums/7``."""
    path = tmp_path / "sums.jsonl"
    rows = [{"query": f"print {n} squared", "gold": f"echo $(({n}*{n}))"} for n in range(8)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture
def episodes_of() -> Callable[[Path], list[Trajectory]]:
    """Return the contents of a run's directory."""

    def read(out: Path) -> list[Trajectory]:
        return list(trajectories.read_trajectories(out / trajectories.TRAJECTORIES_FILE))

    return read
