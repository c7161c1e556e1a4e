"""A repository whose history holds what merges, a reset, and reverts have lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from intercode_lab.families.bash.bash_task import WORDS
from intercode_lab.families.choices import Choices
from intercode_lab.families.family import Draw
from intercode_lab.families.file_tree import DAY, FOLDER, NOW, FileTree
from intercode_lab.worlds.gitrepo import Repository
from intercode_lab.worlds.players.history import SHALLOW, play
from intercode_lab.worlds.requests import NAMES, SURNAMES, Goal, write_request
from intercode_lab.worlds.world import HiddenChoice, World, kind

_GOALS = {
    "merges": Goal(
        (
            "bring back the values that merges dropped by mistake",
            "find what got lost when branches were merged and put it back",
            "restore every value that a careless merge has thrown away",
            "undo the damage of merges that dropped what one side had changed",
            "repair the configuration where a merge lost changes without anybody wanting it",
        )
    ),
    "reset": Goal(
        (
            "bring back what was lost when main was reset",
            "recover the work that fell off main in a reset",
            "restore the changes that a reset of main has taken away",
            "find the commits that main lost in a reset and get their values back",
            "put back what vanished from main when somebody reset it",
        )
    ),
    "reverts": Goal(
        (
            "take back the reverts that are due",
            "end the temporary reverts whose time is over",
            "put the reverted values back where the revert was only to last until now",
            "reapply what was reverted for a time that has passed",
            "look for reverts that should no longer be in force and take them back",
        )
    ),
    "summary": Goal(
        (
            "bring build/summary.txt up to date afterwards",
            "have the summary in build/ agree with all that in the end",
            "regenerate build/summary.txt from the final values",
            "make sure that build/summary.txt fits the repaired configuration",
            "commit a fresh build/summary.txt as well",
        )
    ),
}
_KEYS = (
    "limit",
    "price",
    "delay",
    "quota",
    "retries",
    "weight",
    "margin",
    "window",
    "batch",
    "share",
)
_VERBS = ("Change", "Adjust", "Set", "Update", "Correct")
_WHY = (
    "after talks with {}",
    "as {} asked",
    "see the mail of {}",
    "for the new contract",
    "by the figures of {}",
)
_AGREED = (
    "{file} stays as it is on main; {who} agreed.",
    "Took our {file} on purpose, {who} knows.",
    "The values in {file} are no longer wanted, says {who}, so ours stay.",
)
_CONTRIBUTING = """# How we work

- The newest deliberate change of a value counts, whoever made it.
- Where both sides of a merge changed a value, whoever merges decides, and that counts.
- A merge may leave out a change of one side only if its message says so.
- Commits whose subject begins with `try:` are experiments. They never belong on main.
- An unreachable commit with the author and subject of one in the history was amended; the one in the
  history counts.
- A revert with a line `Until: TAG` is temporary. It is due when the tag exists. Other reverts stay.
- build/summary.txt is the output of `python3 tools/summary.py`.
- History that was published is not rewritten: main only grows. Tags and branches stay where they are.
"""  # noqa: E501
_TOOL = '''"""Print the number and the sum of the values of each file in config."""
import glob
import os

for path in sorted(glob.glob("config/*.conf")):
    values = [int(line.split("=")[1]) for line in open(path) if "=" in line]
    print(os.path.basename(path)[:-5], len(values), sum(values))
'''
_Values = dict[str, dict[str, int]]


class _History:
    """Writes a history. ``values``: those of main, by file and key. ``used``: keys that nothing
    else may change."""

    def __init__(self, c: Choices, difficulty: int) -> None:
        self.c, self.repository = c, Repository()
        self.people = [
            f"{a} {b}" for a, b in zip(c.some(NAMES, 6), c.some(SURNAMES, 6), strict=True)
        ]
        self.areas = c.some(WORDS, 5 + difficulty)
        self.values: _Values = {
            a: {k: c.between(2, 90) * 5 for k in c.some(_KEYS, 8)} for a in self.areas
        }
        self.time = NOW - 120 * DAY
        self.head = self._commit(self.values, [], "First version")
        self.used: set[tuple[str, str]] = set()
        self.wanted: dict[str, dict[tuple[str, str], int]] = {
            "merges": {},
            "reset": {},
            "reverts": {},
        }
        self.lossy: list[bool] = []
        self.changed_again = 0

    def _commit(
        self, values: _Values, parents: Sequence[str], message: str, author: str = ""
    ) -> str:
        self.time += self.c.between(2, 30) * 3600 + self.c.between(0, 3599)
        author = author or self.c.one(self.people)
        files = {
            f"config/{a}.conf": "".join(f"{k} = {v}\n" for k, v in own.items())
            for a, own in values.items()
        }
        summary = "".join(
            f"{a} {len(own)} {sum(own.values())}\n" for a, own in sorted(values.items())
        )
        files |= {
            "CONTRIBUTING.md": _CONTRIBUTING,
            "build/summary.txt": summary,
            "tools/summary.py": _TOOL,
        }
        return self.repository.commit(files, parents, self._address(author), self.time, message)

    def _address(self, author: str) -> str:
        return f"{author} <{author.split()[0].lower()}@example.org>"

    def free(self, area: str, count: int) -> list[str]:
        """Take keys of an area that nothing has used yet."""
        keys = self.c.some([k for k in self.values[area] if (area, k) not in self.used], count)
        self.used |= {(area, key) for key in keys}
        return keys

    def room(self, count: int) -> list[str]:
        """Return the areas with so many unused keys, in a random order."""
        return [
            a
            for a in self.c.shuffled(self.areas)
            if sum((a, k) not in self.used for k in self.values[a]) >= count
        ]

    def subject(self, area: str, keys: Sequence[str], prefix: str = "") -> str:
        """Return the subject of a commit."""
        why = self.c.one(_WHY).format(self.c.one(self.people).split()[0])
        return f"{prefix}{self.c.one(_VERBS)} {' and '.join(keys)} of {area}, {why}"

    def other(self, value: int) -> int:
        """Return another value of the same kind."""
        return self.c.one([n * 5 for n in range(2, 91) if n * 5 != value])

    def change(self, area: str, keys: Sequence[str], prefix: str = "", author: str = "") -> str:
        """Commit new values to main and return the subject."""
        for key in keys:
            self.values[area][key] = self.other(self.values[area][key])
        before, subject = self.head, self.subject(area, keys, prefix)
        author = author or self.c.one(self.people)
        self.head = self._commit(self.values, [before], subject, author)
        self.repository.log(
            before, self.head, self._address(author), self.time, f"commit: {subject}"
        )
        return subject

    def plain(self) -> None:
        """Commit a change to main that nothing depends on."""
        area = self.c.one(self.room(1) or self.areas)
        keys = [k for k in self.values[area] if (area, k) not in self.used]
        if keys:
            self.change(area, [self.c.one(keys)])

    def merge(self, lossy: bool, agreed: bool, decided: bool) -> None:
        """Merge a branch with changes in two or three areas. ``lossy``: one of them is dropped, and
        the message does not say so; ``agreed``: another one is, and it does. ``decided``: both
        sides have changed a value of the first one."""
        c, rooms = self.c, self.room(5)
        if len(rooms) < 3:
            rooms = [*rooms, *self.room(2), *self.areas]
        areas = list(dict.fromkeys(rooms))[: 3 if agreed else 2]
        author, merger = c.some(self.people, 2)
        base, side = self.head, {a: dict(v) for a, v in self.values.items()}
        changes: dict[str, list[str]] = {}
        tip = base
        for area in areas:
            changes[area] = self.free(area, 3 if area == areas[0] else 2)
            for key in changes[area]:
                side[area][key] = self.other(side[area][key])
            tip = self._commit(side, [tip], self.subject(area, changes[area]), author)
        both = changes[areas[0]].pop() if decided and len(changes[areas[0]]) > 1 else ""
        if both:
            self.change(areas[0], [both])
        elif lossy or agreed or c.chance(60):
            own = self.free(areas[0], 1)
            if own:
                self.change(areas[0], own)
            else:
                self.plain()
        branch = f"{author.split()[0].lower()}/{c.one(WORDS)}-{c.name(3)}"
        notes = [f"Conflicts:\n\tconfig/{areas[0]}.conf"] if c.chance(60) else []
        dropped = {areas[0]} if lossy else set()
        if agreed:
            dropped.add(areas[-1])
            note = c.one(_AGREED).format(file=f"config/{areas[-1]}.conf", who=author.split()[0])
            notes.insert(c.index(len(notes) + 1), note)
        for area in areas:
            for key in changes[area]:
                if area not in dropped:
                    self.values[area][key] = side[area][key]
                elif area == areas[0]:
                    self.wanted["merges"][area, key] = side[area][key]
        if both and not dropped and c.chance(50):
            self.values[areas[0]][both] = side[areas[0]][both]
        message = "\n\n".join([f"Merge branch '{branch}'", *notes])
        before = self.head
        self.head = self._commit(self.values, [before, tip], message, merger)
        self.repository.log(
            before,
            self.head,
            self._address(merger),
            self.time,
            f"merge {branch}: Merge made by the 'ort' strategy.",
        )
        self.lossy.append(lossy)

    def reset(self, lost: int, tries: int, log: bool) -> None:
        """Lose commits of main by a reset: ``lost`` that belong there, and ``tries``."""
        start, before = self.head, {a: dict(v) for a, v in self.values.items()}
        for kind_ in self.c.shuffled(["lost"] * lost + ["try"] * tries):
            area = self.room(2)[0]
            keys = self.free(area, 2)
            self.change(area, keys, "try: " if kind_ == "try" else "")
            if kind_ == "lost":
                self.wanted["reset"] |= {(area, k): self.values[area][k] for k in keys}
        gone, self.values, self.head = self.head, before, start
        who = self._address(self.c.one(self.people))
        self.repository.log(
            gone, start, who, self.time + 600, f"reset: moving to HEAD~{lost + tries}"
        )
        if not log:
            self.repository.reflog.clear()

    def amend(self) -> None:
        """Leave a commit unreachable that was amended."""
        area = self.room(1)[0]
        keys = self.free(area, 1)
        start, before, author = (
            self.head,
            {a: dict(v) for a, v in self.values.items()},
            self.c.one(self.people),
        )
        subject = self.change(area, keys, author=author)
        self.values = before
        self.values[area][keys[0]] = self.other(self.values[area][keys[0]])
        amended = self.head
        self.head = self._commit(self.values, [start], subject, author)
        self.repository.log(
            amended, self.head, self._address(author), self.time, f"commit (amend): {subject}"
        )

    def revert(self, until: str, due: bool) -> None:
        """Revert a commit, for good or until a tag."""
        area = self.room(2)[0]
        keys = self.free(area, 2)
        before = {k: self.values[area][k] for k in keys}
        subject, name = self.change(area, keys), self.head
        new = {k: self.values[area][k] for k in keys}
        for _ in range(self.c.between(0, 2)):
            self.plain()
        self.values[area] |= before
        parts = [
            f'Revert "{subject}"',
            f"This reverts commit {name}.",
            *([f"Until: {until}"] if until else []),
        ]
        old, author = self.head, self.c.one(self.people)
        self.head = self._commit(self.values, [old], "\n\n".join(parts), author)
        self.repository.log(old, self.head, self._address(author), self.time, f"revert: {parts[0]}")
        if due:
            self.wanted["reverts"] |= {(area, k): new[k] for k in keys}

    def change_again(self, what: str) -> None:
        """Change one of the lost values on main, so that it must not come back."""
        cells = sorted(self.wanted[what])
        area, key = self.c.one(cells)
        if len(cells) > 1:
            self.changed_again += 1
            lost = self.wanted[what].pop((area, key))
            self.values[area][key] = self.c.one(
                [n * 5 for n in range(2, 91) if n * 5 not in (lost, self.values[area][key])]
            )
            old, author, subject = self.head, self.c.one(self.people), self.subject(area, [key])
            self.head = self._commit(self.values, [old], subject, author)
            self.repository.log(
                old, self.head, self._address(author), self.time, f"commit: {subject}"
            )


def _steps(c: Choices, d: int) -> Iterator[tuple[Any, ...]]:
    """Yield what happens between plain commits, in a random order that makes sense."""
    merges = [("merge", True, d > 4, d > 2)] + [("merge", True, False, False)] * (d > 3)
    merges += [("merge", False, True, False)] * (d > 2) + [("merge", False, False, d > 1)] * (
        2 if d < 3 else 5
    )
    reverts = (
        [("revert", "past")] * (d - 3) + [("revert", "future"), ("revert", "")] if d > 3 else []
    )
    others = [("reset",)] * (d > 1) + [("amend",)] * (d > 2)
    yield from c.shuffled([*merges, *reverts, *others])
    yield from c.shuffled(
        [("again", "merges")] * (d > 1)
        + [("again", "reset")] * (d > 3)
        + [("again", "reverts")] * (d > 4)
    )


def _draw_history(c: Choices, d: int, past: str, future: str) -> _History:
    """Return a history with everything that its difficulty asks for, where keys suffice."""
    while True:
        h = _History(c, d)
        for step in _steps(c, d):
            for _ in range(c.between(1, 2)):
                h.plain()
            match step:
                case ("merge", lossy, agreed, decided):
                    h.merge(lossy, agreed, decided)
                case ("revert", when):
                    h.revert({"past": past, "future": future}.get(when, ""), when == "past")
                case ("reset",):
                    h.reset(1 + d // 4, 1 + d // 5, d < 4 or c.chance(50))
                case ("amend",):
                    h.amend()
                case ("again", what):
                    h.change_again(what)
        least = {"merges": 2, "reset": 2 * (d > 1), "reverts": 2 * (d - 3)}
        enough = all(
            len(h.wanted[name]) >= count - (count > 3 or d > 1) for name, count in least.items()
        )
        if enough and h.changed_again == (d > 1) + (d > 3) + (d > 4):
            return h


@kind(play, SHALLOW)
def lost_work(draw: Draw) -> World:
    """Put back what a repository lost in merges, a reset and reverts, and nothing else."""
    c, d = draw.hidden, draw.difficulty
    minor = c.between(2, 7)
    past, future = f"v1.{minor}", f"v1.{minor + c.between(1, 2)}"
    h = _draw_history(c, d, past, future)
    h.plain()
    tagged = h.head
    h.plain()
    h.repository.refs = {"heads/main": h.head, f"tags/{past}": tagged}
    name = c.one(("tariffs", "settings", "dials", "rates"))
    tree = FileTree()
    h.repository.write(tree, name)
    names = [n for n in ("merges", "reset", "reverts") if h.wanted[n]] + ["summary"]
    right = {a: dict(v) for a, v in h.values.items()}
    for cells in h.wanted.values():
        for (area, key), value in cells.items():
            right[area][key] = value
    goals: dict[str, Mapping[str, Any]] = {
        n: {f"{a}.{k}": v for (a, k), v in cells.items()} for n, cells in h.wanted.items() if cells
    }
    goals["summary"] = {"summary": sorted([a, len(v), sum(v.values())] for a, v in right.items())}
    lost = {cell for cells in h.wanted.values() for cell in cells}
    damage: dict[str, dict[str, Any]] = {
        "values": {
            f"{a}.{k}": v
            for a, own in h.values.items()
            for k, v in own.items()
            if (a, k) not in lost
        },
        "history": {"grows": True, "tag": tagged},
    }
    area, key = next(iter(damage["values"])).split(".")
    phrasing, request = write_request(
        c,
        f"values missing in {name}",
        (
            f"The values in the repository {name} are not what people agreed on; some of "
            f"their work is gone.",
            "CONTRIBUTING.md in it says how we work and what counts.",
            "What counts is what is committed on main.",
        ),
        [_GOALS[n] for n in names],
    )
    return World(
        phrasing,
        request,
        tree,
        _PROBE % (f"{FOLDER}/{name}", h.head, past),
        goals,
        damage,
        _solutions(name, right),
        {
            "values": f"cd {FOLDER}/{name}; sed -i 's/^{key} = .*/{key} = 1/' "
            f"config/{area}.conf; git commit -qam x",
            "history": f"cd {FOLDER}/{name}; git tag -f {past} HEAD",
        },
        [
            HiddenChoice([{"value": str(n), "length": n} for n in range(len(h.lossy))], n)
            for n, lossy in enumerate(h.lossy)
            if lossy
        ],
        discoveries=2 * d,
        traps=[1, 2, 4, 6, 8][d - 1],
    )


def _solutions(name: str, right: _Values) -> list[str]:
    """Return scripts that commit the right values at once, file by file, or by a merge."""
    texts = {a: "".join(f"{k} = {v}\n" for k, v in own.items()) for a, own in right.items()}
    write = "".join(f"cat > config/{a}.conf <<'END'\n{text}END\n" for a, text in texts.items())
    summary = "python3 tools/summary.py > build/summary.txt\n"
    when = "2024-06-01 12:00 +0000"
    one = f"export GIT_COMMITTER_DATE='{when}' GIT_AUTHOR_DATE='{when}'\n"
    return [
        f"cd {name}\n{one}{write}{summary}git commit -qam 'Restore what was lost'",
        f"cd {name}\n{one}{write}git commit -qam 'Restore values'\n{summary}"
        "git commit -qam 'Summary'",
        f"cd {name}\n{one}git checkout -qb repair\n{write}{summary}git commit -qam Repair\n"
        "git checkout -q main\ngit merge -q --no-ff -m 'Merge the repair' repair",
    ]


_PROBE = """
import json, os, re, subprocess, tempfile
folder, old, tag = %r, %r, %r
found = {}
OBJECT = re.compile("objects/(?:[0-9a-f]{2}/[0-9a-f]{38}|pack/pack-[0-9a-f]{40}[.](?:pack|idx))")

# Git sees objects, branches and tags only: no settings, hooks, attributes, grafts, replacements.
bare = tempfile.TemporaryDirectory()
paths = ["packed-refs"]
for part in ("objects", "refs/heads", "refs/tags"):
    os.makedirs(f"{bare.name}/{part}")
    for top, _, names in os.walk(f"{folder}/.git/{part}"):
        paths += [os.path.relpath(f"{top}/{name}", f"{folder}/.git") for name in names]
for path in paths:
    if OBJECT.fullmatch(path) or not path.startswith("objects/"):
        try:
            data = read_file(f"{folder}/.git/{path}")
        except OSError:
            continue
        os.makedirs(os.path.dirname(f"{bare.name}/{path}"), exist_ok=True)
        with open(f"{bare.name}/{path}", "wb") as file:
            file.write(data)
for path, text in (("HEAD", "ref: refs/heads/main"), ("config", "[core]")):
    with open(f"{bare.name}/{path}", "w") as file:
        print(text, file=file)
settings = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "HOME": bare.name}

def git(*words):
    command = ["git", "--no-replace-objects", "--git-dir", bare.name, *words]
    done = subprocess.run(command, capture_output=True, env={**os.environ, **settings})
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None

for line in (git("ls-tree", "--name-only", "refs/heads/main:config") or "").split():
    for row in (git("cat-file", "blob", "refs/heads/main:config/" + line) or "").splitlines():
        key, equals, value = row.partition("=")
        if equals:
            try:
                found[line.removesuffix(".conf") + "." + key.strip()] = int(value)
            except ValueError:
                pass
try:
    rows = [row.split() for row in git("cat-file", "blob", "refs/heads/main:build/summary.txt").splitlines()]
    found["summary"] = sorted([area, int(count), int(total)] for area, count, total in rows)
except Exception as error:
    found["summary?"] = str(error)
grows = git("merge-base", "--is-ancestor", old, "refs/heads/main") is not None
found["grows"] = grows and git("fsck", "--no-dangling") is not None
found["tag"] = (git("rev-parse", "refs/tags/" + tag + "^{commit}") or "").strip()
print()
print(json.dumps(found))
"""  # noqa: E501
