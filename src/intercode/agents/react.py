"""ReAct: a thought and an action in turns, until the model submits (paper, section 4)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from intercode.agents.base import Feedback
from intercode.agents.languages import Language
from intercode.agents.model_agent import ModelAgent
from intercode.agents.observation import ObservationLimits
from intercode.agents.parsing import (
    EMPTY_ANSWER_REASON,
    ONLY_THOUGHTS_REASON,
    ParsedAnswer,
    Section,
    fenced_blocks,
    parse_answer,
    split_sections,
    split_thought,
    unfenced_code,
)
from intercode.core.types import AgentOutput, Brief
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


@dataclass(frozen=True, slots=True)
class ReactAnswer:
    """A ReAct answer: what was thought, what is to be done (None: nothing was said of it), and how
    many characters of it count; the rest was imagined."""

    thought: str
    action: str | None
    length: int


def split_answer(text: str) -> ReactAnswer:
    """The first thought and the first action.

    What follows the action, an observation that the model made up or its next thoughts and actions,
    does not count.
    """
    parts = split_sections(text)
    thought, end = "", len(text)
    for at, part in enumerate(parts):
        if part.label.startswith("action") and part.text:
            action, end = part.text, part.end
            following = parts[at + 1] if at + 1 < len(parts) else None
            if _EXECUTE_WORD.fullmatch(action) and _is_input(following):
                assert following is not None
                action, end = following.text, following.end
            return ReactAnswer(thought, action, end)
        if part.label == "observation" and (at or not part.text):
            return ReactAnswer(thought, None, part.start)
        if part.label in ("", "thought") and not thought:
            thought = part.text
    return ReactAnswer(thought, None, end)


def _is_input(section: Section | None) -> bool:
    return section is not None and section.label == "action input" and bool(section.text)


def parse_react(text: str, language: Language, answers: bool) -> ParsedAnswer:
    """What an answer says.

    An action is ``execute[CODE]``, ``submit``, ``submit[ANSWER]`` (the answer is kept only where
    ``answers`` says that answers count), or code as ``parse_answer`` knows it. Where no action is
    labelled, a whole ``execute[...]`` anywhere in the text counts. ``why`` is NO_ACTION where
    nothing of that kind was said at all.
    """
    rest, tagged = split_thought(text)
    if not rest:
        return ParsedAnswer(
            None, tagged, rest, ONLY_THOUGHTS_REASON if tagged else EMPTY_ANSWER_REASON
        )
    found = split_answer(rest)
    kept = rest[: found.length].rstrip()
    thought = "\n\n".join(t for t in (tagged, found.thought) if t)
    code, why = None, NO_ACTION_REASON
    if found.action is not None and not found.action.lower().startswith("observation"):
        code, why = parse_action(found.action, language, answers)
    if code is None and why != UNCLOSED_REASON:  # the action may stand where the thought should
        thought_code = _unlabelled_action(found.thought or kept, language, answers)
        code, why = (thought_code, "") if thought_code else (None, why)
    return ParsedAnswer(code, thought, kept, why)


def parse_action(action: str, language: Language, answers: bool) -> tuple[str | None, str]:
    """(the code, why there is none) of what stands behind ``Action:``."""
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


def _unlabelled_action(text: str, language: Language, answers: bool) -> str | None:
    """The action in a text that was not labelled as one: only an unmistakable form counts."""
    if opening := _EXECUTE.search(text):
        inside = bracket_contents(text, opening.end())
        return _strip_fence(inside, language) if inside and inside.strip() else None
    if form := _SUBMIT_FORM.search(text) or _SUBMIT.fullmatch(text):
        return _submission(form["inside"] or form.groupdict().get("word"), answers)
    if any(tag in language.tags for tag, _ in fenced_blocks(text, language)):
        return parse_answer(text, language).code
    return None


def bracket_contents(text: str, begin: int) -> str | None:
    """What stands between a bracket that opens before ``begin`` and the one that closes it.

    The closing one is the last of the text where the text ends with it and no other action stands
    between; else the one that balances it outside quotes; else the last there is. None: it is never
    closed.
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
    """Where the bracket closes that is open at ``at``, without regard to quoted ones."""
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


def _strip_fence(inside: str, language: Language) -> str:
    """The code in the brackets without a fence or backticks that a model put around it as well."""
    if "```" in inside and (code := parse_answer(inside, language).code):
        return code
    stripped = inside.strip()
    if stripped.startswith("`") and (code := unfenced_code(stripped, language)):
        return code
    return inside.strip("\n")


def _submission(answer: str | None, answers: bool) -> str:
    answer = (answer or "").strip().strip("`\"'")
    return f"submit {answer}" if answers and answer else "submit"


def parse_action_original(action: str, environment: str) -> tuple[str | None, int]:
    """What the authors' runner executes of an action, and how many characters it leaves out.

    It looks for ``submit`` and nothing else, or ``execute[`` and the last bracket after it; of SQL
    only what stands before the first semicolon. None: it tells the model that this is no code.
    """
    if action == "submit":
        return action, 0
    begin, end = action.find("execute["), action.rfind("]")
    if begin < 0 or end < begin + len("execute["):
        return None, 0
    code = action[begin + len("execute[") : end]
    executed = code.partition(";")[0] if environment == "sql" else code
    return executed, len(code) - len(executed)


class ReactAgent(ModelAgent):
    """``Thought``, then ``Action``: ``execute[...]`` runs code, ``submit`` hands in and is what is
    scored. Where an answer holds a thought and no action, the action is asked for in the same turn,
    as the authors' runner does."""

    name = "react"
    prompt_file = "react.txt"
    required_sections = (*ModelAgent.required_sections, "action")
    original_limits = ObservationLimits(350, 25)
    requests_per_turn = 2  # at the most: for the thought, and for the action where it is missing

    def start(self, brief: Brief) -> None:
        """Begin an episode."""
        self._expects_answer = brief.expects_answer
        super().start(brief)

    def format_feedback(self, feedback: Feedback) -> str:
        """What the model is told after a turn that held code."""
        return self.fill_prompt(
            "observation", observation=self.visible_observation(feedback), turn=self._turns
        )

    def request_move(self) -> AgentOutput:
        """The next thought and action."""
        completion = self.conversation.request_answer()
        parsed = self.parse(completion)
        if parsed.reason != NO_ACTION_REASON:
            return self.make_move(completion, parsed)
        self.add_answer(completion, parsed.text)
        self.conversation.add_user(self.fill_prompt("action", turn=self._turns))
        action = self.conversation.request_answer()
        second = self.parse_action(action)
        thought = "\n\n".join(t for t in (completion.reasoning, parsed.thought) if t)
        whole = ParsedAnswer(second.code, thought, second.text, second.reason, second.context)
        return self.make_move(action, whole, message=completion.text)

    def parse(self, completion: Completion) -> ParsedAnswer:
        """The thought and the action of an answer."""
        if self.feedback == "original":
            return self._parse_original(completion.text)
        return parse_react(completion.text, self.language, self._expects_answer)

    def parse_action(self, completion: Completion) -> ParsedAnswer:
        """The action in the answer to the question for it."""
        text = completion.text.strip()
        label = f"Action {self._turns}:"
        if not text.lower().startswith("action"):
            text = f"{label} {text}"
        if self.feedback == "original":
            return self._parse_original_action(
                "", text.removeprefix(label).partition("\n")[0].strip(), text
            )
        return parse_react(text, self.language, self._expects_answer)

    def _parse_original(self, text: str) -> ParsedAnswer:
        """An answer as the authors' runner splits it, which asked for one that begins behind
        ``Thought N:`` and ends before ``Observation N:``."""
        said = text.partition(f"\nObservation {self._turns}:")[0].strip()
        bare = re.sub(rf"\AThought {self._turns}:[ ]?", "", said)
        parts = bare.split(f"\nAction {self._turns}: ")
        if len(parts) != 2:
            thought = bare.partition("\n")[0]
            return ParsedAnswer(None, thought, thought, NO_ACTION_REASON)
        return self._parse_original_action(parts[0].strip(), parts[1], said)

    def _parse_original_action(self, thought: str, action: str, text: str) -> ParsedAnswer:
        code, left = parse_action_original(action, self.environment)
        cut = {"action": {"characters_left_out": left}} if left else {}
        why = "" if code is not None else "the action holds no execute[...]"
        return ParsedAnswer(code, thought, text, why, cut)
