"""Checks a dataset: each gold scores 1, with the same result twice; doing nothing scores less."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from intercode import datasets
from intercode.core.errors import (
    DataError,
    GoldError,
    InfrastructureError,
    TaskError,
    UsageError,
)
from intercode.core.types import (
    EMPTY_MAPPING,
    SUCCESS_THRESHOLD,
    Dataset,
    Network,
    Score,
    Task,
    tree_digest,
)
from intercode.datasets.load_cache import environment_for_options
from intercode.evaluation.check import stable_golds
from intercode.evaluation.check.findings import (
    FAULT_KINDS,
    MAX_SHOWN,
    CheckReport,
    SearchCounts,
    TaskFinding,
    findings_in_output,
)
from intercode.evaluation.check.sandbox_search import search_sandboxes
from intercode.evaluation.check.task_runs import TaskRun, TaskRunner, task_runners
from intercode.results.short_text import shorten_line
from intercode_sandbox.clock import SYSTEM_CLOCK, Clock
from intercode_sandbox.registry import Registry

AUDIT_RULES = Registry("audit rule of environment", {}, group="intercode.audit_rules")
"""The audit rules by environment. A rule examines the result of a gold: it is called as
``rule(runner, index, run)`` with a CodeRunner and a TaskRun of the gold of the task at ``index``,
and returns a list of TaskFinding."""
_MIN_SECONDS_BETWEEN_RUNS = 1.1
"""Shortest time between the two runs of a gold, so that a gold that prints the time differs."""
C = TypeVar("C", bound="TaskCheck")


def check(
    dataset: str | Dataset,
    *,
    profile: str = "standard",
    image: str | None = None,
    network: Network = "none",
    limit: int | None = None,
    parallel: int = 2,
    timeout: float | None = None,
    cache_golds: bool = True,
    env_options: Mapping[str, Any] = EMPTY_MAPPING,
    backend: str = "auto",
) -> CheckReport:
    """Check the tasks of a dataset and return what is wrong with them.

    Runs every gold twice, scores each task once without any action, and searches fresh sandboxes
    for golds and for the programs that the dataset needs (see sandbox_search.py). ``limit``:
    check only this many tasks, from the first.

    ``cache_golds`` runs the golds under other clocks and seeds, too, and stores the results that
    stay the same in the gold cache, for later episodes (see stable_golds.py). ``timeout`` limits
    each gold, in seconds. ``env_options`` are settings of the environment, such as SqlEnv's
    ``engine``. Raises
    UnknownNameError and UsageError for a dataset or an image that does not exist. A sandbox that
    fails is a finding.
    """
    chosen = datasets.load(dataset, environment_for_options(env_options))
    if parallel < 1:
        raise UsageError(f"parallel is {parallel}; it must be at least 1")
    if limit is not None and limit < 1:
        raise UsageError(f"limit is {limit}; it must be at least 1")
    whole_hash = chosen.hash
    if limit is not None:
        chosen = replace(chosen, tasks=chosen.tasks[:limit])
    settings = {"profile": profile, "image": image, "network": network, "timeout": timeout}
    settings |= {"backend": backend, **env_options}
    checks = [TaskCheck(i, task) for i, task in enumerate(chosen.tasks)]
    metadata, search_findings, search = _run_passes(chosen, settings, parallel, checks)
    equal = {c.index: golds for c in checks if cache_golds and (golds := c.equal_golds) is not None}
    cached = stable_golds.cache_stable(chosen, settings, parallel, equal) if equal else 0
    findings = [*static_findings(chosen), *(f for c in checks for f in c.findings)]
    findings += search_findings
    order = {c.task.id: c.index for c in reversed(checks)}
    findings.sort(key=lambda f: order[f.task])
    return CheckReport(
        chosen.name,
        len(chosen),
        tuple(f for f in findings if f.kind in FAULT_KINDS),
        tuple(f for f in findings if f.kind not in FAULT_KINDS),
        metadata and {**metadata, "dataset_hash": whole_hash},
        {c.task.id: c.first_run.fingerprint for c in checks if c.first_run is not None},
        cached,
        search,
    )


def compare_with_baseline(
    report: CheckReport, fingerprints: Mapping[str, str], name: str
) -> CheckReport:
    """Return the report with a fault for each gold whose fingerprint differs from the baseline's.

    ``name`` is that of the baseline, for the messages.
    """
    changed = tuple(
        TaskFinding(task, "volatile", f"differs from what it did in {name}")
        for task, fingerprint in report.fingerprints.items()
        if fingerprints.get(task, fingerprint) != fingerprint
    )
    return replace(report, faults=report.faults + changed)


def _run_passes(
    dataset: Dataset,
    settings: Mapping[str, Any],
    parallel: int,
    checks: Sequence[TaskCheck],
) -> tuple[Mapping[str, Any], list[TaskFinding], SearchCounts]:
    """Run all passes, which add their findings to ``checks``.

    Returns the metadata of the environment, and what was found by searching fresh sandboxes.
    """
    golds = {check.index: check for check in checks if check.task.gold is not None}
    with task_runners(dataset, settings, parallel) as run_all:
        metadata = run_all(lambda runner, _: runner.env.result_metadata(), [0])[0]
        run_all(lambda runner, i: with_retry(runner, golds[i], _first_pass), golds)
        run_all(lambda runner, i: with_retry(runner, golds[i], _second_pass), golds)
        run_all(lambda runner, i: with_retry(runner, golds[i], audit_gold), golds)
        return metadata, *search_sandboxes(run_all, dataset)


class TaskCheck:
    """The check of one task: its findings and the runs of its gold."""

    def __init__(self, index: int, task: Task, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self.index, self.task, self.solution = index, task, task.solution_actions
        self.findings: list[TaskFinding] = []
        self.first_run: TaskRun | None = None
        self.second_run: TaskRun | None = None

    @property
    def equal_golds(self) -> stable_golds.Golds | None:
        """The results of the golds, if both passes gave the same and found no fault."""
        if (
            self.first_run is None
            or self.second_run is None
            or any(f.kind in FAULT_KINDS for f in self.findings)
        ):
            return None
        return stable_golds.compare_runs(self.first_run, self.second_run, len(self.task.golds))

    def add_finding(self, kind: str, detail: str) -> None:
        """Add a finding, unless it is there already."""
        finding = TaskFinding(self.task.id, kind, detail)
        if finding not in self.findings:
            self.findings.append(finding)

    def require_success(self, kind: str, what: str, run: TaskRun) -> None:
        """Add a finding of this kind unless the run scored 1."""
        if run.score is None:
            self.add_finding("time-out", f"{what} was not done in time")
        elif run.score.value < SUCCESS_THRESHOLD:
            parts = ", ".join(f"{k} {v:.3g}" for k, v in run.score.parts.items())
            detail = f"{what} scored {run.score.value:.3f} ({parts}){_first_failed_test(run)}"
            self.add_finding(kind, detail)

    def require_unsolved_start(self, start: Score) -> None:
        """Add a finding if doing nothing scored 1."""
        if start.success:
            self.add_finding("noop-scores-1", f"reward {start.value:g} right after reset")

    def require_same_start(self, start: Score, again: Score, with_details: bool) -> None:
        """Add a finding if doing nothing scored differently in two episodes."""
        if _score_fields(again, with_details) != _score_fields(start, with_details):
            self.add_finding(
                "reset-differs", "doing nothing left another state after another reset"
            )

    def add_first_run(self, run: TaskRun) -> None:
        """Record the first run of the gold: it must end, score 1 and print no error message."""
        self.require_success("gold-below-1", "the gold", run)
        if run.timed_out:
            return
        self.first_run = run
        if run.exit_status != 0:
            kind = "status-1" if run.exit_status == 1 else "fails"
            last = shorten_line(run.output.strip().rpartition("\n")[2], MAX_SHOWN)
            printed = f", after it printed: {last}" if last else ", without any output"
            self.add_finding(kind, f"exit status {run.exit_status}{printed}")
        self.findings += findings_in_output(self.task.id, run.output)

    def wait_for_second_run(self) -> None:
        """Sleep until a gold that prints the time gives another result than in the first run."""
        if self.first_run is not None:
            passed = self._clock.date() - self.first_run.started
            self._clock.sleep(max(0.0, _MIN_SECONDS_BETWEEN_RUNS - passed))

    def add_second_run(self, runner: TaskRunner, run: TaskRun) -> None:
        """Record another run of the gold, which must do the same as the first."""
        assert self.first_run is not None
        if self.first_run.difference(run) and self.first_run.started // 3600 != run.started // 3600:
            self.first_run = run  # task files get new dates with the hour: compare within it
            self.wait_for_second_run()
            run = runner.run(self.index, *self.solution)
        self.second_run = run
        if difference := self.first_run.difference(run):
            self.add_finding("volatile", difference)
        if all(f.kind != "gold-below-1" for f in self.findings):
            self.require_success("gold-below-1", "the gold", run)

    def run_further_golds(self, runner: TaskRunner) -> None:
        """Run every further gold, which must score 1."""
        assert self.first_run is not None
        for number, gold in enumerate(self.task.golds[1:], 1):
            run = runner.run(self.index, gold, golds=self.first_run.golds)
            self.require_success("also-below-1", f"further gold {number}", run)
            for f in findings_in_output(self.task.id, run.output):
                self.add_finding(f.kind, f"further gold {number}: {f.detail}")

    def compare_further_golds(self, runner: TaskRunner) -> None:
        """Note further golds whose results the reward does not call equal to the first's."""
        golds = self.first_run.golds if self.first_run is not None else ()
        if not runner.env.profile_class.runs_golds_separately:
            return
        reward = runner.env.reward_function
        values: dict[int, float] = {}
        for number, state in enumerate(golds[1:], 1):
            with suppress(GoldError):  # the reward may need what only an agent's state has
                values[number] = reward(self.task, state, golds[0]).value
        lower = {n: value for n, value in values.items() if value < SUCCESS_THRESHOLD}
        if lower:
            worst = min(lower, key=lambda n: lower[n])
            detail = f"further gold {worst} scores {lower[worst]:.3f} against the first gold"
            if len(lower) > 1:
                detail += f", and {len(lower) - 1} more score below 1"
            self.add_finding("golds-differ", detail)


def with_retry(runner: TaskRunner, check: C, run_pass: Callable[[TaskRunner, C], None]) -> None:
    """Run one pass over one task, a second time if the sandbox fails."""
    before = list(check.findings)
    for attempt in (1, 2):
        try:
            run_pass(runner, check)
            break
        except (GoldError, TaskError) as e:
            check.add_finding("fails", str(e))
            break
        except DataError as e:
            check.add_finding("bad-files", str(e))
            break
        except InfrastructureError as e:
            check.findings = list(before)
            if attempt == 2:
                check.add_finding("sandbox-failed", f"{type(e).__name__}: {e}")


def _first_pass(runner: TaskRunner, check: TaskCheck) -> None:
    """Run the gold."""
    check.add_first_run(runner.run(check.index, *check.solution))


def _second_pass(runner: TaskRunner, check: TaskCheck) -> None:
    """Check that doing nothing scores less, that the gold does the same again, and that every
    further gold scores 1."""
    if check.first_run is None:
        return
    check.wait_for_second_run()
    golds = check.first_run.golds
    start = runner.score_after_reset(check.index, golds)
    check.require_unsolved_start(start)
    check.add_second_run(runner, runner.run(check.index, *check.solution))
    check.run_further_golds(runner)
    if not check.findings:
        again = runner.score_after_reset(check.index, golds)
        check.require_same_start(start, again, runner.env.scores_output)
    check.compare_further_golds(runner)


def audit_gold(runner: TaskRunner, check: TaskCheck) -> None:
    """Add what the audit rule of the environment finds, if there is one."""
    first_run, environment = check.first_run, runner.env.name
    if first_run is not None and first_run.state is not None and environment in AUDIT_RULES:
        rule = AUDIT_RULES.load(environment)
        for finding in rule(runner, check.index, first_run):
            check.add_finding(finding.kind, finding.detail)


def _first_failed_test(run: TaskRun) -> str:
    failed = [test for test in run.state.tests if not test.passed] if run.state else []
    return f"; {shorten_line(failed[0].test, MAX_SHOWN)} fails: {failed[0].error}" if failed else ""


def _score_fields(score: Score, with_details: bool) -> tuple[object, ...]:
    return score.value, dict(score.parts), dict(score.details) if with_details else {}


def static_findings(dataset: Dataset) -> Iterator[TaskFinding]:
    """Find empty queries, missing golds and duplicates, without running anything."""
    seen: dict[tuple[object, ...], int] = {}
    for n, task in enumerate(dataset.tasks):
        keys: list[tuple[object, ...]] = [("duplicate-id", task.id)]
        if task.query.strip():
            normalized = " ".join(task.query.split()).lower()
            keys.append(("duplicate-query", *_initial_state(task), normalized))
        else:
            yield TaskFinding(task.id, "empty-query", "the query is empty")
        if task.gold is None:
            yield TaskFinding(task.id, "no-gold", "there is no gold to play")
        else:
            kind = "duplicate-gold" if task.database is None else "same-gold"
            keys.append((kind, *_initial_state(task), task.setup, task.gold.strip()))
        for key in keys:
            first = seen.setdefault(key, n)
            if first != n:
                detail = f"as {dataset.tasks[first].id}, task {first}"
                yield TaskFinding(task.id, str(key[0]), detail)


def _initial_state(task: Task) -> tuple[object, ...]:
    return task.files, task.database, tree_digest(task.initial_files)
