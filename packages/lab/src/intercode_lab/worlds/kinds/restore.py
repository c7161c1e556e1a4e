"""A store to be restored to a moment, from backups and journals, without what one run did to it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from intercode_lab.families.bash.bash_task import WORDS
from intercode_lab.families.choices import Choices
from intercode_lab.families.family import Draw
from intercode_lab.families.file_tree import DAY, FOLDER, NOW, FileTree
from intercode_lab.worlds.players.restore import SHALLOW, play
from intercode_lab.worlds.requests import NAMES, Goal, write_request
from intercode_lab.worlds.world import HiddenChoice, World, kind

_GOALS = {
    "store": Goal(
        (
            "bring live/store.tsv to where it would be if the broken run had never happened",
            "rebuild live/store.tsv with everything in it but the damage of the broken run",
            "get the store in live/store.tsv back, including the good work since, "
            "without the bad run",
            "restore live/store.tsv from backup and journals and leave the bad run out",
            "make live/store.tsv right again; all work but the broken run is to be in it",
        )
    ),
    "job": Goal(
        (
            "switch off the job that did it, so that it does not start again",
            "see to it that this job is disabled from now on",
            "disable the job behind it, and no other job",
            "turn the guilty job off for good",
            "take the job that caused this out of service",
        )
    ),
    "position": Goal(
        (
            "set live/position to what it has to be for the restored store",
            "correct live/position, so that it fits the restored store",
            "write the right number into live/position",
            "update live/position as docs/format.md wants it",
            "let live/position say up to where the store is complete",
        )
    ),
    "moment": Goal(
        (
            "write the store just before the broken run first changed it into restored/before.tsv",
            "save the state right before the bad run's first change as restored/before.tsv",
            "put how things stood just before that run's first change into restored/before.tsv",
            "reconstruct the last state without any change of the broken run in "
            "restored/before.tsv",
            "give the auditors the state before the broken run's first change: restored/before.tsv",
        )
    ),
    "keys": Goal(
        (
            "list the keys that the broken run touched in restored/keys.txt, one in a line",
            "write every key the broken run touched into restored/keys.txt, one per line",
            "put into restored/keys.txt which keys the bad run touched, a line each",
            "name the keys that the bad run touched in restored/keys.txt, each in its own line",
            "make restored/keys.txt, with a line for each key that the broken run touched",
        )
    ),
}
_JOBS = ("tidy-prices", "merge-stock", "close-month", "sync-shops", "trim-history", "recount")
_SAME_JOB = (3, 6, 18, 18, 18)
"""Runs of the same job by the same human, by difficulty."""
_NODES = ("fjord", "tundra", "delta", "mesa", "lagoon", "prairie")


@dataclass(slots=True)
class _Transaction:
    """Operations that take effect together, unless they are aborted."""

    name: str
    operations: list[tuple[str, str, str]]
    committed: bool = True


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    transaction: str
    operation: str
    key: str = ""
    value: str = ""


@kind(play, SHALLOW)
def restored_store(draw: Draw) -> World:
    """Restore a store from backups and journals to what it would be without one run of a job."""
    c, d = draw.hidden, draw.difficulty
    tree = FileTree()
    keys = [f"{a}.{b}" for a in c.some(WORDS, 4 + d) for b in c.some(WORDS, 4)]
    start = {key: c.between(1, 400) * 100 for key in keys}
    jobs, who = c.some(_JOBS, 4), c.some(NAMES, 5)
    zone, ahead = c.one((-5, -4, -3, 2, 3, 4, 5)) * 60, c.one((-1, 1)) * c.between(24, 53)
    if d == 1:
        ahead = 0
    runs = _runs(c, d, jobs, who, zone, ahead)
    transactions = [
        _transaction(c, f"T{100 + n}", keys, 6) for n in range(24 + 2 * len(runs) + 3 * d)
    ]
    for n, run in enumerate(sorted(runs, key=lambda r: r.at)):
        at = 6 + n * (len(transactions) - 16) // len(runs)
        run.transactions = transactions[at : at + 2]
        for transaction in run.transactions:
            transaction.committed = True
            transaction.operations = _operations(c, keys, c.between(3, 5))
    bad = next(run for run in runs if run.bad)
    after = [t for t in transactions[transactions.index(bad.transactions[-1]) + 1 :] if t.committed]
    used = {t.name for run in runs for t in run.transactions}
    extra = c.some([t for t in after if t.name not in used], draw.by_difficulty(0, 0, 1, 2, 3))
    excluded = {t.name for t in (*bad.transactions, *extra)}
    lines = _lines(c, transactions, draw.by_difficulty(1, 1, 2, 3, 4))
    unit = lines[c.between(len(lines) // 5, len(lines) // 2)].number if d > 3 else 0
    bad_names = {t.name for t in bad.transactions}
    begins = min(line.number for line in lines if line.transaction in bad_names)
    commits = min(x.number for x in lines if x.transaction in bad_names and x.operation == "commit")
    right = _replay(start, lines, excluded)
    moment = _replay(start, [x for x in lines if x.number < commits], set())
    names = c.some(WORDS, 5)
    _write_backups(c, d, tree, names, start, lines, begins)
    _write_journals(c, d, tree, lines, unit)
    _write_documents(c, tree, unit, zone, ahead)
    _write_job_files(c, d, tree, jobs, bad.job, runs)
    _write_chat(c, tree, runs, who, zone, ahead, [t.name for t in extra])
    now = _replay(start, [x for x in lines if x.number < lines[-1].number - 9], set())
    tree.file("live/store.tsv", _table(now))
    tree.file("live/position", f"{commits}\n")
    touched = sorted({k for t in bad.transactions for k in _touched(t)})
    goals: dict[str, dict[str, Any]] = {
        "store": {"store": _cells(right)},
        "job": {f"job/{bad.job}": "no"},
        "position": {"position": lines[-1].number},
        "moment": {"moment": _cells(moment)},
        "keys": {"keys": touched},
    }
    wanted = list(goals)[: draw.by_difficulty(2, 3, 4, 5, 5)]
    damage = {
        "jobs": {f"job/{job}": "yes" for job in jobs if job != bad.job},
        "sources": {"sources": _digest(tree, ("backups/", "journal/", "logs/"))},
    }
    phrasing, request = write_request(
        c,
        "the store after the broken run",
        (
            "A run of one of our jobs has broken the store in live/store.tsv.",
            "What was said about it is in notes/chat.txt; how things work here is in docs.",
            "Backups are in backups, journals in journal; both are evidence and stay as they are.",
        ),
        [_GOALS[name] for name in wanted],
    )
    candidates = [
        {"value": f"{run.at:07}", "length": sum(len(t.operations) for t in run.transactions)}
        for run in sorted(runs, key=lambda r: r.at)
        if (run.job, run.who) == (bad.job, bad.who)
    ]
    position = [x["value"] for x in candidates].index(f"{bad.at:07}")
    other = next(job for job in jobs if job != bad.job)
    return World(
        phrasing,
        request,
        tree,
        _PROBE % FOLDER,
        {name: goals[name] for name in wanted},
        damage,
        _solutions(right, moment, touched, lines[-1].number, bad.job),
        {
            "jobs": f"printf '[{other}]\\nenabled=no\\n' > etc/jobs.d/99-x.conf",
            "sources": "echo >> $(find journal -type f | head -n 1)",
        },
        [HiddenChoice(candidates, position)],
        discoveries=4 + 2 * d,
        traps=2 * d,
    )


@dataclass(slots=True)
class _RunOfJob:
    """A run of a job. ``at``: minutes since the first day by the clock of the scheduler."""

    number: int
    job: str
    who: str
    at: int
    bad: bool = False
    mentioned: bool = False
    transactions: list[_Transaction] = field(default_factory=list)


def _runs(
    c: Choices, d: int, jobs: Sequence[str], who: Sequence[str], zone: int, ahead: int
) -> list[_RunOfJob]:
    """Return runs, one of which is bad; others begin where a wrong reading of clocks leads."""
    local = c.between(9 * 60, 15 * 60)  # on the second day, as the humans write it
    right = 1440 + local - zone + ahead
    times = [right, 1440 + local - zone, 1440 + local, 1440 + local + ahead]
    job, human = jobs[0], who[0]
    runs, taken = [], set()
    for n, at in enumerate(times[: 3 if d == 1 else 4]):
        if at in taken:
            continue
        taken.add(at)
        runs.append(_RunOfJob(0, job, human, at, bad=n == 0, mentioned=n == 0))
    if d > 3:
        other = c.between(60, 200) * c.one((-1, 1))
        while right + other in taken:
            other += 1
        runs.append(_RunOfJob(0, job, human, right + other, mentioned=True))
        taken.add(right + other)
    rank = c.index(_SAME_JOB[d - 1])  # so that any is as likely
    earlier = min(_SAME_JOB[d - 1] - len(runs), rank - sum(at < right for at in taken))
    while len(runs) < _SAME_JOB[d - 1]:
        at = right - c.between(1, 900) if earlier > 0 else right + c.between(1, 900)
        if at not in taken:
            earlier -= 1
            taken.add(at)
            runs.append(_RunOfJob(0, job, human, at))
    while len(runs) < 6 + d + _SAME_JOB[d - 1]:
        at = right + c.between(-900, 900)
        if at not in taken:
            taken.add(at)
            runs.append(_RunOfJob(0, c.one(jobs[1:]), c.one((*who[1:], "timer")), at))
    number = c.between(400, 800)
    for run in sorted(runs, key=lambda r: r.at):
        number += c.between(1, 4)
        run.number = number
    return runs


def _transaction(c: Choices, name: str, keys: Sequence[str], most: int) -> _Transaction:
    return _Transaction(name, _operations(c, keys, c.between(1, most)), not c.chance(18))


def _operations(c: Choices, keys: Sequence[str], count: int) -> list[tuple[str, str, str]]:
    found = []
    for _ in range(count):
        operation, key = c.one(("set", "set", "add", "add", "add", "del", "ren")), c.one(keys)
        value = str(c.between(1, 90))
        if operation == "ren":
            value = c.one([k for k in keys if k != key])
        found.append((operation, key, "" if operation == "del" else value))
    return found


def _lines(c: Choices, transactions: Sequence[_Transaction], at_once: int) -> list[_Line]:
    """Return the lines of the journal, with as many transactions open at once."""
    waiting = [
        (t, [("begin", "", ""), *t.operations, (("abort", "commit")[t.committed], "", "")])
        for t in transactions
    ]
    number, lines = c.between(1000, 5000), []
    while waiting:
        which = c.index(min(at_once, len(waiting)))
        transaction, rest = waiting[which]
        lines.append(_Line(number, transaction.name, *rest.pop(0)))
        number += 1
        if not rest:
            waiting.pop(which)
    return lines


def _replay(start: Mapping[str, int], lines: Iterable[_Line], excluded: set[str]) -> dict[str, int]:
    """Return the store after the lines, without some transactions. Numbers of lines are units."""
    store, pending = dict(start), dict[str, list[_Line]]()
    for line in lines:
        if line.operation != "commit":
            pending.setdefault(line.transaction, []).append(line)
            continue
        for x in pending.pop(line.transaction, []) if line.transaction not in excluded else ():
            if x.operation == "set":
                store[x.key] = int(x.value) * 100
            elif x.operation == "add":
                store[x.key] = store.get(x.key, 0) + int(x.value) * 100
            elif x.operation == "del":
                store.pop(x.key, None)
            elif x.operation == "ren" and x.key in store:
                store[x.value] = store.pop(x.key)
    return store


def _touched(transaction: _Transaction) -> set[str]:
    keys = {key for _, key, _ in transaction.operations}
    return keys | {value for operation, _, value in transaction.operations if operation == "ren"}


def _table(store: Mapping[str, int]) -> str:
    return "".join(f"{key}\t{store[key]}\n" for key in sorted(store))


def _cells(store: Mapping[str, int]) -> list[list[object]]:
    return [[key, store[key]] for key in sorted(store)]


def _write_backups(
    c: Choices,
    d: int,
    tree: FileTree,
    names: Sequence[str],
    start: Mapping[str, int],
    lines: Sequence[_Line],
    begins: int,
) -> None:
    """Add backups: one at the start, some before and after the bad run, the newest one before it
    damaged from difficulty 3."""
    before = [x.number for x in lines if x.number < begins]
    later = [x.number for x in lines if x.number > begins + 12]
    numbers = [
        before[len(before) // 6],
        before[len(before) // 2],
        before[-4],
        later[len(later) // 2],
        later[-10],
    ]
    for n, (name, number) in enumerate(zip(c.shuffled(names), numbers, strict=True)):
        store = _replay(start, [x for x in lines if x.number <= number], set())
        text = _table(store)
        digest = hashlib.sha256(text.encode()).hexdigest()
        if n == 2 and d > 2:
            wrong = {k: v + 100 * c.between(1, 9) if c.chance(12) else v for k, v in store.items()}
            wrong[min(wrong)] += 100
            text = _table(wrong)
        tree.file(f"backups/{name}/store.tsv", text)
        tree.file(
            f"backups/{name}/manifest", f"last entry: {number}\nsha256 of store.tsv: {digest}\n"
        )


def _write_journals(c: Choices, d: int, tree: FileTree, lines: Sequence[_Line], unit: int) -> None:
    """Add segments of two nodes, which overlap; some are torn or missing in one of them."""
    nodes = c.some(_NODES, 2)
    texts = {}
    for line in lines:
        value = line.value
        if value.isdigit() and not (unit and line.number < unit):
            value = str(int(value) * 100)
        texts[line.number] = (
            "|".join((str(line.number), line.transaction, line.operation, line.key, value)) + ";\n"
        )
    numbers = sorted(texts)
    for node, size in zip(nodes, (17, 29), strict=True):
        segments = [numbers[n : n + size] for n in range(0, len(numbers), size)]
        broken: dict[int, str] = {}
        if d > 1:
            odd = [n for n in range(len(segments) - 1) if node == nodes[0]]
            broken = {n: c.one(("torn", "missing")) for n in c.some(odd, 1 + d // 2)}
        for n, segment in enumerate(segments):
            text = "".join(texts[number] for number in segment)
            if broken.get(n) == "missing":
                continue
            if broken.get(n) == "torn":
                text = text[: len(text) * c.between(45, 80) // 100].rstrip(";\n")
            tree.file(f"journal/{node}/{c.name(6)}.log", text)


def _write_documents(c: Choices, tree: FileTree, unit: int, zone: int, ahead: int) -> None:
    sections = [
        "The store is a table of keys and numbers, with a tab between them. All numbers in it, and "
        "in backups, are hundredths.",
        "A line of a journal is `number|transaction|operation|key|value;`. Lines are numbered "
        "without gaps. Each node writes segments of its own, whose names mean nothing. A line "
        "without the semicolon at its end was torn and does not count; another node has it whole.",
        "Operations: `set` a value; `add` to it (a missing key counts as 0); `del` a key; `ren` a "
        "key to the one in the place of the value, which replaces that one (nothing happens if the "
        "key is missing). A transaction touches the keys that its lines name, for `ren` both.",
        "What a transaction does takes effect at its `commit`, all at once. Until then, and after "
        "`abort`, nothing of it is in the store.",
        "A backup has what was committed up to the entry in its manifest, that entry included. "
        "What was open then is not in it, even if it began earlier.",
        "live/position holds the number of the last line of the journal up to which lines were "
        "read for the store, also if that line is an abort or belongs to something left out.",
    ]
    if unit:
        sections.insert(
            3,
            f"Since entry {unit}, numbers in journals are hundredths, as in the store. "
            f"Before it, they are whole units.",
        )
    else:
        sections.insert(3, "Numbers in journals are hundredths, as in the store.")
    tree.file("docs/format.md", "\n\n".join(sections) + "\n")
    sign = "+" if zone > 0 else "-"
    clocks = [f"People here write local time, which is UTC{sign}{abs(zone) // 60}."]
    if ahead:
        way = "ahead of" if ahead > 0 else "behind"
        clocks.append(
            f"The scheduler has no time server: its clock is {abs(ahead)} minutes {way} "
            f"UTC, and logs/jobs.log is written by it."
        )
    else:
        clocks.append("The scheduler, which writes logs/jobs.log, uses UTC.")
    tree.file("docs/clocks.md", "\n".join(c.shuffled(clocks)) + "\n")
    tree.file(
        "docs/jobs.md",
        (
            "Jobs are defined in etc/jobs.conf. Files in etc/jobs.d are read after it in "
            "the order of "
            "their names, and the last value of a setting counts.\n\nA job with "
            "enabled=no does not "
            "start.\n"
        ),
    )
    tree.file(
        "docs/restore.md",
        (
            "To restore, copy the newest backup to live/store.tsv and run bin/replay.py on "
            "the journals "
            "with the number in its manifest. Check the backup against its manifest first.\n"
        ),
    )
    tree.file("bin/replay.py", _TOOL)


_TOOL = '''"""replay.py STORE LAST SEGMENT...: apply the lines after LAST to STORE, in their order.

Written for the first format of journals, where each line took effect by itself.
"""
import sys

path, last, *segments = sys.argv[1:]
store = dict(line.rstrip("\\n").split("\\t") for line in open(path))
for segment in segments:
    for line in open(segment):
        number, _, operation, key, value = line.rstrip(";\\n").split("|")
        if int(number) <= int(last):
            continue
        if operation == "set":
            store[key] = value
        elif operation == "add":
            store[key] = str(int(store.get(key, 0)) + int(value))
        elif operation == "del":
            store.pop(key, None)
with open(path, "w") as out:
    out.writelines(f"{key}\\t{store[key]}\\n" for key in sorted(store))
'''


def _write_job_files(
    c: Choices, d: int, tree: FileTree, jobs: Sequence[str], bad: str, runs: Sequence[_RunOfJob]
) -> None:
    sections = [
        f"[{job}]\nschedule={c.between(0, 23)}:{c.between(10, 59)}\nenabled=yes\n"
        for job in c.shuffled(jobs)
    ]
    tree.file("etc/jobs.conf", "\n".join(sections))
    overridden = c.some(jobs, 2) if d < 3 else [bad, c.one([job for job in jobs if job != bad])]
    for job in overridden:
        tree.file(
            f"etc/jobs.d/{c.between(10, 60)}-{c.one(WORDS)}.conf",
            f"[{job}]\nenabled=yes\nretries={c.between(1, 5)}\n",
        )
    lines = []
    for run in sorted(runs, key=lambda r: r.at):
        names = ", ".join(t.name for t in run.transactions)
        by = "by the timer" if run.who == "timer" else f"by hand ({run.who.lower()})"
        lines.append(
            f"{_clock(run.at)} run {run.number}: {run.job}, started {by}; transactions {names}\n"
        )
    tree.file("logs/jobs.log", "".join(lines))


def _clock(minutes: int) -> str:
    at = time.gmtime(NOW // DAY * DAY - 9 * DAY + minutes * 60)
    return time.strftime("%Y-%m-%d %H:%M", at)


def _write_chat(
    c: Choices,
    tree: FileTree,
    runs: Sequence[_RunOfJob],
    who: Sequence[str],
    zone: int,
    ahead: int,
    extra: Sequence[str],
) -> None:
    bad = next(run for run in runs if run.bad)
    mention = [run for run in runs if run.mentioned and not run.bad]
    local = {run.number: run.at - ahead + zone for run in runs}
    said = _clock(local[bad.number])
    day, hour = said.split()
    lines = [
        (
            who[1],
            c.one(
                (
                    "Morning all.",
                    "Is anybody else seeing odd numbers?",
                    "The shops call me about prices.",
                )
            ),
        )
    ]
    if mention:
        _, wrong = _clock(local[mention[0].number]).split()
        lines += [
            (
                bad.who,
                c.one(
                    (
                        f"That must be me: I started {bad.job} by hand on "
                        f"{_clock(local[mention[0].number])[:10]} at {wrong}.",
                        f"I ran {bad.job} myself, "
                        f"{_clock(local[mention[0].number])[:10]}, {wrong}. "
                        f"Since then it looks wrong.",
                    )
                ),
            ),
            (who[2], c.one(("Oh dear.", "Can you say how bad it is?", "I have lunch first."))),
            (
                bad.who,
                c.one(
                    (
                        f"No, wait. That run was fine. The one that broke things I "
                        f"started on {day} at {hour}.",
                        f"Correction: that run was harmless. It is the one of "
                        f"{day}, {hour}, that did it.",
                    )
                ),
            ),
        ]
    else:
        lines.append(
            (
                bad.who,
                c.one(
                    (
                        f"That must be me: I started {bad.job} by hand on {day} at {hour}.",
                        f"I ran {bad.job} myself, {day}, {hour}. Since then it looks wrong.",
                    )
                ),
            )
        )
    lines.append(
        (who[3], c.one(("The other runs were all right, I checked.", "All other runs are fine.")))
    )
    for name in extra:
        lines.append(
            (
                c.one(who),
                c.one(
                    (
                        f"I tried to put some of it back with {name}, which made it worse. Leave "
                        f"that out, too.",
                        f"{name} was me trying to repair it by hand. Please drop it as well.",
                        f"Do not keep {name}, that was only a test of mine.",
                    )
                ),
            )
        )
    lines.insert(
        c.between(1, len(lines)),
        (
            who[4],
            c.one(
                (
                    "Who has the key of the server room?",
                    "Backup tapes are with me.",
                    "Cake at three.",
                )
            ),
        ),
    )
    tree.file("notes/chat.txt", "".join(f"<{name.lower()}> {text}\n" for name, text in lines))


def _digest(tree: FileTree, folders: tuple[str, ...]) -> str:
    """Return what the probe computes over files."""
    found = hashlib.sha256()
    for entry in tree.entries:
        if entry.kind == "file" and entry.path.removeprefix(f"{FOLDER}/").startswith(folders):
            found.update(f"{entry.path} {hashlib.sha256(entry.data).hexdigest()}\n".encode())
    return found.hexdigest()


_PROBE = """
import glob, hashlib, io, json, os
os.chdir(%r)
found = {}

def lines(path, errors="strict"):
    return io.TextIOWrapper(io.BytesIO(read_file(path)), "utf-8", errors)

def digest_of(path):
    try:
        return hashlib.sha256(read_file(path)).hexdigest()
    except OSError as error:
        return str(error)

def table(path):
    rows = [line.rstrip("\\n").split("\\t") for line in lines(path) if line.strip()]
    return sorted([key, int(value)] for key, value in rows)

def read(name, function):
    try:
        found[name] = function()
    except Exception as error:
        found[name + "?"] = str(error)

read("store", lambda: table("live/store.tsv"))
read("moment", lambda: table("restored/before.tsv"))
read("position", lambda: int(read_file("live/position")))
read("keys", lambda: sorted({line.strip() for line in lines("restored/keys.txt")} - {""}))
job = ""
for path in ["etc/jobs.conf", *sorted(glob.glob("etc/jobs.d/*"))]:
    for line in lines(path, "replace") if os.path.isfile(path) else ():
        line = line.strip()
        if line.startswith("["):
            job = line.strip("[]")
        elif line.partition("=")[0].strip() == "enabled":
            found["job/" + job] = line.partition("=")[2].strip()
paths = [os.path.join(top, name) for part in ("backups", "journal", "logs")
         for top, _, names in os.walk(os.path.abspath(part)) for name in names]
digest = hashlib.sha256()
for path in sorted(paths, key=lambda p: p.split("/")):
    digest.update(f"{path} {digest_of(path)}\\n".encode())
found["sources"] = digest.hexdigest()
print()
print(json.dumps(found))
"""


def _solutions(
    right: Mapping[str, int], moment: Mapping[str, int], touched: Sequence[str], last: int, job: str
) -> list[str]:
    """Return scripts that differ in the order of lines, the file that disables the job, and in
    what they leave behind."""
    scripts = []
    for order in ("sort", "sort -r", "sort -k2"):
        parts = ["mkdir -p restored"]
        for path, store in (("live/store.tsv", right), ("restored/before.tsv", moment)):
            parts.append(
                f"{order} > {path} <<'END'\n"
                + "".join(f"{k}\t{v}\n" for k, v in store.items())
                + "END"
            )
        parts.append(f"{order} > restored/keys.txt <<'END'\n" + "\n".join(touched) + "\nEND")
        parts.append(f"echo {last} > live/position")
        if order == "sort":
            parts.append(f"printf '[{job}]\\nenabled=no\\n' > etc/jobs.d/zz-off.conf")
        else:
            parts.append(
                f"sed -i '/^\\[{job}\\]/,/^$/s/enabled=.*/enabled=no/' etc/jobs.conf "
                f"etc/jobs.d/*.conf"
            )
        scripts.append("\n".join(parts))
    return scripts
