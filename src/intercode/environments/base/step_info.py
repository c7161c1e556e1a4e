"""What ``info`` tells of a turn."""

from __future__ import annotations

from typing import Any

from intercode.core.types import ExecResult, Score, Task


def step_info(
    task: Task, result: ExecResult, changes: list[str], score: Score | None = None
) -> dict[str, Any]:
    """The facts of one turn: what ran, how it ended, what has changed, and the score if any."""
    info: dict[str, Any] = {
        "task": task.id,
        "valid": result.ok,
        "exit_code": result.exit_code,
        "timed_out": result.timed_out,
        "omitted_bytes": result.omitted_bytes,
        "changes": changes,
    }
    if score is not None:
        info |= {"parts": dict(score.parts), "score": score.value}
    return info
