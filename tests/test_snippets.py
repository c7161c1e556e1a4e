"""Every snippet of the README and of the documentation runs, and prints what the page shows.

A snippet that cannot run in CI says why in the comment before it::

    python tests/test_snippets.py   # lists those, and counts all
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import requirements
from support.answering_endpoint import AnsweringEndpoint
from support.snippets import NOT_RUN, Reader, Snippet, commands, compare, read_snippets

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    *sorted(ROOT.glob("packages/*/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
FOLLOWED = {
    ROOT / "docs/guides": "tests/guides",
    ROOT / "docs/tutorials": "tests/test_notebooks.py",
}
"""Directories of pages whose snippets other tests run step by step."""
INPUTS = {
    "data": "INTERCODE_DATA",
    "recorded": "INTERCODE_RECORDED",
    "reference": "INTERCODE_REFERENCE",
}
"""Needs that are directories, with the variables by which snippets find them."""


def snippets(page: Path) -> list[Snippet]:
    """Return the snippets of a page."""
    try:
        return list(read_snippets(page.read_text("utf-8")))
    except ValueError as e:
        raise ValueError(f"{page.relative_to(ROOT)}, {e}") from e


@pytest.mark.slow("long")
@pytest.mark.sandbox
@pytest.mark.snippets
@pytest.mark.parametrize(
    "page",
    [
        page
        for page in PAGES
        if page.parent not in FOLLOWED
        and any(not s.reason and not s.runner for s in snippets(page))
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
        monkeypatch.setenv("INTERCODE_CONFIG", str(tmp_path))
        needs = {need for snippet in snippets(page) for need in snippet.needs}
        for need, variable in INPUTS.items():
            if need in needs and not requirements.why_missing(need):
                monkeypatch.setenv(variable, str(requirements.input_directory(variable, need)))
        reader = Reader(tmp_path, ROOT, endpoint.url)
        missing = set()
        for snippet in snippets(page):
            lacks = {need for need in snippet.needs if requirements.why_missing(need)}
            missing |= lacks
            if not (snippet.reason or snippet.runner or lacks):
                try:
                    reader.run(snippet)
                except Exception as e:
                    raise AssertionError(f"{page.name}:{snippet.line}: {e}") from e
    for need in sorted(missing):
        requirements.require(need)  # the other snippets have run


def read_and_submit(messages: list[dict[str, Any]]) -> str:
    """Answer as a model that looks around in the first turn and then submits."""
    is_first = all(message["role"] != "assistant" for message in messages)
    return f"```bash\n{'ls -la' if is_first else 'submit'}\n```"


def list_snippets() -> Iterator[tuple[str, str]]:
    """Yield the place of each snippet, and whether it is run, or why not."""
    for page in PAGES:
        for snippet in snippets(page):
            kind = f"not run: {snippet.reason}" if snippet.reason else "run"
            kind = f"run by {snippet.runner}" if snippet.runner else kind
            kind = "a file that others use" if snippet.file and kind == "run" else kind
            kind = f"run by {FOLLOWED[page.parent]}" if page.parent in FOLLOWED else kind
            yield f"{page.relative_to(ROOT)}:{snippet.line}", kind


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_snippet_is_left_out_for_a_reason_of_the_list_only(page: Path) -> None:
    for snippet in snippets(page):
        place = f"{page.relative_to(ROOT)}:{snippet.line}"
        assert snippet.reason in ("", *NOT_RUN), f"{place}: run it ({snippet.reason})"
        assert set(snippet.needs) <= requirements.CHECKS.keys(), place
        if snippet.runner:
            text = "".join((ROOT / name).read_text("utf-8") for name in snippet.runner.split())
            lines = [command.split("  #")[0].strip() for command, _ in commands(snippet.body)]
            named = page.relative_to(ROOT).as_posix() in text
            assert named or (lines and all(line in text for line in lines)), place


def test_snippets_are_found_with_their_comments_and_output() -> None:
    found = list(
        read_snippets(
            "<!-- not run: needs several machines -->\n```sh\nx\n```\n\n"
            "```python\nprint(1)\n```\n\n```\n1\n```\n"
            "<!-- needs: data, docker -->\n<!-- setup: a = 1\nb = 2 -->\n```python\na\n```\n"
            "```toml\n# run.toml\nx = 1\n```\n"
        )
    )
    assert [(s.line, s.reason, s.output, s.setup, s.needs, s.file) for s in found] == [
        (2, "needs several machines", None, "", (), ""),
        (6, "", "1\n", "", (), ""),
        (16, "", None, "a = 1\nb = 2", ("data", "docker"), ""),
        (19, "", None, "", (), "run.toml"),
    ]
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
