"""What a model is told of an observation: all of it, or the part that a rule leaves."""

from __future__ import annotations

from dataclasses import dataclass

from intercode.agents.base import Feedback
from intercode.agents.prompt import clip

FEEDBACK_STYLES = ("standard", "original")
TESTS_FAILED_MESSAGE = "Test case did not pass. Please try again."
"""What the authors' runner tells in place of an observation after a function whose tests raised."""
_PAIRS = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class ObservationLimits:
    """How much of an observation the authors' runners showed a model: the first characters of a
    text, or the first rows of a result, whatever their length."""

    characters: int
    rows: int


def format_observation(feedback: Feedback, limit: int) -> tuple[str, dict[str, int]]:
    """At most ``limit`` characters of what an action printed, head and tail, and how much that is
    where it is not all."""
    text = feedback.observation.strip("\n")
    shown = clip(text, limit) or "(no output)"
    if feedback.timed_out:
        shown += "\n(It was stopped at the time limit.)"
    return shown, _omission_context({"characters": len(text), "shown": min(limit, len(text))})


def format_observation_original(
    feedback: Feedback, environment: str, cut: ObservationLimits, code: str
) -> tuple[str, dict[str, int]]:
    """What the authors' runners tell of an observation: its beginning, without a word on the rest;
    a dictionary of the Python service's in full. ``code`` is the action it came of."""
    text = feedback.observation
    if environment == "python":
        score = feedback.score
        failed = score is not None and not score.success and score.details.get("raised")
        return (TESTS_FAILED_MESSAGE if failed and code.startswith("def") else text), {}
    rows = split_rows(text) if environment == "sql" else None
    if rows is not None:
        kept = rows[: cut.rows]
        shown = text if len(kept) == len(rows) else f"[{', '.join(kept)}]"
        return shown or "(no output)", _omission_context({"rows": len(rows), "shown": len(kept)})
    kept_text = text[: cut.characters]
    return kept_text or "(no output)", _omission_context(
        {"characters": len(text), "shown": len(kept_text)}
    )


def split_rows(text: str) -> list[str] | None:
    """The rows in a list as Python writes it, each as text; None for what is no such list."""
    if not (text.startswith("[") and text.endswith("]")):
        return None
    rows: list[str] = []
    open_pairs: list[str] = []
    quote, at, begins = "", 1, 1
    while at < len(text) - 1:
        sign = text[at]
        if quote:
            at += sign == "\\"  # what stands behind it is no end
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign in _PAIRS:
            open_pairs.append(_PAIRS[sign])
        elif open_pairs and sign == open_pairs[-1]:
            open_pairs.pop()
        elif sign == "," and not open_pairs:
            rows.append(text[begins:at].strip())
            begins = at + 1
        at += 1
    last = text[begins:-1].strip()
    return [*rows, last] if last else rows


def _omission_context(sizes: dict[str, int]) -> dict[str, int]:
    """The sizes, where something was left out."""
    whole, shown = sizes.values()
    return sizes if shown < whole else {}
