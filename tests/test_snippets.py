"""Every snippet of the README and of the documentation runs, and prints what the page shows.

A snippet that cannot run here says why in the comment before it::

    python tests/test_snippets.py   # lists those, and counts all
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.answering_endpoint import AnsweringEndpoint
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
    with AnsweringEndpoint(read_and_submit) as endpoint:
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        (tmp_path / "prices.toml").write_text('["openai/*"]\ninput = 0.15\noutput = 0.6\n')
        monkeypatch.setenv("INTERCODE_PRICES", str(tmp_path / "prices.toml"))
        reader = Reader(tmp_path, ROOT, endpoint.url)
        for snippet in snippets(page):
            if not snippet.reason:
                try:
                    reader.run(snippet)
                except Exception as e:
                    raise AssertionError(f"{page.name}:{snippet.line}: {e}") from e


def read_and_submit(messages: list[dict[str, Any]]) -> str:
    """Answer as a model that looks around in the first turn and then submits."""
    is_first = all(message["role"] != "assistant" for message in messages)
    return f"```bash\n{'ls -la' if is_first else 'submit'}\n```"


def list_snippets() -> Iterator[tuple[str, str]]:
    """Yield the place of each snippet, and whether it is run, or why not."""
    for page in PAGES:
        for snippet in snippets(page):
            kind = f"not run: {snippet.reason}" if snippet.reason else "run"
            kind = "a file that others use" if snippet.file and not snippet.reason else kind
            kind = "run by tests/guides" if page.parent == FOLLOWED else kind
            yield f"{page.relative_to(ROOT)}:{snippet.line}", kind


def test_most_snippets_run() -> None:
    kinds = [kind for _, kind in list_snippets()]
    left_out = sum(kind.startswith("not run") for kind in kinds)
    assert left_out < len(kinds) / 2


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


if __name__ == "__main__":
    found = list(list_snippets())
    print("\n".join(f"{place:40} {kind}" for place, kind in found if kind.startswith("not run")))
    counts = Counter(kind for _, kind in found)
    print("\n".join(f"{count:4} {kind}" for kind, count in counts.most_common()))
    print(f"{len(found):4} snippets")
