"""Logs of Inspect (``.eval``), written by its own library; `inspect view` opens them."""

from __future__ import annotations

import datetime
import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import intercode
from intercode.core.errors import ConfigError, UsageError
from intercode.core.types import Step, Trajectory, Usage, to_jsonable
from intercode.results.export.base import (
    ExportResult,
    Turn,
    code_tool_name,
    conversation_messages,
    conversation_turns,
    exported_metadata,
    has_messages,
    parse_arguments,
)
from intercode.results.statistics.intervals import Cluster, ratio_variance, values_by_task
from intercode.results.statistics.metrics import drop_retried_failures, is_failed

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample, EvalScore, EvalSpec

Json = dict[str, Any]


def to_sample(episode: Trajectory, epoch: int, model: str, usage: Json, began: str) -> Json:
    """Return an episode as a sample, in the JSON form that Inspect's library reads. ``usage`` is
    that of the episode, by model; ``began`` is the start of the run, which is the time of all
    events."""
    all_turns = conversation_turns(episode)
    messages = [_to_message(m, model) for m in conversation_messages(all_turns)]
    answers = [m for m in messages if m["role"] == "assistant"]
    failed = is_failed(episode)
    return {
        "id": episode.task,
        "epoch": epoch,
        "input": episode.query,
        "target": "",
        "messages": messages,
        "output": _output(answers[-1] if answers else None, model),
        "scores": None if failed else _sample_scores(episode),
        "metadata": {
            **exported_metadata(episode),
            "group": episode.group,
            "hardness": episode.hardness,
        },
        "events": list(_events(episode, all_turns, model, began)),
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
    values = {"role": role, "content": content, "model": model, "source": "generate"}
    return {**values, "tool_calls": calls} if calls else values


def _events(
    episode: Trajectory, all_turns: Sequence[Turn], model: str, began: str
) -> Iterator[Json]:
    """Yield an event for every answer of a model, every execution and every score."""
    recorded = has_messages(episode)
    earlier: list[Json] = []
    for number, turn in enumerate(all_turns, start=1):
        earlier += [_to_message(m, model) for m in turn.prompt]
        if turn.answer is not None:
            answer = _to_message(turn.answer, model)
            if recorded:
                yield {
                    "event": "model",
                    "timestamp": began,
                    "model": model,
                    "input": list(earlier),
                    "tools": [],
                    "tool_choice": "none",
                    "config": {},
                    "output": _output(answer, model),
                }
            earlier.append(answer)
        if turn.step.executed:
            yield {"timestamp": began, **_tool_event(turn.step, number, code_tool_name(episode))}
        if turn.step.score is not None:
            yield {
                "event": "score",
                "timestamp": began,
                "scorer": "reward",
                "score": _to_score(turn.step.score.value, turn.step),
                "intermediate": number < len(all_turns),
            }


def _tool_event(step: Step, number: int, tool: str) -> Json:
    event: Json = {
        "event": "tool",
        "id": f"call_{number}",
        "function": tool,
        "arguments": {"code": step.action},
        "result": step.observation,
        "failed": step.valid is False,
        "agent": step.actor,
    }
    if step.timed_out:
        event["error"] = {"type": "timeout", "message": "stopped at the time limit"}
    return event


def _sample_scores(episode: Trajectory) -> Json:
    best = next((s for s in episode.steps if s.score_value == episode.score), None)
    reason = f"the episode's end: {episode.end}"
    success = {"value": int(episode.success), "explanation": reason}
    return {"reward": _to_score(episode.score, best), "success": success}


def _to_score(value: float, step: Step | None) -> Json:
    if step is None:
        return {"value": value}
    return {"value": value, "answer": step.action, "metadata": to_jsonable(step.parts) or None}


def _output(answer: Json | None, model: str) -> Json:
    choices = [] if answer is None else [{"message": answer, "stop_reason": "stop"}]
    return {"model": model, "choices": choices}


def _error(episode: Trajectory) -> Json:
    message = episode.error or "no reason recorded"
    return {"message": message, "traceback": "", "traceback_ansi": ""}


def _limit(episode: Trajectory) -> Json | None:
    if episode.end == "turn_limit":
        return {"type": "turn", "limit": episode.run.get("max_turns") or episode.turns}
    if episode.end == "budget":
        reason = "a limit on tokens, cost or time"
        return {"type": "custom", "limit": 0, "reason": reason}
    return None


SUFFIX = ".eval"
_UNKNOWN_START = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def export(episodes: Sequence[Trajectory], out: Path) -> ExportResult:
    """Write one log with a sample for each episode. ``out`` ends in ``.eval``.

    A sample holds the conversation, an event for every answer and every execution, the scores
    ``reward`` and ``success``, the usage, and the run's metadata. It has no target, as a record
    holds no gold. Raises ConfigError without the package, UsageError for another suffix and for
    episodes of several runs.
    """
    try:
        from inspect_ai.log import write_eval_log
    except ImportError as e:
        raise ConfigError(
            "Inspect's logs need its library: pip install 'intercode-gym[inspect]'"
        ) from e
    if out.suffix != SUFFIX:
        raise UsageError(f"--out {out} must end in {SUFFIX}, by which Inspect recognises its logs")
    keys = ("dataset", "agent", "model")
    runs = {tuple(str(t.run.get(n)) for n in keys) for t in episodes}
    if len(runs) > 1:
        raise UsageError(f"a log of Inspect holds one run, and these episodes are of {runs}")
    out.parent.mkdir(parents=True, exist_ok=True)
    write_eval_log(_to_log(episodes), str(out), format="eval")
    branches = sum(t.parent is not None for t in episodes)
    notes = (f"{branches} branches of other episodes",) if branches else ()
    return ExportResult((out,), len(episodes) - branches, notes)


def _to_log(episodes: Sequence[Trajectory]) -> EvalLog:
    from inspect_ai.log import EvalLog, EvalResults, EvalStats
    from inspect_ai.model import ModelUsage

    roots = [t for t in episodes if t.parent is None]
    began = _start_time(roots[0].run)
    ended = began + datetime.timedelta(seconds=sum(t.seconds or 0.0 for t in roots))
    model = str(roots[0].run.get("model") or "none")
    usage = sum((t.usage for t in roots), Usage())
    completed = [t for t in roots if not is_failed(t)]
    results = EvalResults(
        total_samples=len(roots),
        completed_samples=len(completed),
        scores=_scores(drop_retried_failures(roots)),
    )
    stats = EvalStats(
        started_at=began.isoformat(),
        completed_at=ended.isoformat(),
        model_usage={name: ModelUsage(**spent) for name, spent in _usage(usage, model).items()},
    )
    samples = list(_samples(roots, model, began.isoformat()))
    return EvalLog(
        status="success",
        eval=_eval_spec(roots, model, began, max(sample.epoch for sample in samples)),
        results=results,
        stats=stats,
        samples=samples,
    )


def _samples(episodes: Sequence[Trajectory], model: str, began: str) -> Iterator[EvalSample]:
    """Yield the samples, each under an epoch that no other episode of its task has."""
    from inspect_ai.log import EvalSample

    seen: dict[str, int] = {}
    for episode in episodes:
        epoch = max(episode.epoch + 1, seen.get(episode.task, 0) + 1)
        seen[episode.task] = epoch
        values = to_sample(episode, epoch, model, _usage(episode.usage, model), began)
        yield EvalSample.model_validate(values)


def _eval_spec(
    episodes: Sequence[Trajectory], model: str, began: datetime.datetime, epochs: int
) -> EvalSpec:
    from inspect_ai.log import EvalConfig, EvalDataset, EvalSpec

    run = episodes[0].run
    ids = list(dict.fromkeys(t.task for t in episodes))
    name = str(run.get("dataset") or "episodes")
    key = hashlib.sha256("\n".join(t.id or t.task for t in episodes).encode()).hexdigest()[:22]
    named = {"dataset": name, "profile": str(run.get("profile") or "unknown")}
    return EvalSpec(
        eval_id=key,
        run_id=key,
        task_id=key,
        created=began.isoformat(),
        task=f"intercode/{run.get('environment') or 'unknown'}",
        task_args=named,
        task_version=str(run.get("scoring") or 0),
        solver=str(run.get("agent") or "unknown"),
        dataset=EvalDataset(name=name, samples=len(ids), sample_ids=list(ids)),
        model=model,
        model_base_url=run.get("endpoint"),
        config=EvalConfig(epochs=epochs, turn_limit=run.get("max_turns")),
        packages={"intercode-gym": str(run.get("version") or intercode.__version__)},
        metadata=to_jsonable({k: v for k, v in run.items() if v is not None}),
    )


def _scores(episodes: Sequence[Trajectory]) -> list[EvalScore]:
    """Return the mean of each score and its standard error, clustered by task: epochs of a task are
    not independent. As in Inspect, the error is 0 where one task leaves it unknown."""
    from inspect_ai.log import EvalMetric, EvalScore

    out = []
    for name, field in (("reward", "score"), ("success", "success")):
        values = [0.0 if is_failed(t) else float(getattr(t, field)) for t in episodes]
        if not values:
            continue
        by_task = values_by_task([(t.task, v) for t, v in zip(episodes, values, strict=True)])
        variance = ratio_variance([Cluster(math.fsum(v), len(v)) for v in by_task])
        metrics = {"mean": fmean(values), "stderr": math.sqrt(variance or 0.0)}
        out.append(
            EvalScore(
                name=name,
                scorer=name,
                scored_samples=len(values),
                unscored_samples=0,
                metrics={k: EvalMetric(name=k, value=v) for k, v in metrics.items()},
            )
        )
    return out


def _usage(usage: Usage, model: str) -> dict[str, dict[str, Any]]:
    """Return the usage by model; nothing if it is unknown."""
    prompt, completion = usage.prompt_tokens, usage.completion_tokens
    if prompt is None or completion is None:
        return {}
    spent = {
        "input_tokens": prompt,
        "output_tokens": completion,
        "total_tokens": prompt + completion,
        "input_tokens_cache_read": usage.cached_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "total_cost": usage.cost,
    }
    return {model: spent}


def _start_time(run: Any) -> datetime.datetime:
    try:
        started = datetime.datetime.fromisoformat(str(run.get("started")))
    except ValueError:
        return _UNKNOWN_START
    return started if started.tzinfo else started.replace(tzinfo=datetime.UTC)
