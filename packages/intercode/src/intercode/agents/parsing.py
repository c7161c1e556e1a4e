"""Extracts the code from a model's answer without changing a character of it: in fences by the
language's tags, and without fences by what its code looks like."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from intercode.core.types import ActionLanguage, Brief, Terminal
from intercode.core.types.descriptions import load_function

EMPTY_BLOCK_REASON = "the block of code in the answer is empty"
NO_BLOCK_REASON = "there is no block of code in the answer"
CHANGES_NOTE = "Only the lasting changes are judged, not what is printed or returned."


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """The content of an answer: the code (None if there is none), the thoughts, and the text that
    stays in the conversation. ``reason`` says why there is no code. ``context`` is added to the
    turn's context."""

    code: str | None
    thought: str
    text: str
    reason: str = ""
    context: Mapping[str, Any] = field(default_factory=dict)


def empty_answer(thought: str) -> ParsedAnswer:
    """Return the content of an answer that holds at most thoughts."""
    reason = "the answer held thoughts and nothing else" if thought else "the answer was empty"
    return ParsedAnswer(None, thought, "", reason)


_CODE_LABEL = re.compile(r"\A(?:command|code|bash|shell|sql|python)[ \t]*:[ \t]*(?=\S)", re.I)
_BACKTICKED = re.compile(r"`([^`]+)`")
_SUBMIT = re.compile(r"submit(?:[ \t]+\S+)?")
_SENTENCES = re.compile(r"[A-Z].*[.?!:)]", re.DOTALL)


def parse_answer(text: str, language: ActionLanguage) -> ParsedAnswer:
    """Find the one action in an answer.

    Thoughts in tags are removed first. The text of an ``Action:`` is searched before the rest. The
    first fenced block in the language counts, else the first without a language; a block in another
    language never counts, unless nothing but ``submit`` is in any block. An answer without a fence
    counts as a whole if the language recognises it as code. Case, blanks and line breaks inside the
    code are kept.
    """
    indented, thought = _split_thought(text)
    rest = indented.strip()
    if not rest:
        return empty_answer(thought)
    blocks = list(fenced_blocks(indented, language))
    for candidates in _candidate_blocks(indented, blocks, language):
        for accepted in (language.tags, ("",)):
            for tag, code in candidates:
                if tag in accepted and code.strip():
                    return ParsedAnswer(_trim_code(code, language), thought, rest)
    if submission := fenced_submission(blocks):
        return ParsedAnswer(submission, thought, rest)
    if blocks:
        tags = sorted({tag for tag, _ in blocks if tag not in (*language.tags, "")})
        message = (
            f"the code in the answer is marked as {', '.join(tags)}, not as {language.tags[0]}"
        )
        reason = message if tags else EMPTY_BLOCK_REASON
        return ParsedAnswer(None, thought, rest, reason)
    action = unfenced_action(rest)
    unfenced = unfenced_code(action, language)
    if unfenced is None:
        unfenced = unfenced_code(_leading_code(action, language), language)
    return ParsedAnswer(unfenced, thought, rest, "" if unfenced else NO_BLOCK_REASON)


def fenced_submission(blocks: Iterable[tuple[str, str]]) -> str | None:
    """Return the submission in the blocks of an answer, whatever their languages; None if any holds
    something else, or none holds anything."""
    contents = {code.strip() for _, code in blocks} - {""}
    return contents.pop() if len(contents) == 1 and all(map(_SUBMIT.fullmatch, contents)) else None


def unfenced_code(text: str, language: ActionLanguage) -> str | None:
    """Return the code in a text without fences, without a label or backticks around it; None if the
    language does not recognise it as code."""
    code = _CODE_LABEL.sub("", text, count=1)
    if quoted := _BACKTICKED.fullmatch(code):
        code = quoted[1]
    if _SUBMIT.fullmatch(code) or (code and language.recognises(code)):
        return _trim_code(code, language)
    return None


def _leading_code(text: str, language: ActionLanguage) -> str:
    """Return the first paragraphs of a text if they are code and all that follow are sentences."""
    first, *rest = re.split(r"\n[ \t]*\n", text)
    while rest and language.recognises(rest[0].strip()):
        first += f"\n\n{rest.pop(0)}"
    return first if all(_SENTENCES.fullmatch(part.strip()) for part in rest) else ""


def _candidate_blocks(
    text: str, blocks: list[tuple[str, str]], language: ActionLanguage
) -> Iterator[list[tuple[str, str]]]:
    """Yield the blocks of each ``Action:``, if there are any, then all blocks."""
    if blocks:
        for section in split_sections(text):
            if section.label.startswith("action"):
                part = _LABEL.sub("", text[section.start : section.end], count=1)
                yield list(fenced_blocks(part, language))
    yield blocks


def _trim_code(code: str, language: ActionLanguage) -> str:
    """Return the code without surrounding blank lines. Of a text from a terminal, return what was
    typed."""
    lines = code.split("\n")
    written = [number for number, line in enumerate(lines) if line.strip(" \t")]
    trimmed = "\n".join(lines[written[0] : written[-1] + 1]) if written else ""
    typed = None if language.terminal is None else typed_code(trimmed, language.terminal)
    return trimmed if typed is None else typed


_THOUGHT = re.compile(
    r"^[ \t]*<(think|thinking|thought|reasoning)>(.*?)(?:</\1>|\Z)",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_UNOPENED_THOUGHT = re.compile(r"\A(.*)</(?:think|thinking|thought|reasoning)>", re.DOTALL | re.I)
_OTHER_TAG = re.compile(r"<(/?)seed:think>|\[(/?)THINK\]|◁(/?)think▷")
"""Tags of some models, which stand for ``<think>``."""
_END_TOKENS = re.compile(r"(?:\s*(?:<\|\w+\|>|</s>|<end_of_turn>|<eos>))+\s*\Z")
"""Special tokens that some servers leave at the end of an answer."""


def split_thought(text: str) -> tuple[str, str]:
    """Return (the answer, the thoughts) of a text with thinking tags.

    A tag that is never closed hides all that follows it: the answer was cut off while thinking. A
    closing tag without an opening one hides all before it: some chat templates open the tag
    themselves.
    """
    rest, thought = _split_thought(text)
    return rest.strip(), thought


def _split_thought(text: str) -> tuple[str, str]:
    """Return what ``split_thought`` returns, with the blanks around the answer."""
    thoughts = []

    def collect(match: re.Match[str]) -> str:
        thoughts.append(match[2].strip())
        return ""

    text = _OTHER_TAG.sub(lambda tag: f"<{''.join(filter(None, tag.groups()))}think>", text)
    rest = _THOUGHT.sub(collect, _END_TOKENS.sub("", text))
    if not thoughts and (match := _UNOPENED_THOUGHT.match(rest)):
        thoughts.append(match[1].strip())
        rest = rest[match.end() :]
    return rest, "\n\n".join(t for t in thoughts if t)


_OPENING = re.compile(
    r"(?P<lead>[ \t>]*(?:(?:[-*+]|\d+[.)])[ \t]+)?)(?P<fence>`{3,}|~{3,})(?P<info>[^`]*)"
)
_LATE_OPENING = re.compile(r"(?P<lead>[^`]+)(?P<fence>`{3,})(?P<info>[\w.#+-]*)\s*")
_INLINE = re.compile(r"(?P<fence>`{3,})(?P<code>(?:(?!`{3}).)+?)(?P=fence)(?!`)")


def fenced_blocks(text: str, language: ActionLanguage) -> Iterator[tuple[str, str]]:
    """Yield every fenced block as (language tag in lower case, code), in order.

    A block closes at a line that holds only the fence's character, at least as many times
    (CommonMark 0.31, section 4.5), or at the end of the text. A block on one line counts as well.
    """
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        line = lines[number]
        opening = _OPENING.fullmatch(line) or _LATE_OPENING.fullmatch(line)
        if opening is None:
            for match in _INLINE.finditer(line):
                yield _parse_inline_block(match["code"], language)
            number += 1
            continue
        body, number = _read_block(lines, number + 1, opening["fence"], opening["lead"], language)
        tag, head = _parse_info(opening["info"].strip(), language, bool(body.strip()))
        yield tag, head or body


def _read_block(
    lines: list[str], number: int, fence: str, lead: str, language: ActionLanguage
) -> tuple[str, int]:
    """Return the block's code, and the number of the line after it.

    The closing fence is indented by three blanks at most, besides the block's own indentation.
    Without such a fence, one that is indented further closes the block, if it has no partner and
    nothing that is indented as far follows. A fence in a here-document, or in triple quotes, is
    code if these and the block end later.
    """
    mark, length = re.escape(fence[0]), len(fence)
    blanks = "[ \t>]*" if ">" in lead else " {0,3}"
    closing = re.compile(rf"{blanks}{mark}{{{length},}}[ \t\r.,;]*")
    closing_late = re.compile(rf"(.*[^\s{mark}][ \t]*){mark}{{{length}}}[ \t\r]*")
    body: list[str] = []
    indented_fences: list[int] = []
    start = number
    for number in range(start, len(lines)):
        line = _unindent(lines[number], lead)
        if closing.fullmatch(line):
            rest = (_unindent(text, lead) for text in lines[number + 1 :])
            end = _open_literal("\n".join(body), language)
            if not _ends_later(end, rest, closing):
                return "\n".join(body), number + 1
        if closing.fullmatch(line.lstrip(" \t")):
            indented_fences.append(number - start)
        if closed := closing_late.fullmatch(line):  # models write code and fence on one line
            return "\n".join([*body, closed[1].rstrip()]), number + 1
        body.append(line.removesuffix("\r"))
    after = lines[start + indented_fences[-1] + 1 :] if indented_fences else []
    if len(indented_fences) % 2 and not any(line.startswith(("    ", "\t")) for line in after):
        return "\n".join(body[: indented_fences[-1]]), start + indented_fences[-1] + 1
    return "\n".join(body), len(lines)


_LITERAL = re.compile(
    r"(?P<end>\"{3}|'{3})(?:.*?(?P=end)|(?P<open>))|#[^\n]*"
    r"|'(?:[^'\\\n]|\\.)*+'|\"(?:[^\"\\\n]|\\.)*+\"",
    re.DOTALL,
)


def _open_literal(code: str, language: ActionLanguage) -> str:
    """Return the text that ends the here-document or the triple quotes in which some code ends;
    empty if it ends in none."""
    rest, word = load_function(language.without_here_documents, lambda text: (text, ""))(code)
    opened = (m["end"] for m in _LITERAL.finditer(rest) if m["open"] is not None)
    return str(word or next(opened, ""))


def _ends_later(end: str, rest: Iterator[str], closing: re.Pattern[str]) -> bool:
    """Return whether a literal ends in the lines of the rest, with a closing fence after it."""
    if not end:
        return False
    ended = any(line.strip("\t\r") == end or (end[0] in "'\"" and end in line) for line in rest)
    return ended and any(closing.fullmatch(line) for line in rest)


def _unindent(line: str, lead: str) -> str:
    """Remove what stood before the opening fence: quote marks, or as many blanks at most."""
    if ">" in lead and not lead.strip(" \t>"):
        return line.removeprefix(lead)
    width = len(lead) if not lead.strip(" \t-*+.)0123456789") else 0
    blank = len(line) - len(line.lstrip(" \t"))
    return line[min(blank, width) :]


def _parse_info(info: str, language: ActionLanguage, has_body: bool) -> tuple[str, str]:
    """Return (tag, code) of the text after an opening fence: a language's name, or code already."""
    word, _, rest = info.partition(" ")
    tag = word.lower().strip("{.}").partition(":")[0]  # before the name of a file
    if tag in language.tags and rest.strip() and not has_body:
        return tag, rest.strip()
    if " " in info and tag not in language.tags and not has_body:
        return "", info
    return tag, ""


def _parse_inline_block(code: str, language: ActionLanguage) -> tuple[str, str]:
    """Return (tag, code) of a block on one line; a first word that names a language is a tag."""
    word, _, rest = code.partition(" ")
    if word.lower() in language.tags and rest.strip():
        return word.lower(), rest.strip()
    return "", code.strip()


_LABEL = re.compile(
    r"[ \t>#*_-]*(thought|action input|action|observation)[ \t]*+#?\d{0,9}"
    r"[ \t*_]*+:[*_]*[ \t]*",
    re.IGNORECASE,
)
_FENCE = re.compile(r"`{3,}|~{3,}")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_IMAGINED_OBSERVATION = re.compile(r"\sObservation(?: \d+)?:\s")
_NEXT_ACTION = re.compile(r"\sAction(?: \d+)?:\s")


@dataclass(frozen=True, slots=True)
class Section:
    """A labelled part of an answer, such as ``Thought 2: ...``.

    ``label`` is in lower case, and empty for the text before the first label. ``start`` is the
    offset of its label, ``end`` that of the next one, in characters of the whole text.
    """

    label: str
    text: str
    start: int
    end: int


def split_sections(text: str) -> list[Section]:
    """Return the parts of an answer in order; an answer without labels is one part.

    Labels count at the beginning of a line, with or without Markdown, and not inside a closed
    fenced block.
    """
    labels = _find_labels(text, fences=True)
    bounds = [match.start() for match in labels] + [len(text)]
    first = [Section("", text[: bounds[0]].strip(), 0, bounds[0])]
    rest = [
        Section(match[1].lower(), text[match.end() : end].strip(), match.start(), end)
        for match, end in zip(labels, bounds[1:], strict=True)
    ]
    return [s for s in first if s.text or not rest] + rest


def _find_labels(text: str, fences: bool) -> list[re.Match[str]]:
    """Return the labels outside closed fenced blocks, or all labels if ``fences`` is False."""
    labels = []
    offset, in_block = 0, False
    for line in _LINE.findall(text):
        match = None if in_block else _LABEL.match(text, offset, offset + len(line))
        if match is not None:
            labels.append(match)
        if fences and len(_FENCE.findall(line)) % 2:
            in_block = not in_block
        offset += len(line)
    return _find_labels(text, fences=False) if in_block else labels


def unfenced_action(text: str) -> str:
    """Return the action in an answer without fences.

    That is the text before an imagined observation, else the text of the first non-empty
    ``Action:``, else the text before the first label.
    """
    parts = split_sections(text)
    actions = [s.text for s in parts if s.label.startswith("action") and s.text]
    first = parts[0].text if not parts[0].label else ""
    imagined_next = len(parts) > 1 and parts[1].label == "observation"
    action = first if not actions or (first and imagined_next) else actions[0]
    imagined = _IMAGINED_OBSERVATION.search(action)
    if imagined is not None and _NEXT_ACTION.search(action, imagined.end()):
        return action[: imagined.start()].strip()
    return action


def full_query(brief: Brief) -> str:
    """Return the query of a task with its notes, and whether only changes are judged."""
    judged = CHANGES_NOTE if brief.only_changes else ""
    return "\n".join(filter(None, (brief.query, brief.notes, judged)))


def scoring_note(brief: Brief) -> str:
    """Return what an agent is told about the scoring of a task, in whole sentences."""
    return CHANGES_NOTE if brief.only_changes else brief.description.judged


_FURTHER_TEXT = "further ] text"  # closes a bracket that is open


def is_complete(
    text: str, code: str, language: ActionLanguage, parse: Callable[[str], str | None]
) -> bool:
    """Return whether the code of an answer, which ``parse`` finds, is the same however the text
    goes on. Code that ends in a here-document may go on after a fence in it."""
    further = [f"{text}\n{_FURTHER_TEXT}"]
    if not text.rstrip(" \t").endswith(("```", "~~~")):
        further.append(text + _FURTHER_TEXT)
    return not _open_literal(code, language) and all(parse(t) == code for t in further)


# Finds the code in a text that was copied from a terminal: prompts, commands and their output.
def typed_code(text: str, terminal: Terminal) -> str | None:
    """Return what was typed at the prompts of a terminal, without the prompts and the output.

    Returns None if the first line does not begin with a prompt.
    """
    prompt = re.compile(rf"[ \t]*{terminal.prompt}(?:[ \t]+|$)")
    continuation = re.compile(rf"[ \t]*{terminal.continuation}(?:[ \t]|$)")
    if not prompt.match(text):
        return None
    knows_open = terminal.is_open is not None
    goes_on = load_function(terminal.is_open, bool)
    typed: list[str] = []
    command = ""
    for line in text.split("\n"):
        is_open = knows_open and bool(command) and goes_on(command)
        if found := (None if is_open and not prompt.match(line) else prompt.match(line)):
            command = line[found.end() :]
            typed.append(command)
        elif (not knows_open or is_open) and (found := continuation.match(line)):
            typed.append(line[found.end() :])
            command += f"\n{typed[-1]}"
        elif is_open:
            typed.append(line)
            command += f"\n{line}"
        else:  # output
            command = ""
    return "\n".join(typed).strip("\n")
