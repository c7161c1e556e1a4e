"""Every snippet of the README and of the documentation runs, and prints what the page shows.

A snippet that cannot run here says why in the comment before it. The summary counts both.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from support.snippets import Reader, Snippet, compare, read_snippets

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FOLLOWED = ROOT / "docs/guides"
"""Guides, whose snippets tests/guides runs step by step."""


def snippets(page: Path) -> list[Snippet]:
    """Return the snippets of a page."""
    try:
        return list(read_snippets(page.read_text("utf-8")))
    except ValueError as e:
        raise ValueError(f"{page.relative_to(ROOT)}, {e}") from e


@pytest.mark.slow
@pytest.mark.sandbox
@pytest.mark.snippets
@pytest.mark.parametrize(
    "page",
    [
        page
        for page in PAGES
        if page.parent != FOLLOWED and any(not s.reason for s in snippets(page))
    ],
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_the_snippets_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "benchmarks").symlink_to(ROOT / "benchmarks")
    reader = Reader(tmp_path, ROOT)
    for snippet in snippets(page):
        if not snippet.reason:
            try:
                reader.run(snippet)
            except Exception as e:
                raise AssertionError(f"{page.name}:{snippet.line}: {e}") from e


def test_every_snippet_that_is_not_run_says_why() -> None:
    counts: Counter[str] = Counter()
    for page in PAGES:
        for snippet in snippets(page):
            kind = "file" if snippet.file else snippet.reason or "run"
            counts["followed by tests/guides" if page.parent == FOLLOWED else kind] += 1
    print("\n".join(f"{count:4} {kind}" for kind, count in counts.most_common()))
    assert counts["run"] > sum(counts.values()) / 4


def test_snippets_are_found_with_their_comments_and_output() -> None:
    found = list(
        read_snippets(
            "<!-- not run: needs a model -->\n```sh\nx\n```\n\n"
            "```python\nprint(1)\n```\n\n```\n1\n```\n"
            "<!-- setup: a = 1\nb = 2 -->\n```python\na\n```\n```toml\n# run.toml\nx = 1\n```\n"
        )
    )
    assert [(s.line, s.reason, s.output, s.setup, s.file) for s in found] == [
        (2, "needs a model", None, "", ""), (6, "", "1\n", "", ""),
        (15, "", None, "a = 1\nb = 2", ""), (18, "", None, "", "run.toml"),
    ]  # fmt: skip
    with pytest.raises(ValueError, match="line 1: a block of commands"):
        list(read_snippets("```\nintercode eval\n```\n"))


def test_shown_output_is_compared() -> None:
    compare("a 1.5 s\nb \n", "a ... s\nb\n")
    with pytest.raises(AssertionError, match="but this was printed"):
        compare("a\n", "b\n")
