"""The CTF reward of the authors: how they compare flags."""

from __future__ import annotations

from intercode.core.types import State, Task
from intercode.environments.base.rewards import REWARDS
from intercode.paper.ctf.reward import original

FLAG = "picoCTF{Aa_1|/\\|'x'}"


TASK = Task("t/0", "q", flag=FLAG)


def _score(judge: object, answer: str | None, flag: str | None = FLAG) -> float:
    assert callable(judge)
    score = judge(TASK, State(answer=answer), State(answer=flag))
    assert score.parts == {"flag": score.value}
    return float(score.value)


def test_the_authors_rule_is_blind_to_case_and_takes_the_first_word() -> None:
    assert _score(original, FLAG.upper()) == 1.0
    assert _score(original, f"{FLAG} is it") == 1.0
    assert _score(original, f"'{FLAG}'") == 0.0
    assert _score(original, f"{FLAG}\nx") == 0.0
    assert _score(original, None) == 0.0
    assert _score(original, FLAG, flag=None) == 0.0


def test_it_has_a_name() -> None:
    assert REWARDS.load("ctf-original") is original
