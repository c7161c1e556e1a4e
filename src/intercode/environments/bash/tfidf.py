"""Similarity of two texts: the cosine of their TF-IDF vectors."""

from __future__ import annotations

import math
import re
from collections import Counter

_WORDS = re.compile(r"\b\w\w+\b")
_UNSHARED_IDF = (
    math.log(3 / 2) + 1.0
)  # smooth idf of a term in one of two documents: ln((1+2)/(1+1)) + 1


def tfidf_cosine(a: str, b: str) -> float | None:
    """What scikit-learn's TfidfVectorizer with its defaults gives for a corpus of two texts.

    Terms are lower-cased runs of two or more word characters; idf is smooth, so a term in both
    texts weighs 1; vectors have length 1. None where neither text holds a term (scikit-learn
    raises there), 0 where only one does.
    """
    return term_cosine(_WORDS.findall(a.lower()), _WORDS.findall(b.lower()))


def term_cosine(a: list[str], b: list[str]) -> float | None:
    """As ``cosine`` for texts that are already split into terms."""
    if not a and not b:
        return None
    left, right = Counter(a), Counter(b)
    dot = sum(n * right[term] for term, n in left.items())
    if not dot:
        return 0.0
    return dot / (_vector_length(left, right) * _vector_length(right, left))


def _vector_length(counts: Counter[str], other: Counter[str]) -> float:
    return math.sqrt(sum((n if t in other else n * _UNSHARED_IDF) ** 2 for t, n in counts.items()))
