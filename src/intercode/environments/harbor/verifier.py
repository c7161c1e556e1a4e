"""Runs a Harbor task's verifier in a sandbox in which the agent can no longer act."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from intercode.core.errors import SandboxError, SandboxLostError
from intercode.core.types import FileEntry, State, TestResult
from intercode.datasets.harbor.task_directory import TESTS, Files
from intercode.sandbox.contract import Sandbox

LOGS = "/logs/verifier"
_REWARD_TEXT, _REWARD_JSON, _STDOUT_FILE = (
    f"{LOGS}/reward.txt",
    f"{LOGS}/reward.json",
    f"{LOGS}/test-stdout.txt",
)
_MAX_REWARD_FILE = 1 << 16  # bytes of a reward's file
_MAX_OUTPUT = 4000  # characters of what a verifier printed


def run_verifier(
    sandbox: Sandbox, tests: Files, cwd: str, env: Mapping[str, str], timeout: float
) -> State:
    """Return the verifier's result on the files in a sandbox. The sandbox cannot be used
    afterwards.

    ``tests`` are written into the sandbox now. Files that the agent left where they go, or where
    the reward is written, are removed; ``failed`` if that is impossible. ``files`` are the
    agent's changes. ``exit_code`` is the verifier's, or None if it did not end within
    ``timeout`` seconds.
    """
    try:
        files = sandbox.changes(digests=False)
        if not _clear_agent_paths(sandbox, files):
            output = f"what the agent left in {TESTS} or {LOGS} cannot be removed"
            return State(output, files, failed=True)
        sandbox.write(_STDOUT_FILE, b"")
        for name, (content, mode) in tests.items():
            sandbox.write(f"{TESTS}/{name}", content, mode)
        command = ["/bin/sh", "-c", f"{TESTS}/test.sh"]
        result = sandbox.run(command, cwd=cwd, env={**sandbox.env, **env}, timeout=timeout)
    except SandboxLostError:
        raise
    except (OSError, SandboxError) as e:  # the shell or the directory is gone, the disk is full
        return State(f"the verifier could not be run: {e}", exit_code=None, failed=True)
    rewards = parse_rewards(_read_file(sandbox, _REWARD_TEXT), _read_file(sandbox, _REWARD_JSON))
    runs = tuple(TestResult(name, value >= 1.0, repr(value)) for name, value in rewards.items())
    code = None if result.timed_out else result.exit_code
    output = result.output[-_MAX_OUTPUT:]
    return State(output, files, exit_code=code, tests=runs, failed=result.timed_out)


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


def _clear_agent_paths(sandbox: Sandbox, files: Mapping[str, FileEntry]) -> bool:
    """Remove the agent's files where the tests and their verdict go. Return whether they are gone.

    The supervisor is asked for that, because the programs in the sandbox may be the agent's.
    """
    if not _agent_paths(files):
        return True
    sandbox.run(["/bin/rm", "-rf", "--", TESTS, LOGS])
    return not _agent_paths(sandbox.changes(digests=False))


def _agent_paths(files: Mapping[str, FileEntry]) -> list[str]:
    """Return the agent's files in these directories. A changed parent counts if it is not a
    directory."""
    above = {"/logs"}
    return [
        path
        for path, entry in files.items()
        if entry.kind != "gone"
        and (
            (path in above and entry.kind != "dir")
            or any(path == p or path.startswith(f"{p}/") for p in (TESTS, LOGS))
        )
    ]


def _read_file(sandbox: Sandbox, path: str) -> bytes | None:
    try:
        return sandbox.read(path, _MAX_REWARD_FILE)
    except OSError:
        return None
