"""What a run's report of progress begins with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from intercode.core.config import EvalConfig
from intercode.evaluation.evaluate.plan import Plan
from intercode.evaluation.evaluate.progress.counts import counted


def describe_plan(plan: Plan) -> list[tuple[str, str]]:
    """Return the directory, dataset, agent, model and limits of a run, each with its name."""
    metadata, config = plan.metadata, plan.config
    tasks = len(plan.task_indices)
    count = counted(len(plan.dataset), "task", "tasks")
    count = f"{tasks:,} of {count}" if tasks < len(plan.dataset) else count
    count = f"a sample of {count}" if config.sample else count
    count += f" x {config.epochs} epochs" if config.epochs > 1 else ""
    where = metadata.get("tier") or metadata.get("engine")
    dataset = [
        f"{metadata.get('dataset')} ({metadata.get('dataset_hash')})",
        count,
        f"profile {metadata.get('profile')}",
        *([str(where)] if where else []),
    ]
    rows = [
        ("run", str(plan.out)),
        ("dataset", ", ".join(dataset)),
        ("agent", str(metadata.get("agent"))),
    ]
    if model := metadata.get("model"):
        endpoint = metadata.get("endpoint")
        rows.append(("model", f"{model} at {endpoint}" if endpoint else str(model)))
    return [*rows, ("limits", ", ".join(_limits(config, metadata)))]


def _limits(config: EvalConfig, metadata: Mapping[str, Any]) -> list[str]:
    """Return what bounds the run and its episodes."""
    texts = [f"{config.parallel} at once"]
    if (max_turns := metadata.get("max_turns")) is not None:
        texts.append(f"{max_turns} turns")
    texts.append(f"{metadata['timeout']:g} s an action")
    texts += [f"{name} {value:,}" for name, value in metadata.get("limits", {}).items()]
    for name, of in (("", "the run"), ("_per_episode", "an episode")):
        for kind, form in (("tokens", "{:,} tokens"), ("cost", "${:,g}"), ("seconds", "{:g} s")):
            limit = getattr(config, f"max_{kind}{name}")
            if limit is not None:
                texts.append(f"{form.format(limit)} {of}")
    if config.fail_on_error is not None:
        texts.append(f"at most {config.fail_on_error} errors")
    return texts
