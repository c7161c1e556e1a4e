"""Reads the answer of a SWE-bench episode: the difference of the repository from its start."""

from __future__ import annotations

import shlex

from intercode.core.errors import GoldError
from intercode.core.types import Task
from intercode.integrations.swe_bench.rows import DIRECTORY
from intercode_sandbox.contract import BaseSandbox

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
