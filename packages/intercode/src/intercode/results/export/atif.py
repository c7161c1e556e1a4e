"""ATIF, the Agent Trajectory Interchange Format (version 1.8): one document per episode.

A turn is a step of the agent with one tool call, and its observation is in the same step. Messages
of a recorded conversation that are neither an answer nor an observation (the system message, the
task) are separate steps.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import intercode
from intercode.core.errors import UsageError
from intercode.core.types import Step, Trajectory, Usage, to_jsonable
from intercode.results.export.base import (
    ExportResult,
    Turn,
    code_tool_name,
    conversation_turns,
    exported_metadata,
    parse_arguments,
    text_as_file_name,
)
from intercode.results.export.tools import offered_tools

SCHEMA = "ATIF-v1.8"


def export(episodes: Sequence[Trajectory], out: Path) -> ExportResult:
    """Write one ``.json`` file for each episode into the directory ``out``."""
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file, but a directory is needed for one document per episode")
    out.mkdir(parents=True, exist_ok=True)
    files: list[Path] = []
    for episode in episodes:
        name = text_as_file_name(
            f"{episode.task}-{episode.epoch}" if episode.epoch else episode.task
        )
        path = out / f"{name}.json"
        if path in files:  # branches and second tries of one task
            path = out / f"{name}-{text_as_file_name(episode.id or str(len(files)))}.json"
        text = json.dumps(to_document(episode), indent=1, ensure_ascii=False, allow_nan=False)
        path.write_text(text + "\n", encoding="utf-8")
        files.append(path)
    return ExportResult(tuple(files), len(files))


def to_document(episode: Trajectory) -> dict[str, Any]:
    """Return one episode as an ATIF document. Keys without a value are left out, as the format
    requires."""
    run = episode.run
    steps = [{"step_id": n, **step} for n, step in enumerate(_steps(episode), start=1)]
    agent = {
        "name": str(run.get("agent") or "unknown"),
        "version": str(run.get("version") or intercode.__version__),
        "model_name": run.get("model"),
        "tool_definitions": offered_tools(episode) or None,
        "extra": {"system": "intercode"},
    }
    extra = {
        **exported_metadata(episode),
        "run": to_jsonable(run),
        "error": episode.error,
        "parent": episode.parent,
    }
    return _without_none(
        {
            "schema_version": SCHEMA,
            "session_id": str(run.get("file") or run.get("dataset") or "intercode"),
            "trajectory_id": episode.id or f"{episode.task}#{episode.epoch}",
            "agent": _without_none(agent),
            "steps": steps,
            "final_metrics": _final_metrics(episode, len(steps)),
            "extra": _without_none(extra),
        }
    )


def _steps(episode: Trajectory) -> Iterator[dict[str, Any]]:
    """Yield system, user and agent steps in order, without repeating observations."""
    tool = code_tool_name(episode)
    all_turns = conversation_turns(episode)
    for number, turn in enumerate(all_turns):
        for message in turn.prompt:
            repeats = number > 0 and message["role"] in ("user", "tool")
            if not repeats:
                source = "system" if message["role"] == "system" else "user"
                yield {"source": source, "message": str(message.get("content") or "")}
        after = all_turns[number + 1].prompt if number + 1 < len(all_turns) else ()
        sent_observation = "\n".join(
            str(m.get("content")) for m in after if m["role"] in ("user", "tool")
        )
        yield _agent_step(turn, tool, f"call_{number + 1}", sent_observation)
    if not all_turns:
        yield {"source": "user", "message": episode.query}


def _agent_step(turn: Turn, tool: str, call_id: str, sent_observation: str) -> dict[str, Any]:
    """Return a turn as a step. ``sent_observation`` is the observation as the next turn's
    conversation has it."""
    step = turn.step
    answer = turn.answer or {}
    by_model = step.actor == "agent" and (step.usage != Usage() or bool(turn.answer))
    agent_step: dict[str, Any] = {
        "source": "agent" if step.actor == "agent" else "user",
        "message": str(answer.get("content") or step.message or ""),
        "observation": {"results": [_observation_result(step, None, sent_observation)]},
        "extra": _without_none(
            {
                "actor": step.actor,
                "reward": step.score_value,
                "parts": to_jsonable(step.parts) or None,
                "valid": step.valid,
                "exit_code": step.exit_code,
                "executed": step.executed,
                "timed_out": step.timed_out,
                "refused": step.refused or None,
                "context": to_jsonable(step.context) or None,
            }
        ),
    }
    if step.actor != "agent":
        agent_step["message"] = step.action
        agent_step["observation"] = {"results": [{"content": step.observation}]}
        return agent_step
    if calls := list(_calls(turn, tool, call_id)):
        agent_step["tool_calls"] = calls
        agent_step["observation"] = {
            "results": [_observation_result(step, calls[0]["tool_call_id"], sent_observation)]
        }
    if by_model and step.usage.requests:
        agent_step["llm_call_count"] = step.usage.requests
    thought = answer.get("reasoning") or step.thought
    if by_model and thought:
        agent_step["reasoning_content"] = thought
    if by_model and (metrics := _metrics(step.usage, answer.get("tokens"))):
        agent_step["metrics"] = metrics
    return agent_step


def _calls(turn: Turn, tool: str, call_id: str) -> Iterator[dict[str, Any]]:
    """Yield the calls as the model wrote them; for code in an answer's text one call of the
    environment's tool."""
    native = (turn.answer or {}).get("tool_calls") or ()
    for call in native:
        function = call["function"]
        yield {
            "tool_call_id": str(call.get("id") or call_id),
            "function_name": str(function["name"]),
            "arguments": parse_arguments(str(function.get("arguments") or "")),
        }
    if not native and turn.step.executed:
        code = {"code": turn.step.action}
        yield {"tool_call_id": call_id, "function_name": tool, "arguments": code}


def _observation_result(step: Step, call_id: str | None, sent_observation: str) -> dict[str, Any]:
    """Return the observation, and the text in which the agent received it if that differs."""
    extra = (
        {"told": sent_observation}
        if sent_observation and sent_observation.strip() != step.observation.strip()
        else None
    )
    return _without_none({"source_call_id": call_id, "content": step.observation, "extra": extra})


def _metrics(usage: Usage, tokens: Any) -> dict[str, Any]:
    recorded = tokens if isinstance(tokens, Mapping) else {}
    extra = {"requests": usage.requests or None, "reasoning_tokens": usage.reasoning_tokens}
    return _without_none(
        {
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "cached_tokens": usage.cached_tokens,
            "cost_usd": usage.cost,
            "prompt_token_ids": recorded.get("prompt_ids"),
            "completion_token_ids": recorded.get("ids"),
            "logprobs": recorded.get("logprobs"),
            "extra": _without_none(extra) or None,
        }
    )


def _final_metrics(episode: Trajectory, steps: int) -> dict[str, Any]:
    usage = episode.usage
    return _without_none(
        {
            "total_prompt_tokens": usage.prompt_tokens,
            "total_completion_tokens": usage.completion_tokens,
            "total_cached_tokens": usage.cached_tokens,
            "total_cost_usd": usage.cost,
            "total_steps": steps,
            "extra": _without_none({"turns": episode.turns, "seconds": episode.seconds}),
        }
    )


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in values.items() if v is not None}
