"""From what a model really writes to the code in it, without changing a character of the code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from intercode.agents.languages import Language

_LABEL = re.compile(
    r"[ \t>#*_-]*(?P<label>thought|action input|action|observation)[ \t]*+#?(?P<number>\d{1,9})?"
    r"[ \t*_]*+:[*_]*[ \t]*",
    re.IGNORECASE,
)
_FENCE = re.compile(r"`{3,}|~{3,}")
_IMAGINED_OBSERVATION = re.compile(r"\sObservation(?: \d+)?:\s")
_NEXT_ACTION = re.compile(r"\sAction(?: \d+)?:\s")


@dataclass(frozen=True, slots=True)
class Section:
    """One labelled part of an answer. ``label`` is in lower case, empty for what stands before the
    first; ``number`` is None where it has none; ``start`` is where its label begins, ``end`` where
    the next one does, both counted in characters of the whole text."""

    label: str
    number: int | None
    text: str
    start: int
    end: int


def split_sections(text: str) -> list[Section]:
    """The parts of an answer in order; without any label the whole of it.

    Labels count at the beginning of a line, with or without Markdown around them, and not inside a
    fenced block that is closed.
    """
    marks = _find_labels(text, fences=True)
    bounds = [start for start, _, _, _ in marks] + [len(text)]
    first = [Section("", None, text[: bounds[0]].strip(), 0, bounds[0])]
    rest = [
        Section(label, number, text[begins:end].strip(), start, end)
        for (start, begins, label, number), end in zip(marks, bounds[1:], strict=True)
    ]
    return [s for s in first if s.text or not rest] + rest


def _find_labels(text: str, fences: bool) -> list[tuple[int, int, str, int | None]]:
    """(where a label begins, where its text begins, label, number) for each."""
    found = []
    at, inside = 0, False
    for line in text.splitlines(keepends=True):
        match = None if inside else _LABEL.match(line)
        if match is not None:
            number = None if match["number"] is None else int(match["number"])
            found.append((at, at + match.end(), match["label"].lower(), number))
        if fences and len(_FENCE.findall(line)) % 2:
            inside = not inside
        at += len(line)
    return _find_labels(text, fences=False) if inside else found


def unfenced_action(text: str) -> str:
    """The action in an answer without fences: what stands before an observation that was imagined,
    else behind the first ``Action:`` that says anything, else before the first label."""
    parts = split_sections(text)
    acted = [s.text for s in parts if s.label.startswith("action") and s.text]
    first = parts[0].text if not parts[0].label else ""
    imagined_next = len(parts) > 1 and parts[1].label == "observation"
    said = first if not acted or (first and imagined_next) else acted[0]
    imagined = _IMAGINED_OBSERVATION.search(said)
    if imagined is not None and _NEXT_ACTION.search(said, imagined.end()):
        return said[: imagined.start()].strip()
    return said


_THOUGHT = re.compile(
    r"^[ \t]*<(think|thinking|thought|reasoning)>(.*?)(?:</\1>|\Z)",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_UNOPENED_THOUGHT = re.compile(r"\A(.*)</(?:think|thinking|thought|reasoning)>", re.DOTALL | re.I)
_OPENING = re.compile(
    r"(?P<lead>[ \t>]*(?:(?:[-*+]|\d+[.)])[ \t]+)?)(?P<fence>`{3,}|~{3,})(?P<info>[^`]*)"
)
_LATE_OPENING = re.compile(r"(?P<lead>[^`]+)(?P<fence>`{3,})(?P<info>[\w.#+-]*)\s*")
_INLINE = re.compile(r"(?P<fence>`{3,})(?P<code>(?:(?!`{3}).)+?)(?P=fence)(?!`)")
_CODE_LABEL = re.compile(r"\A(?:command|code|bash|shell|sql|python)[ \t]*:[ \t]*(?=\S)", re.I)
_BACKTICKED = re.compile(r"`([^`]+)`")
_SUBMIT = re.compile(r"submit(?:[ \t]+\S+)?")
_SHELL_PROMPT = re.compile(r"^[ \t]*\$[ \t]+", re.MULTILINE)
_SENTENCES = re.compile(r"[A-Z].*[.?!:)]", re.DOTALL)

EMPTY_ANSWER_REASON = "the answer was empty"
ONLY_THOUGHTS_REASON = "the answer held thoughts and nothing else"
EMPTY_BLOCK_REASON = "the block of code in the answer is empty"
NO_BLOCK_REASON = "there is no block of code in the answer"


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """What an answer says: the code (None: there is none), what the model thought aloud, and the
    text that stays in the conversation. ``why``: the reason where there is no code. ``left_out``:
    what the turn's context has to tell of the answer besides."""

    code: str | None
    thought: str
    text: str
    reason: str = ""
    context: Mapping[str, Any] = field(default_factory=dict)


def parse_answer(text: str, language: Language) -> ParsedAnswer:
    """Find the one action in an answer.

    Thoughts in tags are set aside first. Where something stands behind ``Action:``, that is looked
    at before the rest. The first fenced block in the language counts, else the first without a
    language; a block in another language never does. Without any fence the whole answer counts if
    the language takes it for code. Case, blanks and line breaks inside are kept.
    """
    rest, thought = split_thought(text)
    if not rest:
        return ParsedAnswer(
            None, thought, rest, ONLY_THOUGHTS_REASON if thought else EMPTY_ANSWER_REASON
        )
    blocks = list(fenced_blocks(rest, language))
    for place in _candidate_blocks(rest, blocks, language):
        for wanted in (language.tags, ("",)):
            for tag, code in place:
                if tag in wanted and code.strip():
                    return ParsedAnswer(_trim_code(code), thought, rest)
    if blocks:
        tags = sorted({tag for tag, _ in blocks if tag not in (*language.tags, "")})
        other = f"the code in the answer is marked as {', '.join(tags)}, not as {language.tags[0]}"
        why = other if tags else EMPTY_BLOCK_REASON
        return ParsedAnswer(None, thought, rest, why)
    said = unfenced_action(rest)
    bare = unfenced_code(said, language)
    if bare is None:
        bare = unfenced_code(_leading_code(said, language), language)
    return ParsedAnswer(bare, thought, rest, "" if bare else NO_BLOCK_REASON)


def unfenced_code(text: str, language: Language) -> str | None:
    """The code in a text without fences, without a label or backticks around it; None where the
    language does not take it for code."""
    bare = _CODE_LABEL.sub("", text, count=1)
    if quoted := _BACKTICKED.fullmatch(bare):
        bare = quoted[1]
    if _SUBMIT.fullmatch(bare) or (bare and language.is_code(bare)):
        return _trim_code(bare)
    return None


def _leading_code(text: str, language: Language) -> str:
    """The first paragraphs of a text if they are code and all that follow are sentences."""
    first, *rest = re.split(r"\n[ \t]*\n", text)
    while rest and language.is_code(rest[0].strip()):
        first += f"\n\n{rest.pop(0)}"
    return first if all(_SENTENCES.fullmatch(part.strip()) for part in rest) else ""


def _candidate_blocks(
    text: str, blocks: list[tuple[str, str]], language: Language
) -> Iterator[list[tuple[str, str]]]:
    """The blocks behind each ``Action:`` where there are such, then all of them."""
    if blocks:
        for section in split_sections(text):
            if section.label.startswith("action"):
                yield list(fenced_blocks(section.text, language))
    yield blocks


def split_thought(text: str) -> tuple[str, str]:
    """(the answer, the thoughts) of a text with thinking tags.

    A tag that is never closed hides all that follows it (the answer was cut while thinking); one
    that is never opened hides all before it (some chat templates open it themselves).
    """
    thoughts = []

    def keep(match: re.Match[str]) -> str:
        thoughts.append(match[2].strip())
        return ""

    rest = _THOUGHT.sub(keep, text)
    if not thoughts and (match := _UNOPENED_THOUGHT.match(rest)):
        thoughts.append(match[1].strip())
        rest = rest[match.end() :]
    return rest.strip(), "\n\n".join(t for t in thoughts if t)


def fenced_blocks(text: str, language: Language) -> Iterator[tuple[str, str]]:
    """Every fenced block as (language tag in lower case, code), in order.

    A block closes at a line that holds nothing but at least as many of the fence's characters
    (CommonMark 0.31, section 4.5), or at the end of the text; a block on one line is one too.
    """
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        line = lines[at]
        opening = _OPENING.fullmatch(line) or _LATE_OPENING.fullmatch(line)
        if opening is None:
            for match in _INLINE.finditer(line):
                yield _parse_inline_block(match["code"], language)
            at += 1
            continue
        body, at = _read_block(lines, at + 1, opening["fence"], opening["lead"])
        tag, head = _parse_info(opening["info"].strip(), language, bool(body.strip()))
        yield tag, head or body


def _read_block(lines: list[str], at: int, fence: str, lead: str) -> tuple[str, int]:
    """The block's code, and the number of the line after it."""
    mark, least = re.escape(fence[0]), len(fence)
    closing = re.compile(rf"[ \t>]*{mark}{{{least},}}[ \t\r]*")
    closing_late = re.compile(rf"(.*[^{mark}]){mark}{{{least}}}[ \t\r]*")
    body: list[str] = []
    while at < len(lines):
        line = lines[at]
        at += 1
        if closing.fullmatch(line):
            break
        line = _unindent(line, lead)
        if late := closing_late.fullmatch(line):  # code and fence on one line, as models write it
            body.append(late[1].rstrip())
            break
        body.append(line.removesuffix("\r"))
    return "\n".join(body), at


def _unindent(line: str, lead: str) -> str:
    """The line without what stood before the fence: quote marks, or as many blanks at most."""
    if ">" in lead and not lead.strip(" \t>"):
        return line.removeprefix(lead)
    width = len(lead) if not lead.strip(" \t-*+.)0123456789") else 0
    blank = len(line) - len(line.lstrip(" \t"))
    return line[min(blank, width) :]


def _parse_info(info: str, language: Language, has_body: bool) -> tuple[str, str]:
    """(tag, code) of what stands behind an opening fence: a language's name, or already code."""
    word, _, rest = info.partition(" ")
    tag = word.lower().strip("{.}")
    if tag in language.tags and rest.strip() and not has_body:
        return tag, rest.strip()
    if " " in info and tag not in language.tags and not has_body:
        return "", info
    return tag, ""


def _parse_inline_block(code: str, language: Language) -> tuple[str, str]:
    """(tag, code) of a block on one line, where a first word that is a language's name is a tag."""
    word, _, rest = code.partition(" ")
    if word.lower() in language.tags and rest.strip():
        return word.lower(), rest.strip()
    return "", code.strip()


def _trim_code(code: str) -> str:
    """The code without blank lines around it, nor a shell's ``$ `` where the first line has one."""
    lines = code.split("\n")
    written = [at for at, line in enumerate(lines) if line.strip(" \t")]
    kept = "\n".join(lines[written[0] : written[-1] + 1]) if written else ""
    return _SHELL_PROMPT.sub("", kept) if _SHELL_PROMPT.match(kept) else kept
