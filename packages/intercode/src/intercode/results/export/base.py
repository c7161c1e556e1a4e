"""Shared parts of the export formats: an episode as a conversation, and the result of an export."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from intercode.core.types import Step, Trajectory
from intercode.environments.recorded_descriptions import description_of

Message = Mapping[str, Any]

CHAT_KEYS = ("role", "content", "tool_calls", "tool_call_id", "name")
"""The keys of a message that chat endpoints and fine-tuning services know."""


@dataclass(frozen=True, slots=True)
class ExportResult:
    """The result of an export: its files, the number of records in them, and descriptions of what
    was left out."""

    files: tuple[Path, ...]
    records: int
    omitted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation: the messages added before the answer, and the answer."""

    step: Step
    prompt: tuple[Message, ...]
    answer: Message | None


def has_messages(episode: Trajectory) -> bool:
    """Return whether the conversation with a model was recorded."""
    return any(step.messages for step in episode.steps)


def conversation_turns(episode: Trajectory) -> list[Turn]:
    """Return the conversation, one Turn per step.

    Without recorded messages it is constructed from the query, the actions and the observations. In
    a recorded conversation the answer is None for a turn that no model has answered.
    """
    if has_messages(episode):
        return [_recorded_turn(step) for step in episode.steps]
    content = episode.query
    out = []
    for step in episode.steps:
        prompt = ({"role": "user", "content": content},)
        answer = step.message or "\n".join(filter(None, (step.thought, step.action)))
        out.append(Turn(step, prompt, {"role": "assistant", "content": answer}))
        content = step.observation
    return out


def conversation_messages(turns_: Iterable[Turn]) -> list[Message]:
    """Return the messages of turns in order."""
    return [m for turn in turns_ for m in (*turn.prompt, turn.answer) if m is not None]


def to_chat_message(message: Message) -> dict[str, Any]:
    """Return a message with the keys that chat formats know; separate reasoning becomes
    ``reasoning_content``."""
    out = {k: message[k] for k in CHAT_KEYS if k in message}
    if message.get("reasoning"):
        out["reasoning_content"] = message["reasoning"]
    return out


def code_tool_name(episode: Trajectory) -> str:
    """Return the name of the tool that stands for an environment's action, such as ``bash`` or
    ``sql``."""
    return description_of(episode.run).language.name


def parse_arguments(text: str) -> dict[str, Any]:
    """Return the arguments of a tool call as an object; invalid ones under ``text``."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {"text": text}


def exported_metadata(episode: Trajectory) -> dict[str, Any]:
    """Return what every exported record says about its episode."""
    run = episode.run
    keys = ("environment", "dataset", "dataset_hash", "profile", "scoring", "agent", "model")
    return {
        "task": episode.task,
        "episode": episode.id,
        "epoch": episode.epoch,
        "reward": episode.score,
        "success": episode.success,
        "end": episode.end,
        **{name: run[name] for name in keys if run.get(name) is not None},
    }


def text_as_file_name(text: str) -> str:
    """Return a text as a file name."""
    return re.sub(r"[^\w.=-]+", "_", text).strip("_.") or "episode"


def write_jsonl(out: Path, rows: Iterable[Mapping[str, Any]]) -> int:
    """Write one line of JSON for each row, and return the number of rows."""
    out.parent.mkdir(parents=True, exist_ok=True)
    count = 0
    with out.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")
            count += 1
    return count


def _recorded_turn(step: Step) -> Turn:
    answered = bool(step.messages) and step.messages[-1].get("role") == "assistant"
    if not answered:
        return Turn(step, step.messages, None)
    return Turn(step, step.messages[:-1], step.messages[-1])
