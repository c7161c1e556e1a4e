"""A till with hidden rules: what it charges depends on the line, and on the lines before it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from intercode_lab.families.choices import Choices

_SCALE = 10**8  # of a cent, so that four steps of per cents are exact
DAYS, OPEN, CLOSE = 28, 6 * 60, 21 * 60
ITEMS = ("bread", "cheese", "fruit", "juice", "salad", "soup")
_CENTS = (10, 15, 20, 25, 30, 35, 40)
_PERCENT = (4, 6, 8, 10, 12, 15)

Rule = Mapping[str, Any]
VALUES: Mapping[str, Mapping[str, Sequence[Any]]] = {
    "rounding": {"how": ("down", "up", "half-up", "half-even", "five")},
    "bulk": {"least": range(4, 9), "percent": _PERCENT, "what": ("all", "beyond")},
    "staff": {"digit": range(1, 10), "percent": (5, 10, 15, 20, 25)},
    "evening": {
        "from": range(13 * 60, 20 * 60, 30), "strict": (False, True),
        "add": (("percent", 5), ("percent", 8), ("percent", 12), ("percent", 20),
                ("unit", 5), ("unit", 10), ("unit", 15), ("unit", 25)),
    },
    "weekday": {"day": range(7), "item": ITEMS, "less": _CENTS},
    "turn": {"day": range(9, 21), "item": ITEMS, "more": (*_CENTS, *(-n for n in _CENTS))},
    "pair": {
        "item": ITEMS, "after": ITEMS, "less": (20, 30, 40, 50, 60), "once": (False, True),
        "early": (False, True),
    },
    "scarce": {"item": ITEMS, "over": range(6, 16), "more": (10, 15, 20, 25, 30, 40),
               "whole": (False, True)},
    "nth": {"every": range(3, 7), "percent": (50, 100), "several": (False, True)},
    "streak": {"length": (3, 4), "less": (20, 30, 40, 50, 60), "daily": (False, True)},
    "quick": {"minutes": (3, 5, 8, 10, 15, 20, 30), "more": (10, 15, 20, 25, 35, 50),
              "anybody": (False, True)},
    "cap": {"most": range(2200, 5000, 100)},
    "points": {"each": (200, 300, 400, 500), "need": range(2, 6),
               "less": (100, 150, 200, 300)},
    "idle": {"days": range(3, 8), "less": (50, 75, 100, 150)},
    "returns": {"how": (("last", 0), ("fee", 25), ("fee", 40), ("fee", 60), ("share", 75),
                        ("share", 80), ("share", 90))},
}  # fmt: skip
"""What each rule may be: the values of its settings. A till has the rule ``rounding``, and some of
the others."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a till. ``minute``: of the day. ``units``: below 0 for a return."""

    day: int
    minute: int
    card: str
    item: str
    units: int

    def __str__(self) -> str:
        clock = f"{self.minute // 60:02}:{self.minute % 60:02}"
        return f"{self.day} {clock} {self.card} {self.item} {self.units}"


def read_line(text: str) -> Line | None:
    """Return the line that a text is, or None."""
    match = re.fullmatch(r"(\d{1,2}) (\d\d):(\d\d) ([1-9]\d{3}) ([a-z]+) (-?\d{1,2})", text)
    if match is None:
        return None
    minute = int(match[2]) * 60 + int(match[3])
    line = Line(int(match[1]), minute, match[4], match[5], int(match[6]))
    fits = 1 <= line.day <= DAYS and OPEN <= minute < CLOSE and int(match[3]) < 60
    return line if fits and line.item in ITEMS and line.units else None


def money(cents: int) -> str:
    """Return cents as text, such as 3.05."""
    return f"{'-' if cents < 0 else ''}{abs(cents) // 100}.{abs(cents) % 100:02}"


@dataclass(slots=True)
class _Card:
    """What a till remembers of a card. ``paid``: per unit, by item."""

    day: int = 0
    minute: int = -999
    spent: int = 0
    count: int = 0
    points: int = 0
    item: str = ""
    streak: int = 0
    bought: frozenset[str] = frozenset()
    paid: Mapping[str, int] = field(default_factory=dict)

    def copy(self) -> _Card:
        return _Card(self.day, self.minute, self.spent, self.count, self.points, self.item,
                     self.streak, self.bought, self.paid)  # fmt: skip


class Till:
    """A till that starts fresh. ``rules``: by name; see VALUES. ``prices``: in cents."""

    def __init__(self, rules: Mapping[str, Rule], prices: Mapping[str, int]) -> None:
        self.rules, self._prices = rules, prices
        self._cards: dict[str, _Card] = {}
        self._sold: dict[tuple[int, str], int] = {}
        self._last = (0, -999)

    def fork(self) -> Till:
        """Return a till in the same state."""
        other = Till(self.rules, self._prices)
        other._cards, other._sold, other._last = dict(self._cards), dict(self._sold), self._last
        return other

    def charge(self, line: Line) -> int:
        """Return what a line costs, in cents, and remember it."""
        self._cards[line.card] = card = (self._cards.get(line.card) or _Card()).copy()
        if line.units < 0:
            return -self._refund(card, line)
        before = card.day
        if card.day != line.day:
            card.day, card.spent, card.minute, card.bought = line.day, 0, -999, frozenset()
            if "streak" in self.rules and self.rules["streak"]["daily"]:
                card.streak = 0
        card.streak = card.streak + 1 if card.item == line.item else 1
        card.item = line.item
        amount = self._percentages(card, line, self._amount(line))
        amount = self._reductions(card, line, amount, before)
        cents = self._round(max(amount, 0))
        cents = self._fees(card, line, cents)
        card.spent += cents
        if "points" in self.rules:
            card.points += cents // self.rules["points"]["each"]
        card.minute, self._last = line.minute, (line.day, line.minute)
        card.bought |= {line.item}
        card.paid = {**card.paid, line.item: cents // line.units}
        return cents

    def _price(self, line: Line) -> int:
        price = self._prices[line.item]
        turn, weekday = self.rules.get("turn"), self.rules.get("weekday")
        if turn and line.day >= turn["day"] and line.item == turn["item"]:
            price += turn["more"]
        if weekday and (line.day - 1) % 7 == weekday["day"] and line.item == weekday["item"]:
            price -= weekday["less"]
        return price

    def _refund(self, card: _Card, line: Line) -> int:
        value, units = self._price(line) * -line.units, -line.units
        how, number = self.rules.get("returns", {"how": ("", 0)})["how"]
        if how == "last":
            return int(card.paid.get(line.item, 0) * units)
        if how == "fee":
            return int(max(0, value - number))
        return self._round(value * _SCALE // 100 * number) if how == "share" else value

    def _amount(self, line: Line) -> int:
        """Return the amount at prices, with the rules of single units."""
        price, units = self._price(line), line.units
        amount = price * units * _SCALE
        bulk = self.rules.get("bulk")
        if bulk and units >= bulk["least"]:
            cheap = units if bulk["what"] == "all" else units - bulk["least"] + 1
            amount -= price * cheap * bulk["percent"] * (_SCALE // 100)
        scarce = self.rules.get("scarce")
        if scarce and scarce["item"] == line.item:
            key = line.day, line.item
            self._sold[key] = sold = self._sold.get(key, 0) + units
            dear = max(0, min(units, sold - scarce["over"]))
            amount += (units if dear and scarce["whole"] else dear) * scarce["more"] * _SCALE
        return amount

    def _percentages(self, card: _Card, line: Line, amount: int) -> int:
        pair = self.rules.get("pair")
        paired = pair and pair["item"] == line.item and pair["after"] in card.bought
        if pair and paired and pair["early"]:
            amount = max(0, amount - pair["less"] * _SCALE)
        staff, evening = self.rules.get("staff"), self.rules.get("evening")
        if staff and line.card[0] == str(staff["digit"]):
            amount = amount * (100 - staff["percent"]) // 100
        if evening and line.minute >= evening["from"] + evening["strict"]:
            how, number = evening["add"]
            more = amount * number // 100 if how == "percent" else number * line.units * _SCALE
            amount += more
        if pair and paired:
            if not pair["early"]:
                amount -= pair["less"] * _SCALE
            if pair["once"]:
                card.bought -= {pair["after"]}
        return amount

    def _reductions(self, card: _Card, line: Line, amount: int, before: int) -> int:
        rules = self.rules
        if (nth := rules.get("nth")) and (line.units > 1 or not nth["several"]):
            card.count += 1
            if card.count % nth["every"] == 0:
                amount = amount * (100 - nth["percent"]) // 100
        if (streak := rules.get("streak")) and card.streak >= streak["length"]:
            amount -= streak["less"] * _SCALE
        if (idle := rules.get("idle")) and before and line.day - before >= idle["days"]:
            amount -= idle["less"] * _SCALE
        if (points := rules.get("points")) and card.points >= points["need"]:
            card.points -= points["need"]
            amount -= points["less"] * _SCALE
        return amount

    def _round(self, amount: int) -> int:
        how = self.rules["rounding"]["how"]
        unit = 5 * _SCALE if how == "five" else _SCALE
        whole, rest = divmod(amount, unit)
        if how == "up":
            whole += rest > 0
        elif how in ("half-up", "five"):
            whole += 2 * rest >= unit
        elif how == "half-even":
            whole += 2 * rest > unit or (2 * rest == unit and whole % 2)
        return int(whole * (unit // _SCALE))

    def _fees(self, card: _Card, line: Line, cents: int) -> int:
        if quick := self.rules.get("quick"):
            day, minute = self._last if quick["anybody"] else (line.day, card.minute)
            if day == line.day and line.minute - minute < quick["minutes"]:
                cents += quick["more"]
        if cap := self.rules.get("cap"):
            cents = min(cents, max(0, cap["most"] - card.spent))
        return cents


def draw_rules(choices: Choices, count: int) -> dict[str, Rule]:
    """Return the rule ``rounding`` and so many others."""
    names = ["rounding", *choices.some([n for n in VALUES if n != "rounding"], count)]
    rules: dict[str, Rule] = {}
    for name in VALUES:
        if name in names:
            rules[name] = {key: choices.one(values) for key, values in VALUES[name].items()}
    if "pair" in rules and rules["pair"]["item"] == rules["pair"]["after"]:
        others = [item for item in ITEMS if item != rules["pair"]["item"]]
        rules["pair"] = {**rules["pair"], "after": choices.one(others)}
    return rules


def candidates(name: str) -> Iterator[Rule]:
    """Yield every form of a rule."""
    values = VALUES[name]
    for found in product(*values.values()):
        rule = dict(zip(values, found, strict=True))
        if name != "pair" or rule["item"] != rule["after"]:
            yield rule


def without(rules: Mapping[str, Rule], name: str) -> dict[str, Rule]:
    """Return rules without one; rounding is replaced by another."""
    if name == "rounding":
        return {**rules, name: {"how": "down" if rules[name]["how"] != "down" else "up"}}
    return {other: rule for other, rule in rules.items() if other != name}


def draw_lines(
    choices: Choices, rules: Mapping[str, Rule], own: Sequence[str], focus: Sequence[str],
    prices: Mapping[str, int], count: int,
) -> list[Line]:  # fmt: skip
    """Return lines on which no rule but ``own`` has an effect, and each of ``focus`` at least
    two; none if a few tries find none."""
    for _ in range(3):
        lines = _Writer(choices, rules, own, focus, prices).lines(count)
        if lines:
            return lines
    return []


class _Writer:
    """Draws lines one by one, and keeps those on which a till without the other rules agrees."""

    def __init__(
        self, choices: Choices, rules: Mapping[str, Rule], own: Sequence[str],
        focus: Sequence[str], prices: Mapping[str, int],
    ) -> None:  # fmt: skip
        self._c, self._rules = choices, rules
        kept = {name: rules[name] for name in rules if name in own}
        kept["rounding"] = rules["rounding"]
        self._tills = {"": Till(rules, prices), "own": Till(kept, prices)}
        self._tills |= {name: Till(without(kept, name), prices) for name in focus}
        self._seen = dict.fromkeys(focus, 0)
        self._cards = [self._new_card() for _ in range(4)]
        day = choices.between(1, 8)
        if "turn" in focus:
            day = rules["turn"]["day"] - choices.between(0, 2)
        self._last = Line(day, OPEN + choices.between(0, 300), self._cards[0],
                          choices.one(ITEMS), 1)  # fmt: skip

    def lines(self, count: int) -> list[Line]:
        """Return the lines; none if a rule has too little effect."""
        found: list[Line] = []
        fails = 0
        while len(found) < count and fails < 20:
            tried = [t for t in (self._try(self._propose()) for _ in range(2)) if t]
            if not tried:
                fails += 1
                continue
            fails = 0
            line, tills, effects = max(
                tried, key=lambda t: sum(12 // (1 + self._seen[name]) for name in t[2])
            )
            found.append(line)
            self._tills, self._last = tills, line
            if line.card not in self._cards:
                self._cards.append(line.card)
            for name in effects:
                self._seen[name] += 1
            if len(found) == count * 3 // 5 and not all(self._seen.values()):
                return []
        enough = len(found) == count and min(self._seen.values(), default=9) >= 2
        return found if enough else []

    def _try(self, line: Line) -> tuple[Line, dict[str, Till], list[str]] | None:
        tills = {name: till.fork() for name, till in self._tills.items()}
        right = tills[""].charge(line)
        if tills["own"].charge(line) != right:
            return None
        return line, tills, [name for name in self._seen if tills[name].charge(line) != right]

    def _new_card(self) -> str:
        return f"{self._c.between(1, 9)}{self._c.between(100, 999)}"

    def _propose(self) -> Line:
        c, last = self._c, self._last
        card = self._new_card() if c.chance(15) else c.one(self._cards[-6:])
        gap = c.one((1, 2, 4, 7, 9, 12, 18, 25, 40, 75))
        line = replace(last, minute=last.minute + gap, card=last.card if c.chance(30) else card,
                       item=c.one(ITEMS), units=c.between(1, 3))  # fmt: skip
        if c.chance(8):
            line = replace(line, day=line.day + c.one((1, 1, 2, 3, 5)), minute=self._morning())
        elif c.chance(12):
            line = replace(line, units=c.between(4, 9))
        elif c.chance(6):
            line = replace(line, item=last.item, card=last.card, units=-c.between(1, 2))
        if "quick" not in self._seen and c.chance(50):
            line = replace(line, minute=last.minute + 31 + gap)
        if self._seen and c.chance(60):
            line = self._shape(c.one(list(self._seen)), line)
        if line.minute >= CLOSE:
            line = replace(line, day=line.day + 1, minute=self._morning())
        if line.day > DAYS:
            return replace(last, units=1, card=self._new_card())
        return line

    def _morning(self) -> int:
        return OPEN + self._c.between(0, 400)

    def _shape(self, name: str, line: Line) -> Line:
        """Return a line that may show a rule."""
        c, last, rule = self._c, self._last, self._rules[name]
        if name in ("nth", "points", "cap"):
            return replace(line, card=last.card, units=c.between(2, 9))
        if name == "bulk":
            return replace(line, units=rule["least"] + c.between(-1, 2))
        if name == "staff":
            return replace(line, card=f"{rule['digit']}{line.card[1:]}")
        if name == "evening" and line.minute < rule["from"]:
            return replace(line, minute=rule["from"] + c.one((-1, 0, 0, 1, 30, 60)))
        if name == "weekday":
            day = line.day + (rule["day"] - line.day + 1) % 7
            if day != line.day and c.chance(60):
                return line
            minute = line.minute if day == line.day else self._morning()
            return replace(line, item=rule["item"], day=day, minute=minute)
        if name in ("turn", "scarce"):
            return replace(line, item=rule["item"], units=c.between(1, 4))
        if name == "pair":
            return replace(line, item=rule[c.one(("item", "after"))], card=last.card)
        if name == "streak":
            return replace(line, item=last.item, card=last.card)
        if name == "quick":
            minute = last.minute + max(0, rule["minutes"] - c.between(0, 3))
            return replace(line, card=last.card, minute=minute)
        if name == "idle" and c.chance(40):
            day = line.day + rule["days"] - c.between(0, 1)
            return replace(line, card=c.one(self._cards), day=day, minute=self._morning())
        if name == "returns":
            return replace(line, card=last.card, item=last.item, units=-c.between(1, 3))
        return line


Totals = dict[tuple[int, str], int]
"""What each card owes for a day, in cents, by day and card."""


def totals(rules: Mapping[str, Rule], prices: Mapping[str, int], lines: Iterable[Line]) -> Totals:
    """Return what a fresh till takes for lines."""
    till, found = Till(rules, prices), Totals()
    for line in lines:
        key = line.day, line.card
        found[key] = found.get(key, 0) + till.charge(line)
    return found


def write_totals(found: Totals) -> str:
    """Return totals as text, a line for each."""
    return "".join(f"{day} {card} {money(cents)}\n" for (day, card), cents in sorted(found.items()))


def read_totals(text: str) -> Totals:
    """Return the totals that a text has."""
    rows = re.findall(r"^(\d+) (\d+) (-?)(\d+)\.(\d\d)$", text, re.M)
    return {(int(d), c): int(f"{sign}{a}{b}") for d, c, sign, a, b in rows}


def answer(rules: Mapping[str, Rule], prices: Mapping[str, int], most: int, request: str) -> str:
    """Return what a till takes for the lines of a request, or why it refuses them. A blank line
    starts a fresh till."""
    rows = [row.strip() for row in request.strip().splitlines()]
    if sum(map(bool, rows)) > most:
        return f"refused: {sum(map(bool, rows))} lines, at most {most}\n"
    groups: list[list[Line]] = [[]]
    for number, row in enumerate(rows, 1):
        if not row:
            groups += [[]] if groups[-1] else []
            continue
        line = read_line(row)
        if line is None:
            return f"refused: row {number} is no line: {row[:60]!r}\n"
        last = groups[-1][-1] if groups[-1] else line
        if (line.day, line.minute) < (last.day, last.minute):
            return f"refused: row {number} is earlier than the one before it\n"
        groups[-1].append(line)
    return "\n".join(write_totals(totals(rules, prices, group)) for group in groups)
