"""The Plan & Solve strategy of the paper (section 4).

The model writes a numbered plan and then one action for each step. A few more turns may follow.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from intercode.agents.model_agent import ModelAgent
from intercode.agents.parsing import split_thought
from intercode.core.types import AgentOutput, Brief, Step
from intercode.models.options import check_integer
from intercode_sandbox.lines import split_lines


class PlanSolveAgent(ModelAgent):
    """Asks a model for a plan, then for code for each step of the plan. All steps are carried out.

    Every turn is scored, but the model is not sent the score. If the reward after the last
    step is below 1, up to ``refine`` further turns follow, until the reward is 1 (the paper uses 3
    and reports them separately). The text of a step is recorded as the thought of its turn.
    """

    prompt_file = "plan_solve.txt"
    required_sections = (*ModelAgent.required_sections, "step")
    placeholders = frozenset({"step"})
    wants_score = True
    extra_requests = 1  # the plan is not a turn

    def __init__(self, *, refine: int = 0, max_turns: int | None = 30, **settings: Any) -> None:
        super().__init__(max_turns=max_turns, **settings)
        check_integer("refine", refine, 0)
        self.refine = refine or 0
        self._steps: list[str] = []

    def metadata(self) -> dict[str, Any]:
        return {**super().metadata(), "refine": self.refine}

    @property
    def ends_when_solved(self) -> bool:
        """Whether a reward of 1 ends the episode: only after the last step of the plan."""
        return not self._steps

    def start(self, brief: Brief) -> None:
        self._steps = []
        self._planned = self._solved = False
        self._refined = 0
        super().start(brief)

    def add_feedback(self, feedback: Step) -> None:
        self._solved = feedback.score is not None and feedback.score.success
        super().add_feedback(feedback)

    def request_action(self) -> AgentOutput | None:
        """Return the code of the next step or further turn.

        Returns None if no turn is left, or if the reward was 1 when the plan was carried out.
        """
        if not self._planned:
            self._request_plan()
        if self._steps:
            step = self._steps.pop(0)
            self.conversation.add_user(self.fill_prompt("step", step=step))
        elif self._solved or self._refined == self.refine:
            return None
        else:
            step = ""
            self._refined += 1
            self.conversation.add_user(self.fill_prompt("refine"))
        output = super().request_action()
        return replace(output, thought=output.thought or step) if output is not None else None

    def _request_plan(self) -> None:
        """Request the plan, and pin it so that it is never dropped from the conversation."""
        completion = self.conversation.request_answer()
        text, _ = split_thought(completion.text)
        self.conversation.add_answer(completion, text)
        self.conversation.pin()
        self._planned = True
        self._steps = self.style.parse_plan(self, text)

    def parse_plan(self, text: str) -> list[str]:
        """Return the steps of a plan. Without any, the task is the one step."""
        return parse_plan(text) or [self.fill_prompt("task")]


_STEP_MARKER = re.compile(
    r"(?P<indent>[ \t]*+)[>#]*+[ \t]*+(?:\*\*|__)?(?:"
    r"step[ \t]*\#?(?P<word>\d{1,9})(?:\*\*|__)?[ \t]*[.:)-]+"
    r"|\(?(?P<number>\d{1,9})[.):](?!\d)"
    r"|(?P<letter>[a-z])[.)]"
    r"|(?P<bullet>[-*+•])(?=[ \t]))(?:\*\*|__)?(?:[ \t]+|$)(?P<text>.*)",
    re.IGNORECASE,
)
_INLINE_NUMBER = re.compile(r"(?:(?<=\s)|\A)(?:step[ \t]*)?\(?(\d{1,9})[.):]\s+", re.IGNORECASE)
_FENCE = re.compile(r"`{3,}|~{3,}")
_BOLD = re.compile(r"\*\*(.+?)\*\*")


def parse_plan(text: str) -> list[str]:
    """Return the steps of a plan, in order.

    A step begins at a line with a number (``1.``, ``1)``, ``(1)``, ``Step 1:``, also in bold or as
    a heading), else with a letter, else with a bullet. Following lines belong to it until the next
    step or an unindented paragraph. A second list that begins at 1 repeats the plan and is ignored.
    Numbers within one line count if no line begins with one. A plan without any of these is one
    step; an empty plan has none.
    """
    for kind in ("number", "letter", "bullet"):
        steps = _steps_by_marker(text, kind)
        if len(steps) < 2 and (in_line := _inline_steps(text)):
            return in_line
        if steps:
            return steps
    return [text.strip()] if text.strip() else []


def _steps_by_marker(text: str, kind: str) -> list[str]:
    steps: list[list[str]] = []
    base, last, open_step, inside = None, 0, False, False
    for line in split_lines(text):
        mark = None if inside else _STEP_MARKER.fullmatch(line)
        if mark is not None and _marker_kind(mark) == kind:
            number = int(mark["word"] or mark["number"] or 0)
            depth = len(mark["indent"].expandtabs(4))
            base = depth if base is None else base
            if number == 1 and last > 1 and depth <= base:
                break
            if depth <= base + 1:
                steps.append([mark["text"]])
                last, open_step = number, True
                continue
        if len(_FENCE.findall(line)) % 2:
            inside = not inside
        if open_step:
            if _ends_step(steps[-1], line, inside):
                open_step = False
            else:
                steps[-1].append(line)
    return [_strip_bold("\n".join(lines)) for lines in steps]


def _marker_kind(mark: re.Match[str]) -> str:
    if mark["word"] or mark["number"]:
        return "number"
    return "letter" if mark["letter"] else "bullet"


def _ends_step(step: list[str], line: str, inside: bool) -> bool:
    """Return whether ``line`` ends the step, because it begins an unindented paragraph.

    ``step`` holds the lines of the step so far. ``inside`` says whether the line is in a fence.
    """
    unindented = bool(line.strip()) and not line[0].isspace() and not _FENCE.match(line)
    return unindented and not inside and not step[-1].strip() and len(step) > 1


def _strip_bold(step: str) -> str:
    return _BOLD.sub(r"\1", step).strip()


def _inline_steps(text: str) -> list[str]:
    """Return the steps of a plan written as running text, numbered from 1 without a gap."""
    marks: list[re.Match[str]] = []
    for mark in _INLINE_NUMBER.finditer(text):
        if int(mark[1]) == len(marks) + 1:
            marks.append(mark)
    ends = [m.start() for m in marks[1:]] + [len(text)]
    if len(marks) < 2:
        return []
    return [_strip_bold(text[m.end() : end]) for m, end in zip(marks, ends, strict=True)]
