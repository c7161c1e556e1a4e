"""Conversations for fine-tuning: one line of JSON each, in the form of chat endpoints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from intercode.core.types import Trajectory
from intercode.results.export.base import (
    ExportResult,
    Turn,
    conversation_messages,
    conversation_turns,
    exported_metadata,
    has_messages,
    to_chat_message,
    write_jsonl,
)
from intercode.results.export.tools import offered_tools
from intercode.results.statistics.metrics import solves
from intercode_sandbox.registry import unknown_name_error

SELECTIONS = ("success", "turns", "all")


def export(
    episodes: Sequence[Trajectory],
    out: Path,
    *,
    which: str = "success",
    messages_only: bool = False,
) -> ExportResult:
    """Write ``messages``, ``tools`` if the model had some, and ``metadata`` (unless
    ``messages_only``).

    ``which`` is ``success`` for episodes that reached a reward of 1, up to that turn; ``turns`` for
    one line per turn of these episodes whose action ran, with the conversation before it, so that
    only the last message is to be learnt; or ``all`` for every episode, whole, with the reward of
    each turn in ``metadata``. Reasoning is exported as ``reasoning_content``; token ids are not
    (see the format ``tokens``). Raises UnknownNameError for another value of ``which``.
    """
    if which not in SELECTIONS:
        raise unknown_name_error("choice of episodes", which, list(SELECTIONS))
    rows = (row for episode in episodes for row in _rows(episode, which, messages_only))
    count = write_jsonl(out, rows)
    notes = []
    constructed = sum(not has_messages(t) for t in episodes)
    if constructed:
        notes.append(
            f"{constructed} episodes have no recorded conversation: actions and observations"
        )
    unsolved = sum(not t.success for t in episodes)
    if which != "all" and unsolved:
        notes.append(f"{unsolved} episodes without success are not among them")
    return ExportResult((out,), count, tuple(notes))


def _rows(episode: Trajectory, which: str, messages_only: bool) -> Iterator[dict[str, Any]]:
    all_turns = conversation_turns(episode)
    if which == "all":
        for end in (*episode.restarts, len(all_turns)):
            yield _row(episode, all_turns[:end], messages_only)
        return
    solved_turn = next((n for n, turn in enumerate(all_turns) if solves(turn.step)), None)
    if solved_turn is None:
        return
    turns = all_turns[: solved_turn + 1]
    if which == "success":
        yield _row(episode, turns, messages_only)
        return
    for number, turn in enumerate(turns):
        if turn.answer is not None and turn.step.executed and turn.step.valid is not False:
            yield _row(episode, turns[: number + 1], messages_only)


def _row(episode: Trajectory, turns: Sequence[Turn], messages_only: bool) -> dict[str, Any]:
    """Return the conversation that ends with these turns: after a restart, that since then."""
    messages = conversation_messages(turns)
    begin = max((n for n in episode.restarts if n < len(turns)), default=0)
    if begin and has_messages(episode):
        first = max((n for n, m in enumerate(messages) if m["role"] == "system"), default=0)
        messages = messages[first:]
    elif begin:
        messages = conversation_messages(turns[begin:])
    turns = turns[begin:]
    row: dict[str, Any] = {"messages": [to_chat_message(m) for m in messages]}
    if tools := offered_tools(episode):
        row["tools"] = tools
    if not messages_only:
        row["metadata"] = {
            **exported_metadata(episode),
            "turns": len(turns),
            "rewards": [turn.step.score_value for turn in turns],
            "valid": [turn.step.valid for turn in turns],
            "actors": [turn.step.actor for turn in turns],
            "made_from": "messages" if has_messages(episode) else "actions",
        }
    return row
