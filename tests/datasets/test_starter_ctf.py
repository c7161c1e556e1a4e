"""The Capture-the-Flag starter suite: instances depend on the seed alone, golds solve them."""

from __future__ import annotations

import re

import pytest

import intercode
from intercode.core.types import Task
from intercode.datasets import load
from intercode.datasets.ctf import starter
from intercode.datasets.ctf.starter.challenge import SeededRandom, stored_zlib

FLAG = re.compile(r"flag\{[a-z]+_[a-z]+_[0-9a-f]{16}\}")
IDS = sorted(starter.CREATE_FILES)
GIVEN_AWAY = {"unlisted", "behind", "permissions", "history", "trail"}
"""Tasks with the flag as plain text in one of many files."""


@pytest.fixture(scope="module")
def tasks() -> dict[str, Task]:
    return {task.id: task for task in load("starter:ctf").tasks}


def test_there_are_enough_of_several_kinds(tasks: dict[str, Task]) -> None:
    assert len(tasks) == len(starter.CREATE_FILES) >= 20
    tags = {tag for task in tasks.values() for tag in task.tags}
    assert {
        "encoding",
        "archives",
        "logs",
        "cryptography",
        "rsa",
        "reversing",
        "permissions",
    } <= tags
    assert {"databases", "git", "python", "c", "javascript", "shell", "assembly"} <= tags
    assert {t.hardness for t in tasks.values()} == {"easy", "medium", "hard"}
    assert all(t.flag is None and not t.initial_files and t.instantiate for t in tasks.values())


@pytest.mark.parametrize("name", IDS)
def test_an_instance_depends_on_the_seed_alone(name: str, tasks: dict[str, Task]) -> None:
    task = tasks[name]
    first, again, other = (starter.instantiate(task, seed) for seed in (11, 11, 12))
    assert first == again
    assert first.initial_files != other.initial_files and first.flag != other.flag
    assert first.flag is not None and FLAG.fullmatch(first.flag)
    assert (first.query, first.gold, first.id, first.instantiate) == (
        task.query,
        task.gold,
        name,
        None,
    )
    assert all(entry.path.startswith("/ctf/task/") for entry in first.initial_files)
    inside = any(first.flag.encode() in entry.data for entry in first.initial_files)
    assert inside == (name.rpartition("/")[2] in GIVEN_AWAY)
    assert first.flag not in task.query + str(task.gold)


def test_the_files_of_a_seed_are_stable(tasks: dict[str, Task]) -> None:
    """The files of a seed must not change between releases, so that episodes can be repeated."""
    instance = starter.instantiate(tasks["starter/ctf/numbers"], 1)
    assert instance.flag == SeededRandom("starter/ctf/numbers:1").flag()
    assert instance.flag == "flag{pepper_cedar_9634815c88b1182b}"


@pytest.mark.slow
@pytest.mark.sandbox
def test_golds_print_what_is_then_the_flag(tasks: dict[str, Task]) -> None:
    """This test uses one seed; `intercode check starter:ctf` runs each gold twice."""
    wrong = []
    with intercode.make("ctf", "starter:ctf", timeout=60.0) as env:
        for name in IDS:
            env.reset(seed=4711, options={"task": name})
            shown = env.step(tasks[name].gold)[0]
            if env.submit(shown.strip())[1] != 1.0:
                wrong.append((name, shown[-200:]))
    assert wrong == []


def test_a_stream_of_stored_blocks_is_zlibs() -> None:
    import zlib

    for data in (b"", b"a", bytes(range(256)) * 200):
        assert zlib.decompress(stored_zlib(data)) == data
    with pytest.raises(ValueError, match="70000 bytes"):
        stored_zlib(bytes(70000))
