"""What the exports share: an episode as a conversation, and what was written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from intercode.core.types import Step, Trajectory

Message = Mapping[str, Any]

CHAT_KEYS = ("role", "content", "tool_calls", "tool_call_id", "name")
"""The keys of a message that chat endpoints and fine-tuning know."""


@dataclass(frozen=True, slots=True)
class ExportResult:
    """What an export has written: the files, how many records they hold, and what is not in them,
    in words."""

    files: tuple[Path, ...]
    records: int
    omitted: tuple[str, ...] = ()


class Exporter(Protocol):
    """One format."""

    def __call__(self, episodes: Sequence[Trajectory], out: Path, **options: Any) -> ExportResult:
        """Write episodes to ``out``."""
        ...


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation: what joined it before the answer, and the answer."""

    step: Step
    prompt: tuple[Message, ...]
    answer: Message | None


def has_messages(episode: Trajectory) -> bool:
    """Whether the conversation with a model was recorded."""
    return any(step.messages for step in episode.steps)


def conversation_turns(episode: Trajectory) -> list[Turn]:
    """The conversation, a Turn for each step.

    As it was recorded; where it was not, made from the query, the actions and the observations.
    The answer is None for a turn that no model has answered in a recorded conversation.
    """
    if has_messages(episode):
        return [_recorded_turn(step) for step in episode.steps]
    told = episode.query
    out = []
    for step in episode.steps:
        prompt = ({"role": "user", "content": told},)
        said = step.message or "\n".join(filter(None, (step.thought, step.action)))
        out.append(Turn(step, prompt, {"role": "assistant", "content": said}))
        told = step.observation
    return out


def conversation_messages(turns_: Iterable[Turn]) -> list[Message]:
    """The messages of turns, one after another."""
    return [m for turn in turns_ for m in (*turn.prompt, turn.answer) if m is not None]


def to_chat_message(message: Message) -> dict[str, Any]:
    """A message with what chat formats know; thoughts that were told apart as
    ``reasoning_content``."""
    out = {k: message[k] for k in CHAT_KEYS if k in message}
    if message.get("reasoning"):
        out["reasoning_content"] = message["reasoning"]
    return out


def code_tool_name(episode: Trajectory) -> str:
    """The name of the tool that an environment's action is, as ``bash`` or ``sql``."""
    environment = str(episode.run.get("environment") or "code")
    return {"ctf": "bash", "harbor": "bash"}.get(environment, environment)


def parse_arguments(text: str) -> dict[str, Any]:
    """The arguments of a tool's call as an object; under ``text`` where the model wrote none."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"text": text}


def episode_metadata(episode: Trajectory) -> dict[str, Any]:
    """What every exported record says of its episode."""
    run = episode.run
    named = ("environment", "dataset", "dataset_hash", "profile", "scoring", "agent", "model")
    return {
        "task": episode.task,
        "episode": episode.id,
        "epoch": episode.epoch,
        "reward": episode.reward,
        "success": episode.success,
        "end": episode.end,
        **{name: run[name] for name in named if run.get(name) is not None},
    }


def safe_file_name(text: str) -> str:
    """A text as the name of a file."""
    return re.sub(r"[^\w.=-]+", "_", text).strip("_.") or "episode"


def write_jsonl(out: Path, rows: Iterable[Mapping[str, Any]]) -> int:
    """Write one line of JSON for each row, and return how many there were."""
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
