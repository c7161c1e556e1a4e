"""The reference player of ``silent-till``: fits each rule to what experiments on it show."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import product

from intercode_lab.families.choices import Choices
from intercode_lab.worlds.readers import files_in
from intercode_lab.worlds.till import (
    ITEMS,
    VALUES,
    Line,
    Rule,
    Totals,
    candidates,
    draw_lines,
    read_line,
    read_totals,
    totals,
    write_totals,
)
from intercode_lab.worlds.world import Player, Run

Seen = tuple[Sequence[Line], Totals]
"""Lines from a fresh till on, with the totals."""
_ORDER = (
    "staff", "bulk", "weekday", "turn", "evening", "idle", "nth", "streak", "returns", "quick",
    "cap", "scarce", "points", "pair",
)  # fmt: skip
_ROUNDED = ("staff", "bulk", "evening", "nth", "returns")
_MOST_LINES, _ROUNDS, _KEPT, _ORDERS = 30, 3, 16, 4


def play(_request: str, run: Run, *, skip: Sequence[str] = (), asks: bool = True) -> None:
    """Solve a world. ``skip``: rules that a hasty player does not think of. ``asks``: with the
    experiments that tell apart what the first ones leave open."""
    run("ls -R . | head -40; cat docs/till.md docs/host.md docs/hearsay.txt")
    listed = [row.split() for row in run("cat docs/prices.txt").splitlines()]
    prices = {item: _cents(price) for item, price in listed}
    texts = files_in(run("tail -n +1 history/*"))
    history: dict[str, Seen] = {
        path[8:10]: (_lines(text), read_totals(texts[path.replace("lines", "totals")]))
        for path, text in texts.items()
        if path.endswith("-lines.txt")
    }
    pending = {path: _lines(t) for path, t in files_in(run("tail -n +1 pending/*")).items()}
    fit = _Fit(prices, list(history.values()), [n for n in _ORDER if n not in skip], asks)
    designed = {name: list(_segments(name)) for name in fit.names}
    replies = _ask(run, [s for segments in designed.values() for s in segments])
    for name, segments in designed.items():
        fit.shown[name] = [replies.pop(0) for _ in segments]
    fit.fit()
    for number in range(_ROUNDS if asks else 0):
        asked = fit.open_questions(number, pending.values())
        if not asked:
            break
        for name, reply in zip(asked, _ask(run, list(asked.values())), strict=True):
            fit.shown[name].append(reply)
        fit.fit()
    wrong = []
    for name, (lines, printed) in history.items():
        right = totals(fit.rules, prices, lines)
        wrong += [f"{name}:{day}:{card}" for (day, card), n in printed.items()
                  if right[day, card] != n]  # fmt: skip
    commands = []
    for path, own in pending.items():
        text = write_totals(totals(fit.rules, prices, own))
        commands.append(f"cat > {path.replace('pending', 'answers')} <<'END'\n{text}END")
    for n in range(0, len(commands), 4):
        run("\n".join(commands[n : n + 4]))
    if wrong and len(wrong) < 20:
        run("cat > altered.txt <<'END'\n" + "\n".join(wrong) + "\nEND")


def _cents(text: str) -> int:
    return int(text.replace(".", ""))


def _lines(text: str) -> list[Line]:
    return [line for row in text.splitlines() if (line := read_line(row))]


def _ask(run: Run, segments: Sequence[Sequence[Line]]) -> list[Seen]:
    """Return what the test till says to lines, each group of them from a fresh till on."""
    if not segments:
        return []
    requests: list[list[Sequence[Line]]] = [[]]
    for segment in segments:
        if sum(map(len, requests[-1])) + len(segment) > _MOST_LINES:
            requests.append([])
        requests[-1].append(segment)
    texts = ["\n\n".join("\n".join(map(str, s)) for s in request) for request in requests]
    out = ""
    for n, text in enumerate(texts):
        read = "cat host/reply.txt; echo; " if n else ""
        out += run(f"{read}cat > host/request.txt <<'END'\n{text}\nEND")
    out += run("cat host/reply.txt")
    parts = re.split(r"\n\s*\n", out.strip())
    return [(lines, read_totals(part)) for lines, part in zip(segments, parts, strict=True)]


def _line(day: int, minute: int, card: int, item: str, units: int) -> Line:
    return Line(day, minute, f"{card}", item, units)


def _segments(name: str) -> Iterable[list[Line]]:
    """Yield groups of lines that show a rule."""
    noon = 10 * 60
    if name == "staff":
        yield from ([_line(2, noon, 1111 * n, "bread", 1)] for n in range(1, 10))
    elif name == "bulk":
        yield from ([_line(2, noon, 1111, "cheese", n)] for n in range(3, 10))
    elif name == "evening":
        yield from ([_line(2, 13 * 60 + 30 * n + 1, 1111, "fruit", 2)] for n in range(14))
    elif name == "weekday":
        yield from ([_line(21 + n, noon, 1111, i, 1)] for n, i in product(range(1, 8), ITEMS))
    elif name == "idle":
        yield [_line(n, noon, 1111, "bread", 1) for n in (1, 4, 8, 13, 19, 26)]
    elif name == "nth":
        yield [_line(1 + n, noon, 1111, ITEMS[n % 2], 1 + (n % 3 > 0)) for n in range(13)]
    elif name == "streak":
        yield [_line(n, noon, 1111, "salad", 1) for n in range(1, 6)]
        for count in range(2, 6):
            yield [_line(2, 400 + 40 * n, 1111, "salad", 1) for n in range(count)]
    elif name == "returns":
        yield [_line(1 + n, noon, 1111, "soup", units)
               for n, units in enumerate((2, -1, 5, -2, 1, -1))]  # fmt: skip
        yield [_line(2, noon, 1111, "juice", -1)]
    elif name == "quick":
        for gap in (29, 19, 14, 9, 7, 4, 2):
            yield [_line(2, noon + n, 1111, i, 1) for n, i in ((0, "bread"), (gap, "juice"))]
        yield [_line(2, noon + 2 * n, 1111 * (n + 1), "bread", 1) for n in range(2)]
    elif name == "cap":
        yield [_line(2, noon + 40 * n, 1111, ITEMS[n % 3], 9) for n in range(9)]
    elif name == "scarce":
        for item in ITEMS:
            yield [_line(2, noon + 40 * n, 1111 * (n + 1), item, 6) for n in range(3)]
    elif name == "points":
        yield [_line(1 + n, noon, 1111, ITEMS[n % 3], 3 + 6 * (n % 2)) for n in range(10)]
    elif name == "pair":
        for order, count in product((ITEMS, ITEMS[::-1]), (3, 6)):
            yield [_line(2, 400 + 40 * n, 1111, item, 1) for n, item in enumerate(order[:count])]


class _Fit:
    """Finds the rules that agree with what was seen. ``shown``: by the rule that it was to show.
    ``rules``: the best so far. ``best``: all forms of each rule that agree as well."""

    def __init__(
        self, prices: Mapping[str, int], history: Sequence[Seen], names: Sequence[str],
        thorough: bool,
    ) -> None:  # fmt: skip
        self.names, self._prices, self._history = names, prices, history
        self._thorough = thorough
        self.shown: dict[str, list[Seen]] = {}
        self.rules: dict[str, Rule] = {"rounding": {"how": "down"}}
        self.best: dict[str, list[dict[str, Rule]]] = {}
        self._likely: dict[str, list[dict[str, Rule]]] = {}

    def fit(self) -> None:
        """Fit the rules, in another order as long as the test till disagrees."""
        found = []
        shown = [s for seen in self.shown.values() for s in seen]
        if self._likely:  # more was seen: only what was as good before can be right
            self._fit_together(shown)
            if not self._missed(self.rules, shown):
                return
        for n in range(_ORDERS if self._thorough else 1):
            again = Choices("order", n).shuffled(self.names)
            self._fit_alone([*again, *again] if n else self.names)
            self._fit_together(shown)
            found.append((self._missed(self.rules, shown), n, self.rules, self.best))
            if not found[-1][0]:
                break
        _, _, self.rules, self.best = min(found, key=lambda x: x[:2])

    def _fit_alone(self, names: Sequence[str]) -> None:
        """Fit each rule to the lines that were to show it."""
        self.rules, self.best, self._likely = {"rounding": {"how": "down"}}, {}, {}
        for name in names:
            self.rules = self._ranked(self._forms(name), self._own(name))[0][1]

    def _fit_together(self, shown: Sequence[Seen]) -> None:
        """Fit each rule to all lines, until nothing changes."""
        everything = [*shown, *self._history]
        for _ in range(4):
            before = self.rules
            for name in self.names:
                if name not in self._likely:
                    own = self._ranked(self._forms(name), self._own(name), _KEPT)
                    self._likely[name] = [_part(rules, name) for _, rules in own]
                rest = {n: rule for n, rule in self.rules.items() if n != name}
                likely = [self.rules, *({**rest, **part} for part in self._likely[name])]
                ranked = self._ranked(likely, everything)
                self.rules = ranked[0][1]
                self.best[name] = [rules for n, rules in ranked if n == ranked[0][0]]
            if self.rules == before:
                break
        self._likely = {n: [_part(rules, n) for rules in best] for n, best in self.best.items()}

    def _own(self, name: str) -> list[Seen]:
        """Return what was to show a rule; prices of days show two."""
        return [*self.shown[name], *(self.shown.get("weekday", ()) if name == "turn" else ())]

    def _forms(self, name: str) -> list[dict[str, Rule]]:
        """Return the rules with each form of one of them, the present one first."""
        rest = {n: rule for n, rule in self.rules.items() if n != name}
        found = [self.rules, rest, *({**rest, name: rule} for rule in candidates(name))]
        if name in _ROUNDED:
            ways = VALUES["rounding"]["how"]
            found = [{**rules, "rounding": {"how": how}} for rules, how in product(found, ways)]
            found.insert(0, self.rules)
        return found

    def _ranked(
        self, forms: Iterable[dict[str, Rule]], seen: Sequence[Seen], most: int = 1
    ) -> list[tuple[int, dict[str, Rule]]]:
        """Return the forms that disagree on the fewest totals, with that number, the best first: so
        many, and those that are as good as the last of them."""
        found: list[tuple[int, dict[str, Rule]]] = []
        least: list[int] = []
        for form in forms:
            limit = least[-1] if len(least) == most else 1 << 30
            missed = self._missed(form, seen, limit)
            if missed <= limit:
                found.append((missed, form))
                least = sorted([*least, missed])[:most]
        return sorted((x for x in found if x[0] <= least[-1]), key=lambda x: x[0])

    def _missed(self, rules: Mapping[str, Rule], seen: Sequence[Seen], limit: int = 1 << 30) -> int:
        """Return on how many totals rules disagree; if that is more than a limit, some number above
        it."""
        missed = 0
        for lines, printed in seen:
            right = totals(rules, self._prices, lines)
            missed += sum(right[key] != cents for key, cents in printed.items())
            if missed > limit:
                break
        return missed

    def charges(self, rules: Mapping[str, Rule], lines: Iterable[Line]) -> tuple[int, ...]:
        return tuple(totals(rules, self._prices, lines).values())

    def open_questions(
        self, number: int, pending: Iterable[Sequence[Line]]
    ) -> dict[str, Sequence[Line]]:
        """Return lines on which forms differ that agree so far and matter, by rule."""
        found: dict[str, Sequence[Line]] = {}
        files = [*pending, *(lines for lines, _ in self._history)]
        for name in self.names:
            forms = self.best[name]
            if len({tuple(self.charges(f, lines) for lines in files) for f in forms}) < 2:
                continue
            choices = Choices("player", number, name)
            shown = max(forms, key=lambda f: name in f)
            pool = [
                draw_lines(choices, shown, list(shown), [name] if name in shown else [],
                           self._prices, 10)
                for _ in range(6)
            ]  # fmt: skip
            lines = max(pool, key=lambda p: len({self.charges(f, p) for f in forms}))
            if lines:
                found[name] = lines
        return found


def _part(rules: Mapping[str, Rule], name: str) -> dict[str, Rule]:
    """Return one of several rules, with that of rounding if both are fitted together."""
    names = {name, "rounding"} if name in _ROUNDED else {name}
    return {n: rule for n, rule in rules.items() if n in names}


SHALLOW: dict[str, Player] = {
    "list prices": partial(play, skip=_ORDER, asks=False),
    "without memory": partial(play, skip=_ORDER[5:], asks=False),
    "without returns and points": partial(play, skip=("returns", "points", "quick"), asks=False),
}
