"""The progress that a run prints."""

from __future__ import annotations

import io
import itertools

from intercode.core.types import Step, Trajectory, Usage
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


def test_the_cost_is_that_of_the_whole_run() -> None:
    """As the count of episodes is, and with the attempts without a result."""
    earlier = Usage(10, 2, requests=1, cost=0.5)
    progress = Progress(3, [episode(1.0)], io.StringIO(), earlier_usage=earlier)
    step = Step("a", "o", reward=1.0, usage=Usage(10, 2, requests=1, cost=0.25))
    lost = {"prompt_tokens": 10, "completion_tokens": 2, "requests": 1, "cost": 0.75}
    progress.add(episode(1.0).replace(steps=(step,), run={"lost": lost}))
    assert "2/3 done" in progress.line() and "$1.50" in progress.line()


def test_a_note_stands_above_the_progress() -> None:
    stream = Terminal()
    progress = Progress(2, [], stream)
    progress.show()
    progress.note("first error: \x1b[31mno\nanswer")
    assert "\rfirst error: [31mno answer" in stream.getvalue().split("\n")[0]
    assert stream.getvalue().split("\n")[1].startswith("\r0/2 done")
    progress.note("hidden", quiet=True)
    assert "hidden" not in stream.getvalue()
