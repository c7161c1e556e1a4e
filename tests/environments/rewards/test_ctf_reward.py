"""Comparing flags, and which answers count as a submitted flag."""

from __future__ import annotations

import pytest

from intercode.core.types import State, Task
from intercode.environments.base.rewards import REWARDS
from intercode.environments.ctf import reward

FLAG = "picoCTF{Aa_1|/\\|'x'}"
TASK = Task("t/0", "q", flag=FLAG)


def _score(judge: object, answer: str | None, flag: str | None = FLAG) -> float:
    assert callable(judge)
    score = judge(TASK, State(answer=answer), State(answer=flag))
    assert score.parts == {"flag": score.value}
    return float(score.value)


@pytest.mark.parametrize(
    "answer", [FLAG, f"  {FLAG}\n", f"'{FLAG}'", f'"{FLAG}"', f"`{FLAG}`", f" '{FLAG}' "]
)
def test_white_space_and_quotes_around_the_flag_do_not_count(answer: str) -> None:
    assert _score(reward.standard, answer) == 1.0


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "",
        "'",
        "''",
        FLAG.lower(),
        FLAG[:-1],
        FLAG + "}",
        f"{FLAG} {FLAG}",
        f"the {FLAG}",
        f"\"{FLAG}'",
        f"''{FLAG}''",
        "\udcff" + FLAG,
        FLAG[8:-1],
    ],
)
def test_anything_else_is_not_a_flag(answer: str | None) -> None:
    assert _score(reward.standard, answer) == 0.0


def test_a_flag_that_is_quoted_itself() -> None:
    assert _score(reward.standard, "'x'", flag="'x'") == 1.0
    assert _score(reward.standard, "''x''", flag="'x'") == 1.0
    assert _score(reward.standard, "x", flag="'x'") == 0.0


def test_it_has_a_name() -> None:
    assert REWARDS.load("ctf-standard") is reward.standard
