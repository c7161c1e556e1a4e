"""What a record says of an unknown environment: nothing of it breaks a report or reads a task."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from intercode.core.types import ActionLanguage, EnvironmentDescription, Task, Trajectory
from intercode.environments.recorded_descriptions import RECORD_KEY, description_of, stratum_of
from intercode.results.report.result_sets import SOURCE_RUN, ResultSet
from intercode.results.report.run_tables import run_tables

ODD: Sequence[Any] = (
    None,
    1,
    "steps",
    [],
    {},
    [1],
    [1, 2],
    ["nope"],
    ["steps"],
    ["solution"],
    ["group"],
    [["group"]],
    ["solution", "group"],
    ["group", "steps"],
    ["group", "hardness", "group"],
    {"group": 1},
)


def described(**said: Any) -> EnvironmentDescription:
    return description_of({"environment": "foreign", RECORD_KEY: said})


@pytest.mark.parametrize("odd", ODD)
def test_a_value_of_another_kind_is_the_default(odd: Any) -> None:
    found = described(**dict.fromkeys((*EnvironmentDescription.__slots__, "other"), odd))
    assert found.strata == ("group", "hardness")
    assert (found.image, found.observations) == ("shared", "text")
    assert all(type(text) is str for text in (*found.programs, *found.language.tags))
    assert all(type(text) is str for text in (found.judged, found.tool, found.argument))
    assert type(found.expects_answer) is bool
    task = Task("t", "q", "the gold", group="g")
    assert task.solution and stratum_of(task, found) == "g"


def test_values_of_the_kinds_are_taken() -> None:
    found = described(
        strata=["hardness", "group"],
        image="per-task",
        observations="rows",
        programs=["git"],
        language={"name": "basic", "tags": ["bas"]},
        expects_answer=True,
    )
    assert (found.strata, found.image) == (("hardness", "group"), "per-task")
    assert (found.observations, found.programs, found.expects_answer) == ("rows", ("git",), True)
    assert (found.language.name, found.language.tags) == ("basic", ("bas",))


@pytest.mark.parametrize("odd", ODD)
def test_a_record_breaks_no_report_and_hides_no_note(odd: Any) -> None:
    run = {
        "environment": "foreign",
        "dataset": "d",
        "agent": "a",
        "comparable": False,
        "image": "dir:/x",
        RECORD_KEY: {"strata": odd, "image": "none", "observations": odd},
    }
    episodes = tuple(
        Trajectory(f"t{n}", n, "q", (), "submitted", run=run, group=f"g{n % 2}") for n in range(4)
    )
    row = ResultSet("foreign", "d", "a", "m", "none", SOURCE_RUN, Path("x.jsonl"), episodes)
    text = "\n".join(map(str, run_tables([row])))
    assert "not comparable: " in text
    assert "g0" in text and "g1" in text


def test_a_wrong_type_is_named_when_a_description_is_written() -> None:
    with pytest.raises(TypeError, match=r"an ActionLanguage, such as .* not 'jq'"):
        EnvironmentDescription("jq")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"such as \('jq',\), not a text"):
        ActionLanguage("jq", tags="jq")  # type: ignore[arg-type]
