"""The rewards of Bash: as the paper meant success, with partial credit, and as the authors' code
computes it."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any

from intercode.core.types import TRUNCATED_CHANGES, Score, State, Task
from intercode.environments.base.progress.files import FileProgress, same_entry
from intercode.environments.base.progress.partial import partial_credit, retained_share
from intercode.environments.bash.outputs import (
    accepts_output,
    expects_output,
    is_other_form,
    output_progress,
)

CHECKED_CODES = ("A", "??", "C")
_OUTPUT_WEIGHT = 0.4
"""What the output counts in tasks that ask for both output and changes."""
_HARM_TO_ANSWER = 0.2
"""What a change costs beside the answer of a task that asks for no change."""


def standard(task: Task, agent: State, gold: State) -> Score:
    """Return 1 if output and changes are those of the gold, else how far the agent came.

    Outputs are equal when they have the same lines in any order, apart from blanks inside a line.
    ``task.data["compare"]`` says where they are compared in another way; see COMPARISONS. Changes
    are equal when the same paths changed to the same kind, content, link target and permissions.
    An agent with more changes than can be listed has none that are right.

    Below 1, doing nothing earns 0, and so does a state that is farther from the gold's than the
    initial one. The page Partial credit describes the parts.
    """
    theirs, ours = (
        {path: entry.kind for path, entry in state.files.items()}.items() for state in (gold, agent)
    )
    common = ours & theirs
    wrong = sorted(p for p, _ in common if not same_entry(agent.files[p], gold.files[p]))
    missed, extra = (sorted(path for path, _ in paths) for paths in (theirs - ours, ours - theirs))
    details: dict[str, Any] = {"missed": missed, "extra": extra, "wrong": wrong}
    right_output = accepts_output(task, agent, gold)
    right_changes = not (missed or extra or wrong) and TRUNCATED_CHANGES not in agent.files
    files = FileProgress(agent, gold)
    printed = 1.0 if right_output else output_progress(task, agent, gold)
    details["similarity"] = printed
    asks_for_output = expects_output(task, gold)
    if not files.paths:
        weights = float(asks_for_output), _HARM_TO_ANSWER
    else:
        weights = (_OUTPUT_WEIGHT, 1 - _OUTPUT_WEIGHT) if asks_for_output else (0.0, 1.0)
    if right_output and right_changes:
        share = weights[0] if files.paths else 1.0
        return Score(1.0, {"output": share, "changes": 1 - share}, details)
    asks_for_anything = asks_for_output or bool(files.paths)
    if right_changes and asks_for_anything and is_other_form(task, agent, gold):
        value = partial_credit(1.0, right=True)
        return Score(value, {"other_form": value}, details)
    changes = files.share if TRUNCATED_CHANGES not in agent.files else -1.0
    parts = {"output": weights[0] * printed, "changes": weights[1] * changes}
    factor = retained_share(len(files.destroyed))
    if files.paths and changes < 0:
        factor = 0.0  # the files are farther from the gold's than the initial ones
    value = partial_credit(sum(parts.values())) * factor
    scaled = {name: round(partial_credit(1.0) * factor * part, 12) for name, part in parts.items()}
    return Score(round(value, 12), scaled, {**details, "destroyed": files.destroyed})


def original(_task: Task, agent: State, gold: State) -> Score:
    """Return what the authors' ``get_reward`` at c3e46d8 computes, roundings included.

    The starting value is 0.01, and each part is rounded to two decimals. Entries of ``git status``
    are compared as (path, code). Only entries that both have, with code A, ?? or C, are compared by
    checksum. The similarity falls back to equality if there is no vocabulary or no gold output.
    """
    a, g = set(agent.status), set(gold.status)
    missed, extra = g - a, a - g
    files = round(0.33 * (1 - math.erf(len(missed) + len(extra))), 2)
    same = [(path, code) for path, code in a & g if code in CHECKED_CODES]
    correct = sum(agent.checksums.get(path) == gold.checksums.get(path) for path, _ in same)
    content = round(0.33 * (correct / len(same)), 2) if same else 0.33
    similarity = _similarity_or_equality(agent.output, gold.output)
    answer = round(0.33 * similarity, 2)
    value = 0.01
    for part in (files, content, answer):
        value += part
    parts = {"file_diff": files, "file_changes": content, "answer_similarity": answer}
    details = {"missed": sorted(missed), "extra": sorted(extra), "similarity": similarity}
    return Score(value, parts, details)


def _similarity_or_equality(a: str | None, b: str | None) -> float:
    value = None if a is None or b is None else tfidf_cosine(a, b)
    return value if value is not None else float(a == b)


_WORDS = re.compile(r"\b\w\w+\b")
_UNSHARED_IDF = (
    math.log(3 / 2) + 1.0
)  # smooth idf of a term in one of two documents: ln((1+2)/(1+1)) + 1


def tfidf_cosine(a: str, b: str) -> float | None:
    """Return what scikit-learn's TfidfVectorizer with its defaults gives for a corpus of two texts.

    Terms are lower-cased runs of two or more word characters. The idf is smooth, so a term in both
    texts weighs 1. Vectors have length 1. Returns None if neither text has a term (scikit-learn
    raises then), 0 if only one has.
    """
    return term_cosine(_WORDS.findall(a.lower()), _WORDS.findall(b.lower()))


def term_cosine(a: list[str], b: list[str]) -> float | None:
    """Return ``tfidf_cosine`` for texts that are already split into terms."""
    if not a and not b:
        return None
    left, right = Counter(a), Counter(b)
    dot = sum(n * right[term] for term, n in left.items())
    if not dot:
        return 0.0
    return dot / (_vector_length(left, right) * _vector_length(right, left))


def _vector_length(counts: Counter[str], other: Counter[str]) -> float:
    return math.sqrt(sum((n if t in other else n * _UNSHARED_IDF) ** 2 for t, n in counts.items()))
