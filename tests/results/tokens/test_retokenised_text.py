"""Ids that a tokenizer would not choose: drawn as any segmentation of the bytes, with characters
that are split between tokens and between turns, they are exported as they were sampled."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from intercode.core.types import Trajectory
from intercode.results.export.tokens import export
from intercode.results.tokens import TokenTrace, Vocabulary, find_faults
from support.requirements import require_library
from support.token_episodes import token_episode

TEXTS = (
    "ls -la /tmp\r\n\ttotal 0\n",
    "SELECT 'naïve', \"日本語\" -- ✓\n",
    "👩‍👩‍👧‍👦 🇨🇭 é e\u0301 \u202eabc\u202c \ufeff\u00a0",
    "<|im_end|><|im_start|>assistant\n<think></think>",
    "\x1b[31mred\x1b[0m \x00\x7f 0x00 \\u00e9 %s {{x}}",
    "aaaaaaaaaaaaaaaa        \n\n\n\n",
)
STOP = 0xFFFF
EPISODES, TURNS = 25, 40


@pytest.fixture(scope="module")
def encoding() -> Any:
    """Return a tokenizer whose tokens are all bytes and all short pieces of the texts."""
    require_library("tiktoken", "openai")
    import tiktoken

    pieces = {
        text.encode()[n : n + size]
        for text in TEXTS
        for size in (2, 3, 4)
        for n in range(len(text.encode()) - size + 1)
    }
    ordered = [bytes([n]) for n in range(256)] + sorted(pieces, key=lambda p: (len(p), p))
    ranks = {piece: n for n, piece in enumerate(ordered)}
    return tiktoken.Encoding("tiny", pat_str=r"[\s\S]+", mergeable_ranks=ranks, special_tokens={})


def segmentation(data: bytes, encoding: Any, rng: random.Random) -> list[int]:
    """Return any ids whose bytes are these."""
    ids = []
    while data:
        sizes = [n for n in range(1, 5) if data[:n] in encoding._mergeable_ranks and data[n - 1 :]]
        size = rng.choice(sizes)
        ids.append(encoding._mergeable_ranks[data[:size]])
        data = data[size:]
    return ids


def text_of(ids: Any, encoding: Any) -> str:
    return encoding.decode_bytes([i for i in ids if i != STOP]).decode("utf-8", "replace")


def episode(number: int, encoding: Any, *, again: bool) -> Trajectory:
    """Return an episode. ``again``: its engine tokenises the conversation's text in each turn, as
    one does that is sent messages; otherwise the prompt has the ids of the turns before."""
    rng = random.Random(number)
    calls: list[dict[str, Any]] = []
    prompt = encoding.encode("<task>")
    for _ in range(TURNS):
        data = "".join(rng.choices(TEXTS, k=2)).encode()
        cut = rng.randrange(1, len(data)) if rng.random() < 0.5 else len(data)
        ids = [*segmentation(data[:cut], encoding, rng), STOP]
        logprobs = [-rng.random() for _ in ids]
        call = {"prompt_ids": list(prompt), "ids": ids, "logprobs": logprobs, "finish": "stop"}
        calls.append(call)
        told = encoding.encode(f"<result>{rng.choice(TEXTS)}</result>")
        seen = [*encoding.encode(text_of(ids, encoding)), STOP] if again else ids
        prompt += [*seen, *told]
    answers = {n: {"content": text_of(c["ids"], encoding)} for n, c in enumerate(calls)}
    return token_episode(calls, id=f"e{number}", messages=answers, run={"max_turns": TURNS})


def vocabulary(encoding: Any) -> Vocabulary:
    return Vocabulary(STOP + 1, None, frozenset([STOP]), lambda ids: text_of(ids, encoding))


def test_no_trained_token_was_tokenised_again(encoding: Any, tmp_path: Path) -> None:
    episodes = [episode(n, encoding, again=False) for n in range(EPISODES)]
    trace = TokenTrace.from_episodes(episodes)
    assert find_faults(trace, vocabulary=vocabulary(encoding)) == []
    assert export(episodes, tmp_path / "a").records == EPISODES
    rows = [json.loads(line) for line in (tmp_path / "a").read_text("utf-8").splitlines()]
    other = differs = 0
    for row, played in zip(rows, episodes, strict=True):
        written = [i for i, m in zip(row["ids"], row["mask"], strict=True) if m]
        logprobs = [p for p, m in zip(row["logprobs"], row["mask"], strict=True) if m]
        answers = [step.messages[-1] for step in played.steps]
        assert written == [i for a in answers for i in a["tokens"]["ids"]]
        assert logprobs == [p for a in answers for p in a["tokens"]["logprobs"]]
        for answer in answers:
            again = [*encoding.encode(answer["content"]), STOP]
            other += len(set(enumerate(again)) - set(enumerate(answer["tokens"]["ids"])))
            differs += again != list(answer["tokens"]["ids"])
    assert other > 0 and differs > EPISODES * TURNS / 2  # what an export of the text would train


def test_a_conversation_that_is_tokenised_again_is_refused_where_it_differs(encoding: Any) -> None:
    for number in range(EPISODES):
        played = episode(number, encoding, again=True)
        calls = [step.messages[-1]["tokens"] for step in played.steps]
        expected = []
        for turn, (before, call) in enumerate(pairwise(calls), 1):
            known = before["prompt_ids"] + before["ids"]
            pairs = enumerate(zip(known, call["prompt_ids"], strict=False))
            at = next((n for n, (a, b) in pairs if a != b), None)
            expected += [] if at is None else [(turn, at)]
        found = find_faults(TokenTrace.from_episodes([played]))
        assert [(f.turn, f.position) for f in found] == expected
        assert {f.kind for f in found} <= {"retokenised", "stop-token-lost"} and expected
