"""Joins the events of a streamed answer to the response that an endpoint would send whole."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from intercode.models.providers.chat_responses import InvalidResponseError
from intercode_sandbox.lines import split_lines

_FINAL = ("response.completed", "response.incomplete", "response.failed")
_TEXTS = ("content", "reasoning_content", "reasoning", "refusal", "arguments", "text")
"""The fields whose pieces are joined; others hold lists, or a value that is sent once."""


def join_events(body: bytes) -> dict[str, Any]:
    """Return the response whose events ``body`` holds, as if it had been sent whole.

    Understands Chat Completions, text completions and Responses. Of several choices the first one
    counts. Raises InvalidResponseError if the stream broke off, or is none.
    """
    return join_chunks(_events(body))


def join_chunks(events: Iterable[dict[str, Any] | None]) -> dict[str, Any]:
    """Return the response whose events these are; None is the mark of the end. Raises
    InvalidResponseError if the stream broke off."""
    response: dict[str, Any] = {}
    choice: dict[str, Any] = {}
    ended = False
    for event in events:
        if event is None:
            ended = True
            break
        if event.get("error") or event.get("type") == "error":
            return {"error": event.get("error") or event}
        if event.get("type") in _FINAL and isinstance(event.get("response"), dict):
            whole: dict[str, Any] = event["response"]
            return whole
        response |= {k: v for k, v in event.items() if k != "choices" and v is not None}
        for piece in event.get("choices") or ():
            number = piece.get("index") if isinstance(piece, dict) else None
            if number is not None and choice.get("index", number) != number:
                continue
            _add(choice, piece)
            ended = ended or bool(choice.get("finish_reason"))
    if not ended or not choice:
        raise InvalidResponseError("the stream broke off")
    delta = choice.pop("delta", None)
    if delta is not None:
        choice["message"] = delta
    return response | {"choices": [choice]}


def _events(body: bytes) -> Iterator[dict[str, Any] | None]:
    """Yield the data of each event, and None for the mark of the end. An event ends with an empty
    line, which some servers leave out; an incomplete last one is left out."""
    lines: list[str] = []
    for line in split_lines(body.decode("utf-8-sig", "replace")):
        if line.startswith("data:"):
            lines.append(line[5:].strip())
        elif not line.strip() and lines:
            yield from _decode(lines)
            lines = []
    with suppress(InvalidResponseError):
        yield from _decode(lines)


def _decode(lines: list[str]) -> list[dict[str, Any] | None]:
    """Return the event whose data some lines hold, or one for each line."""
    try:
        events = [json.loads("\n".join(lines))]
    except (ValueError, RecursionError):
        try:
            events = [None if line == "[DONE]" else json.loads(line) for line in lines]
        except (ValueError, RecursionError) as e:
            raise InvalidResponseError("the stream has an event that is not JSON") from e
    if not all(event is None or isinstance(event, dict) for event in events):
        raise InvalidResponseError("the stream has an event that is not an object")
    return events


def _add(whole: dict[str, Any], piece: Any) -> None:
    """Add what a piece of a message says to what is known of it."""
    if not isinstance(piece, dict):
        raise InvalidResponseError("the stream has a piece that is not an object")
    for name, value in piece.items():
        old = whole.get(name)
        if name == "tool_calls" and isinstance(value, list):
            _add_calls(whole.setdefault(name, []), value)
        elif isinstance(value, dict):
            whole[name] = dict(old) if isinstance(old, dict) else {}
            _add(whole[name], value)
        elif _is_joined(name, old, value):
            whole[name] = old + value
        elif name == "content" and isinstance(old, str | list) and isinstance(value, str | list):
            whole[name] = _parts(old) + _parts(value)
        elif value is not None and (value != "" or not old):  # pieces leave their id empty
            whole[name] = value


def _parts(content: str | list[Any]) -> list[Any]:
    """Return a message's content as parts, which some models mix with texts."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _is_joined(name: str, old: Any, value: Any) -> bool:
    """Return whether a value continues the old one."""
    if isinstance(old, list) and isinstance(value, list):
        return True
    return name in _TEXTS and isinstance(old, str) and isinstance(value, str)


def _add_calls(calls: list[dict[str, Any]], pieces: list[Any]) -> None:
    """Add the pieces of tool calls, each of which says the number of its call.

    Some servers give all calls the same number, or none. There, another id begins another call, and
    so does a name after a call that is complete.
    """
    for piece in pieces:
        number = piece.get("index") if isinstance(piece, dict) else -1
        if number is None:
            call = calls[-1] if calls else None
        elif isinstance(number, int) and number >= 0:  # some count from 1
            call = next((c for c in reversed(calls) if c.get("index", number) == number), None)
        else:
            raise InvalidResponseError("the stream has a piece of an unknown tool call")
        if call is None or _begins_call(call, piece):
            call = {}
            calls.append(call)
        _add(call, piece)


def _begins_call(call: dict[str, Any], piece: dict[str, Any]) -> bool:
    """Return whether a piece does not continue a call."""
    if call.get("id") and piece.get("id"):
        return bool(call["id"] != piece["id"])
    function, known = piece.get("function"), call.get("function")
    if not isinstance(function, dict) or not isinstance(known, dict) or not function.get("name"):
        return False
    if not known.get("name") or not function.get("arguments"):
        return bool(known.get("name")) and known["name"] != function["name"]
    return _is_complete(known.get("arguments"))


def _is_complete(arguments: Any) -> bool:
    try:
        json.loads(arguments)
    except (TypeError, ValueError, RecursionError):
        return False
    return True
