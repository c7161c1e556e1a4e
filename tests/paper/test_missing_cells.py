"""The published logs fill every cell of the paper's tables, or the report names it as missing."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

import pytest

from intercode.results import report
from intercode.results.tables import Table

NEAR = 0.1 + 1e-9  # the paper rounds some figures and truncates others

# The figures of the paper: Single by group and all, Try Again by group and all.
SQL = {
    "text-davinci-003": ((20.6, 4.9, 1.7, 0.0, 7.4), (32.4, 14.6, 5.2, 4.2, 15.6)),
    "gpt-3.5": ((22.6, 8.3, 5.7, 3.6, 10.5), (72.5, 44.3, 43.7, 21.1, 47.3)),
    "gpt-4": ((19.8, 7.2, 4.6, 3.0, 9.1), (87.5, 76.7, 66.7, 52.4, 73.7)),
    "text-bison-001": ((23.8, 10.9, 5.7, 0.6, 11.5), (27.0, 12.3, 5.7, 0.6, 12.9)),
    "chat-bison-001": ((18.5, 6.5, 4.0, 0.0, 7.9), (22.2, 7.8, 6.9, 0.0, 9.9)),
    "vicuna": ((8.1, 1.3, 0.6, 0.0, 2.6), (18.9, 3.4, 1.7, 0.0, 6.3)),
    "starchat": ((21.8, 7.4, 2.9, 0.0, 8.9), (22.3, 8.5, 2.9, 1.2, 9.7)),
}
BASH = {
    "text-davinci-003": ((10.0, 32.1, 28.8, 33.3, 24.6), (30.0, 52.8, 32.2, 44.4, 38.7)),
    "gpt-3.5": ((30.0, 39.6, 33.3, 37.0, 34.5), (45.0, 49.1, 45.0, 48.1, 46.5)),
    "gpt-4": ((25.0, 37.7, 36.7, 40.7, 34.0), (41.7, 47.2, 51.7, 59.2, 48.5)),
    "text-bison-001": ((15.0, 22.6, 11.7, 22.2, 17.0), (23.3, 28.3, 16.7, 22.2, 22.5)),
    "chat-bison-001": ((12.1, 22.5, 16.7, 22.2, 17.7), (13.8, 24.5, 18.3, 22.2, 19.2)),
    "vicuna": ((10.0, 24.5, 18.3, 7.4, 16.0), (15.0, 35.8, 25.0, 22.2, 24.5)),
    "starchat": ((15.5, 22.6, 13.3, 22.2, 17.7), (17.2, 30.2, 21.7, 29.6, 23.7)),
}
HARDNESS = ("easy", "medium", "hard", "extra", "all")
SYSTEMS = ("fs_1", "fs_2", "fs_3", "fs_4", "all")
STRATEGIES = {
    ("sql", "try-again"): (47.3, 7.25, 46.4),
    ("sql", "react"): (58.7, 5.30, 6.94),
    ("sql", "plan-solve"): (49.1, 4.29, 16.2),
    ("bash", "try-again"): (46.5, 6.15, 24.9),
    ("bash", "react"): (20.5, 4.40, 20.4),
    ("bash", "plan-solve"): (28.0, 6.65, 53.3),
    ("sql", "plan-solve-refine"): (45.5, 6.34, 22.4),
}
FIGURES = ("success %", "turns", "error %")
SCHEMA_GIVEN = {"gpt-3.5": 72.8, "text-bison-001": 63.9, "chat-bison-001": 54.9}
SOLVED = {
    "ic_sql_multiturn_human_10_turns.json": (15, 13),
    "ic_ctf_multiturn_gpt-4_10_turns.json": (93, 37),
    "ic_ctf_multiturn_gpt-4_25_turns.json": (4, 3),
    "ic_python_multiturn_gpt-3.5_7_turns.json": (117, 69),
    "ic_python_multiturn_gpt-4_7_turns.json": (119, 70),
}

Cells = dict[tuple[str, str, str], float]


def _paper() -> Cells:
    """Return (table, row, cell) -> the value that the paper prints."""
    out: Cells = {}
    for table, models, names in (
        ("SQL by hardness", SQL, HARDNESS),
        ("Bash by file system", BASH, SYSTEMS),
    ):
        for model, sides in models.items():
            for side, figures in zip(("Single", "Try"), sides, strict=True):
                for name, figure in zip(names, figures, strict=True):
                    out[table, f"{model}, {side}", name] = figure
    for (environment, agent), figures in STRATEGIES.items():
        for name, figure in zip(FIGURES, figures, strict=True):
            out["strategies", f"{environment}, {agent}, gpt-3.5", name] = figure
    out |= {("SQL, schema given", f"{model}, Try", "all"): f for model, f in SCHEMA_GIVEN.items()}
    for log, (tasks, solved) in SOLVED.items():
        out["logs", log, "tasks"], out["logs", log, "solved"] = tasks, solved
    return out


@cache
def _built(path: Path) -> dict[str, Table]:
    return {t.name: t for t in report.build([path])}


def _given(tables: dict[str, Table], cell: tuple[str, str, str]) -> object:
    """Return the value of a cell of the paper in the report; None if the report has no such row."""
    table, row, name = cell
    try:
        if table == "logs":
            return tables["logs"].cell(name, log=row)
        if table == "strategies":
            environment, agent, model = row.split(", ")
            where = {"environment": environment, "agent": agent, "model": model}
            return tables["strategies"].cell(name, **where)
        model, side = row.split(", ")
        split = "spider" if table.startswith("SQL") else "nl2bash"
        kind = "schema" if table == "SQL, schema given" else "success"
        given = " (schema given)" if kind == "schema" else ""
        return tables[f"{split}-{kind}"].cell(f"{side} {name}", model=model + given)
    except (KeyError, ValueError):
        return None


def _named(table: Table) -> dict[tuple[str, str, str], str]:
    """Return the cells that the report names as missing, with the logs that could fill them."""
    return {
        (str(where), str(row), cell): str(log)
        for where, row, cells, log in table.rows
        for cell in str(cells).split(", ")
    }


def test_every_cell_is_given_within_a_tenth_or_named_as_missing(recorded_dir: Path) -> None:
    tables = _built(recorded_dir)
    named = _named(tables["missing-cells"])
    given = 0
    for cell, figure in _paper().items():
        if cell in named:
            continue
        assert _given(tables, cell) == pytest.approx(figure, abs=NEAR), cell
        given += 1
    assert given == 5 + 8 + 9 + 6  # SQL, Bash, strategies, the other logs
    assert named.keys() - _paper().keys() == {
        ("SQL, schema given", f"{model}, Try", group)
        for model in SCHEMA_GIVEN
        for group in HARDNESS[:-1]
    }  # the paper has it for all tasks only


def test_a_named_cell_is_one_that_the_tables_do_not_hold(recorded_dir: Path) -> None:
    tables = _built(recorded_dir)
    for cell in _named(tables["missing-cells"]):
        # the report shows first turns in these cells and says so
        if cell[:2] != ("SQL by hardness", "gpt-3.5, Single"):
            assert _given(tables, cell) is None, cell


@pytest.mark.slow
def test_the_log_that_is_named_gives_the_cells(recorded_dir: Path, tmp_path: Path) -> None:
    """A log under the name that the report gives, here with other episodes, fills the cells."""
    for log in (recorded_dir / "sql").iterdir():
        shutil.copy(log, tmp_path)
    log = recorded_dir / "sql" / "ic_sql_multiturn_gpt-3.5_10_turns.json"
    requested = {
        ("SQL by hardness", "gpt-4, Try", "all"),
        ("SQL, schema given", "text-bison-001, Try", "all"),
        ("strategies", "sql, plan-solve-refine, gpt-3.5", "turns"),
    }
    before = _named(_built(recorded_dir)["missing-cells"])
    for cell in requested:
        shutil.copy(log, tmp_path / before[cell])
    tables = {t.name: t for t in report.build([tmp_path])}
    assert requested.isdisjoint(_named(tables["missing-cells"]))
    assert _given(tables, ("SQL by hardness", "gpt-4, Try", "all")) == pytest.approx(47.3, abs=NEAR)
    given = _given(tables, ("SQL, schema given", "text-bison-001, Try", "hard"))
    assert given == pytest.approx(43.7, abs=NEAR)


def test_where_no_log_is_published_nothing_is_missing(tmp_path: Path) -> None:
    from intercode.core import trajectories
    from intercode.core.types import Score, Step, Trajectory

    run = tmp_path / "run"
    trajectories.write_run_metadata(
        run, {"environment": "bash", "dataset": "nl2bash", "agent": "react"}
    )
    episode = Trajectory(
        "nl2bash/fs_1/0", 0, "q", (Step("x", "y", score=Score(1.0)),), group="fs_1"
    )
    trajectories.append_trajectory(run / trajectories.TRAJECTORIES_FILE, episode)
    assert "missing-cells" not in {t.name for t in report.build([run])}


def test_a_run_with_the_schema_in_the_prompt_has_a_table_of_its_own(tmp_path: Path) -> None:
    from intercode.core import trajectories
    from intercode.core.types import Score, Step, Trajectory

    run = tmp_path / "run"
    meta = {"environment": "sql", "dataset": "spider:schema", "agent": "try-again", "model": "m"}
    trajectories.write_run_metadata(run, meta)
    for n, hardness in enumerate(HARDNESS[:-1]):
        steps = (Step("x", "y", score=Score(float(n == 0))),)
        episode = Trajectory(f"spider/{n}", n, "q", steps, hardness=hardness)
        trajectories.append_trajectory(run / trajectories.TRAJECTORIES_FILE, episode)
    tables = {t.name: t for t in report.build([run])}
    assert tables["spider-schema"].cell("Try easy", model="m (schema given)") == 100.0
    assert tables["spider-schema"].cell("Try all") == 25.0
    assert "spider-success" not in tables
