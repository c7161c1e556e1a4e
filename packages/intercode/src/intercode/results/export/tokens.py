"""Token-level records for training, from the endpoint's own token ids. Nothing is tokenised
again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from intercode.core.errors import UsageError
from intercode.core.types import Trajectory
from intercode.results.export.base import (
    ExportResult,
    Turn,
    conversation_turns,
    exported_metadata,
    write_jsonl,
)


def export(episodes: Sequence[Trajectory], out: Path) -> ExportResult:
    """Write one line for each sequence of turns whose prompts continue each other token by token.

    ``ids``: prompt and answers by the endpoint's ids; ``mask``: 1 for the tokens that the model
    wrote; ``logprobs``: theirs, 0.0 elsewhere, or null if one is unknown; ``turns``: for each turn
    its number in the episode, where its answer ``begins`` and ``ends`` in ``ids``, and its reward.
    A turn whose prompt does not continue the tokens before it begins a new line, with ``segment``
    one higher. Raises UsageError if no turn has ids.
    """
    skipped: list[int] = []
    rows = [row for episode in episodes for row in _rows(episode, skipped)]
    if not rows:
        raise UsageError(
            "no turn of these episodes holds token ids: they are recorded if the endpoint returns "
            "them and the run requested log-probabilities or ids"
        )
    count = write_jsonl(out, rows)
    notes = (f"{len(skipped)} turns hold no ids of prompt and answer",) if skipped else ()
    return ExportResult((out,), count, notes)


def _rows(episode: Trajectory, skipped: list[int]) -> Iterator[dict[str, Any]]:
    row: dict[str, Any] | None = None
    segment = 0
    for number, turn in enumerate(conversation_turns(episode)):
        tokens = _tokens(turn)
        if tokens is None:
            skipped.append(number)
            continue
        prompt, ids = list(tokens["prompt_ids"]), list(tokens["ids"])
        if row is not None and prompt[: len(row["ids"])] != row["ids"]:
            yield row
            row, segment = None, segment + 1
        if row is None:
            row = {**exported_metadata(episode), "segment": segment, **_empty_row()}
        _append_turn(row, prompt[len(row["ids"]) :], ids, tokens.get("logprobs"))
        end = len(row["ids"])
        reward = turn.step.score_value
        turn_entry = {"turn": number, "begins": end - len(ids), "ends": end, "reward": reward}
        row["turns"].append(turn_entry)
    if row is not None:
        yield row


def _empty_row() -> dict[str, Any]:
    return {"ids": [], "mask": [], "logprobs": [], "turns": []}


def _append_turn(row: dict[str, Any], prompt: list[int], answer: list[int], logprobs: Any) -> None:
    row["ids"] += prompt + answer
    row["mask"] += [0] * len(prompt) + [1] * len(answer)
    known = isinstance(logprobs, Sequence) and len(logprobs) == len(answer)
    if row["logprobs"] is None or not known:
        row["logprobs"] = None
    else:
        row["logprobs"] += [0.0] * len(prompt) + [float(p) for p in logprobs]


def _tokens(turn: Turn) -> Mapping[str, Any] | None:
    tokens = (turn.answer or {}).get("tokens")
    if not isinstance(tokens, Mapping) or not tokens.get("prompt_ids") or not tokens.get("ids"):
        return None
    return tokens
