"""Searches fresh sandboxes for golds, which must not be there, and for programs that tasks need.

The search is made after a reset, before any action. It looks for the golds, solutions, hidden
tests, probes and flags of the dataset in every file, in the environment and the arguments of every
process, and in the state of the session's interpreter. On the image ``host`` it skips the
machine's own programs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from intercode.core.errors import InfrastructureError, InterCodeError
from intercode.core.types import Dataset, Payload, Task
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.sandboxed_env import SandboxedEnv, uses_sandbox
from intercode.evaluation.check.findings import SearchCounts, TaskFinding
from intercode.evaluation.check.task_runs import TaskRunner
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.lines import split_lines

MIN_LINE_LENGTH, MIN_LENGTH = 12, 20
"""The fewest characters of a text's longest line, and of all its lines, to search for it.

A shorter text may be found by chance.
"""
_SEARCH_TIMEOUT = 300.0
_MAX_LOCATIONS = 3  # paths reported for one text
_FILES_PER_SEARCH = 500  # files of one call of grep
_HOST_DIRECTORIES = "bin sbin lib lib32 lib64 libx32 usr opt/python"
_LIST_TOP_LEVEL = """cd / && for path in * .[!.]* dev/shm opt/* opt/.[!.]*; do
  [ -d "$path" ] && [ ! -L "$path" ] || [ -f "$path" ] || continue
  case " proc sys dev opt $1 " in *" $path "*) ;; *) printf '%s\\n' "/$path" ;; esac
done"""
_SEARCH_FILES = 'exec grep -rsalF -D skip -f - -- "$@"'
_SEARCH_PROCESSES = "exec grep -salF -f - /proc/[0-9]*/environ /proc/[0-9]*/cmdline"
_TEST_GREP = "grep -rsalF -D skip -f - -- /dev/null; echo $?"
_LIST_MISSING_PROGRAMS = 'for p; do command -v "$p" > /dev/null || echo "$p"; done'


@dataclass(frozen=True, slots=True)
class Secret:
    """A text that must not be in a sandbox.

    A file contains it if all ``lines`` occur in the file. Without lines it is not searched for.
    """

    task: str
    kind: str
    lines: tuple[bytes, ...]

    def is_in(self, data: bytes) -> bool:
        """Return whether every line is in ``data``."""
        return all(line in data for line in self.lines)


def task_secrets(task: Task) -> Iterator[Secret]:
    """Yield the secrets of a task. A secret that is too short to search for has no lines."""
    named = [("a gold", gold) for gold in task.golds]
    payload = Payload.of(task)
    named += [("its solution", payload.solution)] if payload.solution is not None else []
    named += [("its flag", task.flag)] if task.flag else []
    named += [("its probe", task.probe)] if task.probe else []
    for test in payload.tests:
        named.append(("a hidden test", "\n".join(_test_texts(test))))
    for kind, text in named:
        parts = [part.strip() for part in split_lines(str(text))]
        lines = [part for part in parts if len(part) > MIN_LENGTH // 4]
        long = (
            max(map(len, lines), default=0) >= MIN_LINE_LENGTH
            and sum(map(len, lines)) >= MIN_LENGTH
        )
        searched = lines if long or (kind == "its flag" and lines) else []
        yield Secret(task.id, kind, tuple(line.encode(errors="replace") for line in searched))


def _test_texts(test: object) -> list[str]:
    return [str(v) for v in test.values()] if isinstance(test, dict) else [str(test)]


def search_sandboxes(
    run_all: Callable[..., list[object]], dataset: Dataset
) -> tuple[list[TaskFinding], SearchCounts]:
    """Search the sandboxes of a dataset. Returns the findings and the counts of the search.

    Tasks with the same files and set-up share a sandbox. The whole image is searched in the first
    sandbox, or in every sandbox if each task has its own image. In the others, only the files of
    the tasks are searched. ``run_all`` is the function that ``task_runners`` yields.
    """
    groups: dict[object, list[int]] = {}
    for i, task in enumerate(dataset.tasks):
        own = i if task.instantiate or task.initial_files or not dataset.image else None
        groups.setdefault((task.files, task.setup, own), []).append(i)
    first, *others = groups.values()
    own_images = not dataset.image
    findings: list[TaskFinding] = []
    total = SearchCounts()
    for result in (
        *run_all(
            lambda runner, _: _search_group(runner, first, dataset.programs, whole=True),
            [0],
        ),
        *run_all(
            lambda runner, n: _search_group(runner, others[n], (), whole=own_images),
            range(len(others)),
        ),
    ):
        assert isinstance(result, tuple)
        findings += result[0]
        total += result[1]
    return findings, total


def _search_group(
    runner: TaskRunner, which: Sequence[int], programs: Sequence[str], *, whole: bool
) -> tuple[list[TaskFinding], SearchCounts]:
    """Search the sandbox that a group of tasks shares, and try again if the sandbox fails.

    A reset that fails gives no finding, because it was reported when the golds ran.
    """
    failed: list[TaskFinding] = []
    for _ in range(2):
        try:
            return _search_sandbox(runner, which, programs, whole)
        except InfrastructureError as e:
            task = runner.env.dataset.tasks[which[0]].id
            failed = [TaskFinding(task, "sandbox-failed", f"{type(e).__name__}: {e}")]
        except InterCodeError:
            return [], SearchCounts()
    return failed, SearchCounts()


def _search_sandbox(
    runner: TaskRunner, which: Sequence[int], programs: Sequence[str], whole: bool
) -> tuple[list[TaskFinding], SearchCounts]:
    runner.reset(which[0])
    others = [runner.env.dataset.tasks[i] for i in which[1:]]
    return search_sandbox(runner.env, others, programs, whole=whole)


def search_sandbox(
    env: InterCodeEnv, others: Sequence[Task] = (), programs: Sequence[str] = (), *, whole: bool
) -> tuple[list[TaskFinding], SearchCounts]:
    """Search the sandbox of an episode that has just begun, for its task and for ``others``.

    ``programs`` must be in it. ``whole``: search every file, not only those of the tasks. Returns
    the findings and the counts of the search.
    """
    if not uses_sandbox(env):
        return [], SearchCounts()
    sandbox, tasks = env.sandbox, [env.task, *others]  # its data is generated from the seed
    secrets = [secret for task in tasks for secret in task_secrets(task)]
    long_enough = [secret for secret in secrets if secret.lines]
    counts = SearchCounts(1, len(long_enough), len(secrets) - len(long_enough))
    findings = _missing_programs(sandbox, tasks, programs)
    task_files = set(_task_files(sandbox))
    try:
        files = [] if whole else sorted(task_files)
        matches = _matching_files(sandbox, long_enough, files, whole)
    except LookupError as e:
        return [*findings, TaskFinding(tasks[0].id, "not-searched", str(e))], counts
    locations: dict[tuple[str, str], int] = {}
    state = _interpreter_state(env)
    for path, data in (*matches, ("what its interpreter shows", state)):
        for secret in long_enough:
            count = locations.get((secret.task, secret.kind), 0)
            if count >= _MAX_LOCATIONS or not secret.is_in(data):
                continue
            locations[secret.task, secret.kind] = count + 1
            plain_flag = secret.kind == "its flag" and path in task_files
            kind = "flag-in-files" if plain_flag else "readable"
            findings.append(TaskFinding(secret.task, kind, f"{secret.kind} stands in {path}"))
    return findings, counts


def _missing_programs(
    sandbox: BaseSandbox, tasks: Sequence[Task], programs: Sequence[str]
) -> list[TaskFinding]:
    if not programs:
        return []
    missing = sandbox.run(["/bin/sh", "-c", _LIST_MISSING_PROGRAMS, "sh", *programs]).output.split()
    detail = f"the image lacks {', '.join(missing)}, which the dataset names as needed"
    return [TaskFinding(task.id, "lacks-program", detail) for task in tasks if missing]


def _task_files(sandbox: BaseSandbox) -> Iterator[str]:
    """Yield the paths of a task's files: those in its layers and those that its set-up changed."""
    for layer in sandbox.spec.all_layers:
        for top, _, names in os.walk(layer.root):
            inside = os.path.relpath(top, layer.root)
            yield from (os.path.normpath(f"/{inside}/{name}") for name in names)
    yield from sandbox.changed_paths()


def _matching_files(
    sandbox: BaseSandbox, secrets: Sequence[Secret], files: list[str], whole: bool
) -> list[tuple[str, bytes]]:
    """Return the paths of files and processes that may contain a secret, with their content.

    Raises LookupError if the image has no grep that can search.
    """
    if not secrets:
        return []
    if sandbox.run(["/bin/sh", "-c", _TEST_GREP], stdin=b"x").output.split()[-1:] != ["1"]:
        raise LookupError("the image has no grep with the options of GNU grep")
    if whole:
        skipped = _HOST_DIRECTORIES if sandbox.spec.image.root is None else ""
        listed = sandbox.run(["/bin/sh", "-c", _LIST_TOP_LEVEL, "sh", skipped])
        files = split_lines(listed.output)
    lines = b"\n".join({max(secret.lines, key=len) for secret in secrets})
    names = _grep(sandbox, [_SEARCH_PROCESSES], lines)
    for start in range(0, len(files), _FILES_PER_SEARCH):
        names += _grep(
            sandbox, [_SEARCH_FILES, "sh", *files[start : start + _FILES_PER_SEARCH]], lines
        )
    return [(name, _read_content(sandbox, name)) for name in dict.fromkeys(names)]


def _grep(sandbox: BaseSandbox, words: list[str], lines: bytes) -> list[str]:
    result = sandbox.run(["/bin/sh", "-c", *words], stdin=lines, timeout=_SEARCH_TIMEOUT)
    if result.timed_out:
        raise LookupError(f"the search was not done within {_SEARCH_TIMEOUT:g} s")
    return split_lines(result.output)


def _read_content(sandbox: BaseSandbox, path: str) -> bytes:
    with suppress(OSError):
        return sandbox.read(path, limit=1 << 28)
    return sandbox.run_bytes(["/bin/cat", "--", path])[0]


def _interpreter_state(env: SandboxedEnv) -> bytes:
    """Return the state of the session's interpreter as it prints it, or an empty string."""
    if not (code := env.description.state_code):
        return b""
    return env.execute(code).observation.encode(errors="replace")
