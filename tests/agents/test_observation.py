"""Observations as they are sent to a model."""

from __future__ import annotations

from intercode.agents.base import Step
from intercode.agents.prompt import format_observation


def test_the_standard_way_shows_head_and_tail() -> None:
    shown, left = format_observation(Step("", "ab" * 50 + "\n", timed_out=True), 10)
    assert shown.startswith("ababa\n[... 90 bytes left out ...]\n")
    assert shown.endswith("(It was stopped at the time limit.)")
    assert left == {"characters": 100, "shown": 10}
    assert format_observation(Step("", "\n"), 10) == ("(no output)", {})
    assert format_observation(Step("", "0123456789"), 10) == ("0123456789", {})
