"""Figures: the same bytes from the same episodes, named series, comparable rows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from intercode.core import trajectories
from intercode.core.types import Score, Step, Trajectory, Usage

pytestmark = pytest.mark.heavy
pytest.importorskip("matplotlib", reason="needs the extra data")
plots = pytest.importorskip("intercode.results.report.plots")


def _run(directory: Path, model: str, cost: float | None, **meta: str) -> Path:
    metadata = {
        "environment": "bash",
        "dataset": "nl2bash",
        "agent": "react",
        "model": model,
        **meta,
    }
    trajectories.write_run_metadata(directory, metadata)
    for n in range(8):
        usage = Usage(10, 5, 1, cost=cost)
        steps = (
            Step("a", "b", score=Score(0.0), usage=usage),
            Step("a", "b", score=Score(float(n % 2))),
        )
        episode = Trajectory(f"nl2bash/fs_{n % 2 + 1}/{n}", n, "q", steps, group=f"fs_{n % 2 + 1}")
        trajectories.append_trajectory(directory / trajectories.TRAJECTORIES_FILE, episode)
    return directory


@pytest.mark.paper
@pytest.mark.slow
def test_the_published_logs_give_figures_that_are_the_same_every_time(
    recorded_dir: Path, tmp_path: Path
) -> None:
    files = plots.save_plots([recorded_dir / "bash"], tmp_path / "a")
    again = plots.save_plots([recorded_dir / "bash"], tmp_path / "b")
    names = [f"nl2bash-by-{what}.{kind}" for what in ("turn", "group") for kind in ("svg", "png")]
    assert [f.name for f in files] == names
    for one, two in zip(files, again, strict=True):
        assert one.read_bytes() == two.read_bytes()
        if one.suffix == ".png":
            assert one.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
            continue
        text = one.read_text()
        assert "try-again, gpt-4 (53 tasks)" in text and "react, gpt-3.5 (120 tasks)" in text
        assert "95 % intervals" in text and "different tasks" in text
        assert "<dc:date>" not in text
    assert "success, %" in files[2].read_text() and "fs_3" in files[2].read_text()


def test_only_known_costs_are_plotted(tmp_path: Path) -> None:
    known = _run(tmp_path / "a", "paid", 0.25)
    unknown = _run(tmp_path / "b", "own", None)
    files = plots.save_plots([known, unknown], tmp_path / "out")
    (cost,) = [f for f in files if f.name.endswith("cost.svg")]
    assert "react, paid" in cost.read_text() and "react, own" not in cost.read_text()
    assert "US dollars" in cost.read_text()
    files = plots.save_plots([unknown], tmp_path / "other")
    assert not any(f.name.endswith("cost.svg") for f in files)


def test_other_conditions_never_share_a_figure(tmp_path: Path) -> None:
    one = _run(tmp_path / "a", "m", None, profile="standard")
    two = _run(tmp_path / "b", "m", None, profile="original")
    files = plots.save_plots([one, two], tmp_path / "out")
    turns = [f for f in files if f.name.endswith("by-turn.svg")]
    assert [f.name for f in turns] == ["nl2bash-by-turn.svg", "nl2bash-set2-by-turn.svg"]
    assert [len(re.findall(r"react, m \(8 tasks\)", f.read_text())) for f in turns] == [1, 1]


def test_other_settings_may_differ_in_a_figure(tmp_path: Path) -> None:
    one = _run(tmp_path / "a", "m", None, generation={"temperature": 0.0})
    two = _run(tmp_path / "b", "m", None, generation={"temperature": 0.7})
    files = plots.save_plots([one, two], tmp_path / "out")
    (turns,) = [f for f in files if f.name.endswith("by-turn.svg")]
    assert {"react, m, temperature = 0.0", "react, m, temperature = 0.7"} <= {
        found.rpartition(" (")[0] for found in re.findall(r">(react, [^<]*)<", turns.read_text())
    }
