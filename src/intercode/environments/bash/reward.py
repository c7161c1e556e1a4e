"""The paper's Bash reward: as the paper meant it, and as the authors' code computes it.

Paper (arXiv 2306.14898, section 3.2): 0.34 · similarity of the outputs + 0.33 · (1 − erf(n)), n =
changes that only one side made + 0.33 · correct / |A ∩ G| of the changes that both made, 1 where
there are none. The similarity of two texts is the cosine of their TF-IDF vectors.
"""

from __future__ import annotations

import math
import re
from collections import Counter

from intercode.core.types import TRUNCATED_CHANGES, FileEntry, Score, State, Task

CHECKED_CODES = ("A", "??", "C")
_MAX_DIFFERENT_SIMILARITY = 0.99  # of outputs that differ


def standard(task: Task, agent: State, gold: State) -> Score:
    """Return the paper's formula without the faults of the authors' code.

    Outputs are equal (similarity 1) when they have the same lines in any order, apart from blanks
    inside a line. Otherwise their similarity is the TF-IDF cosine over blank-separated words, at
    most 0.99. A change is a path with its kind (file, dir, link, ..., gone). A change that both
    made is correct when content, link target and permissions agree too. An agent with more changes
    than can be listed gets nothing for them.

    ``task.data["compare"]`` says where outputs are compared in another way; see COMPARISONS.
    """
    similarity = _similarity(task.data.get("compare"), agent, gold)
    a = {path: entry.kind for path, entry in agent.files.items()}.items()
    g = {path: entry.kind for path, entry in gold.files.items()}.items()
    different, common = a ^ g, a & g
    correct = sum(same_entry(agent.files[path], gold.files[path]) for path, _ in common)
    listed = TRUNCATED_CHANGES not in agent.files
    parts = {
        "output": 0.34 * similarity,
        "changes": listed * 0.33 * (1 - math.erf(len(different))),
        "content": listed * 0.33 * (correct / len(common) if common else 1.0),
    }
    details = {
        "missed": sorted(path for path, _ in g - a),
        "extra": sorted(path for path, _ in a - g),
        "wrong": sorted(p for p, _ in common if not same_entry(agent.files[p], gold.files[p])),
        "similarity": similarity,
    }
    return Score(round(sum(parts.values()), 12), parts, details)


def output_similarity(a: str, b: str) -> float:
    """Return 1 for the same lines in any order, else the cosine over words, at most 0.99."""
    left, right = _lines(a), _lines(b)
    if Counter(left) == Counter(right):
        return 1.0
    value = term_cosine(" ".join(left).split(), " ".join(right).split())
    return min(value or 0.0, _MAX_DIFFERENT_SIMILARITY)


COMPARISONS = {
    "order": "the same lines in the same order",
    "exact": "the same text, blanks too, apart from line ends after it",
    "mentions": "each line of the gold's output occurs in a line of its own, whatever else is said",
    "directory": "the shell ends in the same directory, whatever is printed",
    "changes": "nothing: only the lasting changes are judged",
}
"""What a task may ask for by ``data["compare"]``, and what then earns the part of the output in
full. ``mentions`` and ``directory`` earn nothing of it otherwise."""


def _similarity(compare: object, agent: State, gold: State) -> float:
    """Return the similarity of two outputs, by the comparison that the task asks for."""
    output = agent.output if agent.answer is None else agent.answer
    left, right = output or "", gold.output or ""
    if compare == "changes":
        return 1.0
    if compare == "directory":
        return float(agent.cwd == gold.cwd)
    if compare == "mentions":
        return float(_mentions(_lines(left), _lines(right)))
    similarity = output_similarity(left, right)
    differs = (compare == "order" and _lines(left) != _lines(right)) or (
        compare == "exact" and left.rstrip("\r\n") != right.rstrip("\r\n")
    )
    return min(similarity, _MAX_DIFFERENT_SIMILARITY) if differs else similarity


def _mentions(lines: list[str], expected: list[str]) -> bool:
    """Return whether each expected line occurs in a line of its own, not as a part of a longer
    path or word."""
    left = list(lines)
    for text in filter(None, expected):
        whole = re.compile(rf"(?<![\w/.-]){re.escape(text)}(?![\w/-])")
        found = next((line for line in left if whole.search(line)), None)
        if found is None:
            return False
        left.remove(found)
    return True


def _lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.strip().splitlines()]


def same_entry(a: FileEntry, b: FileEntry) -> bool:
    """Return whether two changes of one path are equal. Times and owners do not count."""
    if a.kind == "link":
        return a.target == b.target
    return (a.mode, a.size, a.digest) == (b.mode, b.size, b.digest)


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
