"""From a ReAct answer to its thought and its one action."""

from __future__ import annotations

import re
from dataclasses import dataclass

from intercode.agents.labels import Section, split_sections
from intercode.agents.languages import Language
from intercode.agents.parsing import (
    EMPTY_ANSWER_REASON,
    ONLY_THOUGHTS_REASON,
    ParsedAnswer,
    fenced_blocks,
    parse_answer,
    split_thought,
    unfenced_code,
)

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
