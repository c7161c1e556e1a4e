"""Plans of models, including all of the authors' logs."""

from __future__ import annotations

import pytest

from intercode.agents.plan_solve import parse_plan


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


def test_a_number_of_thousands_of_digits_does_not_begin_a_step() -> None:
    digits = "1" * 5000
    assert parse_plan(f"1. look\n{digits}. x\n2. count")[-1] == "count"
    assert len(parse_plan(f"{digits}. x")) == 1
