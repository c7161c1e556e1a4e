"""Prints the estimate of ``intercode eval --dry-run``: what a run would take at most, and what it
will likely take."""

from __future__ import annotations

from collections.abc import Sequence

from intercode.evaluation.evaluate.estimate import UsageEstimate, estimate
from intercode.evaluation.evaluate.plan import Plan
from intercode.results.statistics.intervals import Estimate


def print_estimate(plan: Plan, name: str = "", said: set[str] | None = None) -> UsageEstimate:
    """Print and return the estimate of a run, without the notes in ``said``, to which its own are
    added."""
    bounds = estimate(plan)
    said = set() if said is None else said
    notes = [f"note      {note}" for note in bounds.notes if note not in said]
    lines = (f"  {line}" for line in (*_lines(plan, bounds), *notes))
    print("\n".join([name or str(plan.out), *lines]))
    said.update(bounds.notes)
    return bounds


def print_total(estimates: Sequence[UsageEstimate]) -> None:
    """Print the sum of the estimates of several runs."""
    costs = [e.cost for e in estimates]
    known = sum(c for c in costs if c is not None)
    unknown = f", and {costs.count(None)} runs of unknown cost" if None in costs else ""
    requests = [e.requests for e in estimates]
    bound = "unbounded" if None in requests else f"at most {sum(r or 0 for r in requests):,}"
    print(f"all {len(estimates)} runs")
    print(f"  episodes  {sum(e.episodes for e in estimates):,} to play")
    print(f"  requests  {bound}")
    cost = f"at most ${known:,.4g}{unknown}" if len(costs) > costs.count(None) else "unknown"
    likely = [e.likely.cost.value for e in estimates if e.likely and e.likely.cost]
    if likely:
        without = len(estimates) - len(likely)
        more = f" for {len(likely)} of the runs" if without else ""
        cost = f"likely ${sum(likely):,.4g}{more}; {cost}"
    print(f"  cost      {cost}")


def _lines(plan: Plan, e: UsageEstimate) -> list[str]:
    tasks, epochs = len(plan.task_indices), plan.config.epochs
    of = f"{tasks:,} tasks" + (f" x {epochs} epochs" if epochs > 1 else "")
    metadata = plan.metadata
    lines = [
        f"dataset   {metadata['dataset']} ({metadata['dataset_hash']}), "
        f"{metadata['profile']} profile, "
        f"{metadata.get('tier') or metadata.get('engine') or 'no sandbox'}",
        f"episodes  {e.episodes:,} to play, {e.finished:,} finished: {of}",
    ]
    if plan.uses_model:
        bound = "unbounded" if e.requests is None else f"at most {e.requests:,}"
        likely = e.likely
        lines += [
            f"requests  {_likely(likely.requests if likely else None, ',.0f')}{bound}",
            f"tokens    {_likely(likely.tokens if likely else None, ',.0f')}{_tokens(e)}",
            f"cost      {_likely(likely.cost if likely else None, ',.4g', '$')}{_cost(e)}",
        ]
        if likely is not None:
            lines.append(f"likely    by the mean of {likely.source}, with its 95 % interval")
    return lines


def _likely(total: Estimate | None, form: str, unit: str = "") -> str:
    """Return a likely total with its interval, to be followed by the bound."""
    if total is None:
        return ""
    text = f"likely {unit}{total.value:{form}}"
    if total.low is not None and total.high is not None:
        text += f" [{total.low:{form}}, {total.high:{form}}]"
    return f"{text}; "


def _tokens(e: UsageEstimate) -> str:
    least = f"at least {e.min_prompt_tokens:,} (each first prompt once)"
    if e.prompt_tokens is None or e.completion_tokens is None:
        return "unbounded" if e.likely else least
    most = f"at most {e.prompt_tokens:,} in prompts and {e.completion_tokens:,} in answers"
    return most if e.likely else f"{least}, {most}"  # the model's tokens are not those of `least`


def _cost(e: UsageEstimate) -> str:
    return "unknown" if e.cost is None else f"at most ${e.cost:,.4g}"
