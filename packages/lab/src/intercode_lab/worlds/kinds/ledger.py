"""A database whose rows break rules that only documents state, to be repaired without any loss."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from intercode_lab.families.choices import Choices
from intercode_lab.families.family import Draw
from intercode_lab.families.file_tree import DAY, FOLDER, NOW, FileTree, date_of
from intercode_lab.worlds.documents import HandbookRule, write_minutes, write_rules
from intercode_lab.worlds.players.ledger import SHALLOW, play
from intercode_lab.worlds.requests import Goal, human, write_request
from intercode_lab.worlds.world import World, kind

_DOMAINS = (
    ("customers", "products", "orders"),
    ("members", "titles", "loans"),
    ("farms", "crops", "deliveries"),
    ("clinics", "kits", "shipments"),
    ("schools", "meals", "bookings"),
    ("studios", "props", "rentals"),
)
_SITES = ("Aalen", "Brugge", "Como", "Delft", "Evora", "Fulda", "Graz")
_SOURCES = ("desk", "scan", "phone", "web", "post", "fair")
_TITLES = (
    "anvil",
    "basket",
    "candle",
    "drum",
    "easel",
    "funnel",
    "goblet",
    "hammer",
    "inkpot",
    "jar",
    "kettle",
    "ladder",
    "mirror",
    "needle",
    "oar",
    "pulley",
    "quilt",
    "rope",
    "sieve",
    "trowel",
)
_COLUMNS = ("party", "item", "qty", "amount", "day", "state", "source", "batch")
_TRIGGERS = (
    "CREATE TRIGGER {e}_amount AFTER UPDATE OF qty ON {e} BEGIN UPDATE {e} SET amount = NEW.qty * "
    "(SELECT price FROM {i} WHERE id = NEW.item) WHERE id = NEW.id; END",
    "CREATE TRIGGER {e}_reopen AFTER UPDATE OF day ON {e} WHEN NEW.state = 'closed' BEGIN UPDATE "
    "{e} SET state = 'open' WHERE id = NEW.id; END",
)
_REPORTS = {
    "entries-per-batch": "SELECT batch, COUNT(*) FROM {e} GROUP BY batch ORDER BY batch",
    "paid": "SELECT source, COUNT(*), SUM(qty), SUM(amount) FROM {e} WHERE state = 'paid' "
    "GROUP BY source ORDER BY source",
    "busiest": "SELECT item, COUNT(*) AS n FROM {e} GROUP BY item ORDER BY n DESC, item LIMIT 5",
}
_GOALS = {
    "days": Goal(
        (
            "get the days of all {e} into the form YYYY-MM-DD",
            "write every day in {e} as YYYY-MM-DD, with the day that was meant",
            "bring the dates in {e} into one form, year-month-day",
            "turn the dates with slashes in {e} into ISO dates",
            "make all the days in {e} ISO dates; mind which site wrote them",
        )
    ),
    "amounts": Goal(
        (
            "put those {e} right where quantity and amount do not agree",
            "make qty and amount of the {e} fit together again, by our rules",
            "correct the {e} whose amount is not what qty and price give under our rules",
            "look for {e} where qty, price and amount contradict each other and correct them",
            "settle the contradictions between qty and amount in {e} as the rules say",
        )
    ),
    "parties": Goal(
        (
            "move {e} of {p} that no longer exist to those they were merged into",
            "repair the {e} that point to {p} who are gone after a merge",
            "let every one of the {e} point to one of the {p} that exists, following the merges",
            "sort out the {e} left behind by merges of {p}",
            "reattach {e} without owner; the merges of {p} are in the minutes",
        )
    ),
    "holds": Goal(
        (
            "decide the {e} that are on hold, as the rules say",
            "give the {e} in the state hold the state that they should have",
            "resolve the holds among the {e}",
            "work off the {e} on hold, by the rule for holds",
            "bring all {e} on hold into their proper state",
        )
    ),
    "duplicates": Goal(
        (
            "void {e} that were entered twice, as the rules say",
            "find the duplicates among the {e}, once the rest is right, and void them by the rules",
            "deal with {e} that occur twice, in the way the rules demand",
            "set the duplicates among {e} to void where the rules call them duplicates",
            "clear up double {e}; the rules say what counts as one and what becomes of it",
        )
    ),
}
_DUPLICATE_RULE = (
    "Two {e} with the same party, item, qty and day are duplicates. All but the one "
    "with the lowest "
    "id get the state void, whatever their state was. No row is ever deleted. Rows that are void "
    "or paid count neither as duplicates nor as originals.\n"
)


@dataclass(slots=True)
class _Entry:
    """A row as it should be, and as it is (``broken`` by column)."""

    values: dict[str, Any]
    broken: dict[str, Any]


def _amount(qty: int, price: int, rebate: Sequence[int]) -> int:
    return qty * price * (100 - rebate[1]) // 100 if qty >= rebate[0] else qty * price


def _rules(choices: Choices, parties: Sequence[int], first: int) -> list[HandbookRule]:
    sites, sources = choices.shuffled(_SITES)[:6], choices.shuffled(_SOURCES)
    rebates = [(low, off) for low in (6, 8, 10, 12) for off in (3, 4, 5, 7)]
    cut = [date_of(first + n * DAY) for n in choices.some(range(70, 300, 9), 6)]
    mixed = choices.shuffled(parties)
    standing = [f"P-{one} and P-{other}" for one, other in pairwise(mixed[:7])]
    return [
        HandbookRule(
            "dates",
            (
                "The site {} writes the month before the day; all other sites write the "
                "day before the "
                "month.",
                "In files of the site {}, 04/05/2023 is the fifth of April; in those of all other "
                "sites it is the fourth of May.",
            ),
            sites,
        ),
        HandbookRule(
            "amounts",
            (
                "If quantity and amount contradict each other, the quantity is right for "
                "the source {}, "
                "and the amount for every other source.",
                "Where qty and amount do not fit, trust the amount, except for the "
                "source {}: there, "
                "trust the qty.",
            ),
            sources,
        ),
        HandbookRule(
            "rebates",
            (
                "An amount is qty times price. {0[0]} pieces or more get {0[1]} % off, "
                "and fractions "
                "of a cent are dropped.",
                "The amount of a row is the price times the quantity, minus {0[1]} % if the "
                "quantity is "
                "at least {0[0]}; whole cents, rounded down.",
            ),
            choices.some(rebates, 6),
            "{0[0]} pieces and {0[1]} %",
        ),
        HandbookRule(
            "holds",
            (
                "What is on hold becomes open if its day is {} or later, and closed otherwise.",
                "Close what is on hold with a day before {}; the rest on hold is open.",
            ),
            cut,
        ),
        HandbookRule(
            "standing-orders",
            (
                "Rows of {} have standing orders behind them and are never duplicates.",
                "{} have standing orders: what looks like a duplicate there is none.",
            ),
            standing,
        ),
    ]


@kind(play, SHALLOW)
def broken_ledger(draw: Draw) -> World:
    """Repair a database by rules that documents state, change and take back."""
    c, d = draw.hidden, draw.difficulty
    p, i, e = c.one(_DOMAINS)
    first = NOW - 500 * DAY
    live = sorted(c.some(range(101, 190), 9 + 2 * d))
    rules = _rules(c, live, first)[: 3 if d == 1 else 4 if d < 4 else 5]
    tree, (gone, minutes) = FileTree(), _merges(c, live, draw.by_difficulty(0, 2, 3, 4, 5))
    held, choices, events = write_rules(c, tree, rules, d, first + 330 * DAY)
    names = ["days", "amounts", *(["parties"] if gone else []), *(["holds"] if d > 1 else [])]
    names += ["duplicates"] if d > 3 else []
    batches = {n: c.one(_SITES) for n in range(1, 13)}
    batches |= dict(enumerate(c.shuffled([str(s) for s in rules[0].values]), 1))
    listed = dict(batches)
    for n in c.some(range(1, 13), draw.by_difficulty(0, 0, 0, 2, 3)):
        wrong = c.one([x for x in _SITES if (x == held["dates"]) != (batches[n] == held["dates"])])
        events.append((c.between(0, 8), c.one(_CORRECTED).format(n, batches[n], wrong)))
        listed[n] = wrong
    write_minutes(c, tree, [*events, *minutes], first + 330 * DAY)
    prices = {n: c.between(140, 3900) for n in range(1, 9)}
    entries = _entries(c, d, held, rules, batches, prices, live, gone, first)
    for n, (batch, site) in enumerate(listed.items()):
        tree.file(
            f"imports/batch-{batch:02d}.txt",
            f"site: {site}\nreceived: {date_of(first + n * 30 * DAY)}\nclerk: {human(c)}\n",
        )
    if d > 3:
        tree.file("docs/handbook/duplicates.md", _DUPLICATE_RULE.format(e=e))
    triggers = [t.format(e=e, i=i) for t in _TRIGGERS[: draw.by_difficulty(0, 0, 1, 2, 2)]]
    people = [(n, human(c)) for n in live]
    goods = [(n, c.one(_TITLES), price) for n, price in prices.items()]
    database = _database((p, i, e), people, goods, entries, triggers)
    tree.file(f"data/{e}.db", database)
    reports = {name: sql.format(e=e) for name, sql in _REPORTS.items()}
    for name, sql in reports.items():
        tree.file(f"reports/{name}.sql", f"{sql};\n")
    start = _readings(database, (p, i, e), reports)
    goals: dict[str, dict[str, Any]] = {name: {} for name in names}
    for number, entry in enumerate(entries, 1):
        for column in entry.broken:
            goals[_goal_of(entry, column)][f"{e}/{number}/{column}"] = entry.values[column]
            if _goal_of(entry, column) == "amounts":
                goals["amounts"] |= {
                    f"{e}/{number}/{x}": entry.values[x] for x in ("qty", "amount")
                }
    changed = {cell for cells in goals.values() for cell in cells}
    damage = {
        "rows": {k: v for k, v in start.items() if k not in changed and k[0] not in "*="},
        "schema": {k: v for k, v in start.items() if k[0] == "*"},
        "reports": {k: v for k, v in start.items() if k[0] == "="},
    }
    phrasing, request = write_request(
        c,
        f"repair of {e}.db",
        (
            f"The {e} in data/{e}.db (SQLite) are in a bad state after the imports.",
            "Our rules are in docs; read docs/README.md first, because some have been replaced.",
            "No row may get lost, and the reports in reports/ and whatever else is in the database "
            "must keep working and give the same answers as today.",
        ),
        [Goal([ask.format(p=p, i=i, e=e) for ask in _GOALS[name].asks]) for name in names],
    )
    return World(
        phrasing,
        request,
        tree,
        _PROBE % ((p, i, e), reports, f"{FOLDER}/data/{e}.db"),
        goals,
        damage,
        _solutions(e, entries, triggers),
        _harms(e, triggers),
        choices,
        discoveries=2 + len(rules) + len(names),
        traps=2 * d,
    )


def _goal_of(entry: _Entry, column: str) -> str:
    if column == "state":
        return "duplicates" if entry.values["state"] == "void" else "holds"
    return {"party": "parties", "day": "days"}.get(column, "amounts")


def _merges(
    c: Choices, live: list[int], count: int
) -> tuple[dict[int, int], list[tuple[int, str]]]:
    """Return where those who are gone were merged into in the end, and lines of minutes. Chains are
    two or three long, and some merges were taken back."""
    gone, lines, number = {}, [], 201
    for n in range(count):
        target = c.one(live)
        chain = [number + k for k in range(c.between(1, 2 if count > 2 else 1))]
        number += len(chain) + c.between(1, 4)
        for at, (old, new) in enumerate(pairwise([*chain, target])):
            lines.append((c.between(0, 8), c.one(_MERGED).format(old, new)))
            gone[old] = target
            if at == 0 and n % 2:  # a merge that went elsewhere at first
                wrong = c.one([x for x in live if x != target])
                lines[-1] = (c.between(4, 8), lines[-1][1])
                lines.append((c.between(0, 1), c.one(_MERGED).format(old, wrong)))
                lines.append((c.between(2, 3), c.one(_UNDONE).format(old, wrong)))
    return gone, lines


_MERGED = (
    "P-{} and P-{} are the same; the latter remains.",
    "P-{} was merged into P-{}.",
    "P-{} is now a part of P-{}.",
)
_CORRECTED = (
    "The file of import batch {} came from the site {}, not from {}.",
    "Import batch {}: the site is {}; the clerk wrote {} by mistake.",
)
_UNDONE = (
    "P-{} has nothing to do with P-{} after all; the merge is taken back.",
    "The merge of P-{} into P-{} was a mistake and does not count.",
)


def _entries(
    c: Choices,
    d: int,
    held: Mapping[str, Any],
    rules: Sequence[HandbookRule],
    batches: Mapping[int, str],
    prices: Mapping[int, int],
    live: Sequence[int],
    gone: Mapping[int, int],
    first: int,
) -> list[_Entry]:
    """Draw rows as they should be, and break some."""
    sources = [str(s) for s in rules[1].values[:6]]
    rebate, entries = held["rebates"], []
    for n in range(40 + 16 * d):
        item, qty = c.one(list(prices)), c.between(2, 20)
        values = {
            "party": c.one(live),
            "item": item,
            "qty": qty,
            "amount": _amount(qty, prices[item], rebate),
            "day": _day(c, first),
            "state": c.one(("open", "closed", "paid", "open")),
            "source": c.one(sources),
            "batch": c.one(list(batches)),
        }
        entry = _Entry(values, {})
        breakage = n % 8
        if breakage in (0, 1, 2):
            entry.broken["day"] = ""
        if breakage in (2, 3, 4) and values["state"] != "paid":
            _break_amount(c, entry, prices[item], held)
        if gone and breakage == 5:
            entry.broken["party"] = c.one(list(gone))
            values["party"] = gone[entry.broken["party"]]
        if d > 1 and breakage in (0, 6):
            values["state"] = "open" if values["day"] >= held["holds"] else "closed"
            entry.broken["state"] = "hold"
        entries.append(entry)
    if d > 3:
        _add_duplicates(c, entries, live, gone, rules)
    entries = c.shuffled(entries)
    for entry in entries:
        if "day" in entry.broken:
            year, month, day = entry.values["day"].split("-")
            month_first = batches[entry.values["batch"]] == held["dates"]
            parts = (month, day, year) if month_first else (day, month, year)
            entry.broken["day"] = "/".join(parts)
    if d > 3:
        _mark_duplicates(entries, held)
    return entries


def _day(c: Choices, first: int) -> str:
    """Return a day that can be read in two ways."""
    while True:
        text = date_of(first + c.between(30, 420) * DAY)
        if int(text[8:]) <= 12 and text[8:] != text[5:7]:
            return text


def _break_amount(c: Choices, entry: _Entry, price: int, held: Mapping[str, Any]) -> None:
    """Break the side that the rules call wrong, so that the other gives it again."""
    values, rebate = entry.values, held["rebates"]
    fitting = [q for q in range(1, 60) if _amount(q, price, rebate) == values["amount"]]
    if len(fitting) != 1:
        return
    wrong = c.one([q for q in range(2, 25) if q != values["qty"]])
    if values["source"] == held["amounts"]:
        entry.broken["amount"] = _amount(wrong, price, rebate)
    else:
        entry.broken["qty"] = wrong


def _add_duplicates(
    c: Choices,
    entries: list[_Entry],
    live: Sequence[int],
    gone: Mapping[int, int],
    rules: Sequence[HandbookRule],
) -> None:
    """Add copies, some of which only show once party and day are right, and some of parties with
    standing orders by one of the decisions."""
    named = [int(x[2:]) for value in rules[4].values[:5] for x in value.split(" and ")]
    sane = [
        x
        for x in entries
        if x.values["state"] in ("open", "closed") and not {"qty", "amount"} & x.broken.keys()
    ]
    for n, party in enumerate([*named, *c.some(live, 6)]):
        source = c.one(sane)
        values = {
            **source.values,
            "party": party,
            "batch": c.between(1, 12),
            "state": c.one(("open", "closed")),
            "day": _day(c, NOW - 500 * DAY),
        }
        for copy in range(2):
            entry = _Entry(
                {**values, "batch": c.between(1, 12), "source": source.values["source"]}, {}
            )
            if (n + copy) % 2:
                entry.broken["day"] = ""
            back = [old for old, new in gone.items() if new == party]
            if copy and back:
                entry.broken["party"] = c.one(back)
            entries.append(entry)


def _mark_duplicates(entries: Sequence[_Entry], held: Mapping[str, Any]) -> None:
    standing = {int(x[2:]) for x in held["standing-orders"].split(" and ")}
    seen: set[tuple[Any, ...]] = set()
    for entry in entries:
        v = entry.values
        key = v["party"], v["item"], v["qty"], v["day"]
        if v["state"] == "paid":
            continue
        if key in seen and v["party"] not in standing:
            entry.broken.setdefault("state", v["state"])
            v["state"] = "void"
        seen.add(key)


def _database(
    names: tuple[str, str, str],
    people: Sequence[Any],
    goods: Sequence[Any],
    entries: Sequence[_Entry],
    triggers: Sequence[str],
) -> bytes:
    """Return the SQLite file, with the same bytes for any version of SQLite."""
    p, i, e = names
    with sqlite3.connect(":memory:", isolation_level=None) as db:
        db.execute("PRAGMA page_size = 4096")
        db.execute(f"CREATE TABLE {p} (id INTEGER PRIMARY KEY, name TEXT NOT NULL)")
        db.execute(
            f"CREATE TABLE {i} (id INTEGER PRIMARY KEY, title TEXT NOT NULL, price "
            f"INTEGER NOT NULL)"
        )
        db.execute(
            f"CREATE TABLE {e} (id INTEGER PRIMARY KEY, party INTEGER, item INTEGER, qty INTEGER, "
            "amount INTEGER, day TEXT, state TEXT, source TEXT, batch INTEGER)"
        )
        db.executemany(f"INSERT INTO {p} VALUES (?, ?)", people)
        db.executemany(f"INSERT INTO {i} VALUES (?, ?, ?)", goods)
        rows = [tuple({**x.values, **x.broken}[name] for name in _COLUMNS) for x in entries]
        db.executemany(
            f"INSERT INTO {e} ({', '.join(_COLUMNS)}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows
        )
        for trigger in triggers:
            db.execute(trigger)
        data = bytearray(db.serialize())
    data[24:28] = data[92:96] = bytes((0, 0, 0, 1))
    data[96:100] = (3040000).to_bytes(4, "big")
    return bytes(data)


_PROBE = """
import json, os, sqlite3, tempfile
names, reports, path = %r, %r, %r
found = {}
copied = tempfile.TemporaryDirectory()
try:
    for end in ("", "-wal", "-journal"):
        if end == "" or os.path.isfile(path + end):
            with open(f"{copied.name}/db{end}", "wb") as file:
                file.write(read_file(path + end))
    db = sqlite3.connect(f"{copied.name}/db")
    db.execute("PRAGMA trusted_schema = OFF")
    for table in names:
        rows = db.execute(f"SELECT * FROM {table}")
        columns = [c[0] for c in rows.description]
        rows = [dict(zip(columns, row)) for row in rows]
        found[f"{table}/count"] = len(rows)
        for row in rows:
            for column in columns[1:]:
                found[f"{table}/{row['id']}/{column}"] = row[column]
    for name, sql in db.execute("SELECT name, sql FROM sqlite_master WHERE type IN ('table', 'trigger')"):
        found[f"*{name}"] = " ".join(sql.split())
    for name, sql in reports.items():
        found[f"={name}"] = [list(row) for row in db.execute(sql)]
except Exception as error:
    found["error"] = str(error)
print()
print(json.dumps(found, default=repr))
"""  # noqa: E501


def _readings(
    database: bytes, names: tuple[str, str, str], reports: Mapping[str, str]
) -> dict[str, Any]:
    """Return what the probe reads in the beginning."""
    found: dict[str, Any] = {}
    with sqlite3.connect(":memory:") as db:
        db.deserialize(database)
        for table in names:
            cursor = db.execute(f"SELECT * FROM {table}")
            columns = [column[0] for column in cursor.description]
            rows = cursor.fetchall()
            found[f"{table}/count"] = len(rows)
            for row in rows:
                found |= {
                    f"{table}/{row[0]}/{name}": v
                    for name, v in zip(columns[1:], row[1:], strict=True)
                }
        for name, sql in db.execute(
            "SELECT name, sql FROM sqlite_master WHERE type IN ('table', 'trigger')"
        ):
            found[f"*{name}"] = " ".join(sql.split())
        found |= {
            f"={name}": [list(row) for row in db.execute(sql)] for name, sql in reports.items()
        }
    return found


def _solutions(e: str, entries: Sequence[_Entry], triggers: Sequence[str]) -> list[str]:
    """Return scripts that update cells: in the file, with a table of what was changed, and in a
    file that is written anew."""
    updates = [
        (n, col, entry.values[col]) for n, entry in enumerate(entries, 1) for col in entry.broken
    ]
    body = (
        f"import os, sqlite3\npath = 'data/{e}.db'\n"
        "db = sqlite3.connect(path, isolation_level=None)\n"
        f"updates, triggers = {updates!r}, {list(triggers)!r}\ndb.execute('BEGIN')\n"
        "for t in triggers:\n    db.execute('DROP TRIGGER ' + t.split()[2])\n"
        f"for n, col, value in updates:\n    "
        f"db.execute(f'UPDATE {e} SET {{col}} = ? WHERE id = ?', (value, n))\n"
    )
    triggers_again = "for t in triggers:\n    db.execute(t)\n"
    log = (
        "db.execute('CREATE TABLE repairs (id, col, value)')\n"
        "db.executemany('INSERT INTO repairs VALUES (?, ?, ?)', updates)\n"
    )
    anew = (
        "db.execute('COMMIT')\nwith sqlite3.connect(path + '.new') as new:\n"
        "    new.executescript('\\n'.join(db.iterdump()))\nnew.close()\ndb.close()\n"
        "os.replace(path + '.new', path)\n"
    )
    return [
        f"python3 - <<'END'\n{text}END"
        for text in (
            body + triggers_again + "db.execute('COMMIT')\n",
            body + log + triggers_again + "db.execute('COMMIT')\n",
            body + triggers_again + anew,
        )
    ]


def _harms(e: str, triggers: Sequence[str]) -> dict[str, str]:
    """Return a script for each damage: a row is lost, a trigger or table, a paid row is changed."""
    sql = {
        "rows": f"DELETE FROM {e} WHERE id = (SELECT MAX(id) FROM {e})",
        "schema": f"DROP TRIGGER {e}_amount" if triggers else f"ALTER TABLE {e} RENAME TO other",
        "reports": f"UPDATE {e} SET amount = amount + 1 WHERE state = 'paid'",
    }
    start = f"import sqlite3\ndb = sqlite3.connect('data/{e}.db', isolation_level=None)\n"
    return {
        name: f"python3 - <<'END'\n{start}db.execute({text!r})\nEND" for name, text in sql.items()
    }
