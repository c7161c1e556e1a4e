"""Reads the answer of a SWE-bench episode: the difference of the repository from its start."""

from __future__ import annotations

import shlex

from intercode.core.errors import GoldError
from intercode.core.types import Task
from intercode.datasets.swe_bench.rows import DIRECTORY
from intercode.sandbox.contract import BaseSandbox

MAX_PATCH = 16 << 20  # bytes
TOO_LARGE = f"the patch has more than {MAX_PATCH >> 20} MiB, or git could not write it"
"""What ``grade_patch`` gives as the reason for a patch that cannot be read."""
_GIT_SECONDS = 120.0
_SAFE = "git -c safe.directory=* -c core.quotePath=false"
_OUTPUT = "/intercode-patch/answer.diff"


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
    may write any patch anyhow. ``fresh`` is in the state in which the episode began. Raises
    GoldError if that has no repository.
    """
    try:
        start, found = run_git(fresh, "rev-parse HEAD")
    except OSError as e:
        start, found = str(e), False
    if not found:
        raise GoldError(
            f"the image of {task.id} has no repository in {DIRECTORY}, or no git: {start[-300:]}"
        )
    agent.write(_OUTPUT, b"")
    try:
        _, done = run_git(
            agent,
            "add -A && "
            f"{_SAFE} diff --cached --binary --no-color --no-ext-diff --no-textconv --no-renames "
            f"--src-prefix=a/ --dst-prefix=b/ --output={_OUTPUT} {start.strip()}",
        )
        return agent.read(_OUTPUT, MAX_PATCH).decode("utf-8", "surrogateescape") if done else None
    except OSError:
        return None
