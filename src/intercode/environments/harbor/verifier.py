"""Running a Harbor task's verifier in a box, once the agent can do nothing there any more."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from intercode.core.errors import SandboxError, SandboxLostError
from intercode.core.types import FileEntry, State, TestRun
from intercode.datasets.harbor.task_directory import TESTS, Files
from intercode.sandbox.supervisor.client import KeptSandbox

LOGS = "/logs/verifier"
_TEXT, _JSON, _PRINTED = f"{LOGS}/reward.txt", f"{LOGS}/reward.json", f"{LOGS}/test-stdout.txt"
_LONGEST = 1 << 16  # bytes of a reward's file
_TOLD = 4000  # characters of what a verifier printed


def verify(
    box: KeptSandbox, tests: Files, cwd: str, env: Mapping[str, str], seconds: float
) -> State:
    """What the verifier makes of the files in a box, which is used up by that.

    ``tests`` comes into the box now. What lay there, or where the reward is to be written, was the
    agent's and is removed; ``failed`` where that cannot be done. ``files`` are what the agent had
    changed, ``exit_code`` is the verifier's, None where it was not done in ``seconds``.
    """
    try:
        files = box.changes(digests=False)
        if not _cleared(box, files):
            said = f"what the agent left in {TESTS} or {LOGS} cannot be removed"
            return State(said, files, failed=True)
        box.write_file(_PRINTED, b"")
        for name, (content, mode) in tests.items():
            box.write_file(f"{TESTS}/{name}", content, mode)
        command = ["/bin/sh", "-c", f"{TESTS}/test.sh"]
        result = box.run(command, cwd=cwd, env={**box.env, **env}, timeout=seconds)
    except SandboxLostError:
        raise
    except (OSError, SandboxError) as e:  # no shell any more, no directory, no room
        return State(f"the verifier could not be run: {e}", exit_code=None, failed=True)
    found = read_reward(_read(box, _TEXT), _read(box, _JSON))
    runs = tuple(TestRun(name, value >= 1.0, repr(value)) for name, value in found.items())
    code = None if result.timed_out else result.exit_code
    said = result.output[-_TOLD:]
    return State(said, files, exit_code=code, tests=runs, failed=result.timed_out)


def read_reward(text: bytes | None, table: bytes | None) -> dict[str, float]:
    """The numbers in ``reward.txt``, or else in ``reward.json``; none where neither has any.

    What is no finite number counts as not written.
    """
    if text is not None and text.strip():
        value = _number(text.decode(errors="replace").strip())
        return {} if value is None else {"reward": value}
    try:
        rows = json.loads(table or b"null")
    except (ValueError, RecursionError):
        return {}
    if not isinstance(rows, dict):
        return {}
    found = {name: _number(value) for name, value in rows.items() if not isinstance(value, str)}
    return {name: value for name, value in found.items() if value is not None}


def _number(value: object) -> float | None:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _cleared(box: KeptSandbox, files: Mapping[str, FileEntry]) -> bool:
    """Remove what the agent left where the tests and their verdict go. Whether it is gone is asked
    of the keeper, as the programs inside may be the agent's too."""
    if not _left(files):
        return True
    box.run(["/bin/rm", "-rf", "--", TESTS, LOGS])
    return not _left(box.changes(digests=False))


def _left(files: Mapping[str, FileEntry]) -> list[str]:
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


def _read(box: KeptSandbox, path: str) -> bytes | None:
    try:
        return box.read_file(path, _LONGEST)
    except OSError:
        return None
