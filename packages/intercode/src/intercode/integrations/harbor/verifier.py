"""Runs a Harbor task's verifier in a sandbox in which the agent can no longer act."""

from __future__ import annotations

import json
import math
import signal
import time
from collections.abc import Callable, Mapping, Sequence

from intercode.core.errors import SandboxError, SandboxKilledError, SandboxLostError, UsageError
from intercode.core.types import TRUNCATED_CHANGES, ExecResult, FileEntry, State, TestResult
from intercode.integrations.harbor.preparation import give_to
from intercode.integrations.harbor.tasks.task_directory import TESTS, Files
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.streams import BaseProcess
from intercode_sandbox.users import find_user

LOGS = "/logs/verifier"
_REWARD_TEXT, _REWARD_JSON, _STDOUT_FILE = (
    f"{LOGS}/reward.txt",
    f"{LOGS}/reward.json",
    f"{LOGS}/test-stdout.txt",
)
_MAX_REWARD_FILE = 1 << 16  # bytes of a reward's file
_MAX_OUTPUT = 4000  # characters of what a verifier printed
_PRELOAD = "/etc/ld.so.preload"
_STARTUP_VARIABLES = ("BASH_ENV", "ENV")  # each names a file that shells execute
# listings, and seconds between them, of processes that end because the verifier has ended, like tee
_LISTINGS, _LISTING_SECONDS = 50, 0.01
_WRITABLE = 0o200


class _VerdictError(Exception):
    """A verifier's result does not count. The message is the reason."""


def run_verifier(
    sandbox: BaseSandbox,
    tests: Files,
    cwd: str,
    env: Mapping[str, str],
    timeout: float,
    prepare: Callable[[], None],
    user: str,
    start: Callable[[], BaseProcess | None],
) -> State:
    """Return the verifier's result on the files in a sandbox, in which no process of the agent
    runs. The sandbox cannot be used afterwards.

    ``tests`` are written into the sandbox now; if there are none, its image has them. Files that
    the agent left where they go, or where the reward is written, are removed. ``env``: the task's
    own variables. ``files`` are the agent's changes. ``exit_code`` is the verifier's, or None if it
    did not end within ``timeout`` seconds. ``user``: the name or number of who runs it; empty for
    root. ``prepare`` is called first; its errors of a sandbox are a verdict, too, because the
    agent's files may be the reason. ``start`` is called after ``tests`` are written. It returns the
    image's entry point if that runs; its processes may remain.
    ``failed``: the result does not count, and ``output`` begins with the reason: the verifier was
    killed, ended its sandbox, ran out of time, left processes, or it or its reward's file was
    tampered with.
    """
    files: Mapping[str, FileEntry] = {}
    result: ExecResult | None = None
    rewards: Mapping[str, float] = {}
    reason = ""
    try:
        prepare()
        files = sandbox.changes(digests=False)
        _prepare_files(sandbox, files, tests)
        earlier = _numbers_of(sandbox, start())
        runner = find_user(sandbox, user or None)
        if runner is not None:
            give_to(sandbox, runner, LOGS)
        script = f"{TESTS}/test.sh"
        if not tests:
            sandbox.run(f"chmod +x {script}")  # an image may lack that
        command = ["/bin/sh", "-c", f"exec {script}"]
        variables = _environment(sandbox.env, files) | (runner.env if runner else {}) | dict(env)
        result = sandbox.run(command, cwd=cwd, env=variables, timeout=timeout, user=runner)
        rewards = _read_rewards(sandbox)  # before processes that it left can change them
        _check_end(result, timeout)
        _check_processes(sandbox, earlier)
        _check_tests(sandbox, tests)
    except SandboxKilledError as e:
        reason = f"what the verifier ran ended its sandbox: {e}"
    except SandboxLostError:
        raise
    except _VerdictError as e:
        reason = str(e)
    except (OSError, SandboxError, UsageError) as e:  # the shell or the user is gone, for example
        reason = f"the verifier could not be run: {e}"
    printed = result.output[-_MAX_OUTPUT:] if result else ""
    runs = tuple(TestResult(name, value >= 1.0, repr(value)) for name, value in rewards.items())
    return State(
        "\n".join(filter(None, (reason, printed))),
        files,
        tests=runs,
        failed=bool(reason),
        exit_code=result.exit_code if result and not result.timed_out else None,
    )


def _environment(env: Mapping[str, str], files: Mapping[str, FileEntry]) -> dict[str, str]:
    """Return the variables of the sandbox without those that make programs execute files of the
    agent.

    Python's user directory may hold a usercustomize, which every interpreter would execute.
    """
    kept = {k: v for k, v in env.items() if k not in _STARTUP_VARIABLES or v not in files}
    return kept | {"PYTHONNOUSERSITE": "1"}


def _prepare_files(sandbox: BaseSandbox, files: Mapping[str, FileEntry], tests: Files) -> None:
    """Remove what the agent left for the verifier, and write the tests."""
    if not _clear_agent_paths(sandbox, files):
        raise _VerdictError(f"what the agent left in {TESTS} or {LOGS} cannot be removed")
    if _PRELOAD in files and files[_PRELOAD].kind != "gone":
        sandbox.write(_PRELOAD, b"")  # a library in it would run in each program of the verifier
    sandbox.write(_STDOUT_FILE, b"")
    for name, (content, mode) in tests.items():
        sandbox.write(f"{TESTS}/{name}", content, mode)


# ------------------------------------------------------- whether the result counts
def _check_end(result: ExecResult, timeout: float) -> None:
    code = result.exit_code
    if result.timed_out or code is None:
        raise _VerdictError(f"the verifier did not end within {timeout:g} s")
    number = -code if code < 0 else code - 128  # a shell adds 128 to the signal of its last command
    if 0 < number < signal.NSIG:
        raise _VerdictError(f"the verifier was ended by signal {number}")


def _numbers(sandbox: BaseSandbox) -> dict[str, int]:
    """Return the processes of a sandbox, and the number of each."""
    found = sandbox.processes() if "processes" in sandbox.capabilities else ()
    return {name: int(name.rpartition("(")[2].rstrip(")")) for name in found}


def _numbers_of(sandbox: BaseSandbox, entry: BaseProcess | None) -> list[int]:
    """Return the numbers of the image's entry point and of what it has started, the only processes
    before the verifier; none if it does not run."""
    return [] if entry is None else [entry.pid, *_numbers(sandbox).values()]


def _check_processes(sandbox: BaseSandbox, earlier: Sequence[int]) -> None:
    """Raise _VerdictError if other processes than ``earlier`` and their descendants are left."""
    for _ in range(_LISTINGS):
        numbers = _numbers(sandbox)
        own = {*earlier, *(pid for each in earlier for pid in sandbox.descendants(each))}
        still = _numbers(sandbox)  # one that has ended meanwhile is no descendant any more
        left = [name for name, pid in numbers.items() if pid not in own and name in still]
        if not left:
            return
        time.sleep(_LISTING_SECONDS)
    raise _VerdictError(f"the verifier left processes: {', '.join(left[:5])}")


def _check_tests(sandbox: BaseSandbox, tests: Files) -> None:
    for name, (content, _) in tests.items():
        path = f"{TESTS}/{name}"
        try:
            changed = sandbox.read(path, len(content)) != content
        except OSError:
            changed = True
        if changed:
            raise _VerdictError(f"{path} was changed while the verifier ran")


def _read_rewards(sandbox: BaseSandbox) -> Mapping[str, float]:
    """Return the numbers that the verifier wrote.

    A program of the agent that the verifier runs could put something in the place of a reward's
    file, so that the verifier cannot write its own.
    """
    files = sandbox.changes(digests=False)
    if TRUNCATED_CHANGES in files:
        raise _VerdictError("more files were changed than can be listed")
    for path in (LOGS, _REWARD_TEXT, _REWARD_JSON):
        entry, kind = files.get(path), "dir" if path == LOGS else "file"
        if entry is None or (entry.kind == "gone" and path != LOGS):
            continue
        if entry.kind != kind or not entry.mode & _WRITABLE:
            raise _VerdictError(
                f"{path} is not a {kind} that the verifier could write (a {entry.kind} with the "
                f"mode {entry.mode:o})"
            )
    return parse_rewards(_read_file(sandbox, _REWARD_TEXT), _read_file(sandbox, _REWARD_JSON))


def parse_rewards(text: bytes | None, table: bytes | None) -> dict[str, float]:
    """Return the numbers in ``reward.txt``, or else in ``reward.json``; empty if neither has any.

    A value that is not a finite number counts as not written.
    """
    if text is not None and text.strip():
        value = _finite_number(text.decode(errors="replace").strip())
        return {} if value is None else {"reward": value}
    try:
        rows = json.loads(table or b"null")
    except (ValueError, RecursionError):
        return {}
    if not isinstance(rows, dict):
        return {}
    rewards = {
        name: _finite_number(value) for name, value in rows.items() if not isinstance(value, str)
    }
    return {name: value for name, value in rewards.items() if value is not None}


def _finite_number(value: object) -> float | None:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _clear_agent_paths(sandbox: BaseSandbox, files: Mapping[str, FileEntry]) -> bool:
    """Remove the agent's files where the tests and their verdict go. Return whether they are gone.

    The supervisor is asked for that, because the programs in the sandbox may be the agent's.
    """
    if not _agent_paths(files):
        return True
    sandbox.run(["/bin/rm", "-rf", "--", TESTS, LOGS])
    return not _agent_paths(sandbox.changes(digests=False))


def _agent_paths(files: Mapping[str, FileEntry]) -> list[str]:
    """Return the agent's files in these directories. A changed parent counts if it is not a
    directory, and so do changes that are not listed."""
    above = {"/logs"}
    return [
        path
        for path, entry in files.items()
        if entry.kind != "gone"
        and (
            path == TRUNCATED_CHANGES
            or (path in above and entry.kind != "dir")
            or any(path == p or path.startswith(f"{p}/") for p in (TESTS, LOGS))
        )
    ]


def _read_file(sandbox: BaseSandbox, path: str) -> bytes | None:
    try:
        return sandbox.read(path, _MAX_REWARD_FILE)
    except OSError:
        return None
