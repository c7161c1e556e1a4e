"""``tests/frozen/inventory.tsv`` names everything public, and says what became of it."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

INVENTORY = runpy.run_path(str(Path(__file__).parents[1] / "tools" / "inventory.py"))
Table = INVENTORY["Table"]
HOW = "`python tools/inventory.py --write` adds and updates rows; its docstring says what a cell is"

EXAMPLES = {
    ("name", "intercode.Sandbox"),
    ("name", "intercode.core.trajectories.read_trajectories"),
    ("member", "intercode.Sandbox.run"),
    ("member", "intercode.core.Task.gold"),
    ("member", "intercode.environments.InterCodeEnv.snapshot"),
    ("parameter", "intercode.Sandbox.run timeout"),
    ("parameter", "intercode.make dataset"),
    ("entry", "agent react"),
    ("entry", "agent react observation_limit"),
    ("entry", "environment sql engine"),
    ("command", "intercode image build"),
    ("argument", "intercode eval --base-url"),
    ("argument", "intercode sandbox run COMMAND"),
    ("choice", "intercode image build --engine podman"),
    ("variable", "INTERCODE_CACHE"),
    ("variable", "OPENAI_BASE_URL"),
    ("extra", "mysql"),
    ("entry point", "script intercode"),
    ("entry point", "group intercode.environments"),
    ("error", "SandboxLostError"),
    ("error", "DeadlineExceededError"),
    ("field", "Step observation"),
    ("field", "docs/records.md action"),
    ("documented", "docs/records.md # Schema versions"),
    ("documented", "example .snapshot()"),
    ("documented", "example intercode_sandbox.Sandbox"),
}


@pytest.fixture(scope="module")
def present() -> set[tuple[str, str]]:
    return set(INVENTORY["collect"]())


def table(*rows: str, sweeps: str = "one") -> object:
    header = f"kind name {sweeps}".replace(" ", "\t")
    return Table("\n".join([header, *(row.replace("|", "\t") for row in rows)]))


@pytest.mark.heavy
def test_the_table_is_complete(present: set[tuple[str, str]]) -> None:
    text = INVENTORY["TABLE"].read_text("utf-8")
    recorded = Table(text)
    assert recorded.faults(present) == [], HOW
    assert recorded.text() == text, HOW


@pytest.mark.heavy
def test_every_kind_is_collected(present: set[tuple[str, str]]) -> None:
    assert EXAMPLES - present == set()
    assert {kind for kind, _ in present} == {kind for kind, _ in EXAMPLES}


def test_a_new_name_needs_a_row() -> None:
    assert table("error|A|kept").faults({("error", "A"), ("error", "B")}) == [
        "not in the table: error B"
    ]


@pytest.mark.parametrize(
    ("cell", "fault"),
    [
        ("", "empty cell: error A"),
        ("kept", "is gone: error A: kept"),
        ("removed:", "neither kept, new, is now, nor removed: error A: removed:"),
        ("is now B", "is now what does not exist: error A: B"),
        ("removed: nobody caught it", None),
        ("is now C", None),
    ],
)
def test_a_name_that_is_gone_needs_a_reason(cell: str, fault: str | None) -> None:
    faults = table(f"error|A|{cell}", "error|C|kept").faults({("error", "C")})
    assert faults == ([fault] if fault else [])


def test_a_name_that_came_back_is_not_gone() -> None:
    assert table("error|A|removed: so").faults({("error", "A")}) == ["exists: error A: removed: so"]


def test_writing_fills_in_what_needs_no_decision() -> None:
    present = {("name", "p.B"), ("member", "p.B.x"), ("error", "New"), ("error", "Same")}
    found = table(
        "error|Gone|kept|",
        "error|Lost|removed: so|",
        "error|Same|kept|",
        "member|p.A.x|kept|",
        "member|p.A.y|kept|",
        "member|p.C.z|kept|",
        "name|p.A|kept|is now p.B",
        "name|p.B|kept|",
        "name|p.C|kept|removed: unused",
        "parameter|p.C q|kept|",
        sweeps="one two",
    )
    found.update(present)
    assert [tuple(line.split("\t")[1:]) for line in found.text().splitlines()[1:]] == [
        ("Gone", "kept", ""),
        ("Lost", "removed: so", "gone"),
        ("New", "-", "new"),
        ("Same", "kept", "kept"),
        ("p.A.x", "kept", "is now p.B.x"),
        ("p.A.y", "kept", ""),
        ("p.B.x", "-", "new"),
        ("p.C.z", "kept", "removed: unused"),
        ("p.A", "kept", "is now p.B"),
        ("p.B", "kept", "kept"),
        ("p.C", "kept", "removed: unused"),
        ("p.C q", "kept", "removed: unused"),
    ]
    assert found.faults(present) == ["empty cell: error Gone", "empty cell: member p.A.y"]
