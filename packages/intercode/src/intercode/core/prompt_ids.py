"""The ids of prompts in a record, which does not repeat what the call before has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from intercode.core.errors import DataError

AFTER = "prompt_after"
"""How many ids a prompt has before those in ``prompt_ids``: those of the last call with ids, its
prompt and its reply."""


def shorten_prompts(turns: Iterable[Sequence[Any]]) -> Iterator[Sequence[Any]]:
    """Yield the messages of each turn without the ids that the call before has, too: a record grows
    with the tokens of an episode, and not with their square. Messages without such ids are yielded
    themselves."""
    before: list[Any] = []
    for messages in turns:
        short: dict[int, Any] = {}
        for number, message in enumerate(messages):
            if (tokens := _tokens(message)) is not None:
                prompt, length = list(tokens["prompt_ids"]), len(before)
                if length and prompt[:length] == before:
                    new = {**tokens, "prompt_ids": prompt[length:], AFTER: length}
                    short[number] = {**message, "tokens": new}
                before = prompt + _reply(tokens)
        yield tuple(short.get(n, m) for n, m in enumerate(messages)) if short else messages


def complete_prompts(turns: Iterable[Iterable[Any]]) -> Iterator[list[Any]]:
    """Yield the messages of each turn with all ids. Raises DataError for ids that no call has."""
    before: list[Any] = []
    for messages in turns:
        changed = []
        for message in messages:
            if (tokens := _tokens(message)) is not None:
                new = dict(tokens)
                new["prompt_ids"] = _beginning(new.pop(AFTER, 0), before) + new["prompt_ids"]
                message = {**message, "tokens": new}
                before = new["prompt_ids"] + _reply(new)
            changed.append(message)
        yield changed


def _tokens(message: Any) -> Mapping[str, Any] | None:
    """Return the tokens of a message with the ids of a prompt; None for any other."""
    tokens = message.get("tokens") if isinstance(message, Mapping) else None
    has_ids = isinstance(tokens, Mapping) and isinstance(tokens.get("prompt_ids"), list | tuple)
    return tokens if has_ids else None


def _reply(tokens: Mapping[str, Any]) -> list[Any]:
    ids = tokens.get("ids")
    return list(ids) if isinstance(ids, list | tuple) else []


def _beginning(length: Any, before: list[Any]) -> list[Any]:
    if not isinstance(length, int) or not 0 <= length <= len(before):
        raise DataError(
            f"{AFTER} is {length!r:.40}, and the call before has {len(before)} ids, of which it "
            "counts the first"
        )
    return before[:length]
