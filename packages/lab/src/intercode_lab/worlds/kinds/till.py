"""A till whose rules nobody has written down: found out by experiments, to answer for lines."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from typing import Any

from intercode.core.types import Mailbox
from intercode_lab.families.choices import Choices
from intercode_lab.families.family import Draw
from intercode_lab.families.file_tree import FOLDER, FileTree
from intercode_lab.worlds.parts import NAMES, Goal, write_request
from intercode_lab.worlds.players.till import SHALLOW, play
from intercode_lab.worlds.till import (
    ITEMS,
    VALUES,
    Line,
    Rule,
    Totals,
    answer,
    draw_lines,
    draw_rules,
    money,
    totals,
    write_totals,
)
from intercode_lab.worlds.world import HiddenChoice, World, kind

MOST_LINES = 30
"""The most lines that the test till takes in one request."""
_GOALS = {
    "answers": Goal((
        "work out what each card owes for each day in the files of pending, and write the totals "
        "to files of the same names in answers",
        "fill answers with the totals for each file in pending: a file of the same name, in the "
        "form that docs/till.md describes",
        "write the exact totals for pending: answers/NAME.txt for pending/NAME.txt, one for each "
        "day and card",
        "tell us to the cent what the till would print at closing time for the lines in pending; "
        "the totals go into files of the same names in answers",
        "close the days in pending as the till would, and put its totals into files of the same "
        "names in answers",
    )),
    "altered": Goal((
        "find the totals in history that somebody has altered, and list them in altered.txt as "
        "FILE:DAY:CARD, such as 02:17:4711",
        "write into altered.txt which totals in history are not the till's, one a line as "
        "FILE:DAY:CARD, such as 02:17:4711",
        "name every total in history that was tampered with, in altered.txt, as FILE:DAY:CARD "
        "(02:17:4711)",
        "check the totals in history and list the altered ones in altered.txt, each as "
        "FILE:DAY:CARD, such as 02:17:4711",
        "make altered.txt, with FILE:DAY:CARD (such as 02:17:4711) for each total in history "
        "that is not the till's",
    )),
}  # fmt: skip
_HEARSAY = {
    "bulk": "They say that {} pieces or more are cheaper.",
    "staff": "Cards that begin with {} are those of the staff, I think.",
    "evening": "It gets dearer from {} on, or is that the other canteen?",
    "weekday": "There was something about {} on one day of the week.",
    "turn": "The price of {} has changed in the middle of the month, if I remember well.",
    "pair": "With {} something else is cheaper.",
    "scarce": "When {} runs out, they ask for more.",
    "nth": "My {}th lunch was cheap.",
    "streak": "Somebody had {} three times in a row and got something off.",
    "quick": "Who comes back within {} minutes pays for it.",
    "cap": "Nobody pays more than {} a day, do they?",
    "points": "I had {} points at some time.",
    "idle": "After {} days away I got a welcome.",
    "returns": "They keep {} cents if you bring something back.",
}


@kind(play, SHALLOW)
def silent_till(draw: Draw) -> World:
    """Find out by experiments what a till charges, and answer for days that it never saw."""
    c, d = draw.hidden, draw.difficulty
    rules = draw_rules(c, draw.by_difficulty(3, 5, 7, 9, 12))
    prices = {item: 5 * c.between(15, 60) for item in ITEMS}
    tree = FileTree()
    _write_documents(c, tree, prices)
    altered = _write_history(c, tree, rules, prices, draw.by_difficulty(0, 0, 2, 4, 5))
    goals: dict[str, dict[str, Any]] = {}
    right: dict[str, Totals] = {}
    for number, lines in enumerate(_pending(c, rules, prices, draw.by_difficulty(3, 4, 6, 8, 9))):
        name = f"{number + 1:02}.txt"
        right[name] = totals(rules, prices, lines)
        tree.file(f"pending/{name}", "".join(f"{line}\n" for line in lines))
        expected = {f"{day} {card}": cents for (day, card), cents in right[name].items()}
        goals[f"answers/{name}"] = {f"answers/{name}": expected}
    context = [
        "The vendor of our till is gone, and nobody knows how it computes what it charges.",
        "docs tells what we know, history has lines with the totals that the till printed, and a "
        "test till that computes as the real one can be asked through host (docs/host.md).",
    ]
    wanted = [_GOALS["answers"]]
    if altered:
        goals["altered"] = {"altered": sorted(altered)}
        wanted.append(_GOALS["altered"])
        context.append(
            "A few totals in history were altered later in the records; the till went on with "
            "its own."
        )
    phrasing, request = write_request(c, "what the till charges", context, wanted)
    return World(
        phrasing, request, tree, _PROBE % FOLDER, goals, {"sources": {"sources": _digest(tree)}},
        _solutions(right, altered), {"sources": "echo >> history/01-lines.txt"},
        [_choice(name, rule) for name, rule in rules.items()],
        discoveries=len(rules), traps=2 * (d > 1) + len(altered),
        mailbox=Mailbox(f"{FOLDER}/host/request.txt", f"{FOLDER}/host/reply.txt",
                        partial(answer, rules, prices, MOST_LINES)),
    )  # fmt: skip


def _pending(
    c: Choices, rules: dict[str, Rule], prices: dict[str, int], count: int
) -> list[list[Line]]:
    """Return lines for each file. No rule but a few has an effect in one file, so that what is
    known of the till shows in the score."""
    names = c.shuffled([name for name in rules if name != "rounding"])
    found: list[list[Line]] = []
    at = tries = 0
    while len(found) < count:
        others = [name for name in names if name != names[at % len(names)]]
        own = [names[at % len(names)], *c.some(others, max(0, 2 - tries // 4))]
        lines = draw_lines(c, rules, own, own, prices, 25)
        tries += 1
        if lines:
            found.append(lines)
        if lines or tries > 12:
            at, tries = at + 1, 0
    return found


def _write_history(
    c: Choices, tree: FileTree, rules: dict[str, Rule], prices: dict[str, int], count: int
) -> list[str]:
    """Add files of lines and of their totals, in which every rule has an effect, and return which
    totals are altered."""
    names = c.shuffled([name for name in rules if name != "rounding"])
    files = [names[n : n + 3] for n in range(0, len(names), 3)]
    found: dict[str, Totals] = {}
    for number, focus in enumerate(files, 1):
        lines: list[Line] = []
        while not lines:
            lines = draw_lines(c, rules, list(rules), focus, prices, 45)
        tree.file(f"history/{number:02}-lines.txt", "".join(f"{line}\n" for line in lines))
        found[f"{number:02}"] = totals(rules, prices, lines)
    places = [(name, day, card) for name, at in found.items() for day, card in sorted(at)]
    altered = []
    for name, day, card in c.some(places, count):
        cents, by = found[name][day, card], c.one((-1, 1)) * c.one((1, 10, 25, 50, 90))
        found[name][day, card] = cents + by if (cents + by < 0) == (cents < 0) else cents - by
        altered.append(f"{name}:{day}:{card}")
    for name, at in found.items():
        tree.file(f"history/{name}-totals.txt", write_totals(at))
    return altered


def _write_documents(c: Choices, tree: FileTree, prices: dict[str, int]) -> None:
    tree.file("docs/prices.txt", "".join(f"{i} {money(p)}\n" for i, p in prices.items()))
    tree.file("docs/till.md", _TILL)
    tree.file("docs/host.md", _HOST.format(most=MOST_LINES))
    tree.directory("host")
    tree.directory("answers")
    said = []
    for name in c.some(list(_HEARSAY), 5):
        value = c.one(ITEMS) if name in ("weekday", "turn", "pair", "scarce", "streak") else ""
        number = c.one((f"{c.between(15, 40)}.00",) if name == "cap" else
                       (f"{c.between(13, 19)}:00",) if name == "evening" else
                       (str(c.between(3, 9)),))  # fmt: skip
        said.append(f"<{c.one(NAMES).lower()}> {_HEARSAY[name].format(value or number)}\n")
    tree.file("docs/hearsay.txt", "".join(said))


_TILL = """# The till

A line is `DAY TIME CARD ITEM UNITS`, such as `3 12:40 4711 soup 2`. Days are those of a month of
28 days, and day 1 is a Monday. Lines are in order of time, between 06:00 and 21:00. A card has four
digits, the first of which is not 0. Units below 0 are a return, for which the till charges 0 or
less.

The till charges each line when it comes, a whole number of cents. It prints no charges. At closing
time it prints for each card that was there what it owes for the day, the sum of its charges:
`DAY CARD TOTAL`, such as `3 4711 12.05`. These are the totals in history, and what we need for
pending.

Each file, in history as in pending, begins with a fresh till that knows nothing of any card. From
then on it remembers what it has seen. prices.txt has the prices of a unit at the beginning of the
month. What else the till does, and whether it computes with parts of cents in between, was known
to the vendor only. hearsay.txt is what people believe, none of which has been checked.
"""
_HOST = """# The test till

Write lines into host/request.txt. After each of your actions the file is collected and emptied, and
the totals come back in host/reply.txt, which you can read in your next action. A request may have
{most} lines. A blank line in it starts a fresh till; so does each request. The totals of each fresh
till are a group of their own in the reply. Only the last request that an action leaves is seen.
"""


def _choice(name: str, rule: Rule) -> HiddenChoice:
    values = VALUES[name]
    key = max(values, key=lambda k: len(values[k]))
    texts = [str(value) for value in values[key]]
    candidates = [{"value": text, "length": len(text)} for text in texts]
    return HiddenChoice(candidates, texts.index(str(rule[key])))


def _digest(tree: FileTree) -> str:
    """Return what the probe computes over the files that stay as they are."""
    found = hashlib.sha256()
    for entry in tree.entries:
        if entry.kind == "file":
            found.update(f"{entry.path} {hashlib.sha256(entry.data).hexdigest()}\n".encode())
    return found.hexdigest()


_PROBE = """
import decimal, hashlib, json, os, re
os.chdir(%r)
found = {}
ROW = re.compile(r"0?(\\d{1,2}) +(\\d{4}) +([+-]?\\d{1,9}([.]\\d{1,6})?)")

def read(name, function):
    try:
        found[name] = function()
    except Exception as error:
        found[name + "?"] = str(error)

def text(path):
    return read_file(path)[:100000].decode("utf-8", "replace")

def totals(path):
    found = {}
    for line in text(path).splitlines():
        if line.strip():
            match = ROW.fullmatch(line.strip())
            key = match[1] + " " + match[2]
            cents = decimal.Decimal(match[3]) * 100
            if key in found:
                raise ValueError("two totals for " + key)
            found[key] = int(cents) if cents == cents.to_integral_value() else str(cents)
    return found

for name in sorted(os.listdir("pending"))[:50] if os.path.isdir("pending") else ():
    read("answers/" + name, lambda: totals("answers/" + name))
read("altered", lambda: sorted({w.removeprefix("history/") for w in text("altered.txt").split()}))

def digest_of(path):
    try:
        return hashlib.sha256(read_file(path)).hexdigest()
    except OSError as error:
        return str(error)

paths = [os.path.join(top, name) for part in ("docs", "history", "pending")
         for top, _, names in os.walk(os.path.abspath(part)) for name in names]
digest = hashlib.sha256()
for path in sorted(paths, key=lambda p: p.split("/")):
    digest.update(f"{path} {digest_of(path)}\\n".encode())
found["sources"] = digest.hexdigest()
print()
print(json.dumps(found))
"""


def _solutions(right: dict[str, Totals], altered: Sequence[str]) -> list[str]:
    """Return scripts that differ in how totals are written, in their order, and in what they leave
    behind."""
    scripts = []
    for form in ("{:.2f}", "{:g}", "{:.3f}"):
        parts = ["mkdir -p answers"]
        for name, found in right.items():
            rows = [f"{d} {card} {form.format(n / 100)}" for (d, card), n in found.items()]
            text = "\n".join(rows if form == "{:g}" else sorted(rows))
            parts.append(f"cat > answers/{name} <<'END'\n{text}\nEND")
        if altered:
            names = sorted(altered, reverse=form == "{:g}")
            parts.append("cat > altered.txt <<'END'\n" + "\n".join(names) + "\nEND")
        scripts.append("\n".join(parts))
    scripts[1] += "\necho notes > till-notes.txt"
    return scripts
