"""From a plan as models write it to its steps."""

from __future__ import annotations

import re

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
    """The steps of a plan, in order.

    Lines that begin with a number (``1.``, ``1)``, ``(1)``, ``Step 1:``, in bold or as headings),
    else with a letter, else with a bullet, begin a step; lines that follow belong to it until the
    next one or a paragraph that is not indented. Where the numbers begin again, what follows says
    the same once more and is left out. Numbers within one line count where no line begins with
    one. A plan without any of that is one step; an empty one has none.
    """
    for kind in ("number", "letter", "bullet"):
        found = _steps_by_marker(text, kind)
        if len(found) < 2 and (in_line := _inline_steps(text)):
            return in_line
        if found:
            return found
    return [text.strip()] if text.strip() else []


def _steps_by_marker(text: str, kind: str) -> list[str]:
    steps: list[list[str]] = []
    base, last, open_step, inside = None, 0, False, False
    for line in text.splitlines():
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
    """Whether a line after an empty one begins a paragraph of its own."""
    begins = bool(line.strip()) and not line[0].isspace() and not _FENCE.match(line)
    return begins and not inside and not step[-1].strip() and len(step) > 1


def _strip_bold(step: str) -> str:
    return _BOLD.sub(r"\1", step).strip()


def _inline_steps(text: str) -> list[str]:
    """Steps that stand one after another in a line, numbered from 1 without a gap."""
    marks: list[re.Match[str]] = []
    for mark in _INLINE_NUMBER.finditer(text):
        if int(mark[1]) == len(marks) + 1:
            marks.append(mark)
    ends = [m.start() for m in marks[1:]] + [len(text)]
    if len(marks) < 2:
        return []
    return [_strip_bold(text[m.end() : end]) for m, end in zip(marks, ends, strict=True)]


def parse_plan_original(text: str) -> list[str]:
    """The steps that the authors' runner finds: one begins behind digits, a dot and a blank or line
    break, wherever they stand, and ends before the next blank with digits and a dot behind it."""
    steps, at = [], 0
    while begins := re.compile(r"\d+\.\s").search(text, at):
        ends = re.compile(r"\s\d+\.").search(text, begins.end())
        at = len(text) if ends is None else ends.start()
        steps.append(text[begins.end() : at])
    return steps
