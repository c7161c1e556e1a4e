"""examples/trl_branching, which docs/training.md shows: a step of training with TRL in which each
group is forked from one episode. The model is made from scratch: it shows that the example runs,
and nothing more."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from intercode import datasets
from intercode.integrations.text_episode import Reply, TextEpisode

if not find_spec("trl"):
    pytest.skip("make training", allow_module_level=True)
EXAMPLES = Path(__file__).parent.parent / "examples"
pytestmark = [pytest.mark.sandbox, pytest.mark.slow]
SIZE = 2


@pytest.fixture
def branching(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    for folder in ("trl_branching", "grpo_bash"):
        monkeypatch.syspath_prepend(str(EXAMPLES / folder))
    import branching
    import torch

    torch.set_num_threads(1)
    yield branching
    for name in ("branching", "tiny"):
        del sys.modules[name]


def test_it_is_short() -> None:
    assert len((EXAMPLES / "trl_branching/branching.py").read_text().splitlines()) <= 105


def test_the_episodes_of_a_group_are_forks_of_one(
    branching: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One step of training, in which one turn comes before each fork."""
    import tiny

    tasks = datasets.load("starter", "bash").tasks
    model, tokenizer = tiny.make([(t.query, f"``` {t.gold} ```") for t in tasks], steps=40)
    before = [weight.detach().clone() for weight in model.parameters()]
    parents: list[TextEpisode] = []
    numbers: dict[TextEpisode, str] = {}  # of each fork, before its first answer
    answers, found = Counter[TextEpisode](), dict[str, Any]()
    fork, answer, rollout = TextEpisode.fork, TextEpisode.answer, branching.rollout

    def remember_fork(episode: TextEpisode, n: int) -> list[TextEpisode]:
        episode.env.execute("n=$RANDOM")
        parents.append(episode)
        return fork(episode, n)

    def remember_answer(episode: TextEpisode, text: str) -> Reply:
        if episode.turns == 1:
            numbers[episode] = episode.env.execute("echo $n").observation
        answers[episode] += 1
        return answer(episode, text)

    def remember_rollout(prompts: list[str], trainer: Any) -> dict[str, Any]:
        assert prompts == [prompt for prompt in prompts[::SIZE] for _ in range(SIZE)]
        found.update(rollout(prompts, trainer))
        return found | {"score": [float(at % SIZE) for at in range(len(prompts))]}

    monkeypatch.setattr(TextEpisode, "fork", remember_fork)
    monkeypatch.setattr(TextEpisode, "answer", remember_answer)
    monkeypatch.setattr(branching, "rollout", remember_rollout)
    monkeypatch.setattr(branching.random, "randrange", lambda turns: 1)
    config = tiny.TRAINING | {"num_iterations": 1, "max_completion_length": 12, "max_steps": 1}
    branching.train(
        model,
        tokenizer,
        **config,
        per_device_train_batch_size=2 * SIZE,
        num_generations=SIZE,
        temperature=3.0,
        output_dir=str(tmp_path),  # answers differ
    )
    assert [answers.pop(parent) for parent in parents] == [1, 1] and set(answers) == set(numbers)
    first, second = (list(numbers.values())[at : at + SIZE] for at in (0, SIZE))
    assert len(numbers) == 2 * SIZE and first[0].strip().isdigit()
    assert len(set(first)) == len(set(second)) == 1
    for at in (0, SIZE):
        prompts, sampled = (found[k][at : at + SIZE] for k in ("prompt_ids", "completion_ids"))
        assert prompts == [prompts[0]] * SIZE and sampled[0] != sampled[1]
        assert tokenizer.decode(prompts[0]).count("[bot]") == 2  # the second answer follows
    assert len(found["score"]) == 2 * SIZE and all(0 <= score <= 1 for score in found["score"])
    pairs = zip(before, model.parameters(), strict=True)
    assert any(not old.equal(new.detach()) for old, new in pairs)
