"""Prompt files and their placeholders."""

from __future__ import annotations

from pathlib import Path

import pytest

from intercode.agents.prompt import Prompt, load_prompt
from intercode.core.errors import ConfigError


def test_sections_are_filled_and_values_are_left_alone() -> None:
    prompt = Prompt("a comment\n== task ==\nDo: $query\n\n$notes\n== retry ==\nPay $$5\n")
    assert prompt.fill("task", {"query": "count $HOME and ${x} == y =="}) == (
        "Do: count $HOME and ${x} == y =="
    )
    assert prompt.fill("retry", {}) == "Pay $5"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("== task ==\nx", "no section 'retry'"),
        ("== retry ==\n$qeury", "unknown placeholders: qeury"),
        ("== retry ==\ncosts $ 5", "write \\$\\$"),
    ],
)
def test_the_error_of_an_invalid_prompt_names_the_fault(
    tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "mine.txt"
    file.write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        load_prompt(file, "try_again.txt", ("retry",))
    assert "mine.txt" in str(caught.value)


def test_a_prompt_file_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match=r"absent\.txt"):
        load_prompt("absent.txt", "try_again.txt", ())
