"""Compares what an agent printed with what a gold printed, in the way that a task asks for."""

from __future__ import annotations

import re

from intercode.core.types import State, Task
from intercode.datasets.payloads import BashPayload
from intercode.environments.base.progress.sequences import similarity
from intercode.environments.bash.output_forms import (
    as_count,
    in_form,
    mentions,
    same_count,
    same_lines,
    same_tree,
)
from intercode_sandbox.lines import split_lines

COMPARISONS = {
    "order": "the same lines in the same order",
    "exact": "the same text, blanks too, apart from line ends after it",
    "mentions": "each line of the gold's output occurs in a line of its own, whatever else is said",
    "directory": "the shell ends in the same directory, whatever is printed",
    "changes": "nothing: only the lasting changes are judged",
    "count": "the gold's number, as the only number of one line, with or without words",
    "paths": "the same lines, where paths may be relative, quoted, or end with a slash",
    "matches": "as paths, where lines of files may be numbered",
    "words": "as paths, with other signs between words, labels, and more or fewer digits",
    "fields": "as words, where words of different kinds may change places in a line: numbers, "
    "hashes, paths, and others",
    "tree": "the same names below the same directories, drawn as a tree of any kind",
}
"""What a task may ask for in its column ``compare``, as one word or several. ``order`` and
``mentions`` may stand before a word for a form: that form, with the lines in order, or with the
number in a line of its own whatever else is said. Every task accepts the gold's lines as they
are."""
_FORMS = ("paths", "matches", "words", "fields")
_WORDS = re.compile(r"[\w./-]+|[^\w\s./-]")
_WITHOUT_OUTPUT = {"directory", "changes"}


def accepts_output(task: Task, agent: State, gold: State) -> bool:
    """Return whether the output of an agent is right, by the comparison that its task asks for."""
    asked = _asked(task)
    if "changes" in asked:
        return True
    if "directory" in asked:
        return agent.cwd == gold.cwd
    text, expected = output_of(agent), gold.output or ""
    if "exact" in asked:
        return text.rstrip("\r\n") == expected.rstrip("\r\n")
    if "count" in asked and as_count(expected) is not None:
        return same_count(text, expected, task.query, anywhere="mentions" in asked)
    if "mentions" in asked:
        return mentions(text, expected)
    ordered = "order" in asked
    if same_lines(lines(text), lines(expected), ordered):
        return True
    if "tree" in asked and same_tree(text, expected):
        return True
    form = next((word for word in _FORMS if word in asked), None)
    return form is not None and in_form(form, (text, agent.cwd), (expected, gold.cwd), ordered)


def is_other_form(task: Task, agent: State, gold: State) -> bool:
    """Return whether an output says what the gold's does, in a form that need not be accepted."""
    asked = _asked(task)
    text, expected = output_of(agent), gold.output or ""
    if asked & {"exact", "directory"}:
        return False
    if not expected.strip():
        return True  # the gold prints nothing, and messages are no answer
    if same_count(text, expected, task.query) or same_tree(text, expected):
        return True
    return in_form("fields", (text, agent.cwd), (expected, gold.cwd), "order" in asked)


def output_progress(task: Task, agent: State, gold: State) -> float:
    """Return how much of the gold's output was printed, from 0 for nothing to 1.

    Half for the lines and half for the words that both have, as a share of what either has.
    """
    asked = _asked(task)
    if asked & _WITHOUT_OUTPUT:
        return float(accepts_output(task, agent, gold))
    left, right = lines(output_of(agent)), lines(gold.output or "")
    if not any(left) or not any(right):
        return 0.0
    ordered = bool(asked & {"order", "exact"})
    words, expected = (_WORDS.findall(" ".join(side)) for side in (left, right))
    return (
        similarity(left, right, ordered=ordered) + similarity(words, expected, ordered=ordered)
    ) / 2


def expects_output(task: Task, gold: State) -> bool:
    """Return whether the gold's output, or its directory, is a part of what a task asks for."""
    asked = _asked(task)
    if "directory" in asked:
        return True
    return "changes" not in asked and bool((gold.output or "").strip())


def judges_output(task: Task) -> bool:
    """Return whether an output can keep a task from being solved."""
    return "changes" not in _asked(task)


def output_of(agent: State) -> str:
    """Return the submitted answer, or without one what the last action printed."""
    return (agent.output if agent.answer is None else agent.answer) or ""


def lines(text: str) -> list[str]:
    """Return the lines of a text with single blanks between words."""
    return [" ".join(line.split()) for line in split_lines(text.strip())]


def _asked(task: Task) -> set[str]:
    return set(BashPayload.of(task).compare.split())
