"""A till with rules that nobody has written down: what a basket costs by each form of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

_SCALE = 10**10
"""Parts of a cent, so that five percentages in turn are exact."""
Rule = Mapping[str, Any]
Rules = Mapping[str, Rule]
ARTICLES, GROUPS = 12, 4
_EXCLUDED = (("none", 0), *product(("percent", "all"), range(GROUPS)))
VALUES: Mapping[str, Mapping[str, Sequence[Any]]] = {
    "rounding": {
        "of": ("receipt", "line"),
        "how": ("half-up", "down", "up", "half-even"),
        "cash": ((1, "near"), (5, "near"), (5, "down"), (10, "near")),
    },
    "weekday": {"day": range(7), "group": range(GROUPS), "percent": (5, 10, 15)},
    "multi": {
        "group": range(GROUPS),
        "each": (3, 4),
        "among": ("articles", "group"),
        "free": ("cheapest", "sets", "order"),
        "percent": (50, 100),
    },
    "pair": {
        "articles": tuple(combinations(range(ARTICLES), 2)),
        "less": (20, 50),
        "once": (False, True),
    },
    "evening": {
        "from": (16 * 60, 17 * 60, 18 * 60),
        "group": range(GROUPS),
        "percent": (15, 25, 35),
        "with": ("all", "no-multi", "best"),
    },
    "threshold": {
        "least": (1500, 2000, 2500),
        "percent": (4, 6, 9),
        "of": ("shelf", "net"),
        "without": _EXCLUDED,
    },
    "card": {
        "days": (3, 7, 14),
        "least": (3, 4, 5, 4000, 7000, 10000),
        "percent": (3, 5, 7),
        "how": ("after", "add", "best"),
    },
    "repeat": {
        "within": ("last", "two", "week"),
        "less": (10, 15, 25),
        "each": (False, True),
        "end": (False, True),
    },
    "cap": {"most": (300, 400, 500, 700), "of": ("all", "basket")},
}
"""What each rule may be: the values of its settings. A till has the rule ``rounding``, and some of
the others. ``card``: a least number of receipts if it is small, else of cents."""
POINTS: Mapping[str, Sequence[Any]] = {
    "each": (50, 100, 150, 200),
    "without": (-1, *range(GROUPS)),
    "double": (-1, *range(7)),
    "floor": ("before", "after"),
}
"""What the rule of points may be. -1: no group, no day."""
PLAIN: Rules = {"rounding": {"of": "receipt", "how": "half-up", "cash": (1, "near")}}


@dataclass(frozen=True, slots=True)
class Sale:
    """A basket and what came before it. ``day``: from 0, a Monday. ``lines``: article, units and
    price in cents. ``before``: day, total and articles of the earlier receipts of the card, the
    latest last; returns have no articles. ``groups``: of each article."""

    day: int
    minute: int
    card: str
    cash: bool
    lines: tuple[tuple[int, int, int], ...]
    before: tuple[tuple[int, int, frozenset[int]], ...]
    groups: tuple[int, ...]


def forms(name: str) -> Iterator[Rule]:
    """Yield each form of a rule."""
    settings = VALUES[name]
    for values in product(*settings.values()):
        yield dict(zip(settings, values, strict=True))


def total(rules: Rules, sale: Sale) -> int:
    """Return what a basket costs, in cents."""
    shelf = {article: price * units * _SCALE for article, units, price in sale.lines}
    amounts = _units(rules, sale)
    end = 0
    if pair := rules.get("pair"):
        one, two = (sum(u for a, u, _ in sale.lines if a == n) for n in pair["articles"])
        if one and two:
            less = pair["less"] * (1 if pair["once"] else min(one, two)) * _SCALE
            end += less
    if (repeat := rules.get("repeat")) and sale.before:
        seen = _recent(repeat["within"], sale)
        for article, units, _ in sale.lines:
            if article in seen:
                less = repeat["less"] * (units if repeat["each"] else 1) * _SCALE
                end += less if repeat["end"] else 0
                amounts[article] -= 0 if repeat["end"] else less
    rounding = rules["rounding"]
    if rounding["of"] == "line":
        amounts = {a: _round(x, rounding["how"]) * _SCALE for a, x in amounts.items()}
    net = sum(amounts.values())
    off = _basket(rules, sale, shelf, amounts, net)
    if cap := rules.get("cap"):
        most = cap["most"] * _SCALE
        off = min(off, most) if cap["of"] == "basket" else off
        if cap["of"] == "all" and sum(shelf.values()) - net + off + end > most:
            net, off, end = sum(shelf.values()), most, 0
    cents = max(0, _round(net - off - end, rounding["how"]))
    step, how = rounding["cash"] if sale.cash else (1, "")
    return (cents + (step // 2 if how == "near" else 0)) // step * step


def _round(amount: int, how: str) -> int:
    if how == "down":
        return amount // _SCALE
    if how == "up":
        return -(-amount // _SCALE)
    cents, rest = divmod(amount, _SCALE)
    up = rest * 2 > _SCALE or (rest * 2 == _SCALE and (how == "half-up" or cents % 2 == 1))
    return cents + up


def _units(rules: Rules, sale: Sale) -> dict[int, int]:
    """Return the amount of each article after the rules of single units."""
    weekday, evening, multi = (rules.get(n) for n in ("weekday", "evening", "multi"))
    amounts: dict[int, int] = {}
    members: list[tuple[int, int]] = []
    for article, units, cents in sale.lines:
        group, price, off = sale.groups[article], cents * _SCALE, 0
        if weekday and weekday["group"] == group and weekday["day"] == sale.day % 7:
            off = weekday["percent"]
        late = evening and evening["group"] == group and sale.minute >= evening["from"]
        if evening and late:
            if evening["with"] == "best":
                off = max(off, evening["percent"])
            else:
                price = price * (100 - evening["percent"]) // 100
        price = price * (100 - off) // 100
        amounts[article] = amounts.get(article, 0) + price * units
        reduced = evening and late and evening["with"] == "no-multi"
        if multi and multi["group"] == group and not reduced:
            members += [(article, price)] * units
    if multi and members:
        parts = [members]
        if multi["among"] == "articles":
            parts = [[m for m in members if m[0] == a] for a in {m[0] for m in members}]
        for part in parts:
            for article, price in _free(multi, part):
                amounts[article] -= price * multi["percent"] // 100
    return amounts


def _free(multi: Rule, part: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return which units of several are free, or cheaper."""
    each = multi["each"]
    if multi["free"] == "order":
        return part[each - 1 :: each]
    ordered = sorted(part, key=lambda m: -m[1])
    if multi["free"] == "sets":
        return ordered[each - 1 :: each]
    return ordered[len(part) - len(part) // each :]


def _recent(within: str, sale: Sale) -> set[int]:
    """Return the articles of the receipts that the rule ``repeat`` remembers."""
    if within == "week":
        chosen = [x for x in sale.before if sale.day - x[0] <= 7]
    else:
        chosen = [x for x in sale.before if x[2]][-1 if within == "last" else -2 :]
    return {article for _, _, articles in chosen for article in articles}


def _basket(
    rules: Rules, sale: Sale, shelf: Mapping[int, int], amounts: Mapping[int, int], net: int
) -> int:
    """Return what the rules of a whole basket take off."""
    first = second = percent = 0
    if threshold := rules.get("threshold"):
        how, group = threshold["without"]
        others = net
        counted = shelf if threshold["of"] == "shelf" else amounts
        reached = sum(counted.values())
        if how != "none":
            others = sum(x for a, x in amounts.items() if sale.groups[a] != group)
        if how == "all":
            reached = sum(x for a, x in counted.items() if sale.groups[a] != group)
        if reached >= threshold["least"] * _SCALE:
            first = others * threshold["percent"] // 100
    if (card := rules.get("card")) and sale.card:
        recent = [x for x in sale.before if sale.day - x[0] <= card["days"]]
        least = card["least"]
        have = sum(bool(x[2]) for x in recent) if least < 100 else sum(x[1] for x in recent)
        percent = card["percent"] if have >= least else 0
    second = (net - first if rules.get("card", {}).get("how") == "after" else net) * percent // 100
    if percent and rules["card"]["how"] == "best":
        return max(first, second)
    return first + second


def points(rule: Rule, sale: Sale, cents: int) -> int:
    """Return the points for a total, which is without a group if the rule says so."""
    out = sum(u * p for a, u, p in sale.lines if sale.groups[a] == rule["without"])
    counted, times = max(0, cents - out), 2 if sale.day % 7 == rule["double"] else 1
    if rule["floor"] == "before":
        return int(counted // rule["each"] * times)
    return int(counted * times // rule["each"])
