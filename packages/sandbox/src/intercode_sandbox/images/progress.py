"""Lines about slow steps, such as builds and downloads, for the user."""

from __future__ import annotations

import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence

Progress = Callable[[str], None]
"""Called with each line of a build's output, or about the current step."""


def ignore_progress(line: str) -> None:
    """Do nothing with a line."""
    del line


def run_with_progress(
    argv: Sequence[str],
    env: Mapping[str, str],
    progress: Progress,
    last_lines: int,
    stdin: str = "",
) -> tuple[int, str]:
    """Run a program, which gets ``stdin``, and report each line of its output.

    Returns the exit status and the last ``last_lines`` lines. The program is ended if this call is.
    """
    last: deque[str] = deque(maxlen=last_lines)
    process = subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=env,
        text=True,
        errors="replace",
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        with process.stdin:
            process.stdin.write(stdin)
        with process.stdout:
            for line in process.stdout:
                last.append(line.rstrip())
                progress(line.rstrip())
        status = process.wait()
    except BaseException:
        process.terminate()
        process.wait()
        raise
    return status, "\n".join(last)
