"""One episode as a sample of a log of Inspect, in the JSON form that its library reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from intercode.core.types import Step, Trajectory, to_jsonable
from intercode.results.export.base import (
    Turn,
    code_tool_name,
    conversation_messages,
    conversation_turns,
    episode_metadata,
    has_messages,
    parse_arguments,
)
from intercode.results.statistics.metrics import is_failed

Json = dict[str, Any]


def to_sample(episode: Trajectory, epoch: int, model: str, usage: Json, began: str) -> Json:
    """The sample. ``usage``: what was spent, by model; ``began``: when the run did, which is the
    time of all events."""
    everything = conversation_turns(episode)
    messages = [_to_message(m, model) for m in conversation_messages(everything)]
    said = [m for m in messages if m["role"] == "assistant"]
    failed = is_failed(episode)
    return {
        "id": episode.task,
        "epoch": epoch,
        "input": episode.query,
        "target": "",
        "messages": messages,
        "output": _output(said[-1] if said else None, model),
        "scores": None if failed else _scores(episode),
        "metadata": {
            **episode_metadata(episode),
            "group": episode.group,
            "hardness": episode.hardness,
        },
        "events": list(_events(episode, everything, model, began)),
        "model_usage": usage,
        "total_time": episode.seconds,
        "working_time": episode.seconds,
        "uuid": episode.id or None,
        "error": _error(episode) if failed else None,
        "limit": _limit(episode),
        "turn_count": episode.turns,
    }


def _to_message(message: Mapping[str, Any], model: str) -> Json:
    text, role = str(message.get("content") or ""), message["role"]
    if role == "tool":
        return {"role": role, "content": text, "tool_call_id": message.get("tool_call_id")}
    if role != "assistant":
        return {"role": role, "content": text}
    calls = [
        {
            "id": str(call.get("id") or n),
            "function": str(call["function"]["name"]),
            "arguments": parse_arguments(str(call["function"].get("arguments") or "")),
        }
        for n, call in enumerate(message.get("tool_calls") or ())
    ]
    content: Any = text
    if thought := message.get("reasoning"):
        content = [
            {"type": "reasoning", "reasoning": str(thought)},
            {"type": "text", "text": text},
        ]
    made = {"role": role, "content": content, "model": model, "source": "generate"}
    return {**made, "tool_calls": calls} if calls else made


def _events(
    episode: Trajectory, everything: Sequence[Turn], model: str, began: str
) -> Iterator[Json]:
    """An event for every answer of a model, every execution and every score."""
    recorded = has_messages(episode)
    so_far: list[Json] = []
    for number, turn in enumerate(everything, start=1):
        so_far += [_to_message(m, model) for m in turn.prompt]
        if turn.answer is not None:
            answer = _to_message(turn.answer, model)
            if recorded:
                yield {
                    "event": "model", "timestamp": began, "model": model, "input": list(so_far),
                    "tools": [], "tool_choice": "none", "config": {},
                    "output": _output(answer, model),
                }  # fmt: skip
            so_far.append(answer)
        if turn.step.executed:
            yield {"timestamp": began, **_tool_event(turn.step, number, code_tool_name(episode))}
        if turn.step.reward is not None:
            yield {
                "event": "score", "timestamp": began, "scorer": "reward",
                "score": _to_score(turn.step.reward, turn.step),
                "intermediate": number < len(everything),
            }  # fmt: skip


def _tool_event(step: Step, number: int, tool: str) -> Json:
    event: Json = {
        "event": "tool", "id": f"call_{number}", "function": tool,
        "arguments": {"code": step.action}, "result": step.observation,
        "failed": step.valid is False, "agent": step.actor,
    }  # fmt: skip
    if step.timed_out:
        event["error"] = {"type": "timeout", "message": "stopped at the time limit"}
    return event


def _scores(episode: Trajectory) -> Json:
    best = next((s for s in episode.steps if s.reward == episode.reward), None)
    why = f"the episode's end: {episode.end}"
    success = {"value": int(episode.success), "explanation": why}
    return {"reward": _to_score(episode.reward, best), "success": success}


def _to_score(value: float, step: Step | None) -> Json:
    if step is None:
        return {"value": value}
    return {"value": value, "answer": step.action, "metadata": to_jsonable(step.parts) or None}


def _output(answer: Json | None, model: str) -> Json:
    choices = [] if answer is None else [{"message": answer, "stop_reason": "stop"}]
    return {"model": model, "choices": choices}


def _error(episode: Trajectory) -> Json:
    told = episode.error or "no reason recorded"
    return {"message": told, "traceback": "", "traceback_ansi": ""}


def _limit(episode: Trajectory) -> Json | None:
    if episode.end == "turn_limit":
        return {"type": "turn", "limit": episode.run.get("max_turns") or episode.turns}
    if episode.end == "budget":
        why = "a limit on tokens, cost or time"
        return {"type": "custom", "limit": 0, "reason": why}
    return None
