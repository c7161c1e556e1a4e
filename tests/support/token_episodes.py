"""Episodes with the tokens of each call, as an engine with exact ids gives them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from intercode.core.types import Score, Step, Trajectory, Usage

IM_END = 2
SYSTEM = [101, 102, 103]
FIRST = [*SYSTEM, 110, 111, 112, 113, 114, 115, 116, 117, 118]
"""The ids of the first prompt: what the system says, and the task."""
REPLIES = ([10, 11, IM_END], [12, 13, 14, IM_END], [15, IM_END])
TOLD = [201, 202, 203, 204, 205, 206, 207, 208, 209]
"""The ids of what the model is told after its first reply; those after the next are one higher."""


def token_calls() -> list[dict[str, Any]]:
    """Return the tokens of three calls, each of which continues the one before."""
    calls = []
    prompt = list(FIRST)
    for turn, ids in enumerate(REPLIES):
        logprobs = [-0.5 - turn / 8 - n / 64 for n in range(len(ids))]
        texts = [f"<{i}>" for i in ids[:-1]] + [""]
        common = {"finish": "stop", "model": "m", "tools": "t", "raw": True, "temperature": 1.0}
        calls.append(
            {"prompt_ids": list(prompt), "ids": list(ids), "logprobs": logprobs, "texts": texts}
            | common
        )
        prompt += [*ids, *(i + turn for i in TOLD)]
    return calls


def token_episode(
    calls: list[dict[str, Any]] | None = None,
    *,
    messages: Mapping[int, Mapping[str, Any]] = {},
    steps: Mapping[int, Mapping[str, Any]] = {},
    **changes: Any,
) -> Trajectory:
    """Return an episode with these calls, one per turn. ``messages`` and ``steps`` change the
    answer and the step of a turn, ``changes`` the episode."""
    calls = token_calls() if calls is None else copy.deepcopy(calls)
    made = []
    for turn, tokens in enumerate(calls):
        text = "".join(tokens.get("texts") or ())
        answer = {"role": "assistant", "content": text, "tokens": tokens, **messages.get(turn, {})}
        told = {"role": "user", "content": "go on"}
        usage = Usage(len(tokens.get("prompt_ids", ())), len(tokens.get("ids", ())), 1)
        values = {
            "action": f"ls {turn}",
            "observation": "a",
            "score": Score(turn / 4),
            "usage": usage,
            "messages": (told, answer),
        }
        made.append(Step(**values | steps.get(turn, {})))
    run = {"environment": "bash", "max_turns": 10}
    values: dict[str, Any] = {"index": 0, "run": run, "end": "turn_limit", "id": "e"}
    return Trajectory("mine/1", query="q", steps=tuple(made), **(values | changes))
