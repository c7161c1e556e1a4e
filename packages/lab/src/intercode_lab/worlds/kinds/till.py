"""A till that has failed for good: its rules show only in the receipts that it printed."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from intercode_lab.families.bash.bash_task import WORDS
from intercode_lab.families.choices import Choices
from intercode_lab.families.family import Draw
from intercode_lab.families.file_tree import DAY, FOLDER, NOW, FileTree, date_of
from intercode_lab.worlds.players.till import SHALLOW, play
from intercode_lab.worlds.requests import Goal, human, write_request
from intercode_lab.worlds.till import (
    ARTICLES,
    GROUPS,
    POINTS,
    VALUES,
    Rule,
    Rules,
    Sale,
    forms,
    points,
    total,
)
from intercode_lab.worlds.world import HiddenChoice, World, kind

_GOALS = {
    "totals": Goal(
        (
            "work out what the till would have charged for each basket in pending.csv, and write "
            "it to answers/totals.csv as lines BASKET,TOTAL such as B07,12.35",
            "fill answers/totals.csv with a line BASKET,TOTAL (such as B07,12.35) for each basket "
            "in pending.csv, to the cent as the till would have had it",
            "price the baskets in pending.csv as the till would have, in answers/totals.csv, each "
            "in a line such as B07,12.35",
            "tell us what every basket in pending.csv costs by the rules of the till; we want "
            "lines such as B07,12.35 in answers/totals.csv",
            "put the totals that the till would print for pending.csv into answers/totals.csv "
            "(lines such as B07,12.35)",
        )
    ),
    "wrong": Goal(
        (
            "list the numbers of the receipts with a wrong total from the week in which a rule was "
            "set wrongly in answers/wrong.txt, one a line",
            "write into answers/wrong.txt, a line each, the numbers of the receipts whose total is "
            "wrong because a rule was set wrongly for a week",
            "name every receipt whose total came out wrong in the week of the wrong setting: "
            "answers/wrong.txt, one number a line",
            "find the receipts that the wrong setting of that one week gave a wrong total, and put "
            "their numbers into answers/wrong.txt, one in a line",
            "make answers/wrong.txt with the number of each receipt whose total would have been "
            "another one without the wrong setting of that week, a line each",
        )
    ),
    "balances": Goal(
        (
            "write the balance of points of each card after the last receipt to "
            "answers/points.csv as lines CARD,POINTS, without cards that were replaced",
            "work out how many points are on each card at the end, without replaced cards, and "
            "write lines CARD,POINTS to answers/points.csv",
            "fill answers/points.csv with CARD,POINTS for every card that is still in use, as of "
            "the last receipt",
            "bring the points of the cards in use up to the last receipt, in answers/points.csv, "
            "a line CARD,POINTS each",
            "put the points that each card in use has after the last receipt into "
            "answers/points.csv (lines CARD,POINTS)",
        )
    ),
}
_START = NOW // DAY * DAY - 67 * DAY  # a Monday
_DAYS, _SLOTS, _CARDS = 28, 7, 5
_GROUP_NAMES = ("bakery", "dairy", "fruit", "drinks")
_KINDS = ("loaf", "bun", "roll", "milk", "curd", "cheese", "pears", "plums", "figs", "tea", "juice",
          "malt")  # fmt: skip
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_HEARSAY = {
    "weekday": ("day", "Some things were cheaper on {}s, but not everything."),
    "multi": ("each", "If you took enough of one shelf, something was free, or half price: with "
              "{} of them, I think."),
    "pair": ("articles", "Customers say that {} were cheaper together."),
    "evening": ("from", "Towards the end of the day, from {} on, one group was reduced."),
    "threshold": ("least", "Large baskets got some per cent off, from {} on. I believe that not "
                  "everything counted."),
    "card": ("days", "Cards of good customers got a little off. It went by the last {} days, "
             "by the date; whether by money or by visits I never knew."),
    "repeat": ("less", "Who bought the same again with the card had {} off, or was that each?"),
    "cap": ("most", "There was a most that a basket could get off, {} or so."),
}  # fmt: skip
_MISSET = {"weekday": "percent", "multi": "each", "evening": "percent", "threshold": "percent"}
"""The rules that may have been set wrongly for a week, and the setting."""


@dataclass(slots=True)
class _Receipt:
    number: int
    sale: Sale
    total: int
    points: int
    owner: int
    right: bool = True
    damage: str = ""
    cancelled: bool = False
    refund_of: int = 0


@dataclass(slots=True)
class _Shop:
    """A shop while its receipts are drawn. ``open``: alternatives to the rules, after the name of
    the rule that differs and how many receipts they must still disagree with."""

    c: Choices
    difficulty: int
    rules: Rules
    wrong: Rules
    week: int
    point_rule: Rule
    groups: tuple[int, ...]
    prices: tuple[list[int], list[int]]
    cards: list[str]
    replaced: str
    change: int
    move: int
    memory: list[list[tuple[int, int, frozenset[int]]]]
    receipts: list[_Receipt] = field(default_factory=list)
    open: list[list[Any]] = field(default_factory=list)

    def card(self, owner: int, day: int) -> str:
        """Return the card that a customer has on a day."""
        if owner < 0:
            return ""
        return self.replaced if owner == 0 and day >= self.move else self.cards[owner]

    def basket(self, day: int, minutes: tuple[int, int], name: str) -> tuple[int, Sale]:
        """Return a customer and a basket to which a rule may apply."""
        c = self.c
        rule = self.rules.get(name) or c.one(_FORMS[name])
        owner = c.index(_CARDS) if c.chance(95 if name in ("card", "repeat") else 55) else -1
        before = tuple(self.memory[owner]) if owner >= 0 else ()
        articles = c.some(range(ARTICLES), c.between(2, 6 if name in ("cap", "threshold") else 4))
        if "group" in rule and c.chance(80):
            own = [a for a in range(ARTICLES) if self.groups[a] == rule["group"]]
            articles = [*c.some(own, c.between(1, 3)), *articles[:2]]
        if name == "pair":
            articles = [*rule["articles"], *articles[:2]]
        if name == "repeat" and before:
            articles = [*c.some(sorted(before[-1][2]), 2), *articles[:3]]
        articles = list(dict.fromkeys(articles))
        most = 5 if name in ("multi", "cap") else 3
        minute = c.between(*minutes) // 10 * 10 + c.one((0, 0, 3, 7))
        prices = self.prices[day >= self.change]
        lines = tuple((a, c.between(1, most), prices[a]) for a in c.shuffled(articles))
        sale = Sale(day, minute, self.card(owner, day), c.chance(50), lines, before, self.groups)
        return owner, sale

    def draw(self) -> None:
        """Draw receipts until no alternative to the rules agrees with all of them."""
        idle = day = 0
        while day < _DAYS or (any(x[2] > 0 for x in self.open) and idle < 6):
            before = sum(x[2] for x in self.open)
            for slot in range(_SLOTS):
                self._slot(day, (480 + 100 * slot, 570 + 100 * slot))
            idle = idle + 1 if sum(x[2] for x in self.open) == before else 0
            day += 1

    def _slot(self, day: int, minutes: tuple[int, int]) -> None:
        c = self.c
        misset = day // 7 == self.week
        fewer = [x for x in self.open if x[2] > 0]
        pool = []
        for _ in range(2 if day < 20 else 5):
            name = c.one(fewer)[1] if fewer and c.chance(70) else c.one(list(self.rules))
            if misset and c.chance(50):
                name = next(n for n in self.rules if self.rules[n] != self.wrong[n])
            pool.append(self.basket(day, minutes, name))
        some = c.some(fewer, 40)
        rights = [total(self.rules, sale) for _, sale in pool]
        gains = [
            sum(total(x[0], sale) != cents for x in some)
            for (_, sale), cents in zip(pool, rights, strict=True)
        ]
        best = gains.index(max(gains))
        if misset and sum(not r.right for r in self.receipts) < 7:
            off = [total(self.wrong, s) != t for (_, s), t in zip(pool, rights, strict=True)]
            best = off.index(True) if any(off) else best
        (owner, sale), right = pool[best], rights[best]
        printed = total(self.wrong, sale) if misset else right
        hazy = owner >= 0 and any(r.owner == owner and r.damage == "total" for r in self.receipts)
        damage = self._damage(day, owner)
        if misset:
            for x in self.open:
                x[2] += printed != right and total(x[0], sale) == printed
        elif not damage and not hazy:
            for x in self.open:
                lasting = day < 21 and self.rules.get(x[1]) != self.wrong.get(x[1])
                if (x[2] > 0 or lasting) and total(x[0], sale) != right:
                    x[2] -= 1
        self._print(owner, sale, printed, right, damage)
        if not misset and self.difficulty > 1 and not damage and day < 27:
            self._undo(self.receipts[-1])

    def _damage(self, day: int, owner: int) -> str:
        done = [r.damage for r in self.receipts]
        if self.difficulty < 3 or day // 7 == self.week:
            return ""
        if owner > 1 and day > 22 and done.count("total") < 3 and self.c.chance(40):
            return "total"
        return "units" if done.count("units") < 4 and self.c.chance(4) else ""

    def _print(self, owner: int, sale: Sale, cents: int, right: int, damage: str) -> None:
        number = self.receipts[-1].number + 1 if self.receipts else self.c.between(1200, 8000)
        got = points(self.point_rule, sale, cents) if owner >= 0 else 0
        self.receipts.append(_Receipt(number, sale, cents, got, owner, cents == right, damage))
        if owner >= 0:
            articles = frozenset(a for a, _, _ in sale.lines)
            self.memory[owner].append((sale.day, cents, articles))

    def _undo(self, last: _Receipt) -> None:
        """Cancel a receipt, or take something back."""
        if self.c.chance(6):
            last.cancelled = True
            if last.owner >= 0:
                self.memory[last.owner].pop()
        elif last.owner >= 0 and self.c.chance(9):
            article, _, price = last.sale.lines[0]
            shelf = sum(u * p for _, u, p in last.sale.lines)
            refund = price * last.total // shelf
            sale = replace(last.sale, minute=last.sale.minute + 2, lines=((article, 1, price),))
            got = -(refund // self.point_rule["each"])
            self.receipts.append(
                _Receipt(last.number + 1, sale, -refund, got, last.owner, refund_of=last.number)
            )
            self.memory[last.owner].append((sale.day, -refund, frozenset()))


_FORMS: Mapping[str, Sequence[Rule]] = {name: list(forms(name)) for name in VALUES}


def _open(rules: Rules, misset: str) -> list[list[Any]]:
    """Return every other form of each rule, and rules without one of them."""
    found: list[list[Any]] = []
    for name in VALUES:
        for form in _FORMS[name]:
            if form != rules.get(name):
                found.append([{**rules, name: form}, name, 3 if name == misset else 2])
        if name in rules and name != "rounding":
            found.append([{n: r for n, r in rules.items() if n != name}, name, 2])
    return found


@kind(play, SHALLOW)
def silent_till(draw: Draw) -> World:
    """Find the rules of a till in its receipts, and answer for baskets that it never saw."""
    c, d = draw.hidden, draw.difficulty
    while True:
        shop = _draw_shop(c, draw, d)
        shop.draw()
        if _is_clear(shop):
            break
    tree = FileTree()
    names = [f"{word} {thing}" for word, thing in zip(c.some(WORDS, ARTICLES), _KINDS, strict=True)]
    numbers = sorted(c.some(range(11, 99), ARTICLES))
    things = [names[3 * g + i] for g, i in _by_group(shop.groups)]
    opening = [c.between(10, 300) for _ in range(_CARDS)]
    _write_receipts(tree, shop, numbers, things)
    _write_documents(c, d, tree, shop, numbers, things, opening)
    choices = _write_mails(c, d, tree, shop, things)
    pending = _pending(shop)
    goals: dict[str, dict[str, Any]] = {}
    rows: list[str] = []
    totals: dict[str, int] = {}
    places = iter(c.shuffled(range(1, 1 + sum(map(len, pending.values())))))
    for name, sales in pending.items():
        for sale in sales:
            basket = f"B{next(places):02}"
            totals[basket] = total(shop.rules, sale)
            lines = " ".join(f"{u}x{numbers[a]}" for a, u, _ in sale.lines)
            paid = "cash" if sale.cash else "bank"
            rows.append(f"{basket},{_clock(sale)},{sale.card},{paid},{lines}\n")
            goals.setdefault(f"rule/{name}", {})[f"total/{basket}"] = totals[basket]
    tree.file("pending.csv", "basket,time,card,paid,lines\n" + "".join(sorted(rows)))
    wrong = sorted(r.number for r in shop.receipts if not r.right)
    balances = {
        shop.card(n, 99): opening[n]
        + sum(r.points for r in shop.receipts if r.owner == n and not r.cancelled)
        for n in range(_CARDS)
    }
    wanted = list(_GOALS)[: draw.by_difficulty(1, 2, 3, 3, 3)]
    if "wrong" in wanted:
        goals["wrong"] = {"wrong": wrong}
    if "balances" in wanted:
        goals["balances"] = {"balances": balances}
    phrasing, request = write_request(
        c,
        "the old till",
        (
            "Our till has failed for good, and its programme is lost with its vendor.",
            "receipts has what it printed in its last weeks, docs and mails what people know or "
            "believe; what the till did counts.",
        ),
        [_GOALS[name] for name in wanted],
    )
    return World(
        phrasing,
        request,
        tree,
        _PROBE % FOLDER,
        goals,
        {"sources": {"sources": _digest(tree)}},
        _solutions(totals, wrong, balances),
        {"sources": "echo >> $(find receipts -type f | head -n 1)"},
        choices,
        discoveries=len(shop.rules) + 2,
        traps=draw.by_difficulty(1, 2, 4, 5, 6),
    )


def _by_group(groups: Sequence[int]) -> list[tuple[int, int]]:
    """Return the group of each article, and which of the group it is."""
    return [(g, groups[:n].count(g)) for n, g in enumerate(groups)]


def _draw_shop(c: Choices, draw: Draw, d: int) -> _Shop:
    """Return a shop without receipts."""
    misset = c.one(list(_MISSET))
    others = c.shuffled([n for n in VALUES if n not in ("rounding", "threshold", misset)])
    names = {"threshold", misset, *others[: draw.by_difficulty(0, 1, 3, 5, 7)]}
    rules: dict[str, Rule] = {}
    for name in VALUES:
        if name == "rounding":
            odd = [f for f in _FORMS[name] if (f["of"], f["how"]) != ("receipt", "half-up")]
            rules[name] = c.one(odd)
        elif name in names:
            rules[name] = c.one(_FORMS[name])
    setting = _MISSET[misset]
    values = [v for v in VALUES[misset][setting] if v != rules[misset][setting]]
    wrong = {**rules, misset: {**rules[misset], setting: c.one(values)}} if d > 1 else rules
    groups = tuple(c.shuffled([n % GROUPS for n in range(ARTICLES)]))
    first = [5 * c.between(16, 110) + c.one((0, 0, 4)) for _ in range(ARTICLES)]
    raised = c.some(range(ARTICLES), 4 if d > 1 else 0)
    second = [p + 5 * c.between(2, 9) if n in raised else p for n, p in enumerate(first)]
    numbers = [str(n) for n in c.some(range(3001, 9999), _CARDS + 1)]
    point_rule = dict(zip(POINTS, [c.one(values) for values in POINTS.values()], strict=True))
    return _Shop(
        c, d, rules, wrong, c.between(1, 2) if d > 1 else -1, point_rule, groups, (first, second),
        numbers[:_CARDS], numbers[-1], c.between(8, 16), c.between(12, 20) if d > 2 else 10**6,
        [[] for _ in range(_CARDS)], open=_open(rules, misset if d > 1 else ""),
    )  # fmt: skip


def _is_clear(shop: _Shop) -> bool:
    """Return whether all rules that the receipts allow give the same receipts a wrong total."""
    judged = [r for r in shop.receipts if not r.refund_of and not r.damage]
    wrong = [r for r in judged if not r.right]
    for rules, _, wanted in shop.open:
        if wanted > 0:
            off = [r for r in judged if total(rules, r.sale) != r.total]
            if off != wrong and all(r.sale.day // 7 == shop.week for r in off):
                return False
    return True


def _pending(shop: _Shop) -> dict[str, list[Sale]]:
    """Return baskets by rule, such that the other forms of the rule fail for one of them."""
    day = shop.receipts[-1].sale.day + 1
    undecided = [x[0] for x in shop.open if x[2] > 0]
    found = {}
    for name in shop.rules:
        others = [x[0] for x in shop.open if x[1] == name and x[2] <= 0]
        pool: list[tuple[Sale, set[int]]] = []  # with the numbers of the others that agree on it
        while len(pool) < 25:
            at = shop.c.between(day, day + 6)
            _, sale = shop.basket(at, (480, 1200), name)
            cents = total(shop.rules, sale)
            if all(total(rules, sale) == cents for rules in undecided):
                pool.append((sale, {n for n, r in enumerate(others) if total(r, sale) == cents}))
        alike = everyone = set(range(len(others)))
        chosen: list[Sale] = []
        while len(chosen) < 6:
            best = min(range(len(pool)), key=lambda n: len(alike & pool[n][1]))
            if len(chosen) >= 3 and alike <= pool[best][1]:
                break
            sale, agree = pool.pop(best)
            chosen.append(sale)
            alike = (alike & agree) or (everyone if len(chosen) < 3 else set())
            if not alike:
                break
        found[name] = chosen
    return found


def _clock(sale: Sale) -> str:
    return f"{date_of(_START + sale.day * DAY)} {sale.minute // 60:02}:{sale.minute % 60:02}"


def _money(cents: int) -> str:
    return f"{'-' if cents < 0 else ''}{abs(cents) // 100}.{abs(cents) % 100:02}"


def _write_receipts(
    tree: FileTree, shop: _Shop, numbers: Sequence[int], things: Sequence[str]
) -> None:
    """Add what two tills printed: the one texts, the other lines without prices."""
    texts: dict[str, list[str]] = {}
    for receipt in shop.receipts:
        day = date_of(_START + receipt.sale.day * DAY)
        roll = receipt.number % 5 in (1, 3) and not receipt.refund_of
        write = _short if roll else _long
        path = f"receipts/roll/{day}.txt" if roll else f"receipts/printed/{day}.txt"
        texts.setdefault(path, []).append(write(receipt, numbers, things, shop.c))
        if receipt.cancelled:
            texts[path].append(
                f"{receipt.number};cancelled\n" if roll
                else f"{'-' * 40}\nReceipt {receipt.number} is CANCELLED\n"
            )  # fmt: skip
    for path, parts in texts.items():
        tree.file(path, "".join(parts))


def _short(r: _Receipt, numbers: Sequence[int], _things: Sequence[str], c: Choices) -> str:
    at = time.gmtime(_START + r.sale.day * DAY)
    lines = [f"{numbers[a]}*{u}" for a, u, _ in r.sale.lines]
    if r.damage == "units":
        lines[0] = f"{numbers[r.sale.lines[0][0]]}*#"
    elif c.chance(12):
        bought = [numbers[a] for a, _, _ in r.sale.lines]
        extra = c.one([n for n in numbers if n not in bought])
        lines.insert(c.between(0, len(lines)), f"{extra}*1,{extra}*-1")
    cents, got = ("####", "##") if r.damage == "total" else (str(r.total), str(r.points))
    clock = f"{at.tm_mday:02}.{at.tm_mon:02}. {r.sale.minute // 60:02}{r.sale.minute % 60:02}"
    paid = "c" if r.sale.cash else "b"
    tail = f";{r.sale.card};{got}" if r.sale.card else ""
    return f"{r.number};{clock};{','.join(lines)};{paid}{cents}{tail}\n"


def _long(r: _Receipt, numbers: Sequence[int], things: Sequence[str], c: Choices) -> str:
    head = f"RETURN {r.number} of receipt {r.refund_of}" if r.refund_of else f"Receipt {r.number}"
    rows = [f"{'-' * 40}\n{head}   {_clock(r.sale)}"]
    for n, (a, units, price) in enumerate(r.sale.lines):
        many, sum_ = ("#", "##.##") if r.damage == "units" and n == 0 else (units, "")
        more = units + 1 if not sum_ and not r.refund_of and c.chance(6) else many
        cents = sum_ or _money(price * int(more))
        rows.append(f"{numbers[a]} {things[a]:<18}{more} x {_money(price):>5}{cents:>8}")
        if more != many:
            rows.append(
                f"{numbers[a]} {'CORRECTION':<18}-1 x {_money(price):>5}{_money(-price):>7}"
            )
    cents, got = ("##.##", "##") if r.damage == "total" else (_money(r.total), str(r.points))
    rows.append(
        f"{'TO PAY' if r.total > 0 else 'BACK':<30}{cents:>8}  {'cash' if r.sale.cash else 'bank'}"
    )
    if r.sale.card:
        rows.append(f"Card {r.sale.card}, points {got}")
    return "\n".join(rows) + "\n"


def _write_documents(
    c: Choices, d: int, tree: FileTree, shop: _Shop, numbers: Sequence[int], things: Sequence[str],
    opening: Sequence[int],
) -> None:  # fmt: skip
    stock = [
        f"{numbers[a]},{things[a]},{_GROUP_NAMES[shop.groups[a]]},"
        f"{_money(shop.prices[0][a] - (5 * c.between(1, 6) if c.chance(35) else 0))}\n"
        for a in range(ARTICLES)
    ]
    tree.file("docs/stock.csv", "number,article,group,price\n" + "".join(stock))
    cards = [f"{shop.cards[n]},{human(c)},{opening[n]}\n" for n in range(_CARDS)]
    tree.file(
        "docs/cards.csv",
        f"card,name,points on {date_of(_START)} in the morning\n" + "".join(cards),
    )
    notes = [
        "Receipts have numbers without gaps. Those in receipts/roll are of the small till, which "
        "prints no prices: number; day and time; articles and units; cash (c) or bank (b) with the "
        "cents to pay; and, with a card, its number and the points that it got. Both tills had the "
        "same rules, prices and numbers.",
        "A receipt that was cancelled counts as if it had never been: no points, no visit, nothing "
        "spent. The total on it was worked out like any other. A correction takes back what was "
        "typed too often; what is left is bought at the first time that it was typed.",
        "A return takes from what the card has spent, and from its points, what is printed on it. "
        "It is no visit and no purchase, and what was bought before stays bought.",
        "The printer tears paper now and then: # is what nobody can read. A torn receipt counts "
        "for its card like any other, with the total and the points that it must have had.",
        "The docs/stock.csv is old. What receipts/printed shows is what the shelf said that day. "
        "Nothing that a rule takes off shows in the lines of a receipt, only in what is to pay.",
        "A basket in pending.csv is bought at the time that stands there, at the last prices. Its "
        "card has bought before what the receipts show, and nothing of the other baskets. What a "
        "card has spent is what was to pay, rightly or wrongly.",
        "The folder answers is still to be made. Its files have no header.",
    ]
    if d > 1:
        notes.append(
            "The labels at the shelves, and the prices in both tills, changed in the morning of "
            f"{date_of(_START + shop.change * DAY)}."
        )
    if d > 2:
        notes.append(
            f"Card {shop.cards[0]} was lost. Since {date_of(_START + shop.move * DAY)} there is "
            f"{shop.replaced} in its stead, with all that was on the old one: points and history."
        )
    tree.file("docs/notes.md", "# Notes\n\n" + "\n\n".join(notes) + "\n")


def _write_mails(
    c: Choices, d: int, tree: FileTree, shop: _Shop, things: Sequence[str]
) -> list[HiddenChoice]:
    """Add what people believe about the rules: of each, a value that need not be right. Return
    which of what they say is."""
    choices = []
    said: list[str] = ["Tills round, everybody knows that. How ours did it, nobody does. With "
                       "coins it may have been another thing again."]  # fmt: skip
    for name, (setting, text) in _HEARSAY.items():
        values = VALUES[name][setting]
        if name in shop.rules:
            right = shop.rules[name][setting]
            claims = c.shuffled([right, *c.some([v for v in values if v != right], 2)])
            shown = [str(v) for v in claims]
            choices.append(HiddenChoice([{"value": s, "length": len(s)} for s in shown],
                                        claims.index(right)))  # fmt: skip
            claims = c.some(claims, 2)
        else:
            claims = [c.one(values)] if c.chance(50) else []
        said += [text.format(_say(name, v, things)) for v in claims]
    said.append("Cards got a point for every so much. One group gave none, I think, and one day of "
                "the week counted twice.")  # fmt: skip
    if d > 1:
        said.append(
            "After a visit of the technician one number in one rule was wrong for a week, from a "
            "Monday to a Sunday. Then somebody saw it and put it right."
        )
    for n, text in enumerate(c.shuffled(said)):
        who = human(c)
        tree.file(f"mails/{n + 1:02}.txt", f"From: {who}\n\n{text}\n\n{who.split()[0]}\n")
    return choices


def _say(name: str, value: Any, things: Sequence[str]) -> str:
    if name == "pair":
        return " and ".join(things[a] for a in value)
    if name == "weekday":
        return _WEEKDAYS[value]
    if name == "evening":
        return f"{value // 60} o'clock"
    return _money(value) if name in ("threshold", "repeat", "cap") else str(value)


def _digest(tree: FileTree) -> str:
    found = hashlib.sha256()
    for entry in tree.entries:
        if entry.kind == "file":
            path = entry.path.removeprefix(f"{FOLDER}/")
            found.update(f"{path} {hashlib.sha256(entry.data).hexdigest()}\n".encode())
    return found.hexdigest()


_PROBE = """
import hashlib, json, os
from decimal import Decimal
os.chdir(%r)
found = {}

def lines(path):
    return [line.strip() for line in read_file(path).decode().splitlines() if line.strip()]

def read(name, function):
    try:
        function()
    except Exception as error:
        found[name + "?"] = str(error)

def totals():
    for line in lines("answers/totals.csv"):
        basket, cents = line.split(",")
        try:
            value = Decimal(cents.strip()) * 100
            if value == int(value):
                found["total/" + basket.strip()] = int(value)
        except ArithmeticError:
            pass

def balances():
    rows = [line.split(",") for line in lines("answers/points.csv")]
    found["balances"] = {a.strip(): int(n) for a, n in rows if n.strip().lstrip("-").isdigit()}

read("totals", totals)
read("wrong", lambda: found.update(wrong=sorted({int(n) for n in lines("answers/wrong.txt")})))
read("balances", balances)
paths = ["pending.csv", *(os.path.join(top, name) for part in ("receipts", "docs", "mails")
                          for top, _, names in os.walk(part) for name in names)]
digest = hashlib.sha256()
for path in sorted(paths, key=lambda p: p.split("/")):
    try:
        data = hashlib.sha256(read_file(os.path.abspath(path))).hexdigest()
    except OSError as error:
        data = str(error)
    digest.update(f"{path} {data}\\n".encode())
found["sources"] = digest.hexdigest()
print()
print(json.dumps(found))
"""


def _solutions(
    totals: Mapping[str, int], wrong: Sequence[int], balances: Mapping[str, int]
) -> list[str]:
    """Return scripts that differ in the order of lines and in heads."""
    parts = {
        "totals.csv": [f"{b},{_money(t)}" for b, t in totals.items()],
        "wrong.txt": [str(n) for n in wrong],
        "points.csv": [f"{card},{n}" for card, n in balances.items()],
    }
    return [
        "mkdir -p answers\n"
        + "\n".join(
            f"{order} > answers/{name} <<'END'\n" + "".join(f"{x}\n" for x in rows) + "END"
            for name, rows in parts.items()
        )
        for order in ("sort", "sort -r", "cat")
    ]
