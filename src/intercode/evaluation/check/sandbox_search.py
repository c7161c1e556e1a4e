"""What can be seen from inside a fresh box: the programs that tasks need, and nothing of a gold.

After a reset, before any action, every file of the box is looked through for the golds, solutions,
hidden tests, looks and flags of the dataset, and so are the environment and arguments of every
process, and what the session's own interpreter knows. On the image ``host`` the machine's programs
are left out, as they are nothing of the dataset's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from intercode.core.errors import InfrastructureError, InterCodeError
from intercode.core.types import Dataset, Task
from intercode.environments.base.sandboxed_env import SandboxedEnv
from intercode.evaluation.check.findings import Finding, Searched
from intercode.evaluation.check.task_runs import Player
from intercode.sandbox.supervisor.client import KeptSandbox

SHORTEST_LINE, SHORTEST = 12, 20
"""Characters of a text's longest line, and of it all: what is shorter stands anywhere by chance."""
_SECONDS = 300.0
_MOST = 3  # places that are told of one text
_AT_ONCE = 500  # files named to one search
_HOST = "bin sbin lib lib32 lib64 libx32 usr opt/python"
_TREES = """cd / && for path in * .[!.]* dev/shm opt/* opt/.[!.]*; do
  [ -d "$path" ] && [ ! -L "$path" ] || [ -f "$path" ] || continue
  case " proc sys dev opt $1 " in *" $path "*) ;; *) printf '%s\\n' "/$path" ;; esac
done"""
_SEARCH = 'exec grep -rsalF -D skip -f - -- "$@"'
_PROCESSES = "exec grep -salF -f - /proc/[0-9]*/environ /proc/[0-9]*/cmdline"
_TRY = "grep -rsalF -D skip -f - -- /dev/null; echo $?"
_LACKING = 'for p; do command -v "$p" > /dev/null || echo "$p"; done'
_TELL = {
    "bash": "set; alias; history",
    "ctf": "set",
    "harbor": "set; alias",
    "python": "print(dict(globals()))",
}
"""Code that shows what an interpreter knows, by environment."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A text that nobody may read inside. ``lines``: all have to be in one place."""

    task: str
    what: str
    lines: tuple[bytes, ...]

    def stands_in(self, data: bytes) -> bool:
        """Whether every line of it is there."""
        return all(line in data for line in self.lines)


def secrets(task: Task) -> Iterator[Secret]:
    """What of a task no box may hold; texts that are too short have no lines."""
    named = [("a gold", gold) for gold in task.golds]
    named += [("its solution", task.data["solution"])] if "solution" in task.data else []
    named += [("its flag", task.flag)] if task.flag else []
    named += [("its look", task.look)] if task.look else []
    for test in task.data.get("tests", ()):
        named.append(("a hidden test", "\n".join(_texts(test))))
    for what, text in named:
        parts = [part.strip() for part in str(text).splitlines()]
        lines = [part for part in parts if len(part) > SHORTEST // 4]
        long = max(map(len, lines), default=0) >= SHORTEST_LINE and sum(map(len, lines)) >= SHORTEST
        kept = lines if long or (what == "its flag" and lines) else []
        yield Secret(task.id, what, tuple(line.encode(errors="replace") for line in kept))


def _texts(test: object) -> list[str]:
    return [str(v) for v in test.values()] if isinstance(test, dict) else [str(test)]


def look_inside(
    over: Callable[..., list[object]], dataset: Dataset
) -> tuple[list[Finding], Searched]:
    """Faults and notes of the dataset's boxes, and what was looked for. ``over``: see ``players``.

    Tasks with the same files and set-up share a box; the image is looked through in the first, or
    in each where tasks have images of their own.
    """
    groups: dict[object, list[int]] = {}
    for i, task in enumerate(dataset.tasks):
        own = i if task.draw or task.contents or not dataset.image else None
        groups.setdefault((task.files, task.setup, own), []).append(i)
    first, *others = groups.values()
    each = not dataset.image
    found: list[Finding] = []
    total = Searched()
    for result in (
        *over(lambda player, _: _group(player, first, dataset.programs, whole=True), [0]),
        *over(lambda player, n: _group(player, others[n], (), whole=each), range(len(others))),
    ):
        assert isinstance(result, tuple)
        found += result[0]
        total += result[1]
    return found, total


def _group(
    player: Player, which: Sequence[int], programs: Sequence[str], *, whole: bool
) -> tuple[list[Finding], Searched]:
    """One box that some tasks share. What a reset cannot do was told when the golds were played;
    a box that fails gets a second chance."""
    for chance in (1, 2):
        try:
            return _look(player, which, programs, whole)
        except InfrastructureError as e:
            task = player.env.dataset.tasks[which[0]].id
            failed = [Finding(task, "box-failed", f"{type(e).__name__}: {e}")]
        except InterCodeError:
            return [], Searched()
        assert chance in (1, 2)
    return failed, Searched()


def _look(
    player: Player, which: Sequence[int], programs: Sequence[str], whole: bool
) -> tuple[list[Finding], Searched]:
    env = player.env
    player.reset(which[0])
    if not isinstance(env, SandboxedEnv):
        return [], Searched()
    box, tasks = env.box, [env.dataset.tasks[i] for i in which]
    tasks[0] = env.task  # as it was drawn
    wanted = [secret for task in tasks for secret in secrets(task)]
    sought = [secret for secret in wanted if secret.lines]
    counted = Searched(1, len(sought), len(wanted) - len(sought))
    found = _lacks(box, tasks, programs)
    own = set(_own_files(box))
    try:
        places = _hits(box, sought, [] if whole else sorted(own), whole)
    except LookupError as e:
        return [*found, Finding(tasks[0].id, "not-searched", str(e))], counted
    told: dict[tuple[str, str], int] = {}
    shown = _shown(env)
    for path, data in (*places, ("what its interpreter shows", shown)):
        for secret in sought:
            count = told.get((secret.task, secret.what), 0)
            if count >= _MOST or not secret.stands_in(data):
                continue
            told[secret.task, secret.what] = count + 1
            puzzle = secret.what == "its flag" and path in own
            kind = "flag-in-files" if puzzle else "readable"
            found.append(Finding(secret.task, kind, f"{secret.what} stands in {path}"))
    return found, counted


def _lacks(box: KeptSandbox, tasks: Sequence[Task], programs: Sequence[str]) -> list[Finding]:
    if not programs:
        return []
    lacking = box.run(["/bin/sh", "-c", _LACKING, "sh", *programs]).output.split()
    what = f"the image lacks {', '.join(lacking)}, which the dataset names as needed"
    return [Finding(task.id, "lacks-program", what) for task in tasks[:1] if lacking]


def _own_files(box: KeptSandbox) -> Iterator[str]:
    """Files of the task's own, in its layers and of its set-up."""
    for layer in box.spec.stacked:
        for top, _, names in os.walk(layer.root):
            inside = os.path.relpath(top, layer.root)
            yield from (os.path.normpath(f"/{inside}/{name}") for name in names)
    yield from box.changed()


def _hits(
    box: KeptSandbox, sought: Sequence[Secret], files: list[str], whole: bool
) -> list[tuple[str, bytes]]:
    """Places that may hold one of the texts, with what they hold. Raises LookupError where the
    image has no grep that can search."""
    if not sought:
        return []
    if box.run(["/bin/sh", "-c", _TRY], stdin=b"x").output.split()[-1:] != ["1"]:
        raise LookupError("the image has no grep with the options of GNU's")
    if whole:
        skipped = _HOST if box.spec.image.root is None else ""
        files = box.run(["/bin/sh", "-c", _TREES, "sh", skipped]).output.splitlines()
    lines = b"\n".join({max(secret.lines, key=len) for secret in sought})
    names = _grep(box, [_PROCESSES], lines)
    for start in range(0, len(files), _AT_ONCE):
        names += _grep(box, [_SEARCH, "sh", *files[start : start + _AT_ONCE]], lines)
    return [(name, _content(box, name)) for name in dict.fromkeys(names)]


def _grep(box: KeptSandbox, words: list[str], lines: bytes) -> list[str]:
    result = box.run(["/bin/sh", "-c", *words], stdin=lines, timeout=_SECONDS)
    if result.timed_out:
        raise LookupError(f"the search was not done within {_SECONDS:g} s")
    return result.output.splitlines()


def _content(box: KeptSandbox, path: str) -> bytes:
    with suppress(OSError):
        return box.read_file(path, limit=1 << 28)
    return box.run_bytes(["/bin/cat", "--", path])[0]


def _shown(env: SandboxedEnv) -> bytes:
    """What the interpreter of the episode says of itself."""
    if env.name not in _TELL:
        return b""
    return env.step(_TELL[env.name])[0].encode(errors="replace")
