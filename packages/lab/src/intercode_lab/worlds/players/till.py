"""The reference player of ``silent-till``: reads all receipts, and fits rules until they agree."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import product

from intercode_lab.worlds.players.document_readers import files_in
from intercode_lab.worlds.till import (
    PLAIN,
    POINTS,
    VALUES,
    Rule,
    Rules,
    Sale,
    forms,
    points,
    total,
)
from intercode_lab.worlds.world import Player, Run

_STAGES: Sequence[tuple[str, Callable[[Sale], bool]]] = (
    ("rounding", lambda s: not s.card and s.minute < 960 and _shelf(s) < 1500),
    ("weekday", lambda s: not s.card and s.minute < 960 and _shelf(s) < 1500),
    ("multi", lambda s: not s.card and s.minute < 960 and _shelf(s) < 2500),
    ("pair", lambda s: not s.card and s.minute < 960 and _shelf(s) < 2500),
    ("rounding", lambda s: not s.card and s.minute < 960 and _shelf(s) < 2500),
    ("evening", lambda s: not s.card and _shelf(s) < 2500),
    ("threshold", lambda s: not s.card),
    ("cap", lambda s: not s.card),
    ("repeat", lambda s: _shelf(s) < 1500),
    ("card", lambda _: True),
    ("repeat", lambda _: True),
)
"""Which receipts first show each rule: those to which few others apply."""


@dataclass(slots=True)
class _Printed:
    """A receipt as it was printed. ``sale``: None if units cannot be read. ``total``,
    ``points``: None if they cannot be read. ``clear``: all that came before can be read."""

    number: int
    sale: Sale | None
    total: int | None
    points: int | None
    card: str
    clear: bool = True


@dataclass(slots=True)
class _Row:
    """What stands on a receipt. Prices are 0 where none stand; ``many`` is None if torn."""

    number: int
    date: str
    minute: int
    card: str
    cash: bool
    lines: list[tuple[int, int, int]]
    torn: bool
    total: int | None
    points: int | None
    refund: bool


def play(_request: str, run: Run, *, skip: Collection[str] = ()) -> None:
    """Solve a world. ``skip``: rules that a hasty player does not think of."""
    run("ls -R | head -50; cat mails/*")
    notes = run("cat docs/notes.md")
    stock = run("cat docs/stock.csv")
    cards = run("cat docs/cards.csv")
    pending = run("cat pending.csv")
    days = run("ls receipts/*").split()
    weeks = sorted({day[:9] for day in days if day.startswith("20")})
    texts: dict[str, str] = {}
    for start in weeks:
        texts |= files_in(run(f"tail -n +1 receipts/*/{start}*"))
    shop = _Reader(notes, stock, cards, texts)
    rules = _fit(shop, skip)
    shop.complete(rules)
    rules = _settle(rules, [n for n in VALUES if n not in skip], shop.evidence)
    shop.complete(rules)
    run("mkdir -p answers")
    answers = [f"{n},{total(rules, s) / 100:.2f}" for n, s in shop.baskets(pending)]
    _write(run, "totals.csv", answers)
    wrong = [
        p.number
        for p in shop.printed
        if p.sale and p.total is not None and total(rules, p.sale) != p.total
    ]
    _write(run, "wrong.txt", map(str, wrong))
    _write(run, "points.csv", (f"{card},{n}" for card, n in shop.balances.items()))


def _write(run: Run, name: str, lines: Iterable[str]) -> None:
    text = "\n".join(lines)
    run(f"cat > answers/{name} <<'END'\n{text}\nEND")


class _Reader:
    """Reads what tills printed, in the order of numbers."""

    def __init__(self, notes: str, stock: str, cards: str, texts: dict[str, str]) -> None:
        rows = [line.split(",") for line in stock.splitlines()[1:]]
        names = sorted({row[2] for row in rows})
        self.articles = {int(row[0]): n for n, row in enumerate(rows)}
        self.groups = tuple(names.index(row[2]) for row in rows)
        head, *rest = cards.splitlines()
        self.first = _day(head)
        moved = re.search(r"Card (\d+) was lost. Since \S+ there is (\d+)", notes)
        self._moved = {moved[1]: moved[2]} if moved else {}
        changed = re.search(r"changed in the morning of (\S+)\.", notes)
        self._change = _day(changed[1]) - self.first if changed else 10**6
        self._opening = {self._owner(line.split(",")[0]): int(line.split(",")[2]) for line in rest}
        self._gone: set[int] = set()
        self.evidence: list[_Printed] = []
        self.rows: list[_Row] = []
        for path, text in texts.items():
            self._read(path, text)
        self.rows.sort(key=lambda r: r.number)
        self._prices: dict[tuple[int, bool], int] = {
            (a, self._new(row.date)): price
            for row in self.rows
            for a, _, price in row.lines
            if price
        }
        self.complete(None)

    def _owner(self, card: str) -> str:
        return self._moved.get(card, card)

    def _new(self, date: str) -> bool:
        return _day(date) - self.first >= self._change

    def _read(self, path: str, text: str) -> None:
        if "/roll/" in path:
            for line in text.splitlines():
                self._read_line(path, line)
            return
        for part in re.split(r"^-+\n", text, flags=re.M):
            if gone := re.match(r"Receipt (\d+) is CANCELLED", part):
                self._gone.add(int(gone[1]))
            elif part.strip():
                self._read_text(part)

    def _read_line(self, path: str, line: str) -> None:
        number, clock, *rest = line.split(";")
        if clock == "cancelled":
            self._gone.add(int(number))
            return
        lines = re.findall(r"(\d+)\*(-?\d+|#)", rest[0])
        date = path.rpartition("/")[2][:10]
        minute = int(clock[-4:-2]) * 60 + int(clock[-2:])
        card, got = (rest[2], rest[3]) if len(rest) > 2 else ("", "")
        self._add(int(number), date, minute, card, rest[1][0] == "c", [(*x, "0") for x in lines],
                  rest[1][1:], got, False)  # fmt: skip

    def _read_text(self, part: str) -> None:
        head = re.match(r"(Receipt|RETURN) (\d+).*?(\d{4}-\d\d-\d\d) (\d\d):(\d\d)", part)
        paid = re.search(r"^(?:TO PAY|BACK) +(\S+)  (\w+)", part, re.M)
        assert head and paid
        lines = re.findall(r"^(\d+) .*?(-?\d+|#) x +(\d+\.\d\d)", part, re.M)
        card = re.search(r"^Card (\d+), points (\S+)", part, re.M)
        found = (card[1], card[2]) if card else ("", "")
        self._add(int(head[2]), head[3], int(head[4]) * 60 + int(head[5]), found[0],
                  paid[2] == "cash", [(a, u, p.replace(".", "")) for a, u, p in lines],
                  paid[1].replace(".", ""), found[1], head[1] == "RETURN")  # fmt: skip

    def _add(
        self, number: int, date: str, minute: int, card: str, cash: bool,
        lines: Sequence[tuple[str, str, str]], cents: str, got: str, refund: bool,
    ) -> None:  # fmt: skip
        units: dict[int, tuple[int, int]] = {}
        for article, many, price in lines:
            n = self.articles[int(article)]
            units[n] = units.get(n, (0, 0))[0] + (0 if many == "#" else int(many)), int(price)
        torn = any(many == "#" for _, many, _ in lines)
        lasting = [(a, u, p) for a, (u, p) in units.items() if u or torn]
        self.rows.append(
            _Row(number, date, minute, self._owner(card), cash, lasting, torn,
                 None if "#" in cents else int(cents), None if "#" in got else int(got or 0),
                 refund)
        )  # fmt: skip

    def complete(self, rules: Rules | None) -> None:
        """Put receipts into their order, with the totals that rules give where none can be read."""
        self.printed: list[_Printed] = []
        self.memory: dict[str, list[tuple[int, int, frozenset[int]]]] = {}
        self.balances = dict(self._opening)
        hazy: set[str] = set()
        rule = _fit_points(self.evidence) if rules else {}
        for row in self.rows:
            day = _day(row.date) - self.first
            before = tuple(self.memory.get(row.card, ())) if row.card else ()
            prices = [p or self._price(a, row.date) for a, _, p in row.lines]
            lines = tuple((a, u, p) for (a, u, _), p in zip(row.lines, prices, strict=True))
            sale = Sale(day, row.minute, row.card, row.cash, lines, before, self.groups)
            cents, got = row.total, row.points
            if cents is None and rules:
                cents = total(rules, sale)
                got = points(rule, sale, cents)
            if not row.refund:
                seen = None if row.torn else sale
                self.printed.append(
                    _Printed(row.number, seen, row.total, row.points, row.card,
                             row.card not in hazy)
                )  # fmt: skip
            if not row.card or row.number in self._gone:
                continue
            if row.total is None:
                hazy.add(row.card)
            articles = frozenset() if row.refund else frozenset(a for a, _, _ in lines)
            self.memory.setdefault(row.card, []).append((day, cents or 0, articles))
            self.balances[row.card] += got or 0
        self.evidence = [
            p for p in self.printed if p.sale and (p.clear or rules) and p.total is not None
        ]

    def _price(self, article: int, date: str) -> int:
        new = self._new(date)
        return self._prices.get((article, new)) or self._prices[article, not new]

    def baskets(self, pending: str) -> Iterable[tuple[str, Sale]]:
        """Yield the baskets of a file after their names."""
        for row in pending.splitlines()[1:]:
            name, clock, card, paid, lines = row.split(",")
            date, minute = clock[:10], int(clock[11:13]) * 60 + int(clock[14:])
            parts = [(self.articles[int(a)], int(u)) for u, a in re.findall(r"(\d+)x(\d+)", lines)]
            yield name, Sale(
                _day(date) - self.first, minute, card, paid == "cash",
                tuple((a, u, self._price(a, date)) for a, u in parts),
                tuple(self.memory.get(card, ())), self.groups,
            )  # fmt: skip


def _day(text: str) -> int:
    """Return the number of the first date in a text."""
    found = re.search(r"\d{4}-\d\d-\d\d", text)
    assert found, text
    return date.fromisoformat(found[0]).toordinal()


def _shelf(sale: Sale) -> int:
    return sum(u * p for _, u, p in sale.lines)


def _fit(shop: _Reader, skip: Collection[str]) -> Rules:
    """Return rules that agree with all receipts but those of a week. Each rule is fitted first to
    receipts that show little else, then to all. As long as that leads nowhere, one is forgotten."""
    rules: Rules = PLAIN
    seen = shop.evidence
    if "rounding" not in skip:
        for name, shows in _STAGES:
            if name not in skip:
                part = [p for p in seen if p.sale and shows(p.sale)]
                rules = _improve(rules, name, part)
    names = [name for name in VALUES if name not in skip]
    best = _settle(rules, names, seen)
    for _ in range(0 if skip else 3):
        for forgotten in names[1:]:
            if len({p.sale.day // 7 for p in seen if p.sale and _cost(best, [p])}) < 2:
                return best
            rest = {n: rule for n, rule in best.items() if n != forgotten}
            others = [n for n in names if n != forgotten]
            found = _settle(_settle(rest, others, seen), names, seen)
            best = min(best, found, key=lambda rules: _cost(rules, seen))
    return best


def _settle(rules: Rules, names: Sequence[str], seen: Sequence[_Printed]) -> Rules:
    """Return rules that no other form of one of them improves."""
    for _ in range(6):
        before = rules
        for name in names:
            rules = _improve(rules, name, seen)
        if rules == before:
            break
    return rules


def _cost(rules: Rules, seen: Iterable[_Printed], limit: int = 1 << 30) -> int:
    """Return how badly rules agree; if that is above a limit, some number above it."""
    cost = 0
    for printed in seen:
        assert printed.sale and printed.total is not None
        off = abs(total(rules, printed.sale) - printed.total)
        cost += 0 if not off else 1 if off < 3 else 3
        if cost > limit:
            break
    return cost


def _improve(rules: Rules, name: str, seen: Sequence[_Printed]) -> Rules:
    """Return rules with the best form of one of them."""
    bad = [p for p in seen if _cost(rules, [p])]
    good = [p for p in seen if not _cost(rules, [p])]
    best, least = rules, _cost(rules, bad)
    rest = {n: rule for n, rule in rules.items() if n != name}
    others: list[Rules] = [{**rest, name: form} for form in forms(name)]
    for other in others if name == "rounding" else [rest, *others]:
        cost = _cost(other, bad, least)
        if cost < least:
            cost += _cost(other, good, least - cost)
        if cost < least:
            best, least = other, cost
    return best


def _fit_points(seen: Sequence[_Printed]) -> Rule:
    """Return the rule of points that agrees with the most receipts."""
    rules = [dict(zip(POINTS, values, strict=True)) for values in product(*POINTS.values())]
    return max(
        rules,
        key=lambda rule: sum(
            points(rule, p.sale, p.total) == p.points
            for p in seen
            if p.sale and p.card and p.total is not None
        ),
    )


SHALLOW: dict[str, Player] = {
    "list prices": partial(play, skip=tuple(VALUES)),
    "nearest cent": partial(play, skip=("rounding",)),
    "large baskets not thought of": partial(play, skip=("threshold", "cap")),
}
