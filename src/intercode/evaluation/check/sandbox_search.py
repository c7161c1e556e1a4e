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
from intercode.evaluation.check.findings import Finding, SearchCounts
from intercode.evaluation.check.task_runs import TaskRunner
from intercode.sandbox.supervisor.client import SupervisedSandbox

MIN_LINE_LENGTH, MIN_LENGTH = 12, 20
"""Characters of a text's longest line, and of it all: what is shorter stands anywhere by chance."""
_SEARCH_TIMEOUT = 300.0
_MAX_LOCATIONS = 3  # places that are told of one text
_FILES_PER_SEARCH = 500  # files named to one search
_HOST_DIRECTORIES = "bin sbin lib lib32 lib64 libx32 usr opt/python"
_LIST_TOP_LEVEL = """cd / && for path in * .[!.]* dev/shm opt/* opt/.[!.]*; do
  [ -d "$path" ] && [ ! -L "$path" ] || [ -f "$path" ] || continue
  case " proc sys dev opt $1 " in *" $path "*) ;; *) printf '%s\\n' "/$path" ;; esac
done"""
_SEARCH_FILES = 'exec grep -rsalF -D skip -f - -- "$@"'
_SEARCH_PROCESSES = "exec grep -salF -f - /proc/[0-9]*/environ /proc/[0-9]*/cmdline"
_TEST_GREP = "grep -rsalF -D skip -f - -- /dev/null; echo $?"
_LIST_MISSING_PROGRAMS = 'for p; do command -v "$p" > /dev/null || echo "$p"; done'
_STATE_CODE = {
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
    kind: str
    lines: tuple[bytes, ...]

    def is_in(self, data: bytes) -> bool:
        """Whether every line of it is there."""
        return all(line in data for line in self.lines)


def task_secrets(task: Task) -> Iterator[Secret]:
    """What of a task no box may hold; texts that are too short have no lines."""
    named = [("a gold", gold) for gold in task.golds]
    named += [("its solution", task.data["solution"])] if "solution" in task.data else []
    named += [("its flag", task.flag)] if task.flag else []
    named += [("its probe", task.probe)] if task.probe else []
    for test in task.data.get("tests", ()):
        named.append(("a hidden test", "\n".join(_test_texts(test))))
    for what, text in named:
        parts = [part.strip() for part in str(text).splitlines()]
        lines = [part for part in parts if len(part) > MIN_LENGTH // 4]
        long = (
            max(map(len, lines), default=0) >= MIN_LINE_LENGTH
            and sum(map(len, lines)) >= MIN_LENGTH
        )
        kept = lines if long or (what == "its flag" and lines) else []
        yield Secret(task.id, what, tuple(line.encode(errors="replace") for line in kept))


def _test_texts(test: object) -> list[str]:
    return [str(v) for v in test.values()] if isinstance(test, dict) else [str(test)]


def search_sandboxes(
    over: Callable[..., list[object]], dataset: Dataset
) -> tuple[list[Finding], SearchCounts]:
    """Faults and notes of the dataset's boxes, and what was looked for. ``over``: see ``players``.

    Tasks with the same files and set-up share a box; the image is looked through in the first, or
    in each where tasks have images of their own.
    """
    groups: dict[object, list[int]] = {}
    for i, task in enumerate(dataset.tasks):
        own = i if task.instantiate or task.initial_files or not dataset.image else None
        groups.setdefault((task.files, task.setup, own), []).append(i)
    first, *others = groups.values()
    each = not dataset.image
    found: list[Finding] = []
    total = SearchCounts()
    for result in (
        *over(lambda player, _: _search_group(player, first, dataset.programs, whole=True), [0]),
        *over(
            lambda player, n: _search_group(player, others[n], (), whole=each), range(len(others))
        ),
    ):
        assert isinstance(result, tuple)
        found += result[0]
        total += result[1]
    return found, total


def _search_group(
    player: TaskRunner, which: Sequence[int], programs: Sequence[str], *, whole: bool
) -> tuple[list[Finding], SearchCounts]:
    """One box that some tasks share. What a reset cannot do was told when the golds were played;
    a box that fails gets a second chance."""
    for chance in (1, 2):
        try:
            return _search_sandbox(player, which, programs, whole)
        except InfrastructureError as e:
            task = player.env.dataset.tasks[which[0]].id
            failed = [Finding(task, "sandbox-failed", f"{type(e).__name__}: {e}")]
        except InterCodeError:
            return [], SearchCounts()
        assert chance in (1, 2)
    return failed, SearchCounts()


def _search_sandbox(
    player: TaskRunner, which: Sequence[int], programs: Sequence[str], whole: bool
) -> tuple[list[Finding], SearchCounts]:
    env = player.env
    player.reset(which[0])
    if not isinstance(env, SandboxedEnv):
        return [], SearchCounts()
    box, tasks = env.sandbox, [env.dataset.tasks[i] for i in which]
    tasks[0] = env.task  # as it was drawn
    wanted = [secret for task in tasks for secret in task_secrets(task)]
    sought = [secret for secret in wanted if secret.lines]
    counted = SearchCounts(1, len(sought), len(wanted) - len(sought))
    found = _missing_programs(box, tasks, programs)
    own = set(_task_files(box))
    try:
        places = _matching_files(box, sought, [] if whole else sorted(own), whole)
    except LookupError as e:
        return [*found, Finding(tasks[0].id, "not-searched", str(e))], counted
    told: dict[tuple[str, str], int] = {}
    shown = _interpreter_state(env)
    for path, data in (*places, ("what its interpreter shows", shown)):
        for secret in sought:
            count = told.get((secret.task, secret.kind), 0)
            if count >= _MAX_LOCATIONS or not secret.is_in(data):
                continue
            told[secret.task, secret.kind] = count + 1
            puzzle = secret.kind == "its flag" and path in own
            kind = "flag-in-files" if puzzle else "readable"
            found.append(Finding(secret.task, kind, f"{secret.kind} stands in {path}"))
    return found, counted


def _missing_programs(
    box: SupervisedSandbox, tasks: Sequence[Task], programs: Sequence[str]
) -> list[Finding]:
    if not programs:
        return []
    lacking = box.run(["/bin/sh", "-c", _LIST_MISSING_PROGRAMS, "sh", *programs]).output.split()
    what = f"the image lacks {', '.join(lacking)}, which the dataset names as needed"
    return [Finding(task.id, "lacks-program", what) for task in tasks[:1] if lacking]


def _task_files(box: SupervisedSandbox) -> Iterator[str]:
    """Files of the task's own, in its layers and of its set-up."""
    for layer in box.spec.all_layers:
        for top, _, names in os.walk(layer.root):
            inside = os.path.relpath(top, layer.root)
            yield from (os.path.normpath(f"/{inside}/{name}") for name in names)
    yield from box.changed_paths()


def _matching_files(
    box: SupervisedSandbox, sought: Sequence[Secret], files: list[str], whole: bool
) -> list[tuple[str, bytes]]:
    """Places that may hold one of the texts, with what they hold. Raises LookupError where the
    image has no grep that can search."""
    if not sought:
        return []
    if box.run(["/bin/sh", "-c", _TEST_GREP], stdin=b"x").output.split()[-1:] != ["1"]:
        raise LookupError("the image has no grep with the options of GNU's")
    if whole:
        skipped = _HOST_DIRECTORIES if box.spec.image.root is None else ""
        files = box.run(["/bin/sh", "-c", _LIST_TOP_LEVEL, "sh", skipped]).output.splitlines()
    lines = b"\n".join({max(secret.lines, key=len) for secret in sought})
    names = _grep(box, [_SEARCH_PROCESSES], lines)
    for start in range(0, len(files), _FILES_PER_SEARCH):
        names += _grep(box, [_SEARCH_FILES, "sh", *files[start : start + _FILES_PER_SEARCH]], lines)
    return [(name, _read_content(box, name)) for name in dict.fromkeys(names)]


def _grep(box: SupervisedSandbox, words: list[str], lines: bytes) -> list[str]:
    result = box.run(["/bin/sh", "-c", *words], stdin=lines, timeout=_SEARCH_TIMEOUT)
    if result.timed_out:
        raise LookupError(f"the search was not done within {_SEARCH_TIMEOUT:g} s")
    return result.output.splitlines()


def _read_content(box: SupervisedSandbox, path: str) -> bytes:
    with suppress(OSError):
        return box.read_file(path, limit=1 << 28)
    return box.run_bytes(["/bin/cat", "--", path])[0]


def _interpreter_state(env: SandboxedEnv) -> bytes:
    """What the interpreter of the episode says of itself."""
    if env.name not in _STATE_CODE:
        return b""
    return env.step(_STATE_CODE[env.name])[0].encode(errors="replace")
