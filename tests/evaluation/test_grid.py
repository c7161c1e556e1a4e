"""A whole experiment from one file: its runs, their directories, failures, resuming."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from intercode import evaluate
from intercode.cli import main
from intercode.core import trajectories
from intercode.core.config import EvalConfig
from intercode.core.errors import (
    ConfigError,
    SandboxUnavailableError,
    UnknownNameError,
    UsageError,
)
from intercode.evaluation.evaluate import grid as grid_module
from intercode.evaluation.evaluate.grid import read_grid, run_grid

OUT = Path("runs/x")


def cells(**values: Any) -> dict[str, Any]:
    """Return the settings of the runs by their names."""
    grid = read_grid({"dataset": "starter", "agent": "gold", **values}, OUT)
    return {cell.name: cell.config for cell in grid.cells}


def test_every_combination_is_a_run_of_its_own() -> None:
    found = cells(
        model_options={"top_p": 0.5},
        grid={
            "agent": ["try-again", "react"],
            "model": ["openai/a", {"model": "b", "base_url": "http://localhost:1/v1"}],
            "model_options": {"temperature": [0.0, 0.7]},
        },
    )
    assert len(found) == 8
    config = found["react-b-temperature-0.7"]
    assert (config.agent, config.model, config.base_url) == ("react", "b", "http://localhost:1/v1")
    assert config.model_options == {"top_p": 0.5, "temperature": 0.7}
    assert config.out == OUT / "react-b-temperature-0.7"
    assert found["try-again-openai-a-temperature-0.0"].base_url is None


def test_options_vary_as_tables_and_datasets_are_named_by_their_file() -> None:
    found = cells(
        grid={
            "dataset": ["a/sums.jsonl", "starter:sql"],
            "agent_options": [{}, {"refine": 2}],
            "profile": ["standard", "original"],
        }
    )
    assert len(found) == 8
    assert found["sums.jsonl-refine-2-original"].dataset == "a/sums.jsonl"
    assert found["starter-sql-no-agent_options-standard"].agent_options == {}


def test_cells_with_equal_names_get_stable_directories() -> None:
    found = list(cells(grid={"dataset": ["a/x.json", "b/x.json"]}))
    assert all(re.fullmatch(r"x\.json-[0-9a-f]{6}", name) for name in found)
    more = list(cells(grid={"dataset": ["c/x.json", "a/x.json", "b/x.json"]}))
    assert set(found) < set(more)


@pytest.mark.parametrize(
    ("grid", "said"),
    [
        ({}, "is not a table of lists"),
        ([1], "is not a table of lists"),
        ({"agent": "gold"}, r"grid\.agent = 'gold' is not a list"),
        ({"agent": []}, "is not a list"),
        ({"model_options": {"temperature": 1}}, r"options\.temperature = 1 is not a list"),
        ({"agent": ["gold", "gold"]}, "the same run twice"),
        ({"model": [{"base_url": "http://x"}]}, "has to set model itself"),
        ({"max_cost": [1, 0]}, "max_cost-0: max_cost = 0 must be greater than 0"),
    ],
)
def test_invalid_grids_are_refused(grid: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        cells(grid=grid)


def test_a_list_outside_of_the_grid_is_sent_there() -> None:
    with pytest.raises(ConfigError, match=r"put the list in a table \[grid\]"):
        EvalConfig(["starter:bash", "starter:sql"], "gold")  # type: ignore[arg-type]


def test_a_setting_of_the_environment_varies_under_its_name() -> None:
    found = cells(env_options={"image": "host"}, grid={"session": ["fresh", "persistent"]})
    assert {name: c.env_options["session"] for name, c in found.items()} == {
        "fresh": "fresh",
        "persistent": "persistent",
    }
    assert all(c.env_options["image"] == "host" for c in found.values())


def test_a_setting_that_cannot_vary_is_named() -> None:
    with pytest.raises(UnknownNameError, match="'parallel'"):
        cells(grid={"parallel": [1, 2]})


@pytest.mark.sandbox
def test_a_cell_with_wrong_settings_stops_the_experiment_before_it_begins(
    squares: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "both.toml"
    file.write_text(
        f'dataset = "{squares}"\nlimit = 2\nout = "{tmp_path / "out"}"\n'
        '[grid]\nagent = ["gold", "single-turn", "noop"]\n'
    )
    words = ["eval", "--config", str(file)]
    assert main([*words, "--dry-run"]) == 1
    printed, said = capsys.readouterr()
    assert "all 2 runs" in printed and "4 to play" in printed
    assert "single-turn cannot be played: the agent 'single-turn' needs model" in said
    assert not (tmp_path / "out").exists()
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "1 of 3 runs cannot be played" in said and "single-turn: the agent" in said
    assert '{dataset = "starter:bash", image = "host"}' in said
    assert not (tmp_path / "out").exists()


@pytest.mark.sandbox
def test_runs_that_cannot_be_played_for_one_reason_are_named_together(
    squares: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "model.py"
    file = tmp_path / "both.toml"
    file.write_text(
        f'dataset = "{squares}"\nlimit = 1\nmax_turns = 1\nout = "{tmp_path / "out"}"\n'
        f'model = "{model}:answer"\n[grid]\nagent = ["try-again", "react"]\n'
    )
    for end, status in (("", 0), ("# another", 2)):
        model.write_text(f"def answer(messages):\n    return 'no code'\n{end}\n")
        assert main(["eval", "--config", str(file)]) == status
    said = capsys.readouterr().err
    assert said.count("changed since. Give another --out DIR") == 1
    assert "try-again, react: its directory contains a run" in said and "[grid]" not in said


def test_several_datasets_are_a_grid(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "starter:bash", "starter:sql"]) == 2
    assert "from the [grid] of a file: --config FILE" in capsys.readouterr().err
    with pytest.raises(UsageError, match=r"the \[grid\] of a file"):
        evaluate(["starter:bash", "starter:sql"])  # type: ignore[arg-type]


@pytest.mark.sandbox
def test_a_cell_that_fails_does_not_stop_the_others(
    squares: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = tmp_path / "both.toml"
    file.write_text(
        f'dataset = "{squares}"\nlimit = 2\nout = "{tmp_path / "out"}"\n'
        '[grid]\nagent = ["gold", "single-turn", "noop"]\n'
    )
    words = ["eval", "--config", str(file)]
    make_plan, planned = grid_module.make_plan, []

    def fail_for_single_turn(config: EvalConfig, *args: Any, **settings: Any) -> Any:
        planned.append(config.agent)
        if config.agent == "single-turn":
            raise SandboxUnavailableError("no tier works")
        return make_plan(config, *args, **settings)

    monkeypatch.setattr(grid_module, "make_plan", fail_for_single_turn)
    assert main(words) == 1
    printed, said = capsys.readouterr()
    assert "3 runs in" in printed and "2 done, 1 failed" in printed
    assert planned == ["gold", "single-turn", "noop"]
    assert "[2/3 single-turn] failed: SandboxUnavailableError" in said
    assert "[3/3 noop] 2/2 done" in said
    assert "Once the cause is removed, the same command plays what is missing." in said
    for name in ("gold", "noop"):
        log = tmp_path / "out" / name / trajectories.TRAJECTORIES_FILE
        assert log.read_bytes().count(b"\n") == 2
    assert "single-turn" in (tmp_path / "out" / "README.txt").read_text()
    assert main([*words, "--agent", "gold", "--limit", "3"]) == 0  # extends one run only
    assert "1 runs in" in capsys.readouterr().out
    log = tmp_path / "out" / "gold" / trajectories.TRAJECTORIES_FILE
    assert log.read_bytes().count(b"\n") == 3


@pytest.mark.sandbox
def test_a_grid_resumes_where_it_stopped(squares: str, tmp_path: Path) -> None:
    values = {"dataset": squares, "limit": 2, "grid": {"agent": ["gold", "noop"]}}
    states = [r.state for r in run_grid(read_grid(values, tmp_path / "out"), quiet=True)]
    assert states == ["done", "done"]
    wider = {**values, "limit": 3, "grid": {"agent": ["gold", "noop"], "timeout": [10.0]}}
    results = run_grid(read_grid(wider, tmp_path / "out"), quiet=True)
    assert [r.cell.name for r in results] == ["gold-timeout-10.0", "noop-timeout-10.0"]
    wider["grid"] = values["grid"]
    run_grid(read_grid(wider, tmp_path / "out"), quiet=True)
    log = tmp_path / "out" / "gold" / trajectories.TRAJECTORIES_FILE
    assert [
        t.index for t in sorted(trajectories.read_trajectories(log), key=lambda t: t.index)
    ] == [0, 1, 2]
