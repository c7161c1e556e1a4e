"""Formats observations for a model: in full, or the part that a limit leaves."""

from __future__ import annotations

from dataclasses import dataclass

from intercode.agents.base import Feedback
from intercode.agents.prompt import clip

FEEDBACK_STYLES = ("standard", "original")
TESTS_FAILED_MESSAGE = "Test case did not pass. Please try again."
"""The text that the authors' runner sends in place of the observation after a function whose tests
raised."""
_PAIRS = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class ObservationLimits:
    """How much of an observation the authors' runners sent to a model: the first characters of a
    text, or the first rows of a result regardless of their length."""

    characters: int
    rows: int


def format_observation(feedback: Feedback, limit: int) -> tuple[str, dict[str, int]]:
    """Return at most ``limit`` characters of an output, head and tail, and the sizes if it was
    cut."""
    text = feedback.observation.strip("\n")
    visible = clip(text, limit) or "(no output)"
    if feedback.timed_out:
        visible += "\n(It was stopped at the time limit.)"
    return visible, _omission_context({"characters": len(text), "shown": min(limit, len(text))})


def format_observation_original(
    feedback: Feedback, environment: str, limits: ObservationLimits, code: str
) -> tuple[str, dict[str, int]]:
    """Return an observation as the authors' runners sent it: its beginning, without a note on the
    rest; a dictionary of the Python service in full. ``code`` is the action that it followed."""
    text = feedback.observation
    if environment == "python":
        score = feedback.score
        failed = score is not None and not score.success and score.details.get("raised")
        return (TESTS_FAILED_MESSAGE if failed and code.startswith("def") else text), {}
    rows = split_rows(text) if environment == "sql" else None
    if rows is not None:
        selected = rows[: limits.rows]
        visible = text if len(selected) == len(rows) else f"[{', '.join(selected)}]"
        return visible or "(no output)", _omission_context(
            {"rows": len(rows), "shown": len(selected)}
        )
    beginning = text[: limits.characters]
    return beginning or "(no output)", _omission_context(
        {"characters": len(text), "shown": len(beginning)}
    )


def split_rows(text: str) -> list[str] | None:
    """Return the rows in a list as Python prints it, each as text; None for anything else."""
    if not (text.startswith("[") and text.endswith("]")):
        return None
    rows: list[str] = []
    open_pairs: list[str] = []
    quote, at, start = "", 1, 1
    while at < len(text) - 1:
        sign = text[at]
        if quote:
            at += sign == "\\"  # an escaped character does not end the string
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign in _PAIRS:
            open_pairs.append(_PAIRS[sign])
        elif open_pairs and sign == open_pairs[-1]:
            open_pairs.pop()
        elif sign == "," and not open_pairs:
            rows.append(text[start:at].strip())
            start = at + 1
        at += 1
    last = text[start:-1].strip()
    return [*rows, last] if last else rows


def _omission_context(sizes: dict[str, int]) -> dict[str, int]:
    """Return the sizes if something was left out, else an empty dictionary."""
    length, visible = sizes.values()
    return sizes if visible < length else {}
