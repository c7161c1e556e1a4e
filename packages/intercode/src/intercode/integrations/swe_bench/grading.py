"""Tests a patch in a fresh sandbox, in which nothing else of the agent is.

The patch is applied with the git of the image. Then everything in it that could change how the
tests run is set back: see ``is_protected``. Then the patch of the tests is applied, pytest runs
their files, and the results are read from the report that pytest writes. What the code prints does
not count.

The code under test runs in the process of pytest, as in every use of this benchmark, so code in a
patch could change pytest itself. ``suspicious_lines`` finds lines that name its parts.
"""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from xml.etree import ElementTree

from intercode.core.errors import GoldError, SandboxKilledError
from intercode.core.types import FileEntry, State, Task, TestResult
from intercode.integrations.swe_bench.rows import DIRECTORY, SweBenchPayload, changed_paths
from intercode_sandbox.contract import BaseSandbox

_MAX_REPORT = 64 << 20  # bytes
_MAX_OUTPUT = 4000  # characters of what pytest printed
_STARTUP_FILES = frozenset(
    {
        "conftest.py",
        "pytest.ini",
        ".pytest.ini",
        "pytest.toml",
        ".pytest.toml",
        "tox.ini",
        "setup.cfg",
        "pyproject.toml",
        "sitecustomize.py",
        "usercustomize.py",
        ".coveragerc",
        ".gitattributes",
        ".gitmodules",
    }
)
"""Names of files that Python, pytest or git read by themselves."""
_STARTUP_SUFFIXES = (".pth", ".pyc", ".pyo", ".egg-link")
_TEST_DIRECTORIES = frozenset({"test", "tests", "testing"})
_SUSPICIOUS = re.compile(
    r"^\+(?!\+\+ ).*(?:\b_?pytest\b|\bpluggy\b|\batexit\b|_exit\b|\bjunit|\bsys\.modules\b).*",
    re.MULTILINE,
)
_RENAME = re.compile(r"^(?:rename|copy) (?:from|to) ", re.MULTILINE)
_PATCH_FILE = "/intercode-patch/this.diff"
_MAX_LINES = 20  # suspicious lines in the details


class _VoidError(Exception):
    """A patch cannot be tested. The message is the reason."""


def grade_patch(fresh: BaseSandbox, task: Task, patch: str | None, timeout: float) -> State:
    """Return the result of each test of a task on a patch, FAIL_TO_PASS first.

    ``fresh`` is in the state in which the episode began, with all of it in git's index, and is
    changed. ``answer`` is the patch, ``files`` are the paths that it changes. ``output`` names the
    paths that were set back, and ends with what pytest printed. ``failed``: the tests gave no
    result, and ``output`` begins with the reason: the patch does not apply, or the tests did not
    end within ``timeout`` seconds, or they ended their sandbox.
    """
    reason, printed, paths = "", "", list[str]()
    results: Mapping[str, bool] = {}
    exit_code: int | None = None
    try:
        if patch is None:
            raise _VoidError(TOO_LARGE)
        paths, restored = _apply(fresh, task, patch)
        printed = f"set back before the tests: {', '.join(restored)}" if restored else ""
        report = f"/intercode-{secrets.token_hex(8)}/report.xml"
        fresh.write(report, b"")
        result = fresh.run(
            ["/bin/sh", "-c", _test_command(SweBenchPayload.of(task), report)],
            cwd=DIRECTORY,
            timeout=timeout,
        )
        printed = "\n".join(filter(None, (printed, result.output[-_MAX_OUTPUT:])))
        exit_code = result.exit_code
        if result.timed_out:
            raise _VoidError(f"the tests did not end within {timeout:g} s")
        results = read_report(fresh.read(report, _MAX_REPORT))
    except SandboxKilledError as e:
        reason = f"what the tests ran ended their sandbox: {e}"
    except (_VoidError, OSError, ValueError) as e:  # also a report that cannot be read
        reason = str(e) or type(e).__name__
    payload = SweBenchPayload.of(task)
    tests = (*payload.fail_to_pass, *payload.pass_to_pass)
    return State(
        "\n".join(filter(None, (reason, printed))),
        {f"{DIRECTORY}/{path}": FileEntry("file") for path in paths},
        exit_code=exit_code,
        answer=patch,
        failed=bool(reason),
        tests=tuple(
            TestResult(test, results.get(report_key(test), False), error=_state(results, test))
            for test in tests
        ),
    )


def is_protected(path: str, test_paths: Iterable[str]) -> bool:
    """Return whether a path of the repository is set back before the tests run.

    That is a file of the tests; what is beside or below one in a directory of tests; a file that
    Python, pytest or git read by themselves; and compiled Python.
    """
    name = PurePosixPath(path)
    if name.name in _STARTUP_FILES or name.suffix in _STARTUP_SUFFIXES:
        return True
    if "__pycache__" in name.parts:
        return True
    for test in map(PurePosixPath, test_paths):
        folder = test.parent
        if name == test or name in test.parents:
            return True
        if _TEST_DIRECTORIES.intersection(folder.parts) and folder in name.parents:
            return True
    return False


def suspicious_lines(patch: str) -> tuple[str, ...]:
    """Return the first lines that a patch adds and that name parts of the test runner."""
    return tuple(m.group()[1:].strip()[:200] for m in _SUSPICIOUS.finditer(patch))[:_MAX_LINES]


def _apply(fresh: BaseSandbox, task: Task, patch: str) -> tuple[list[str], list[str]]:
    """Apply a patch and the patch of the tests. Returns the paths that the former changes, and
    those of them that were set back."""
    payload = SweBenchPayload.of(task)
    tests = {*changed_paths(payload.test_patch), *_test_files(payload)}
    gold = set(changed_paths(payload.patch))
    changed, restored = list[str](), list[str]()
    if patch.strip():
        if _RENAME.search(patch):  # read_patch asks for none: git would not list the old path
            raise _VoidError("the patch renames files in a way that git was told not to use")
        changed = _apply_patch(fresh, patch.encode("utf-8", "surrogateescape"), "the patch")
        restored = [p for p in changed if is_protected(p, tests) and p not in gold - tests]
        _set_back(fresh, restored)
    _apply_patch(fresh, payload.test_patch.encode(), "the patch of the tests")
    return changed, restored


def _apply_patch(fresh: BaseSandbox, patch: bytes, what: str) -> list[str]:
    """Apply a patch to the repository and return the paths that it changes, sorted."""
    fresh.write(_PATCH_FILE, patch if patch.endswith(b"\n") else patch + b"\n")
    listed, is_patch = run_git(fresh, f"apply --numstat -z {_PATCH_FILE}")
    printed, applied = run_git(fresh, f"apply --whitespace=nowarn {_PATCH_FILE}")
    if not is_patch or not applied:
        raise _VoidError(f"{what} does not apply: {printed[-1000:].strip()}")
    return sorted(entry.split("\t", 2)[-1] for entry in listed.split("\0") if entry)


def _set_back(fresh: BaseSandbox, paths: Sequence[str]) -> None:
    """Give each path the content that it has in the index, or remove it."""
    if not paths:
        return
    fresh.run(["/bin/rm", "-rf", "--", *(f"{DIRECTORY}/{path}" for path in paths)])
    printed, _ = run_git(fresh, "--literal-pathspecs ls-files -z --", *paths)
    if known := [path for path in printed.split("\0") if path]:
        printed, done = run_git(fresh, "--literal-pathspecs checkout -q --", *known)
        if not done:
            raise _VoidError(f"what the patch changed cannot be set back: {printed[-300:]}")


def _test_files(payload: SweBenchPayload) -> list[str]:
    ids = (*payload.fail_to_pass, *payload.pass_to_pass)
    return list(dict.fromkeys(test.partition("::")[0] for test in ids))


def _test_command(payload: SweBenchPayload, report: str) -> str:
    files = shlex.join(_test_files(payload))
    return (
        f"exec {payload.test_command} --rootdir={DIRECTORY} --junitxml={report} "
        f"-o junit_family=xunit1 {files} < /dev/null"
    )


def _state(results: Mapping[str, bool], test: str) -> str:
    passed = results.get(report_key(test))
    return "" if passed else "it did not run" if passed is None else "it failed"


_MAX_MARKS = 2_000_000
"""Tags and quotes of a report, which take more memory than their bytes."""


def read_report(report: bytes) -> dict[str, bool]:
    """Return whether each test passed, by the key that ``report_key`` gives for its id.

    An expected failure counts as passed, and a skipped test does not, as in the published code. If
    several tests have one key, all of them must pass. Raises ValueError for a report that is
    missing or broken.
    """
    if not report.strip():
        raise ValueError("pytest wrote no report: it could not start, or did not end by itself")
    if b"<!DOCTYPE" in report or b"<!ENTITY" in report or b"\0" in report:
        raise ValueError("the report of pytest declares entities, which pytest does not")
    if sum(map(report.count, (b"<", b'"', b"'"))) > _MAX_MARKS:
        raise ValueError("the report of pytest has too many tags and attributes")
    try:
        root = ElementTree.fromstring(report)
    except ElementTree.ParseError as e:
        raise ValueError(f"the report of pytest is broken: {e}") from e
    results: dict[str, bool] = {}
    for case in root.iter("testcase"):
        key = _cut(f"{case.get('classname', '')}::{case.get('name', '')}")
        results[key] = results.get(key, True) and _passed(case)
    return results


def report_key(test: str) -> str:
    """Return the key of a test in a report for its id: ``a/test_b.py::C::d[e]`` is ``a.test_b.C``
    as a class, and ``d[e]`` as a name.

    Published ids end before the first white space, so keys do as well.
    """
    address, bracket, parameters = test.partition("[")
    path, *names = address.split("::")
    classes = [path.removesuffix(".py").replace("/", "."), *names[:-1]]
    return _cut(f"{'.'.join(classes)}::{names[-1] if names else ''}{bracket}{parameters}")


def _cut(key: str) -> str:
    return key.split(maxsplit=1)[0] if key.split() else key


def _passed(case: ElementTree.Element) -> bool:
    return all(
        child.tag not in ("failure", "error", "skipped")
        or (child.tag == "skipped" and child.get("type") == "pytest.xfail")
        for child in case
    )


# Reads the answer of a SWE-bench episode: the difference of the repository from its start.
MAX_PATCH = 16 << 20  # bytes
TOO_LARGE = f"the patch has more than {MAX_PATCH >> 20} MiB, or git could not write it"
"""What ``grade_patch`` gives as the reason for a patch that cannot be read."""
_GIT_SECONDS = 120.0
_SAFE = "git -c safe.directory=* -c core.quotePath=false"
_OUTPUT = "/intercode-patch/answer.diff"
_UNCOMMITTED = "/intercode-patch/uncommitted.diff"
_DIFF = (
    f"diff --cached --binary --no-color --no-ext-diff --no-textconv --no-renames --src-prefix=a/ "
    f"--dst-prefix=b/ --output={_OUTPUT}"
)


def run_git(sandbox: BaseSandbox, arguments: str, *paths: str) -> tuple[str, bool]:
    """Run git in the repository of a sandbox. Returns what it printed and whether it succeeded.

    ``arguments`` is a text for the shell; ``paths`` follow it.
    """
    command = f"{_SAFE} {arguments} {shlex.join(paths)}"
    result = sandbox.run(["/bin/sh", "-c", command], cwd=DIRECTORY, timeout=_GIT_SECONDS)
    return result.output, result.exit_code == 0


def read_patch(agent: BaseSandbox, fresh: BaseSandbox, task: Task) -> str | None:
    """Return the difference of the repository in ``agent`` from that in ``fresh``, as git writes it
    without files that it ignores. Returns None if git cannot write it or it is too large.

    ``agent`` is a copy of the agent's sandbox, which this changes. Its git may be the agent's, who
    may write any patch anyhow. ``fresh`` is in the state in which the episode began, all of which
    is then in its index. Raises GoldError if that has no repository.
    """
    try:
        start, found = run_git(fresh, "rev-parse HEAD")
        start = start.strip()
        uncommitted = _difference(fresh, start) if found else None
    except OSError as e:
        start, uncommitted = str(e), None
    if uncommitted is None:
        raise GoldError(
            f"the image of {task.id} has no repository in {DIRECTORY}, or no git: {start[-300:]}"
        )
    try:
        if uncommitted:  # such as the results of a build
            agent.write(_UNCOMMITTED, uncommitted)
            tree = (
                f"read-tree {start} && {_SAFE} apply --cached {_UNCOMMITTED} && {_SAFE} write-tree"
            )
            printed, done = run_git(agent, tree)
            start = printed.strip()
            if not done:
                return None
        patch = _difference(agent, start)
    except OSError:
        return None
    return None if patch is None else patch.decode("utf-8", "surrogateescape")


def _difference(sandbox: BaseSandbox, start: str) -> bytes | None:
    """Add all files to the index, and return how it differs from a commit or a tree. Returns None
    if git fails; raises OSError for a difference that is too large."""
    sandbox.write(_OUTPUT, b"")
    _, done = run_git(sandbox, f"add -A && {_SAFE} {_DIFF} {start}")
    return sandbox.read(_OUTPUT, MAX_PATCH) if done else None
