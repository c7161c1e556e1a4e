"""Our cosine equals scikit-learn's."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intercode.paper.bash.reward import tfidf_cosine

PIECES = [
    "a",
    "ab",
    "abc",
    "the",
    "file.txt",
    "FILE.TXT",
    "/usr/lib",
    "1",
    "22",
    "333",
    "4.5",
    "-rw-r--r--",
    "_",
    "__",
    "x_y",
    "É",
    "Straße",
    "ΣΣ",
    "ß",
    "ﬁ",
    "İstanbul",
    "東京",
    "東",
    "tokyo٣٤",
    "don't",
    "a-b",
    "a.b",
    "'",
    '"',
    "\t",
    "\n",
    "\r",
    "\x0b",
    "\x00",
    "\x1c",
    "\u2028",
    "\xa0",
    "\\",
    "%",
    "²",
    "x²",
    "नमस्ते",
    "🙂",
    "ok🙂ok",
    "été",
    "\ufeff",
    "ä1",
    "Ⅷ",
    "ªº",
]


def sklearn_cosine(a: str, b: str) -> float | None:
    """Return the reference; None for the ValueError of an empty vocabulary."""
    from sklearn import config_context
    from sklearn.feature_extraction.text import TfidfVectorizer

    try:
        with config_context(assume_finite=True, skip_parameter_validation=True):  # halves the time
            matrix = TfidfVectorizer().fit_transform([a, b])
    except ValueError as e:
        assert "empty vocabulary" in str(e)
        return None
    dense = matrix.toarray()
    return float(dense[0] @ dense[1])


def same(a: str, b: str) -> bool:
    ours, theirs = tfidf_cosine(a, b), sklearn_cosine(a, b)
    if ours is None or theirs is None:
        return ours is theirs
    return abs(ours - theirs) < 1e-9


def random_pairs(count: int) -> Iterator[tuple[str, str]]:
    draw = random.Random(20240607)
    for _ in range(count):
        some = draw.sample(PIECES, draw.randint(1, 12))
        yield tuple(  # type: ignore[misc]
            draw.choice(("", " ")).join(draw.choices(some, k=draw.randint(0, 15))) for _ in "ab"
        )


@pytest.mark.slow
def test_thousands_of_random_pairs() -> None:
    wrong = [(a, b) for a, b in random_pairs(2000) if not same(a, b)]
    assert wrong == []


@pytest.mark.slow
@settings(max_examples=300)
@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text(a: str, b: str) -> None:
    assert same(a, b)


def test_every_pair_of_outputs_of_the_reference(reference_dir: Path) -> None:
    files = sorted((reference_dir / "bash").glob("*.json"))
    assert files, f"no reference in {reference_dir}/bash"
    pairs: set[tuple[str, str]] = set()
    for file in files:
        for row in json.loads(file.read_text()):
            if isinstance(row["obs"], str) and isinstance(row["gold_obs"], str):
                pairs.add((row["obs"], row["gold_obs"]))
    assert len(pairs) > 300
    assert [p for p in pairs if not same(*p)] == []


@pytest.mark.parametrize(
    ("a", "b", "value"),
    [
        ("", "", None),
        ("a b .", "1 - 2", None),
        ("ab", "", 0.0),
        ("", "ab", 0.0),
        ("ab", "cd", 0.0),
        ("Ab cd", "CD aB", 1.0),
        ("ab ab ab", "ab", 1.0),
    ],
)
def test_edges(a: str, b: str, value: float | None) -> None:
    assert tfidf_cosine(a, b) == (None if value is None else pytest.approx(value, abs=1e-12))
