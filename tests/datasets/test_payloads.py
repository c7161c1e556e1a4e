"""The columns that an environment reads of a task: their types, and the errors that name them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from intercode import datasets
from intercode.core.errors import DataError
from intercode.core.types import Dataset, Payload, Task
from intercode.datasets.payloads import BashPayload, CodePayload, PythonPayload
from intercode.environments import BashEnv


@dataclass(frozen=True, kw_only=True)
class RoomPayload(Payload):
    """Every type of a field."""

    hint = "; see the page about rooms"
    name: str
    doors: int = 1
    height: float | None = None
    is_open: bool = False
    walls: tuple[str, ...] = ()
    exits: Mapping[str, Any] | None = None
    anything: Any = None


ROW: dict[str, Any] = {
    "name": "hall",
    "doors": 2,
    "height": 2.5,
    "is_open": True,
    "walls": ["north", "south"],
    "exits": {"up": 1},
    "anything": [1],
    "colour": "white",
}


def test_columns_become_fields_and_others_stay() -> None:
    task = Task("rooms/1", "Describe it.", data=ROW)
    room = RoomPayload.of(task)
    assert (room.name, room.doors, room.height, room.is_open) == ("hall", 2, 2.5, True)
    assert (room.walls, room.exits, room.anything) == (("north", "south"), {"up": 1}, [1])
    assert task.data["colour"] == "white" and not hasattr(room, "colour")


def test_a_column_that_is_absent_or_null_has_the_default() -> None:
    empty = dict.fromkeys(ROW, None) | {"name": "cell"}
    assert RoomPayload.of_row(empty, "row") == RoomPayload.of_row({"name": "cell"}, "row")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": None}, "no 'name'; found doors, height, .*; see the page about rooms"),
        ({"name": 3}, "'name' must be a text, not 3"),
        ({"doors": "2"}, "'doors' must be a whole number, not '2'"),
        ({"doors": True}, "'doors' must be a whole number, not True"),
        ({"height": "high"}, "'height' must be a number, not 'high'"),
        ({"is_open": 1}, "'is_open' must be true or false, not 1"),
        ({"walls": "north"}, "'walls' must be a list of texts, not 'north'"),
        ({"walls": ["north", 2]}, r"'walls\[1\]' must be a text, not 2"),
        ({"exits": ["up"]}, "'exits' must be an object"),
        ({"tests": "x"}, "'tests' must be a list, not 'x'"),
        ({"notes": 5}, "'notes' must be a text, not 5"),
    ],
)
def test_an_error_names_row_and_column(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=f"^rows.csv, line 2: {message}"):
        RoomPayload.of_row(ROW | change, "rows.csv, line 2")


def test_an_environment_checks_the_columns_of_its_tasks() -> None:
    class RoomEnv(BashEnv):
        name = "room"
        payload_type = RoomPayload

    tasks = Task("rooms/1", "a", "ls", data=ROW), Task("rooms/2", "b", "ls", data={"doors": 1})
    with pytest.raises(DataError, match=r"^rooms, rooms/2: no 'name'; found doors"):
        RoomEnv(Dataset("rooms", "room", tasks))


def test_a_file_is_checked_against_the_environment_that_plays_it(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"query": "q", "gold": "ls", "compare": ["order"], "colour": "white"}\n')
    with pytest.raises(DataError, match=r"rows\.jsonl, line 1: 'compare' must be a text"):
        datasets.load(rows)
    rows.write_text('{"query": "q", "gold": "ls", "compare": "order", "colour": "white"}\n')
    (task,) = datasets.load(rows).tasks
    assert BashPayload.of(task).compare == "order"
    assert dict(task.data) == {"compare": "order", "colour": "white"}


def test_columns_of_another_environment_are_its_own() -> None:
    rows = [{"query": "q", "gold": "ls", "tests": [3], "name": "hall", "compare": 5}]
    dataset = datasets.load(rows, "room")
    assert (dataset.environment, RoomPayload.of(dataset.tasks[0]).tests) == ("room", (3,))
    with pytest.raises(DataError, match="rows, row 0: 'compare' must be a text, not 5"):
        datasets.load([rows[0] | {"tests": None}])


def test_rows_of_one_file_have_one_environment(tmp_path: Path) -> None:
    pair = {"input": "1\n", "output": "2\n"}
    more = {"query": "q", "gold": "x", "tests": [pair]}
    dataset = datasets.load([more | {"language": "perl"}, more])
    assert dataset.environment == "code"
    assert [CodePayload.of(task).language for task in dataset.tasks] == ["perl", ""]
    calls = {
        "query": "q",
        "gold": "def f(): return 1",
        "setup": "x = 1",
        "tests": "assert f() == 1",
    }
    (task,) = datasets.load([calls]).tasks
    python = PythonPayload.of(task)
    assert (python.entry, python.setup, python.mode) == ("f", "x = 1", "assert")
    assert (python.tests, task.setup) == (("assert f() == 1",), None)
