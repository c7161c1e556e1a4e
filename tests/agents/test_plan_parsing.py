"""Plans of models, including all of the authors' logs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from intercode.agents.plan_solve import parse_plan, parse_plan_original


@pytest.mark.parametrize(
    "plan",
    [
        "1. look\n2. count",
        "1) look\n2) count",
        "(1) look\n(2) count",
        "1: look\n2: count",
        " 1. look\n 2. count",
        "Step 1: look\nStep 2: count",
        "Step 1. look\nstep #2 - count",
        "**Step 1:** look\n**Step 2:** count",
        "### Step 1: look\n### Step 2: count",
        "**1.** look\n**2.** count",
        "1. **look**\n2. **count**",
        "> 1. look\n> 2. count",
        "Here is my plan:\n\n1. look\n\n2. count\n",
        "1. look\n2. count\n\nThese steps will do. Each of them is short.",
        "1. look\n2. count\n\nHere are the steps in more detail:\n\n1. look at it\n2. count it",
        "a) look\nb) count",
        "A. look\nB. count",
        "- look\n- count",
        "* look\n* count",
        "1. look 2. count",
        "Plan: 1. look 2. count",
        "1. look\r\n2. count",
    ],
)
def test_forms(plan: str) -> None:
    assert [s.strip() for s in parse_plan(plan)] == ["look", "count"]


def test_what_belongs_to_a_step() -> None:
    plan = (
        "1. Look:\n   - at a\n   - at b\n2. Count:\n```\n1. not a step\n\nls\n```\nThis counts.\n\n"
        "   That was step two.\n3. End. It takes 2.5 s and 3 tries.\n"
    )
    assert parse_plan(plan) == [
        "Look:\n   - at a\n   - at b",
        "Count:\n```\n1. not a step\n\nls\n```\nThis counts.\n\n   That was step two.",
        "End. It takes 2.5 s and 3 tries.",
    ]


def test_a_plan_without_numbers() -> None:
    assert parse_plan("I would look and count.") == ["I would look and count."]
    assert parse_plan(" \n") == []
    assert parse_plan("1. just this") == ["just this"]
    assert parse_plan("It is 3. That is all.") == ["It is 3. That is all."]


def test_the_authors_way() -> None:
    assert parse_plan_original("Plan:\n1. look\n2. \n3. count 4. end") == [
        "look",
        "",
        "count",
        "end",
    ]
    assert parse_plan_original("1. 2. look") == ["2. look"]
    assert parse_plan_original("no plan") == []


@pytest.mark.parametrize(
    ("log", "differ"),
    [
        ("bash/ic_bash_plan_solve_fs_3.json", 6),
        ("bash/ic_bash_plan_solve_fs_4.json", 0),
        ("sql/ic_sql_plan_solve.json", 1),
    ],
)
def test_recorded_plans(recorded_dir: Path, log: str, differ: int) -> None:
    """The original parser finds the recorded steps. Ours finds as many, except in plans with a list
    of commands inside a block, which the original takes for steps."""
    rows = json.loads((recorded_dir / log).read_text())["logs"].values()
    recorded = [row["turn_history"]["steps"] for row in rows]
    plans = ["\n".join(f"{n}. {s}" for n, s in enumerate(steps, 1)) for steps in recorded]
    assert [parse_plan_original(plan) for plan in plans] == recorded
    other = [s for s, plan in zip(recorded, plans, strict=True) if len(parse_plan(plan)) != len(s)]
    assert len(other) == differ
    assert all(any("```" in step for step in steps) for steps in other)


def test_a_number_of_thousands_of_digits_does_not_begin_a_step() -> None:
    digits = "1" * 5000
    assert parse_plan(f"1. look\n{digits}. x\n2. count")[-1] == "count"
    assert len(parse_plan(f"{digits}. x")) == 1
