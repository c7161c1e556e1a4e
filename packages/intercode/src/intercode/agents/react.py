"""The ReAct strategy of the paper (section 4).

The model alternates between thoughts and actions until it submits. A turn: ``ModelAgent.act`` adds
the feedback on the last action to the conversation and calls ``request_action``. That requests an
answer, from which ``parse`` takes the thought and the action; ``make_output`` adds the answer to
the conversation and returns the action with what the turn records. The prompt is
``prompts/react.txt``. Parsing is below the class.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from intercode.agents.model_agent import ModelAgent
from intercode.agents.parsing import (
    ParsedAnswer,
    Section,
    empty_answer,
    fenced_blocks,
    fenced_submission,
    parse_answer,
    split_sections,
    split_thought,
    unfenced_code,
)
from intercode.core.types import ActionLanguage, AgentOutput
from intercode.models.base import Completion

UNCLOSED_REASON = "the bracket of execute[...] is never closed"
NO_ACTION_REASON = "the answer holds no action"
_EXECUTE = re.compile(r"\bexecute[ \t]*\[", re.IGNORECASE)
_EXECUTE_WORD = re.compile(r"execute[ \t]*+:?[ \t]*+(?=\n|`|\Z)", re.IGNORECASE)
_SUBMIT = re.compile(
    r"[*_`\"']*submit(?:[ \t]*\[(?P<inside>.*)\]|[ \t]+(?P<word>[^\s.*`\"']\S*))?[*_`\"'.! \t]*",
    re.IGNORECASE | re.DOTALL,
)
_SUBMIT_FORM = re.compile(r"\bsubmit[ \t]*\[(?P<inside>[^\n\[\]]*)\][ \t]*+$", re.I | re.M)
_NEXT_ACTION = re.compile(r"\b(?:execute|submit)[ \t]*\[", re.IGNORECASE)
_QUOTES = {"'": "'", '"': '"', "`": "`"}


class ReactAgent(ModelAgent):
    """Asks a model for a thought and an action in each turn. It ends when the model submits.

    The action ``execute[...]`` runs code; ``submit`` ends the episode, which is then scored. If an
    answer has a thought and no action, the action is requested in the same turn, as in the authors'
    runner.
    """

    prompt_file = "react.txt"
    required_sections = (*ModelAgent.required_sections, "action")
    requests_per_turn = 2  # maximum: one, and another if its answer has no action

    def request_action(self) -> AgentOutput:
        """Return the next thought and action."""
        completion = self.conversation.request_answer()
        parsed = self.style.parse(self, completion)
        if parsed.reason != NO_ACTION_REASON:
            return self.make_output(completion, parsed)
        self.conversation.add_answer(completion, parsed.text)
        self.conversation.add_user(self.fill_prompt("action"))
        action = self.conversation.request_answer()
        second = self.style.parse_action(self, action)
        thought = "\n\n".join(t for t in (completion.reasoning, parsed.thought) if t)
        return self.make_output(action, replace(second, thought=thought), completion.text)

    def parse(self, completion: Completion) -> ParsedAnswer:
        """Return the thought and the action of an answer."""
        return parse_react(completion.text, self.language, self.brief.expects_answer)

    def parse_action(self, completion: Completion) -> ParsedAnswer:
        """Return the action in an answer to the second request, which asks for the action only."""
        text = complete_label(completion.text, f"Action {self.turn}:")
        return parse_react(text, self.language, self.brief.expects_answer)


def parse_react(text: str, language: ActionLanguage, answers: bool) -> ParsedAnswer:
    """Return the thought and the action of an answer.

    An action is ``execute[CODE]``, ``submit``, ``submit[ANSWER]`` (the answer is dropped unless
    ``answers`` is true), or code as ``parse_answer`` recognises it. If no action is labelled, a
    complete ``execute[...]`` anywhere in the text counts. If there is no action, the result's
    ``reason`` is NO_ACTION_REASON.
    """
    rest, tagged_thought = split_thought(text)
    if not rest:
        return empty_answer(tagged_thought)
    answer = split_answer(rest)
    text = rest[: answer.length].rstrip()
    thought = "\n\n".join(t for t in (tagged_thought, answer.thought) if t)
    code, reason = None, NO_ACTION_REASON
    if answer.action is not None and not answer.action.lower().startswith("observation"):
        code, reason = parse_action(answer.action, language, answers)
    if code is None and reason != UNCLOSED_REASON:  # the model may have left out the label "Action"
        thought_code = _unlabelled_action(answer.thought or text, language, answers)
        code, reason = (thought_code, "") if thought_code else (None, reason)
    return ParsedAnswer(code, thought, text, reason)


def complete_label(text: str, label: str) -> str:
    """Return an answer that continues ``label`` with the label before it, without thoughts in tags.

    Chat models often repeat the label, or the thought and the label. Such an answer is returned as
    it is.
    """
    rest, _ = split_thought(text)
    has_label = any(s.label.startswith("action") and s.text for s in split_sections(rest))
    return text if has_label or not rest else f"{label} {rest}"


@dataclass(frozen=True, slots=True)
class ReactAnswer:
    """The parts of a ReAct answer.

    ``action`` is None if there is none. Only the first ``length`` characters of the answer count:
    the model invented the rest, such as an observation.
    """

    thought: str
    action: str | None
    length: int


def split_answer(text: str) -> ReactAnswer:
    """Split an answer into its first thought and its first action.

    What follows the action does not count: an observation that the model invented, or further
    thoughts and actions.
    """
    parts = split_sections(text)
    thought, end = "", len(text)
    for number, part in enumerate(parts):
        if part.label.startswith("action") and part.text:
            action, end = part.text, part.end
            following = parts[number + 1] if number + 1 < len(parts) else None
            if _EXECUTE_WORD.fullmatch(action) and _is_input(following):
                assert following is not None
                action, end = following.text, following.end
            return ReactAnswer(thought, action, end)
        if part.label == "observation" and (number or not part.text):
            return ReactAnswer(thought, None, part.start)
        if part.label in ("", "thought") and not thought:
            thought = part.text
    return ReactAnswer(thought, None, end)


def _is_input(section: Section | None) -> bool:
    return section is not None and section.label == "action input" and bool(section.text)


def parse_action(action: str, language: ActionLanguage, answers: bool) -> tuple[str | None, str]:
    """Return the code in the text after ``Action:``, and the reason if there is none.

    The code is None if there is none; otherwise the reason is empty.
    """
    if submitted := _SUBMIT.fullmatch(action):
        return _submission(submitted["inside"] or submitted["word"], answers), ""
    if opening := _EXECUTE.search(action):
        inside = bracket_contents(action, opening.end())
        if inside is None:
            return None, UNCLOSED_REASON
        return (
            (_strip_fence(inside, language), "") if inside.strip() else (None, "execute[] is empty")
        )
    word = _EXECUTE_WORD.match(action)
    parsed = parse_answer(action[word.end() :] if word else action, language)
    return parsed.code, parsed.reason


def _unlabelled_action(text: str, language: ActionLanguage, answers: bool) -> str | None:
    """Return the action in a text without an ``Action:`` label, or None.

    Only unmistakable forms count: ``execute[...]``, ``submit``, and a fenced block in the language.
    """
    if opening := _EXECUTE.search(text):
        inside = bracket_contents(text, opening.end())
        return _strip_fence(inside, language) if inside and inside.strip() else None
    if form := _SUBMIT_FORM.search(text) or _SUBMIT.fullmatch(text):
        return _submission(form["inside"] or form.groupdict().get("word"), answers)
    blocks = list(fenced_blocks(text, language))
    if fenced_submission(blocks) or any(tag in language.tags for tag, _ in blocks):
        return parse_answer(text, language).code
    return None


def bracket_contents(text: str, begin: int) -> str | None:
    """Return the text in the bracket that opens just before ``begin``.

    If the text ends with a bracket, and no other action comes before it, that bracket is the
    closing one. Otherwise it is the balancing bracket outside quotes, or the last bracket of the
    text if none balances. Returns None if there is no closing bracket.
    """
    balanced = _matching_bracket(text, begin)
    last = text.rstrip().rfind("]")
    if last < begin:
        return None
    at_end = last == len(text.rstrip()) - 1
    between = text[balanced + 1 : last] if balanced is not None else ""
    if balanced is None or (at_end and not _NEXT_ACTION.search(between)):
        return text[begin:last]
    return text[begin:balanced]


def _matching_bracket(text: str, at: int) -> int | None:
    """Return the offset of the bracket that closes the one opened before ``at``, or None.

    Brackets in quotes and after a backslash are ignored.
    """
    depth, quote = 1, ""
    while at < len(text):
        sign = text[at]
        if sign == "\\":
            at += 1
        elif quote:
            quote = "" if sign == quote else quote
        elif sign in _QUOTES and text.find(sign, at + 1) >= 0:
            quote = sign
        elif sign in "[]":
            depth += 1 if sign == "[" else -1
            if depth == 0:
                return at
        at += 1
    return None


def _strip_fence(inside: str, language: ActionLanguage) -> str:
    """Return the text of a bracket without a fence or backticks around it."""
    if "```" in inside and (code := parse_answer(inside, language).code):
        return code
    stripped = inside.strip()
    if stripped.startswith("`") and (code := unfenced_code(stripped, language)):
        return code
    return inside.strip("\n")


def _submission(answer: str | None, answers: bool) -> str:
    answer = (answer or "").strip().strip("`\"'")
    return f"submit {answer}" if answers and answer else "submit"
