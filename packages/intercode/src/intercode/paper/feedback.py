"""``feedback=original``: observations and answers as the authors' runners treated them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from intercode.agents.feedback import FeedbackStyle
from intercode.agents.model_agent import ModelAgent
from intercode.agents.parsing import EMPTY_BLOCK_REASON, ParsedAnswer
from intercode.agents.plan_solve import PlanSolveAgent
from intercode.agents.prompt import omission_context
from intercode.agents.react import NO_ACTION_REASON, ReactAgent
from intercode.core.types import Step
from intercode.models.base import Completion

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


class OriginalFeedback(FeedbackStyle):
    """The beginning of an observation, and answers as the authors' runners parsed them."""

    runs_truncated_code = True

    def default_limit(self, agent: ModelAgent) -> int:
        return limits_of(agent).characters

    def show(self, agent: ModelAgent, feedback: Step) -> tuple[str, dict[str, int]]:
        limits = replace(limits_of(agent), characters=self.observation_limit(agent))
        form = agent.brief.description.observations
        return format_observation_original(feedback, form, limits, agent.last_code or "")

    def parse(self, agent: ModelAgent, completion: Completion) -> ParsedAnswer:
        """Parse an answer of ReactAgent as the authors' runner. The others execute an empty block
        as well."""
        if isinstance(agent, ReactAgent):
            return _parse_react(agent, completion.text)
        parsed = agent.parse(completion)
        return replace(parsed, code="") if parsed.reason == EMPTY_BLOCK_REASON else parsed

    def parse_action(self, agent: Any, completion: Completion) -> ParsedAnswer:
        label, text = f"Action {agent.turn}:", completion.text.strip()
        text = text if text.lower().startswith("action") else f"{label} {text}"
        action = text.removeprefix(label).partition("\n")[0].strip()
        return _parse_react_action(agent, "", action, text)

    def parse_plan(self, agent: Any, text: str) -> list[str]:  # noqa: ARG002
        return parse_plan_original(text)


def limits_of(agent: ModelAgent) -> ObservationLimits:
    """Return how much of an observation the authors' runner of a strategy sent. That of
    PlanSolveAgent sent less after the last step of its plan."""
    if isinstance(agent, ReactAgent):
        return ObservationLimits(350, 25)
    if isinstance(agent, PlanSolveAgent):
        return ObservationLimits(250 if agent.ends_when_solved else 1000, 25)
    return ObservationLimits(1000, 50)


def format_observation_original(
    feedback: Step, form: str, limits: ObservationLimits, code: str
) -> tuple[str, dict[str, int]]:
    """Return an observation as the authors' runners sent it: its beginning, without a note on the
    rest; a dictionary of the Python service in full. ``form``: that of observations in the authors'
    logs. ``code`` is the action that it followed."""
    text = feedback.observation
    if form == "dictionary":
        score = feedback.score
        failed = score is not None and not score.success and score.details.get("raised")
        return (TESTS_FAILED_MESSAGE if failed and code.startswith("def") else text), {}
    rows = split_rows(text) if form == "rows" else None
    if rows is not None:
        selected = rows[: limits.rows]
        visible = text if len(selected) == len(rows) else f"[{', '.join(selected)}]"
        return visible or "(no output)", omission_context(
            {"rows": len(rows), "shown": len(selected)}
        )
    beginning = text[: limits.characters]
    return beginning or "(no output)", omission_context(
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


def _parse_react(agent: ReactAgent, text: str) -> ParsedAnswer:
    """Split an answer as the authors' runner does.

    Its prompt ends with ``Thought N:`` and its stop sequence is ``Observation N:``. Either may
    be in the answer of a chat model, and is removed first.
    """
    answer = text.partition(f"\nObservation {agent.turn}:")[0].strip()
    body = re.sub(rf"\AThought {agent.turn}:[ ]?", "", answer)
    parts = body.split(f"\nAction {agent.turn}: ")
    if len(parts) != 2:
        thought = body.partition("\n")[0]
        return ParsedAnswer(None, thought, thought, NO_ACTION_REASON)
    return _parse_react_action(agent, parts[0].strip(), parts[1], answer)


def _parse_react_action(agent: ReactAgent, thought: str, action: str, text: str) -> ParsedAnswer:
    code, omitted = parse_action_original(action, agent.brief.description.observations)
    context = {"action": {"characters_left_out": omitted}} if omitted else {}
    reason = "" if code is not None else "the action holds no execute[...]"
    return ParsedAnswer(code, thought, text, reason, context)


def parse_action_original(action: str, form: str) -> tuple[str | None, int]:
    """Return the code that the authors' runner executes, and how many characters it omits.

    The runner accepts ``submit`` without an answer, and ``execute[...]`` up to the last bracket. It
    executes a statement, whose observation has the ``form`` of rows, only up to the first
    semicolon. The code is None if the runner does not recognise the action.
    """
    if action == "submit":
        return action, 0
    begin, end = action.find("execute["), action.rfind("]")
    if begin < 0 or end < begin + len("execute["):
        return None, 0
    code = action[begin + len("execute[") : end]
    executed = code.partition(";")[0] if form == "rows" else code
    return executed, len(code) - len(executed)


def parse_plan_original(text: str) -> list[str]:
    """Return the steps that the authors' runner finds.

    A step begins after digits, a dot and a blank or line break, anywhere in the text, and ends
    before the next blank followed by digits and a dot.
    """
    steps, offset = [], 0
    while start := re.compile(r"\d+\.\s").search(text, offset):
        end = re.compile(r"\s\d+\.").search(text, start.end())
        offset = len(text) if end is None else end.start()
        steps.append(text[start.end() : offset])
    return steps
