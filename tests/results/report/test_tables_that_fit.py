"""Tables of many runs fit a page, a column and pandas."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from intercode.core import trajectories
from intercode.core.types import Score, Step, Trajectory, Usage
from intercode.results import report
from intercode.results.latex import COLUMN_WIDTH, width
from intercode.results.tables import Table

CONDITIONS = "nl2bash:verified#aaaaaaaa, standard bash-2, nl2bash@0123456789ab, x86_64, namespace/1"
USAGE = Usage(1000, 200, requests=1, cost=0.002)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment: five models at five temperatures, with epochs; one has an error."""
    root = tmp_path_factory.mktemp("runs")
    for number in range(25):
        meta = {
            "environment": "bash",
            "dataset": "nl2bash:verified",
            "dataset_hash": "a" * 12,
            "profile": "standard",
            "scoring": "bash-2",
            "image": "nl2bash",
            "arch": "x86_64",
            "image_digest": "sha256:0123456789abcdef",
            "tier": "namespace/1",
            "agent": "try-again",
            "model": f"provider/model-{number // 5}-large",
            "comparable": True,
            "generation": {"temperature": number % 5 / 4},
        }
        directory = root / f"run-{number}"
        trajectories.write_run_metadata(directory, meta)
        for n in range(12):
            step = Step("x", "y", score=Score(float((n + number) % 3 == 0)), usage=USAGE)
            failed = number == 7 and n == 3
            episode = Trajectory(
                f"nl2bash/{n}",
                n,
                "q",
                () if failed else (step,),
                epoch=n % 2,
                group=f"fs_{n % 4}",
                end="error" if failed else "submitted",
                error="lost" if failed else None,
            )
            trajectories.append_trajectory(directory / "trajectories.jsonl", episode)
    return root


def tables_of(runs: Path) -> list[Table]:
    return report.build([runs])


def test_25_runs_fit_a_page_of_text(runs: Path) -> None:
    (table, groups) = tables_of(runs)
    lines = report.render([table, groups]).splitlines()
    assert len(lines) <= 66 and len(table.rows) == 25
    rows = [line for line in lines if line.startswith("model-")]
    assert len(rows) == 50 and max(map(len, rows)) <= 100
    assert sum(CONDITIONS in line for line in lines) == 2
    assert lines[1] == f"agent try-again; model provider/...; {CONDITIONS}; tasks 12"
    assert "temperature" in lines[3]
    assert lines[6].split()[:5] == ["model-0-large", "0.25", "33.3", "[14,", "61]"]
    assert "1200  0.0020" in lines[6]


def test_latex_fits_a_column(runs: Path) -> None:
    (table, _) = tables_of(runs)
    text = report.render([table], "latex")
    assert "\\begin{table}" in text and "table*" not in text
    shown = table.for_reading()
    assert width(shown) > COLUMN_WIDTH, "nothing had to be left out"
    assert "Left out for the width: error" in text and "success" in text and "cost" in text
    wide = Table("w", "w", tuple(f"column-{n}" for n in range(12)), ((1.0,) * 12,))
    assert "\\begin{table*}" in report.render([wide], "latex")


def test_the_estimate_of_widths_is_near_that_of_the_font(runs: Path) -> None:
    """Measured with Computer Modern at 8 points, which matplotlib has."""
    pytest.importorskip("matplotlib", reason="needs the extra data")
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    (table, _) = tables_of(runs)
    shown = table.for_reading(("first turn",))
    font = FontProperties(family="cmr10", size=8)
    columns = [
        [*name.split(), *(row[n].strip() for row in shown.rows)]
        for n, name in enumerate(shown.columns)
    ]
    measured = [
        max(TextPath((0, 0), text, prop=font).get_extents().width for text in column)
        for column in columns
    ]
    assert sum(measured) + 6 * len(columns) == pytest.approx(width(shown), rel=0.1)


def test_pandas_reads_the_csv_as_it_is(runs: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="needs the extra data")
    tables = tables_of(runs)
    frame = pandas.read_csv(io.StringIO(report.render(tables, "csv")))
    own = frame[frame.table == "nl2bash:verified"]
    assert len(own) == 25 and own.success.between(own.low, own.high).all()
    (first,) = (t for t in json.loads(report.render(tables, "json")) if "/" not in t["name"])
    assert list(own.success) == [row["success"] for row in first["rows"]]
    assert own.errors.sum() == 1 and own.tokens.mean() == pytest.approx(1200)
