"""The till of ``silent-till``: its rules, its lines, and what it answers."""

from __future__ import annotations

import pytest

from intercode_lab.families.choices import Choices
from intercode_lab.worlds.kinds import KINDS
from intercode_lab.worlds.till import (
    VALUES,
    Line,
    Rule,
    answer,
    candidates,
    draw_lines,
    draw_rules,
    read_line,
    read_totals,
    totals,
    without,
    write_totals,
)

PRICES = {"bread": 135, "cheese": 205, "fruit": 75, "juice": 95, "salad": 300, "soup": 255}
PLAIN: dict[str, Rule] = {"rounding": {"how": "down"}}


def owed(rule: dict[str, Rule], *rows: str) -> list[int]:
    """Return the totals of a till with a rule, in the order in which lines mention them."""
    lines = [line for row in rows if (line := read_line(row))]
    assert len(lines) == len(rows)
    return list(totals({**PLAIN, **rule}, PRICES, lines).values())


@pytest.mark.parametrize(
    ("rule", "rows", "expected"),
    [
        ({}, ["1 10:00 1111 bread 2", "1 10:01 1111 soup 1", "2 10:00 1111 soup -1"], [525, -255]),
        ({"bulk": {"least": 4, "percent": 10, "what": "beyond"}}, ["1 10:00 1111 bread 5"], [648]),
        ({"bulk": {"least": 4, "percent": 10, "what": "all"}}, ["1 10:00 1111 bread 5"], [607]),
        ({"staff": {"digit": 2, "percent": 5}, "rounding": {"how": "half-even"}},
         ["1 10:00 2111 bread 2", "1 10:00 1111 bread 2"], [256, 270]),
        ({"evening": {"from": 780, "strict": True, "add": ("unit", 5)}},
         ["1 13:00 1111 bread 2", "1 13:01 2111 bread 2"], [270, 280]),
        ({"weekday": {"day": 1, "item": "soup", "less": 20}},
         ["1 13:00 1111 soup 1", "9 13:00 1111 soup 2"], [255, 470]),
        ({"turn": {"day": 9, "item": "soup", "more": -20}},
         ["8 13:00 1111 soup 1", "9 13:00 1111 soup 2"], [255, 470]),
        ({"pair": {"item": "soup", "after": "bread", "less": 50, "once": True, "early": False}},
         ["1 13:00 1111 bread 1", "1 14:00 1111 soup 1", "1 15:00 1111 soup 1"], [595]),
        ({"scarce": {"item": "soup", "over": 6, "more": 10, "whole": False}},
         ["1 13:00 1111 soup 4", "1 14:00 2111 soup 4"], [1020, 1040]),
        ({"nth": {"every": 3, "percent": 100, "several": True}},
         [f"{n} 10:00 1111 bread {u}" for n, u in enumerate((2, 1, 2, 2), 1)], [270, 135, 270, 0]),
        ({"streak": {"length": 3, "less": 20, "daily": True}},
         [f"{n} 10:00 1111 bread 1" for n in (1, 1, 2, 2, 2)], [270, 385]),
        ({"quick": {"minutes": 5, "more": 10, "anybody": False}},
         ["1 10:00 1111 bread 1", "1 10:04 1111 bread 1", "1 10:09 1111 bread 1"], [415]),
        ({"cap": {"most": 2200}}, ["1 10:00 1111 salad 9", "1 11:00 2111 salad 1"], [2200, 300]),
        ({"points": {"each": 200, "need": 3, "less": 100}},
         ["1 10:00 1111 salad 2", "2 10:00 1111 salad 1"], [600, 200]),
        ({"idle": {"days": 3, "less": 50}},
         [f"{n} 10:00 1111 bread 1" for n in (1, 3, 6)], [135, 135, 85]),
        ({"returns": {"how": ("last", 0)}, "staff": {"digit": 1, "percent": 20}},
         ["1 10:00 1111 bread 2", "2 10:00 1111 bread -1", "3 10:00 1111 soup -1"], [216, -108, 0]),
        ({"returns": {"how": ("fee", 40)}}, ["1 10:00 1111 fruit -2"], [-110]),
    ],
)  # fmt: skip
def test_each_rule_charges_as_its_settings_say(
    rule: dict[str, Rule], rows: list[str], expected: list[int]
) -> None:
    assert owed(rule, *rows) == expected


def test_a_rule_has_every_form_of_its_settings() -> None:
    assert len(list(candidates("bulk"))) == 5 * 6 * 2
    assert len(list(candidates("pair"))) == 6 * 5 * 5 * 2 * 2
    for seed in range(20):
        rules = draw_rules(Choices(seed), 12)
        assert len(rules) == 13 and rules.keys() <= VALUES.keys()
        assert all(rules[name] in list(candidates(name)) for name in rules)


def test_only_some_rules_have_an_effect_on_drawn_lines() -> None:
    rules = draw_rules(Choices("rules"), 12)
    names = [name for name in rules if name != "rounding"]
    drawn = 0
    for name in names:
        lines = draw_lines(Choices("lines", name), rules, [name], [name], PRICES, 25)
        if not lines:
            continue
        drawn += 1
        right = totals(rules, PRICES, lines)
        alone = {n: rule for n, rule in rules.items() if n in (name, "rounding")}
        assert totals(alone, PRICES, lines) == right
        assert totals(without(rules, name), PRICES, lines) != right
        assert [(x.day, x.minute) for x in lines] == sorted((x.day, x.minute) for x in lines)
    assert drawn > len(names) // 2


def test_a_till_answers_groups_of_lines_and_refuses_others() -> None:
    def ask(request: str) -> str:
        return answer(PLAIN, PRICES, 3, request)

    line = Line(3, 645, "4711", "soup", 2)
    assert read_line(str(line)) == line
    assert ask(f"{line}\n4 10:00 4711 soup -1\n\n\n{line}\n") == (
        "3 4711 5.10\n4 4711 -2.55\n\n3 4711 5.10\n"
    )
    assert read_totals(ask(str(line))) == {(3, "4711"): 510}
    assert read_totals(write_totals({(1, "1111"): -5})) == {(1, "1111"): -5}
    assert ask(f"{line}\n" * 4) == "refused: 4 lines, at most 3\n"
    assert ask(f"{line}\n2 10:00 4711 soup 1").startswith("refused: row 2 is earlier")
    for wrong in ("0 10:00 4711 soup 1", "29 10:00 4711 soup 1", "1 05:59 4711 soup 1",
                  "1 21:00 4711 soup 1", "1 10:60 4711 soup 1", "1 10:00 0711 soup 1",
                  "1 10:00 4711 tea 1", "1 10:00 4711 soup 0", "x"):  # fmt: skip
        assert ask(wrong).startswith("refused: row 1 is no line"), wrong


def test_every_rule_has_an_effect_on_the_history() -> None:
    kind = next(kind for kind in KINDS if kind.name == "silent-till")
    task = kind(7, 5)
    assert task.mailbox is not None
    rules, prices = task.mailbox.answer.args[:2]  # type: ignore[attr-defined]
    files = {e.path.rpartition("/")[2]: e.data.decode() for e in task.initial_files}
    groups = [
        [line for row in text.splitlines() if (line := read_line(row))]
        for name, text in files.items()
        if name.endswith("-lines.txt")
    ]
    for name in rules:
        other = without(rules, name)
        assert any(totals(rules, prices, g) != totals(other, prices, g) for g in groups), name
