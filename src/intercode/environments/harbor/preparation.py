"""Prepares an agent's sandbox for a step of a Harbor task: files, set-up."""

from __future__ import annotations

from pathlib import Path

from intercode.core.errors import TaskSetupError
from intercode.datasets.harbor.task_directory import read_files, step_files_directory
from intercode.sandbox.contract import BaseSandbox

SETUP_SECONDS = 600.0
_SETUP_SCRIPT = "setup.sh"
_MAX_OUTPUT = 500  # characters of what a failed script printed


def prepare_step(sandbox: BaseSandbox, folder: Path, step: str, cwd: str) -> None:
    """Write the files of a step into the directory where the task begins, and run its ``setup.sh``.

    Raises TaskSetupError if that fails.
    """
    files = read_files(folder, step_files_directory(step))
    top = cwd.rstrip("/")
    try:
        for name, (content, mode) in files.items():
            sandbox.write(f"{top}/{name}", content, mode)
        if _SETUP_SCRIPT not in files:
            return
        result = sandbox.run(
            ["/bin/bash", f"{top}/{_SETUP_SCRIPT}"], cwd=cwd, timeout=SETUP_SECONDS
        )
    except OSError as e:
        raise TaskSetupError(f"step {step!r} cannot be prepared: {e}") from e
    if not result.ok:
        ended = "did not end in time" if result.timed_out else f"ended with {result.exit_code}"
        raise TaskSetupError(
            f"{_SETUP_SCRIPT} of step {step!r} {ended}: {result.output[-_MAX_OUTPUT:].strip()!r}"
        )
