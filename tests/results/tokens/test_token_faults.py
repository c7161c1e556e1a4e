"""The gate of training: every kind of fault is planted into a sound trace, and found where it
is."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from intercode.core.errors import UnknownNameError
from intercode.core.types import Trajectory, Usage
from intercode.results.tokens import KINDS, TokenTrace, Vocabulary, find_faults
from intercode.results.tokens.trace import families
from support.token_episodes import FIRST, IM_END, REPLIES, TOLD, token_calls, token_episode

Calls = list[dict[str, Any]]
Plant = Callable[[Calls], Any]
SECOND = len(FIRST) + len(REPLIES[0])  # where the first reply ends in the second prompt
BEGINS = [len(call["prompt_ids"]) for call in token_calls()]
"""Where the reply of each turn begins."""


def edited(name: str, turn: int, index: int, value: Any) -> Plant:
    """Return a change of one item of a list, in one call alone."""

    def plant(calls: Calls) -> None:
        calls[turn][name][index] = value

    return plant


def given(turn: int, **values: Any) -> Plant:
    """Return a change of a call's values."""
    return lambda calls: calls[turn].update(values)


def removed(name: str, turn: int) -> Plant:
    return lambda calls: calls[turn].pop(name)


def prompt_of(turn: int, change: Callable[[list[int]], list[int]]) -> Plant:
    """Return a change of the prompt of a turn, which the later ones then have, too."""

    def plant(calls: Calls) -> None:
        old = calls[turn]["prompt_ids"]
        new = change(old)
        for call in calls[turn:]:
            call["prompt_ids"] = new + call["prompt_ids"][len(old) :]

    return plant


def without(begin: int, end: int) -> Plant:
    """Return a change of the second prompt, which loses ids."""
    return prompt_of(1, lambda ids: ids[:begin] + ids[end:])


def swapped(at: int, *ids: int) -> Plant:
    """Return a change of the second prompt, which has these ids in place of one."""
    return prompt_of(1, lambda old: [*old[:at], *ids, *old[at + 1 :]])


STOPS = Vocabulary(stops=frozenset([IM_END]))
TEXTS = Vocabulary(decode=lambda ids: "".join(map(_text, ids)))
PLANTED: list[tuple[str, int, int, Plant, Vocabulary | None]] = [
    ("missing-ids", 1, 0, removed("ids", 1), None),
    ("missing-ids", 2, 0, removed("prompt_ids", 2), None),
    ("missing-id", 1, BEGINS[1] + 1, edited("ids", 1, 1, None), None),
    ("missing-id", 2, BEGINS[2], edited("ids", 2, 0, True), None),
    ("outside-vocabulary", 2, BEGINS[2], edited("ids", 2, 0, 512), Vocabulary(size=512)),
    ("outside-vocabulary", 0, len(FIRST), edited("ids", 0, 0, -1), None),
    ("lengths-differ", 1, BEGINS[1] + 3, lambda c: c[1]["logprobs"].pop(), None),
    ("lengths-differ", 2, BEGINS[2] + 1, lambda c: c[2]["texts"].pop(), None),
    ("missing-logprobs", 1, BEGINS[1], removed("logprobs", 1), None),
    ("missing-logprobs", 1, BEGINS[1] + 2, edited("logprobs", 1, 2, None), None),
    ("not-a-number", 0, len(FIRST) + 1, edited("logprobs", 0, 1, math.nan), None),
    ("not-a-number", 2, BEGINS[2], edited("logprobs", 2, 0, -math.inf), None),
    ("positive-logprob", 1, BEGINS[1], edited("logprobs", 1, 0, 0.25), None),
    ("temperature", 1, BEGINS[1], given(1, temperature=0.7), None),
    ("reply-cut", 2, BEGINS[2] + 1, given(2, finish="length"), None),
    ("reply-interrupted", 0, len(FIRST) + 2, given(0, finish="abort"), None),
    ("finish-unknown", 1, BEGINS[1] + 3, removed("finish", 1), None),
    ("stop-token-lost", 2, BEGINS[2] + 1, edited("ids", 2, 1, 16), None),
    ("stop-token-lost", 2, BEGINS[2] + 1, given(2, stop=3), None),
    ("stop-token-lost", 1, SECOND - 1, swapped(SECOND - 1, 9), None),
    ("stop-token-inside", 2, BEGINS[2], edited("ids", 2, 0, IM_END), STOPS),
    ("repeated-bos", 0, 1, prompt_of(0, lambda ids: [ids[0], *ids]), None),
    ("repeated-bos", 1, SECOND, swapped(SECOND, 101), Vocabulary(bos=101)),
    ("model-changed", 2, BEGINS[2], given(2, model="m-2"), None),
    ("tokenizer-changed", 2, BEGINS[2], lambda c: c[2].update(ids=[13, IM_END]), None),
    ("tools-changed", 1, 0, lambda c: [x.update(tools="u") for x in c[1:]], None),
    ("template-changed", 1, 5, swapped(5, 99), None),
    ("prompt-differs", 2, SECOND + 2, edited("prompt_ids", 2, SECOND + 2, 99), None),
    ("retokenised", 1, len(FIRST), swapped(len(FIRST), 20, 21), None),
    (
        "reply-edited",
        1,
        len(FIRST),
        lambda c: [swapped(len(FIRST), 20, 21)(c), given(0, edited=True)(c)],
        None,
    ),
    ("reply-missing", 1, len(FIRST), without(len(FIRST), SECOND), TEXTS),
    ("reply-twice", 1, SECOND, prompt_of(1, lambda p: p[:SECOND] + REPLIES[0] + TOLD), None),
    ("prompt-truncated", 1, 0, without(0, 4), None),
    ("prompt-truncated", 1, 3, without(3, 5), None),
    ("prompt-truncated", 2, 20, lambda c: c[2].update(prompt_ids=c[2]["prompt_ids"][:20]), None),
    ("prompt-truncated", 1, 0, given(1, truncated=True), None),
    ("observation-missing", 1, SECOND, without(SECOND, SECOND + len(TOLD)), None),
    (
        "other-reply",
        2,
        BEGINS[2],
        lambda c: c[2].update({k: c[0][k] for k in ("ids", "logprobs", "texts")}),
        None,
    ),
]


def kinds_of(*episodes: Trajectory, vocabulary: Vocabulary | None = None) -> list[tuple[Any, ...]]:
    """Return kind, turn and position of each fault."""
    found = find_faults(TokenTrace.from_episodes(episodes), vocabulary=vocabulary)
    assert all(f.message.startswith(f"turn {f.turn}, position {f.position}: ") for f in found)
    return [(f.kind, f.turn, f.position) for f in found]


def test_a_sound_trace_has_no_fault() -> None:
    everything = replace(TEXTS, size=1000, stops=STOPS.stops)
    assert kinds_of(token_episode(), vocabulary=everything) == []


def _text(number: int) -> str:
    return "" if number == IM_END else f"<{number}>"


@pytest.mark.parametrize(
    ("kind", "turn", "position", "plant", "vocabulary"), PLANTED, ids=[p[0] for p in PLANTED]
)
def test_a_planted_fault_is_found(
    kind: str, turn: int, position: int, plant: Plant, vocabulary: Vocabulary | None
) -> None:
    calls = token_calls()
    plant(calls)
    assert (kind, turn, position) in kinds_of(token_episode(calls), vocabulary=vocabulary)


IN_RECORD: list[tuple[str, int, int, dict[str, Any]]] = [
    ("text-differs", 1, BEGINS[1], {"messages": {1: {"content": "another text"}}}),
    ("text-differs", 1, BEGINS[1], {"messages": {1: {"content": ""}}}),
    ("other-reply", 1, BEGINS[1], {"messages": {1: {"content": "x"}, 2: {"content": "<12>"}}}),
    ("count-differs", 1, 21, {"steps": {1: {"usage": Usage(21, 4, 1)}}}),
    ("count-differs", 0, len(FIRST) + 3, {"steps": {0: {"usage": Usage(len(FIRST), 9, 1)}}}),
    ("from-cache", 2, BEGINS[2], {"steps": {2: {"usage": Usage(0, 0, 0)}}}),
    ("after-end", 1, 0, {"steps": {0: {"action": "submit"}}}),
    ("after-end", 2, 0, {"run": {"environment": "bash", "max_turns": 2}}),
    ("temperature", 0, len(FIRST), {"run": {"generation": {"temperature": 0.5}}}),
]


@pytest.mark.parametrize(
    ("kind", "turn", "position", "changes"), IN_RECORD, ids=[r[0] for r in IN_RECORD]
)
def test_a_fault_of_the_record_is_found(
    kind: str, turn: int, position: int, changes: dict[str, Any]
) -> None:
    calls = token_calls()
    for call in calls:
        del call["temperature"]
    assert (kind, turn, position) in kinds_of(token_episode(calls, **changes))


def test_reasoning_that_a_prompt_leaves_out_is_found() -> None:
    calls = token_calls()
    without(len(FIRST), len(FIRST) + 1)(calls)
    found = kinds_of(token_episode(calls, messages={0: {"reasoning": "look first"}}))
    assert found == [("reasoning-dropped", 1, len(FIRST))]


def test_what_the_record_says_was_hidden_is_no_fault() -> None:
    calls = token_calls()
    without(3, 6)(calls)
    hidden = {"context": {"history": {"hidden": 1}}}
    assert kinds_of(token_episode(calls, steps={1: hidden})) == []
    assert kinds_of(token_episode(calls, restarts=(1,))) == []


def test_a_fork_has_the_faults_of_its_parent_and_has_to_be_the_same_there() -> None:
    calls = token_calls()
    edited("logprobs", 0, 0, 0.5)(calls)
    parent = token_episode(calls)
    fork = token_episode(calls, id="f", parent="e", branched_at=1)
    kinds = [(f.kind, f.episode) for f in find_faults(TokenTrace.from_episodes([parent, fork]))]
    assert kinds[0] == ("positive-logprob", "e") and ("positive-logprob", "f") in kinds
    other = token_episode(id="f", parent="e", branched_at=1)
    assert ("fork-differs", 0, 0) in kinds_of(parent, other)


def test_a_fork_without_ids_is_not_compared() -> None:
    calls: Calls = [{}, {}, {}]
    parent, fork = token_episode(calls), token_episode(calls, id="f", parent="e", branched_at=1)
    assert kinds_of(parent, fork) == []
    assert ("fork-differs", 0, 0) in kinds_of(
        token_episode(), token_episode([{}], id="f", parent="e", branched_at=1)
    )


def test_equal_replies_that_were_nearly_certain_are_no_fault() -> None:
    calls = token_calls()
    for call in calls:
        call.update({k: calls[0][k] for k in ("ids", "texts")}, logprobs=[-1e-7, 0.0, -2e-7])
    assert "other-reply" not in {kind for kind, _, _ in kinds_of(token_episode(calls))}
    calls[0]["logprobs"] = calls[2]["logprobs"] = [-1e-7, -0.5, -2e-7]
    assert ("other-reply", 2, len(calls[2]["prompt_ids"])) in kinds_of(token_episode(calls))


def test_an_id_that_ends_different_characters_is_no_fault() -> None:
    calls = token_calls()
    calls[0].update(ids=[7, 9, IM_END], texts=["", "\U0001f600", ""])
    calls[1].update(ids=[5, 9, 14, IM_END], texts=["", "\U0001f640", "<14>", ""])
    assert "tokenizer-changed" not in {kind for kind, _, _ in kinds_of(token_episode(calls))}


@pytest.mark.parametrize(
    ("tokens", "generation"),
    [
        ({"stop_texts": ["\nUser:"]}, {}),
        ({}, {"stop": "\nUser:"}),
        ({}, {"extra": {"stop": ["\nUser:"]}}),
        ({}, {}),
    ],
)
def test_a_reply_that_a_text_has_ended_needs_no_usual_end(
    tokens: dict[str, Any], generation: dict[str, Any]
) -> None:
    calls = token_calls()
    edited("ids", 2, 1, 16)(calls)
    for call in calls:
        call.update(tokens)
    found = kinds_of(token_episode(calls, run={"generation": generation}))
    expected = [] if tokens or generation else [("stop-token-lost", 2, BEGINS[2] + 1)]
    assert found == expected


def test_a_fork_of_a_fork_has_the_faults_and_the_calls_of_both() -> None:
    calls = token_calls()
    edited("logprobs", 0, 0, 0.5)(calls)
    fork = token_episode(calls, id="f", parent="e", branched_at=1)
    last = token_episode(calls, id="g", parent="f", branched_at=2)
    (trace,) = map(TokenTrace.from_episodes, families([last, fork, token_episode(calls)]))
    found = find_faults(trace)
    assert {(f.episode, f.kind, f.turn) for f in found} == {
        (name, "positive-logprob", 0) for name in "efg"
    }
    assert [len(row.replies) for row in trace.rows()] == [3, 3, 3]


def test_a_trace_that_was_changed_is_found() -> None:
    trace = TokenTrace.from_episodes([token_episode()])
    covered = replace(trace.nodes[2], mask=(0, 0, 1, *trace.nodes[2].mask[3:]))
    masked = replace(trace, nodes=(*trace.nodes[:2], covered, *trace.nodes[3:]))
    found = [(f.kind, f.turn, f.position) for f in find_faults(masked)]
    assert ("mask-covers-prompt", 1, SECOND + 2) in found
    for parent, position in ((77, 0), (0, len(FIRST))):
        cut = replace(trace.nodes[2], parent=parent)
        broken = replace(trace, nodes=(*trace.nodes[:2], cut, *trace.nodes[3:]))
        found = [(f.kind, f.turn, f.position) for f in find_faults(broken)]
        assert ("broken-tree", 1, position) in found


def test_every_kind_is_planted_and_can_be_allowed() -> None:
    calls = token_calls()
    given(2, finish="length")(calls)
    trace = TokenTrace.from_episodes([token_episode(calls)])
    assert [f.kind for f in find_faults(trace)] == ["reply-cut"]
    assert find_faults(trace, allow=["reply-cut"]) == []
    with pytest.raises(UnknownNameError, match="reply-cut"):
        find_faults(trace, allow=["reply-cu"])
    elsewhere = {"reasoning-dropped", "fork-differs", "mask-covers-prompt", "broken-tree"}
    assert {p[0] for p in PLANTED} | {r[0] for r in IN_RECORD} | elsewhere == set(KINDS)
    assert len(KINDS) >= 20
