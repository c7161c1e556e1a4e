"""The reward of Bash as the authors' code computes it."""

from __future__ import annotations

import math
import re
from collections import Counter

from intercode.core.types import Score, State, Task

CHECKED_CODES = ("A", "??", "C")


def original(_task: Task, agent: State, gold: State) -> Score:
    """Score Bash as the authors' code does, with its faults and roundings.

    This is their ``get_reward`` at c3e46d8. The starting value is 0.01, and each part is rounded to
    two decimals. Entries of ``git status`` are compared as (path, code). Only entries that both
    have, with code A, ?? or C, are compared by checksum. The similarity falls back to equality if
    there is no vocabulary or no gold output.
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
