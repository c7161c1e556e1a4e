"""The trace of tokens: calls linked to a tree, rows of it, and batches for training."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest

from intercode.core.errors import UsageError
from intercode.core.types import Trajectory
from intercode.results.tokens import KINDS, TokenRow, TokenTrace
from support.snippets import read_snippets
from support.token_episodes import FIRST, REPLIES, SYSTEM, TOLD, token_calls, token_episode

PAGE = Path(__file__).parents[3] / "docs/exports.md"


def test_calls_that_continue_each_other_are_one_branch() -> None:
    calls = token_calls()
    trace = TokenTrace.from_episodes([token_episode(calls)])
    (row,) = trace.rows()
    assert list(row.ids) == calls[-1]["prompt_ids"] + calls[-1]["ids"]
    assert [row.ids[b:e] for _, b, e in row.replies] == [tuple(r) for r in REPLIES]
    assert row.logprobs is not None
    written = [p for p, m in zip(row.logprobs, row.mask, strict=True) if m]
    assert written == [p for call in calls for p in call["logprobs"]]
    assert [n.role for n in trace.nodes] == ["prompt", "reply"] * 3
    assert [n.finish for n in trace.nodes] == ["", "stop"] * 3


def test_branches_share_the_prefix_also_inside_a_prompt() -> None:
    first, other = token_calls(), token_calls()
    for call in other:
        call["prompt_ids"][len(SYSTEM)] = 199  # another task, after the same system message
    trace = TokenTrace.from_episodes([token_episode(first), token_episode(other, id="f")])
    roots = [n for n in trace.nodes if n.parent is None]
    assert [list(n.ids) for n in roots] == [SYSTEM]
    a, b = trace.rows()
    assert (a.shared, b.shared) == (0, len(SYSTEM))
    assert list(b.ids) == other[-1]["prompt_ids"] + other[-1]["ids"]


def test_a_cut_history_is_a_branch_and_the_same_prompt_twice_is_one_node() -> None:
    calls = token_calls()
    calls[1]["prompt_ids"] = [*SYSTEM, 300, 301]
    calls[2]["prompt_ids"] = calls[0]["prompt_ids"]
    trace = TokenTrace.from_episodes([token_episode(calls)])
    assert [(len(r.ids), r.shared) for r in trace.rows()] == [
        (len(FIRST) + 3, 0),
        (len(SYSTEM) + 2 + 4, len(SYSTEM)),
        (len(FIRST) + 2, len(FIRST)),
    ]


def forked() -> tuple[Trajectory, Trajectory]:
    """Return an episode, and one that was forked from it after its first turn."""
    calls = token_calls()
    calls[1]["ids"] = [40, 41, 2]
    calls[1]["logprobs"] = [-1.0, -2.0, -3.0]
    calls[1]["texts"] = ["<40>", "<41>", ""]
    fork = token_episode(calls[:2], id="f", parent="e", branched_at=1)
    return token_episode(), fork


def test_a_fork_shares_the_calls_of_its_parent() -> None:
    trace = TokenTrace.from_episodes(forked())
    assert len(trace.calls) == 3 + 1
    assert trace.reply_nodes["e", 0, 0] == trace.reply_nodes["f", 0, 0]
    whole, fork = trace.rows()
    second = len(FIRST) + len(REPLIES[0]) + len(TOLD)
    assert fork.shared == second and fork.ids[:second] == whole.ids[:second]
    assert fork.mask[len(FIRST)] == 1


def _gradient(rows: list[TokenRow]) -> dict[tuple[Any, ...], float]:
    """Return the weight with which each written token is trained, by the ids up to it."""
    weights: dict[tuple[Any, ...], float] = {}
    for row in rows:
        assert row.advantages is not None
        for n, (mask, weight) in enumerate(zip(row.mask, row.advantages, strict=True)):
            if mask:
                key = (row.ids[: n + 1], row.logprobs and row.logprobs[n])
                weights[key] = weights.get(key, 0.0) + weight
    return weights


def test_shared_tokens_are_trained_once_with_the_advantages_of_all_their_episodes() -> None:
    parent, fork = forked()
    advantages = {"e": 0.75, "f": -0.5}
    together = TokenTrace.from_episodes([parent, fork]).batch(advantages)
    apart = [
        row
        for episode in (parent, fork.replace(parent=None))
        for row in TokenTrace.from_episodes([episode]).batch({episode.id: advantages[episode.id]})
    ]
    assert _gradient(together) == _gradient(apart)
    assert sum(sum(r.mask) for r in together) == 3 + 4 + 2 + 3
    assert sum(sum(r.mask) for r in apart) == 3 + 4 + 2 + 3 + 3


def test_a_batch_has_no_row_of_an_episode_with_a_fault() -> None:
    calls = token_calls()
    calls[1]["logprobs"] = None
    trace = TokenTrace.from_episodes([token_episode(calls), token_episode(id="f")])
    assert {row.episode for row in trace.batch({"f": 1.0})} == {"f"}
    with pytest.raises(UsageError, match="e may not be trained on: missing-logprobs, turn 1"):
        trace.batch({"e": 1.0, "f": 1.0})
    assert trace.batch({"e": 1.0}, allow=["missing-logprobs"])
    with pytest.raises(UsageError, match="unknown episode 'g'"):
        trace.batch({"g": 1.0})
    with pytest.raises(UsageError, match="unknown kind of fault"):
        trace.batch({"f": 1.0}, allow=["reply"])


def test_an_episode_without_a_call_has_no_rows() -> None:
    trace = TokenTrace.from_episodes([token_episode([], id="e")])
    assert trace.batch({"e": 1.0}) == []


def test_any_tree_of_calls_gives_each_call_back() -> None:
    for seed in range(200):
        rng = random.Random(seed)
        calls: list[dict[str, Any]] = []
        for _ in range(rng.randint(1, 12)):
            base: list[int] = []
            if calls and rng.random() < 0.8:
                before = rng.choice(calls)
                base = before["prompt_ids"] + before["ids"]
                base = base[: rng.randint(0, len(base))] if rng.random() < 0.3 else base
            prompt = base + [rng.randint(0, 3) for _ in range(rng.randint(0 if base else 1, 4))]
            reply = [rng.randint(0, 3) for _ in range(rng.randint(1, 4))]
            logprobs = [-rng.random() for _ in reply]
            calls.append({"prompt_ids": prompt, "ids": reply, "logprobs": logprobs})
        trace = TokenTrace.from_episodes([token_episode(calls)])
        rows = trace.rows()
        assert len(trace.calls) == len(calls)
        found = {c: (row, begin, end) for row in rows for c, begin, end in row.replies}
        for number, call in enumerate(calls):
            row, begin, end = found[number]
            assert list(row.ids[:end]) == call["prompt_ids"] + call["ids"]
            assert row.logprobs is not None and list(row.logprobs[begin:end]) == call["logprobs"]
            assert set(row.mask[begin:end]) == {1}
        assert sum(map(sum, (r.mask for r in trace.batch({"e": 1.0}, allow=KINDS)))) == sum(
            len(call["ids"]) for call in calls
        )


def test_the_example_of_the_page() -> None:
    """Run what docs/exports.md shows."""
    (snippet,) = (s for s in read_snippets(PAGE.read_text("utf-8")) if s.runner)
    names = {"episodes": [token_episode(id="ID OF THE EPISODE")]}
    exec(compile(snippet.body, str(PAGE), "exec"), names)
    assert names["faults"] == []
    assert [row.episode for row in names["rows"]] == ["ID OF THE EPISODE"]


def test_the_page_explains_every_kind_of_fault() -> None:
    text = PAGE.read_text("utf-8").partition("| fault |")[2]
    assert set(re.findall(r"`([a-z-]+)`", text)) >= set(KINDS)
