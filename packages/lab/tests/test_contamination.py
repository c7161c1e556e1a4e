"""Our families share nothing with other datasets; copies and shared worlds would be found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from intercode.cli import main
from intercode.core.errors import UsageError
from intercode_lab.contamination.search import TextIndex, find_contamination
from intercode_lab.contamination.tables import contamination_tables
from intercode_lab.families import family as family_module
from intercode_sandbox.registry import Registry

BAD_FAMILIES = """
from intercode_lab.families.bash.bash_task import bash_task
from intercode_lab.families.family import family, Family
from intercode_lab.families.file_tree import FileTree

def _task(draw, query, gold, content, *more):
    tree = FileTree()
    tree.file("f", f"{content}\\n")
    for number, data in enumerate(more):
        tree.file(f"g{number}", data)
    return bash_task(draw, (query,), gold, tree)

@family("bash")
def known_query(draw):
    query = "Count the blue widgets in the whole store, please; leave out the green ones"
    return _task(draw, query, "a b", draw.world.index(10**9))

@family("bash")
def one_world(draw):
    return _task(draw, f"do {draw.query.index(10**9)}", "c d", 7)

@family("bash", held_out=True)
def held_out_gold(draw):
    gold = "c d"
    return _task(draw, f"what {draw.query.index(10**9)}", gold, draw.world.index(10**9), "x" * 64)

@family("bash")
def same_file(draw):
    return _task(draw, "e f g", "e f g", draw.world.index(10**9), "x" * 64)

FAMILIES = tuple(v for v in globals().values() if isinstance(v, Family))
"""


@pytest.mark.heavy
def test_copies_and_shared_worlds_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bad.py").write_text(BAD_FAMILIES)
    registry = Registry("environment with task families", {"bash": f"{tmp_path}/bad.py:FAMILIES"})
    monkeypatch.setattr(family_module, "FAMILIES", registry)
    query = "Count the BLUE widgets in the whole store, please; leave out the green one"
    (tmp_path / "data").mkdir()
    rows = tmp_path / "data" / "rows.json"
    rows.write_text(json.dumps([{"query": query, "gold": "ls"}]))
    report = find_contamination(["families:bash"], 2, tmp_path / "data")
    faults = {(task.partition("/1/")[0], fault.partition(":")[0]) for task, fault in report.faults}
    assert faults == {
        ("families/bash/one-world", "same-world"),
        ("families/bash/known-query", "copy"),
        ("families/bash/held-out-gold", "copy"),
        ("families/bash", "shared-files"),
    }
    (compared,) = [c for c in report.datasets if c.source == str(rows) and c.kind == "queries"]
    assert compared.copies == 2 and 0.6 < compared.nearest.similarity < 1
    assert compared.nearest.text == query
    (worlds,) = report.worlds
    assert (worlds.train, worlds.test, worlds.tasks, worlds.repeated) == (3, 1, 8, 1)
    shown = {table.name: table for table in contamination_tables(report)}
    assert shown["datasets"].cell("query copies", dataset=str(rows)) == 2
    assert shown["split"].cell("gold most like", family="families/bash/held-out-gold") == (
        "families/bash/one-world"
    )
    assert len(shown["faults"].rows) == len(report.faults)


@pytest.mark.heavy
def test_our_families_share_no_world_and_no_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--contamination", "--draw", "2", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [w["environment"] for w in report["worlds"]] == ["bash", "code", "ctf", "python", "sql"]
    assert all(w["test"] and w["train"] and not w["repeated"] for w in report["worlds"])
    sources = {c["source"] for c in report["datasets"]}
    assert {f"starter:{w['environment']}" for w in report["worlds"]} <= sources
    assert sources.isdisjoint(report["unavailable"])
    assert {c["source"] for c in report["splits"]} == {"train"}


def test_seeds_and_single_draws_are_refused() -> None:
    for spec, draws in ("families:ctf@seed=1", 2), ("families:ctf", 1):
        with pytest.raises(UsageError, match="a number from 2, and a specification without @seed="):
            find_contamination([spec], draws)


def test_held_out_families_alone_are_refused() -> None:
    for specs in (
        ["families:bash[split=test]"],
        ["families:bash/unnamed-column", "families:ctf[split=test]"],
    ):
        with pytest.raises(UsageError, match="take families:bash as a whole"):
            find_contamination(specs)


def test_the_nearest_text_has_most_shingles_in_common() -> None:
    index = TextIndex([("one", "a b c d e"), ("two", "A  b c d"), ("two", "a b c d e"), ("x", "")])
    assert len(index) == 2
    assert (index.nearest("a B c d").source, index.nearest("a B c d").similarity) == ("two", 1.0)
    near = index.nearest("a b c d e f")
    assert (near.source, near.similarity) == ("one", 0.75)
    assert index.nearest("e d c b a").similarity == 0 == index.nearest("").similarity
