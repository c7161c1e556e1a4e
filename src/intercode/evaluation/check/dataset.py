"""Proves a dataset: every gold runs and scores 1, twice alike, and doing nothing does not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from intercode import datasets
from intercode.core.errors import DataError, GoldError, InfrastructureError, UsageError
from intercode.core.registry import Registry
from intercode.core.types import (
    EMPTY_MAPPING,
    SUCCESS_THRESHOLD,
    Dataset,
    Network,
    Profile,
    Score,
    Task,
)
from intercode.datasets.load_cache import environment_for_options
from intercode.environments.base.gold_cache import nondeterminism_reason
from intercode.evaluation.check import stable_golds
from intercode.evaluation.check.findings import (
    FAULT_KINDS,
    CheckReport,
    Finding,
    SearchCounts,
    findings_in_output,
)
from intercode.evaluation.check.sandbox_search import search_sandboxes
from intercode.evaluation.check.task_runs import TaskRun, TaskRunner, task_runners

RESULT_AUDITS = Registry("look at golds of", {"sql": "intercode.environments.sql.audit:audit_gold"})
"""By environment: what gives findings from a run of a gold."""
_MIN_SECONDS_BETWEEN_RUNS = 1.1
"""Seconds between the two runs of a gold at least: what prints the time gives itself away."""


def check(
    dataset: str | Dataset,
    *,
    profile: Profile = "standard",
    image: str | None = None,
    network: Network = "none",
    parallel: int = 2,
    timeout: float = 10.0,
    cache_golds: bool = True,
    env_options: Mapping[str, Any] = EMPTY_MAPPING,
    sandbox: str = "auto",
) -> CheckReport:
    """Play every gold of a dataset twice, and nothing once, look for golds and for the programs
    that are needed in fresh boxes (see inside.py), and report what is wrong.

    ``keep``: what golds leave that are proven steady is kept for later episodes (``standard`` on
    an image without a network; see environments/base/gold_cache.py).
    ``timeout`` is what a gold may take, in seconds, like any action. ``env_options`` are settings
    of the environment's own, such as SqlEnv's ``engine``. Raises UnknownNameError and
    UsageError for a dataset or image that is not there; the box failing is a finding.
    """
    chosen = dataset
    if isinstance(chosen, str):
        chosen = datasets.load(chosen, environment_for_options(env_options))
    if parallel < 1:
        raise UsageError(f"parallel is {parallel}; it must be at least 1")
    settings = {"profile": profile, "image": image, "network": network, "timeout": timeout}
    settings |= {"sandbox": sandbox, **env_options}
    rows = [_TaskCheck(i, task) for i, task in enumerate(chosen.tasks)]
    facts, inside, searched = _run_passes(chosen, settings, parallel, rows)
    steady = {row.index: shown for row in rows if cache_golds and (shown := row.stable) is not None}
    kept = stable_golds.cache_stable(chosen, settings, parallel, steady) if steady else 0
    found = [*_static_findings(chosen), *(f for row in rows for f in row.findings), *inside]
    order = {row.task.id: row.index for row in reversed(rows)}
    found.sort(key=lambda f: order[f.task])
    return CheckReport(
        chosen.name,
        len(chosen),
        tuple(f for f in found if f.kind in FAULT_KINDS),
        tuple(f for f in found if f.kind not in FAULT_KINDS),
        facts,
        {row.task.id: row.first_run.fingerprint for row in rows if row.first_run is not None},
        kept,
        searched,
    )


def _run_passes(
    dataset: Dataset, settings: Mapping[str, Any], parallel: int, rows: Sequence[_TaskCheck]
) -> tuple[Mapping[str, Any], list[Finding], SearchCounts]:
    """All passes over all rows. What the environment is, and what was seen inside fresh boxes."""
    golds = {row.index: row for row in rows if row.task.gold is not None}
    with task_runners(dataset, settings, parallel) as over:
        facts = over(lambda player, _: player.env.result_metadata(), [0])[0]
        over(lambda player, i: _with_retry(player, golds[i], _first_pass), golds)
        time.sleep(_MIN_SECONDS_BETWEEN_RUNS if golds else 0.0)
        over(lambda player, i: _with_retry(player, golds[i], _second_pass), golds)
        if dataset.environment in RESULT_AUDITS:
            over(lambda player, i: _with_retry(player, golds[i], _audit_pass), golds)
        return facts, *search_sandboxes(over, dataset)


def compare_with_baseline(
    report: CheckReport, fingerprints: Mapping[str, str], name: str
) -> CheckReport:
    """The report, with a fault for each gold that did something else in an earlier check."""
    changed = tuple(
        Finding(task, "volatile", f"differs from what it did in {name}")
        for task, seen in report.fingerprints.items()
        if fingerprints.get(task, seen) != seen
    )
    return replace(report, faults=report.faults + changed)


class _TaskCheck:
    """A task, what was found on it, and what its gold did at first."""

    def __init__(self, i: int, task: Task) -> None:
        self.index, self.task, self.solution = i, task, task.solution or ""
        self.findings: list[Finding] = []
        self.first_run: TaskRun | None = None
        self.second_run: TaskRun | None = None

    @property
    def stable(self) -> stable_golds.StableGolds | None:
        """What the golds have left in both passes, where that was the same and nothing is wrong."""
        if (
            self.first_run is None
            or self.second_run is None
            or any(f.kind in FAULT_KINDS for f in self.findings)
        ):
            return None
        return stable_golds.compare_runs(self.first_run, self.second_run, len(self.task.golds))

    def add_finding(self, kind: str, detail: str) -> None:
        """One more finding, once."""
        finding = Finding(self.task.id, kind, detail)
        if finding not in self.findings:
            self.findings.append(finding)

    def require_success(self, kind: str, what: str, play: TaskRun) -> None:
        """A finding unless a solution came to its end and scored 1."""
        if play.score is None:
            self.add_finding("time-out", f"{what} was not done in time")
        elif play.score.value < SUCCESS_THRESHOLD:
            parts = ", ".join(f"{k} {v:.3g}" for k, v in play.score.parts.items())
            self.add_finding(kind, f"{what} scored {play.score.value:.3f} ({parts})")


def _with_retry(
    player: TaskRunner, row: _TaskCheck, work: Callable[[TaskRunner, _TaskCheck], None]
) -> None:
    """One pass over one task; a box that fails gets a second chance."""
    kept = list(row.findings)
    for chance in (1, 2):
        try:
            work(player, row)
            break
        except GoldError as e:
            row.add_finding("fails", str(e))
            break
        except DataError as e:
            row.add_finding("no-files", str(e))
            break
        except InfrastructureError as e:
            row.findings = list(kept)
            if chance == 2:
                row.add_finding("sandbox-failed", f"{type(e).__name__}: {e}")


def _first_pass(player: TaskRunner, row: _TaskCheck) -> None:
    """The gold runs, scores 1, and prints no error."""
    play = player.run(row.index, row.solution)
    row.require_success("gold-below-1", "the gold", play)
    if play.timed_out:
        return
    row.first_run = play
    if play.exit_status != 0:
        row.add_finding(
            "status-1" if play.exit_status == 1 else "fails", f"exit status {play.exit_status}"
        )
    row.findings += findings_in_output(row.task.id, play.output)


def _second_pass(player: TaskRunner, row: _TaskCheck) -> None:
    """Doing nothing scores less; the gold does the same again; every further gold scores 1."""
    if row.first_run is None:
        return
    start = player.score_after_reset(row.index)
    if start.success:
        row.add_finding("noop-scores-1", f"reward {start.value:g} right after reset")
    play = player.run(row.index, row.solution)
    if row.first_run.difference(play) and row.first_run.started // 3600 != play.started // 3600:
        row.first_run = play  # task files get new dates with the hour: compare within it
        time.sleep(_MIN_SECONDS_BETWEEN_RUNS)
        play = player.run(row.index, row.solution)
    row.second_run = play
    if difference := row.first_run.difference(play):
        row.add_finding("volatile", difference + _instability_reason(row.task))
    if all(f.kind != "gold-below-1" for f in row.findings):
        row.require_success("gold-below-1", "the gold", play)
    for n, gold in enumerate(row.task.golds[1:], 1):
        play = player.run(row.index, gold)
        row.require_success("also-below-1", f"further gold {n}", play)
        for f in findings_in_output(row.task.id, play.output):
            row.add_finding(f.kind, f"further gold {n}: {f.detail}")
    if not row.findings and _score_fields(player.score_after_reset(row.index)) != _score_fields(
        start
    ):
        row.add_finding("reset-differs", "doing nothing left another state after another reset")


def _instability_reason(task: Task) -> str:
    """What in a task's golds may make them differ from run to run."""
    codes = (*task.golds, task.setup or "")
    return next(
        (f"; {why}" for code in codes if (why := nondeterminism_reason(code, task.cwd))), ""
    )


def _audit_pass(player: TaskRunner, row: _TaskCheck) -> None:
    """What the environment's own look at the gold's result shows."""
    if row.first_run is not None and row.first_run.state is not None:
        for found in RESULT_AUDITS.load(player.env.name)(player, row.index, row.first_run):
            row.add_finding(found.kind, found.detail)


def _score_fields(score: Score) -> tuple[object, ...]:
    return score.value, dict(score.parts), dict(score.details)


def _static_findings(dataset: Dataset) -> Iterator[Finding]:
    """What shows without running anything."""
    seen: dict[tuple[object, ...], int] = {}
    for n, task in enumerate(dataset.tasks):
        keys: list[tuple[object, ...]] = [("duplicate-id", task.id)]
        if task.query.strip():
            asked = " ".join(task.query.split()).lower()
            keys.append(("duplicate-query", task.files, task.database, asked))
        else:
            yield Finding(task.id, "empty-query", "the query is empty")
        if task.gold is None:
            yield Finding(task.id, "no-gold", "there is no gold to play")
        else:
            kind = "duplicate-gold" if task.database is None else "same-gold"
            keys.append((kind, task.files, task.database, task.setup, task.gold.strip()))
        for key in keys:
            first = seen.setdefault(key, n)
            if first != n:
                yield Finding(task.id, str(key[0]), f"as {dataset.tasks[first].id}, task {first}")
