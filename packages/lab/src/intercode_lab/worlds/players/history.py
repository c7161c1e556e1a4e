"""The reference player of ``lost-work``: compares merges with their sides, and reads messages."""

from __future__ import annotations

import re
from functools import partial

from intercode_lab.worlds.world import Player, Run


def play(_request: str, run: Run, **skip: bool) -> None:
    """Solve a world. ``skip``: parts of the work that a hasty player leaves out."""
    name = run("ls -d */").split()[0].rstrip("/")
    run(f"cd {name}; git status --short; git log --oneline --graph --all | head -90")
    run("cat CONTRIBUTING.md tools/summary.py")
    tags = run("git tag").split()
    run(f"cat > /tmp/history.py <<'END'\n{_HELPERS}END")
    found = run(f"python3 - <<'END'\n{_IMPORT}{_MERGES}END")
    repairs = []
    for line in found.splitlines():
        if match := re.fullmatch(r"(\w+) (\S+) (\S+) (\d+) (\d+) (\d)", line):
            repairs.append(match.groups())
    messages = {m: run(f"git log -1 --format=%B {m}") for m in sorted({r[0] for r in repairs})}
    values = {}
    for commit, area, key, value, _, changed in repairs:
        about = [s for s in re.split(r"\n\n", messages[commit]) if f"config/{area}.conf" in s]
        said = any("Conflicts:" not in s for s in about)
        if (skip.get("agreed") or not said) and (skip.get("newer") or changed == "0"):
            values[area, key] = value
    _commit(run, values, "Restore what merges dropped")
    lost = run(f"python3 - <<'END'\n{_IMPORT}{_UNREACHABLE}END") if not skip.get("merges") else ""
    values = {}
    for line in lost.splitlines():
        match = re.fullmatch(r"(\S+) (\S+) (\d+) (\d) (\d) (\d)", line)
        if match is None:
            continue
        area, key, value, is_try, amended, changed = match.groups()
        belongs = (is_try, amended) == ("0", "0") or skip.get("tries")
        if belongs and (changed == "0" or skip.get("newer")):
            values[area, key] = value
    _commit(run, values, "Restore what a reset took away")
    due = run(f"python3 - <<'END'\n{_IMPORT}{_REVERTS}END")
    values = {}
    for line in due.splitlines():
        match = re.fullmatch(r"(\S+) (\S+) (\d+) until:(\S*) (\d)", line)
        if match and (match[4] in tags or skip.get("all")) and match[5] == "0":
            values[match[1], match[2]] = match[3]
    if not skip.get("merges"):
        _commit(run, values, "Take back reverts that are due")
    run(
        "python3 tools/summary.py > build/summary.txt; git commit -qam 'Update the "
        "summary'; git status --short"
    )


def _commit(run: Run, values: dict[tuple[str, str], str], message: str) -> None:
    if values:
        edits = [
            f"sed -i 's/^{key} = .*/{key} = {value}/' config/{area}.conf"
            for (area, key), value in sorted(values.items())
        ]
        run("; ".join([*edits, f"git commit -qam '{message}'"]))


_HELPERS = '''import functools
import subprocess
def git(*words):
    return subprocess.run(["git", *words], capture_output=True, text=True).stdout
@functools.cache
def values(commit):
    found = {}
    for line in git("grep", "=", commit, "--", "config").splitlines():
        _, path, row = line.split(":", 2)
        key, value = row.split(" = ")
        found[path[7:-5], key] = int(value)
    return found
def changed_since(commit, cell):
    """Return whether a commit on main has changed a value after this one."""
    before = values(commit)[cell]
    for later in git("rev-list", "--first-parent", "--reverse", commit + "..main").split():
        now = values(later)[cell]
        if now != before:
            return 1
    return 0
'''
_IMPORT = "import sys\nsys.path.insert(0, '/tmp')\nfrom history import *\n"
_MERGES = """for line in git("log", "--merges", "--format=%H %P", "main").splitlines():
    merge, one, two = line.split()
    base = values(git("merge-base", one, two).strip())
    ours, theirs, result = values(one), values(two), values(merge)
    for cell in base:
        if theirs[cell] != base[cell] and ours[cell] == base[cell] == result[cell]:
            print(merge, *cell, theirs[cell], result[cell], changed_since(merge, cell))
"""
_UNREACHABLE = """subjects = set(git("log", "--format=%an %s", "main").splitlines())
for line in git("fsck", "--unreachable", "--no-reflogs", "--no-progress").splitlines():
    kind, name = line.split()[1:3]
    if kind != "commit":
        continue
    now, before = values(name), values(name + "^")
    subject = git("log", "-1", "--format=%an %s", name).strip()
    start = name
    while subprocess.run(["git", "merge-base", "--is-ancestor", start, "main"]).returncode:
        start = git("rev-parse", start + "^").strip()
    for cell in now:
        if now[cell] != before[cell]:
            changed = changed_since(start, cell)
            print(*cell, now[cell], int(" try: " in subject), int(subject in subjects), changed)
"""
_REVERTS = """import re
for name in git("log", "--grep=^This reverts commit", "--format=%H", "main").split():
    message = git("log", "-1", "--format=%B", name)
    until = re.search(r"^Until: (\\S+)", message, re.M)
    now, before = values(name), values(name + "^")
    for cell in now:
        if now[cell] != before[cell]:
            print(*cell, before[cell], "until:" + (until[1] if until else ""), changed_since(name, cell))
"""  # noqa: E501
SHALLOW: dict[str, Player] = {
    "merges only": partial(play, merges=True),
    "every dropped change": partial(play, agreed=True, newer=True),
    "every lost change": partial(play, newer=True),
    "every lost commit": partial(play, tries=True),
}
