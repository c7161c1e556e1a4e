"""Changes texts and makes new ones that are like the texts of a task."""

from __future__ import annotations

from collections.abc import Sequence

from intercode_lab.families.choices import WORDS, Choices
from intercode_sandbox.lines import split_lines

_COMMENT = {
    "c": "//", "h": "//", "java": "//", "js": "//", "php": "//", "sh": "#", "py": "#",
}  # fmt: skip
"""How a comment begins, by the extension of source files, of which only comments are changed."""
_FIXED = frozenset(("json", "html", "sql", "xml"))
"""Extensions of files whose syntax a new line would break."""
_MAX_LINES = 60


def extension(name: str) -> str:
    """Return what follows the last dot of a name, or an empty string for a name without one."""
    stem, dot, last = name.rpartition(".")
    return last if dot and stem else ""


def edited_text(
    name: str, text: str, words: Sequence[str], choices: Choices, blank_lines: bool = False
) -> str:
    """Return the text of a file with some lines changed, added, moved and removed.

    Lines of paths, of tables with commas and of source code keep their form. ``words`` are put into
    new lines, ``blank_lines`` between them. The text stays as it is if its form is not known.
    """
    kind, end = extension(name).lower(), "\n" if text.endswith("\n") else ""
    if kind in _FIXED:
        return text
    lines = split_lines(text)
    if kind in _COMMENT:
        at = len(lines) if choices.chance(60) else choices.index(len(lines) + 1)
        comment = f"{_COMMENT[kind]} {' '.join(choices.some((*words, *WORDS), 3))}"
        at = max(at, 1) if lines and lines[0].startswith(("#!", "<?")) else at
        added = [comment, "", comment] if blank_lines and choices.chance(50) else [comment]
        return "\n".join([*lines[:at], *added, *lines[at:]]) + (end or "\n")
    filled = [line for line in lines if line.strip()]
    if filled and all(line.startswith("/") for line in filled):
        return text
    if len(filled) > 1 and all("," in line for line in filled):
        return "\n".join(_edited_table(lines, choices)) + end
    edited = _edited_lines(lines, words, choices)
    for blank in ("", "   ") if blank_lines else ():
        edited.insert(choices.index(len(edited) + 1), blank)
    return "\n".join(edited) + (end or "\n" * (not text))


def _edited_table(lines: list[str], choices: Choices) -> list[str]:
    """Return a table in another order, with lines that mix the columns of others."""
    rows = [line.split(",") for line in lines[1:] if line.strip()]
    width = min((len(row) for row in rows), default=0)
    for _ in range(2 if rows else 0):
        rows.append([choices.one(rows)[column] for column in range(width)])
    new = [",".join(row) for row in rows]
    return [lines[0], *choices.some(new, len(new))]


def _edited_lines(lines: list[str], words: Sequence[str], choices: Choices) -> list[str]:
    lines = list(lines[:_MAX_LINES])
    if len(lines) > 2 and choices.chance(30):
        del lines[choices.index(len(lines))]
    for _ in range(2 + choices.index(3)):
        at = choices.index(len(lines) + 1)
        if lines and choices.chance(35):
            lines.insert(at, choices.one(lines))
        else:
            lines.insert(at, new_line(words, choices))
    return lines


def new_line(words: Sequence[str], choices: Choices) -> str:
    """Return a line of several words. One of ``words`` is in it in a third of all cases."""
    chosen = choices.some(WORDS, 2 + choices.index(4))
    if words and choices.chance(35):
        chosen.insert(choices.index(len(chosen) + 1), choices.one(words))
    if choices.chance(20):
        chosen.append(str(choices.index(900) + 100))
    return " ".join(chosen)


def new_text(size: int, words: Sequence[str], choices: Choices) -> str:
    """Return a text of exactly ``size`` characters, in lines."""
    lines: list[str] = []
    length = 0
    while length < size:
        lines.append(new_line(words, choices))
        length += len(lines[-1]) + 1
    text = "".join(f"{line}\n" for line in lines)[:size]
    return text[:-1] + "\n" if text else text
