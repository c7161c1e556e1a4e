"""The reference player of ``broken-ledger``: reads the documents, then repairs step by step."""

from __future__ import annotations

import re
from functools import partial

from intercode_lab.worlds.players.document_readers import (
    Policy,
    adopted_last,
    adopted_last_or_revoked,
    files_in,
    highest_adopted,
    highest_number,
    no_decision,
    read_rules,
)
from intercode_lab.worlds.world import Player, Run


def play(_request: str, run: Run, *, policy: Policy = adopted_last, **skip: bool) -> None:
    """Solve a world. ``skip``: parts of the work that a hasty player leaves out."""
    run("ls -R . | head -80; cat docs/README.md")
    path = run("ls data/*.db").strip()
    handbook = files_in(run("tail -n +1 docs/handbook/*.md"))
    decisions = files_in(run("tail -n +1 docs/decisions/*.md"))
    minutes = files_in(run("tail -n +1 docs/minutes/*.md"))
    batches = files_in(run("tail -n +1 imports/*.txt"))
    schema = run(
        f"python3 -c \"import sqlite3; [print(*r, sep='|') for r in "
        f"sqlite3.connect('{path}')"
        ".execute('SELECT type, name FROM sqlite_master')]\""
    )
    run("tail -n +1 reports/*.sql")
    texts = read_rules(handbook, decisions, minutes, policy, not skip.get("changes"))
    tables = [line.split("|")[1] for line in schema.splitlines() if line.startswith("table|")]
    party, item, entry = tables[:3]
    begin = _BEGIN.format(path=path, keep=not skip.get("triggers"), p=party, i=item, e=entry)
    sites = {
        int(re.sub(r"\D", "", name)): text.split("\n")[0][6:] for name, text in batches.items()
    }
    for text in () if skip.get("corrections") else minutes.values():
        for number, name in re.findall(r"batch (\d+)(?: came from|:) the site (?:is )?(\w+)", text):
            sites[int(number)] = name
    site = re.search(r"[Tt]he site (\w+)", texts["dates"])
    assert site
    run(_action(begin, _DAYS.format(sites=sites, first=site[1])))
    gone = _merged("\n".join(text for _, text in sorted(minutes.items())), not skip.get("undone"))
    if gone:
        run(_action(begin, _PARTIES.format(gone=gone)))
    source = re.search(r"source (\w+)", texts["amounts"])
    assert source
    low, off = sorted(map(int, re.findall(r"\d+", texts["rebates"])), reverse=True)[:2]
    percent = re.search(r"(\d+) %", texts["rebates"])
    assert percent
    off = int(percent[1])
    low = next(int(n) for n in re.findall(r"(\d+)(?! %)\b", texts["rebates"]) if int(n) != off)
    run(_action(begin, _AMOUNTS.format(source=source[1], low=low, off=off)))
    if "holds" in texts:
        cut = re.search(r"\d{4}-\d\d-\d\d", texts["holds"])
        assert cut
        run(_action(begin, _HOLDS.format(cut=cut[0])))
    if "duplicates" in texts:
        standing = [int(n) for n in re.findall(r"P-(\d+)", texts.get("standing-orders", ""))]
        run(_action(begin, _DUPLICATES.format(standing=standing)))


def _action(begin: str, body: str) -> str:
    return f"python3 - <<'END'\n{begin}{body}{_END}END"


def _merged(minutes: str, undo: bool) -> dict[int, int]:
    """Return into whom each was merged, as minutes say in the order of meetings."""
    into: dict[int, int] = {}
    for line in minutes.splitlines():
        numbers = [int(n) for n in re.findall(r"P-(\d+)", line)]
        if len(numbers) != 2:
            continue
        if re.search(r"taken back|does not count", line):
            if undo:
                into.pop(numbers[0], None)
        elif undo or numbers[0] not in into:
            into[numbers[0]] = numbers[1]
    return {old: _end_of(old, into) for old in into}


def _end_of(old: int, into: dict[int, int]) -> int:
    while old in into:
        old = into[old]
    return old


_BEGIN = """import sqlite3
db = sqlite3.connect('{path}', isolation_level=None)
db.execute('BEGIN')
triggers = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall() if {keep} else []
for name, sql in triggers:
    db.execute('DROP TRIGGER ' + name)
P, I, E = '{p}', '{i}', '{e}'
"""  # noqa: E501
_END = """for name, sql in triggers:
    db.execute(sql)
db.execute('COMMIT')
"""
_DAYS = """sites, first = {sites}, {first!r}
for n, day, batch in db.execute(f"SELECT id, day, batch FROM {{E}} WHERE day LIKE '%/%'").fetchall():
    a, b, year = day.split('/')
    month, date = (a, b) if sites[batch] == first else (b, a)
    db.execute(f'UPDATE {{E}} SET day = ? WHERE id = ?', (f'{{year}}-{{month}}-{{date}}', n))
"""  # noqa: E501
_PARTIES = """for old, new in {gone}.items():
    db.execute(f'UPDATE {{E}} SET party = ? WHERE party = ?', (new, old))
"""
_AMOUNTS = """def amount(qty, price):
    return qty * price * (100 - {off}) // 100 if qty >= {low} else qty * price
for n, qty, have, source, price in db.execute(
    f'SELECT {{E}}.id, qty, amount, source, price FROM {{E}} JOIN {{I}} ON {{I}}.id = item').fetchall():
    if amount(qty, price) != have:
        if source == {source!r}:
            have = amount(qty, price)
        else:
            qty = next((q for q in range(1, 100) if amount(q, price) == have), qty)
        db.execute(f'UPDATE {{E}} SET qty = ?, amount = ? WHERE id = ?', (qty, have, n))
"""  # noqa: E501
_HOLDS = """db.execute(f"UPDATE {{E}} SET state = CASE WHEN day >= '{cut}' THEN 'open' ELSE 'closed' END WHERE state = 'hold'")
"""  # noqa: E501
_DUPLICATES = """seen, standing = set(), {standing}
for n, party, *rest in db.execute(
    f"SELECT id, party, item, qty, day FROM {{E}} WHERE state NOT IN ('paid', 'void') ORDER BY id").fetchall():
    if (party, *rest) in seen and party not in standing:
        db.execute(f"UPDATE {{E}} SET state = 'void' WHERE id = ?", (n,))
    seen.add((party, *rest))
"""  # noqa: E501
SHALLOW: dict[str, Player] = {
    "handbook only": partial(play, policy=no_decision),
    "newest decision": partial(play, policy=highest_number),
    "newest adopted": partial(play, policy=highest_adopted),
    "last adopted, without revocations": partial(play, policy=adopted_last_or_revoked),
    "triggers stay": partial(play, triggers=True),
}
