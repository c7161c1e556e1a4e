"""Running a Harbor task's verifier in a box, once the agent can do nothing there any more."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from intercode.core.errors import SandboxError, SandboxLostError
from intercode.core.types import FileEntry, State, TestResult
from intercode.datasets.harbor.task_directory import TESTS, Files
from intercode.sandbox.supervisor.client import SupervisedSandbox

LOGS = "/logs/verifier"
_REWARD_TEXT, _REWARD_JSON, _STDOUT_FILE = (
    f"{LOGS}/reward.txt",
    f"{LOGS}/reward.json",
    f"{LOGS}/test-stdout.txt",
)
_MAX_REWARD_FILE = 1 << 16  # bytes of a reward's file
_MAX_OUTPUT = 4000  # characters of what a verifier printed


def run_verifier(
    box: SupervisedSandbox, tests: Files, cwd: str, env: Mapping[str, str], timeout: float
) -> State:
    """What the verifier makes of the files in a box, which is used up by that.

    ``tests`` comes into the box now. What lay there, or where the reward is to be written, was the
    agent's and is removed; ``failed`` where that cannot be done. ``files`` are what the agent had
    changed, ``exit_code`` is the verifier's, None where it was not done in ``seconds``.
    """
    try:
        files = box.changes(digests=False)
        if not _clear_agent_paths(box, files):
            said = f"what the agent left in {TESTS} or {LOGS} cannot be removed"
            return State(said, files, failed=True)
        box.write_file(_STDOUT_FILE, b"")
        for name, (content, mode) in tests.items():
            box.write_file(f"{TESTS}/{name}", content, mode)
        command = ["/bin/sh", "-c", f"{TESTS}/test.sh"]
        result = box.run(command, cwd=cwd, env={**box.env, **env}, timeout=timeout)
    except SandboxLostError:
        raise
    except (OSError, SandboxError) as e:  # no shell any more, no directory, no room
        return State(f"the verifier could not be run: {e}", exit_code=None, failed=True)
    found = parse_rewards(_read_file(box, _REWARD_TEXT), _read_file(box, _REWARD_JSON))
    runs = tuple(TestResult(name, value >= 1.0, repr(value)) for name, value in found.items())
    code = None if result.timed_out else result.exit_code
    said = result.output[-_MAX_OUTPUT:]
    return State(said, files, exit_code=code, tests=runs, failed=result.timed_out)


def parse_rewards(text: bytes | None, table: bytes | None) -> dict[str, float]:
    """The numbers in ``reward.txt``, or else in ``reward.json``; none where neither has any.

    What is no finite number counts as not written.
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
    found = {
        name: _finite_number(value) for name, value in rows.items() if not isinstance(value, str)
    }
    return {name: value for name, value in found.items() if value is not None}


def _finite_number(value: object) -> float | None:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _clear_agent_paths(box: SupervisedSandbox, files: Mapping[str, FileEntry]) -> bool:
    """Remove what the agent left where the tests and their verdict go. Whether it is gone is asked
    of the keeper, as the programs inside may be the agent's too."""
    if not _agent_paths(files):
        return True
    box.run(["/bin/rm", "-rf", "--", TESTS, LOGS])
    return not _agent_paths(box.changes(digests=False))


def _agent_paths(files: Mapping[str, FileEntry]) -> list[str]:
    """What stands there now and is not the image's own; a changed directory above counts if it is
    none any more."""
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


def _read_file(box: SupervisedSandbox, path: str) -> bytes | None:
    try:
        return box.read_file(path, _MAX_REWARD_FILE)
    except OSError:
        return None
