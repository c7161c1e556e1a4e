"""The reference player of ``restored-store``: finds the run by its clock, then replays journals."""

from __future__ import annotations

import re
from functools import partial

from intercode_lab.worlds.world import Player, Run


def play(_request: str, run: Run, **skip: bool) -> None:
    """Solve a world. ``skip``: parts of the work that a hasty player leaves out."""
    run("find . -type f | sort | head -100")
    chat = run("cat notes/chat.txt")
    run("cat docs/restore.md docs/jobs.md")
    layout = run("cat docs/format.md")
    clocks = run("cat docs/clocks.md")
    zone = re.search(r"UTC([+-]\d+)", clocks)
    assert zone
    drift = re.search(r"clock is (\d+) minutes (ahead|behind)", clocks)
    ahead = 0 if not drift else int(drift[1]) * (1 if drift[2] == "ahead" else -1)
    log = run("cat logs/jobs.log")
    said = re.findall(r"(\d{4}-\d\d-\d\d)(?: at|,) (\d\d):(\d\d)", chat)
    day, hour, minute = said[0 if skip.get("first") else -1]
    minutes = int(hour) * 60 + int(minute)
    minutes += 0 if skip.get("zone") else -60 * int(zone[1])
    minutes += 0 if skip.get("drift") else ahead
    when = run(f"date -u -d '{day} UTC {minutes} minutes' '+%Y-%m-%d %H:%M'").strip()
    entry = next(line for line in log.splitlines() if line.startswith(when))
    job = re.search(r"run \d+: ([\w-]+)", entry)
    assert job
    bad = re.findall(r"T\d+", entry.partition("transactions")[2])
    extra = [] if skip.get("attempts") else re.findall(r"\bT\d+", chat)
    run("tail -n +1 backups/*/manifest; sha256sum backups/*/store.tsv")
    unit = re.search(r"Since entry (\d+), numbers", layout)
    common = _COMMON.format(
        bad=bad,
        unit=0 if not unit or skip.get("unit") else int(unit[1]),
        check=not skip.get("checksum"),
        commits=not skip.get("commits"),
    )
    run(f"python3 - <<'END'\n{common}print(number, sorted(LINES)[-1], len(store))\nEND")
    run("tail -n +1 etc/jobs.conf etc/jobs.d/*")
    run(f"sed -i '/^\\[{job[1]}\\]/,/^$/s/^enabled=.*/enabled=no/' etc/jobs.conf etc/jobs.d/*")
    run("mkdir -p restored")
    run(f"python3 - <<'END'\n{common}{_STORE.format(excluded=[*bad, *extra])}END")
    run(f"python3 - <<'END'\n{common}{_MOMENT}END")
    run(f"python3 - <<'END'\n{common}{_KEYS}END")


_COMMON = """import glob, hashlib, re
BAD, UNIT = {bad!r}, {unit}
LINES = {{}}
for path in glob.glob('journal/*/*'):
    for line in open(path):
        if line.endswith(';\\n'):
            number, *rest = line[:-2].split('|')
            LINES[int(number)] = rest
begins = min(n for n, x in LINES.items() if x[0] in BAD)
bases = []
for path in glob.glob('backups/*/manifest'):
    last, digest = re.findall(r': (\\S+)', open(path).read())
    data = open(path.replace('manifest', 'store.tsv'), 'rb').read()
    if int(last) < begins and (hashlib.sha256(data).hexdigest() == digest or not {check}):
        bases.append((int(last), data.decode()))
number, text = max(bases)
store = {{}}
for line in text.splitlines():
    key, value = line.split('\\t')
    store[key] = int(value)
def apply(number, op, key, value):
    if value.isdigit():
        value = int(value) * (100 if number < UNIT else 1)
    if op == 'set':
        store[key] = value
    elif op == 'add':
        store[key] = store.get(key, 0) + value
    elif op == 'del':
        store.pop(key, None)
    elif op == 'ren' and key in store:
        store[value] = store.pop(key)
def replay(numbers, excluded):
    pending = {{}}
    for n in numbers:
        txn, op, key, value = LINES[n]
        if not {commits}:
            if n > number and txn not in excluded:
                apply(n, op, key, value)
        elif op != 'commit':
            pending.setdefault(txn, []).append((n, op, key, value))
        elif n > number and txn not in excluded:
            for x in pending.get(txn, []):
                apply(*x)
def write(path):
    with open(path, 'w') as out:
        out.writelines(f'{{k}}\\t{{store[k]}}\\n' for k in sorted(store))
"""
_STORE = """replay(sorted(LINES), {excluded!r})
write('live/store.tsv')
open('live/position', 'w').write(f'{{max(LINES)}}\\n')
"""
_MOMENT = """first = min(n for n, x in LINES.items() if x[0] in BAD and x[1] == 'commit')
replay([n for n in sorted(LINES) if n < first], [])
write('restored/before.tsv')
"""
_KEYS = """keys = set()
for txn, op, key, value in LINES.values():
    if txn in BAD and key:
        keys |= {key, value} if op == 'ren' else {key}
open('restored/keys.txt', 'w').writelines(f'{key}\\n' for key in sorted(keys))
"""
SHALLOW: dict[str, Player] = {
    "clocks as written": partial(play, zone=True, drift=True),
    "time zone only": partial(play, drift=True),
    "backups unchecked, each line by itself": partial(play, checksum=True, commits=True),
    "each line by itself": partial(play, commits=True),
}
