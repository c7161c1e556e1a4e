"""The progress that a run prints."""

from __future__ import annotations

import io
import itertools

from intercode.core.types import Step, Trajectory
from intercode.evaluation.evaluate.progress import Progress


def episode(reward: float | None) -> Trajectory:
    if reward is None:
        return Trajectory("t", 0, "q", (), end="error", error="down")
    return Trajectory("t", 0, "q", (Step("a", "o", reward=reward),), end="submitted")


def test_errors_count_as_not_solved() -> None:
    progress = Progress(6, [episode(1.0)], io.StringIO())
    for reward in (1.0, 0.2, None):
        progress.add(episode(reward))
    assert progress.line().startswith("4/6 done, success 50.0 %, 1 errors, ")
    assert progress.line().endswith(" left")


def test_a_file_gets_few_plain_lines() -> None:
    stream = io.StringIO()
    progress = Progress(100, [], stream)
    for _ in range(100):
        progress.add(episode(1.0))
    progress.finish()
    assert stream.getvalue().count("\n") == 1
    assert "\r" not in stream.getvalue()
    assert "100/100 done, success 100.0 %" in stream.getvalue()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_one_line_that_is_wholly_overwritten() -> None:
    stream = Terminal()
    progress = Progress(2, [], stream)
    progress.show()
    progress.add(episode(1.0))
    progress.add(episode(1.0))
    progress.finish()
    parts = stream.getvalue().rstrip("\n").split("\r")[1:]
    assert len(parts) >= 2 and stream.getvalue().count("\n") == 1
    assert all(len(b) >= len(a.rstrip()) for a, b in itertools.pairwise(parts))
