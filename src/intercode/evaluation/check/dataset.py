"""Proves a dataset: every gold runs and scores 1, twice alike, and doing nothing does not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from intercode import datasets
from intercode.core.errors import DataError, GoldError, InfrastructureError, UsageError
from intercode.core.registry import Registry
from intercode.core.types import NOTHING, SUCCESS, Dataset, Network, Profile, Score, Task
from intercode.datasets.load_cache import meant
from intercode.environments.base.gold_cache import unsteady
from intercode.evaluation.check import stable_golds
from intercode.evaluation.check.findings import KINDS, CheckReport, Finding, Searched, read_signs
from intercode.evaluation.check.sandbox_search import look_inside
from intercode.evaluation.check.task_runs import Play, Player, players

LOOKS = Registry("look at golds of", {"sql": "intercode.environments.sql.audit:look"})
"""By environment: what gives findings from a run of a gold."""
_APART = 1.1
"""Seconds between the two runs of a gold at least: what prints the time gives itself away."""


def check(
    dataset: str | Dataset,
    *,
    profile: Profile = "standard",
    image: str | None = None,
    network: Network = "none",
    parallel: int = 2,
    timeout: float = 10.0,
    keep: bool = True,
    env_options: Mapping[str, Any] = NOTHING,
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
        chosen = datasets.load(chosen, meant(env_options))
    if parallel < 1:
        raise UsageError(f"parallel is {parallel}; it must be at least 1")
    settings = {"profile": profile, "image": image, "network": network, "timeout": timeout}
    settings |= {"sandbox": sandbox, **env_options}
    rows = [_Row(i, task) for i, task in enumerate(chosen.tasks)]
    facts, inside, searched = _play(chosen, settings, parallel, rows)
    steady = {row.i: shown for row in rows if keep and (shown := row.steady) is not None}
    kept = stable_golds.keep(chosen, settings, parallel, steady) if steady else 0
    found = [*_static(chosen), *(f for row in rows for f in row.found), *inside]
    order = {row.task.id: row.i for row in reversed(rows)}
    found.sort(key=lambda f: order[f.task])
    return CheckReport(
        chosen.name,
        len(chosen),
        tuple(f for f in found if f.kind in KINDS),
        tuple(f for f in found if f.kind not in KINDS),
        facts,
        {row.task.id: row.first.print for row in rows if row.first is not None},
        kept,
        searched,
    )


def _play(
    dataset: Dataset, settings: Mapping[str, Any], parallel: int, rows: Sequence[_Row]
) -> tuple[Mapping[str, Any], list[Finding], Searched]:
    """All passes over all rows. What the environment is, and what was seen inside fresh boxes."""
    golds = {row.i: row for row in rows if row.task.gold is not None}
    with players(dataset, settings, parallel) as over:
        facts = over(lambda player, _: player.env.facts(), [0])[0]
        over(lambda player, i: _guarded(player, golds[i], _first), golds)
        time.sleep(_APART if golds else 0.0)
        over(lambda player, i: _guarded(player, golds[i], _second), golds)
        if dataset.environment in LOOKS:
            over(lambda player, i: _guarded(player, golds[i], _third), golds)
        return facts, *look_inside(over, dataset)


def against(report: CheckReport, prints: Mapping[str, str], name: str) -> CheckReport:
    """The report, with a fault for each gold that did something else in an earlier check."""
    changed = tuple(
        Finding(task, "volatile", f"differs from what it did in {name}")
        for task, seen in report.prints.items()
        if prints.get(task, seen) != seen
    )
    return replace(report, faults=report.faults + changed)


class _Row:
    """A task, what was found on it, and what its gold did at first."""

    def __init__(self, i: int, task: Task) -> None:
        self.i, self.task, self.solution = i, task, task.solution or ""
        self.found: list[Finding] = []
        self.first: Play | None = None
        self.second: Play | None = None

    @property
    def steady(self) -> stable_golds.Steady | None:
        """What the golds have left in both passes, where that was the same and nothing is wrong."""
        if self.first is None or self.second is None or any(f.kind in KINDS for f in self.found):
            return None
        return stable_golds.steady(self.first, self.second, len(self.task.golds))

    def add(self, kind: str, detail: str) -> None:
        """One more finding, once."""
        finding = Finding(self.task.id, kind, detail)
        if finding not in self.found:
            self.found.append(finding)

    def judge(self, kind: str, what: str, play: Play) -> None:
        """A finding unless a solution came to its end and scored 1."""
        if play.score is None:
            self.add("time-out", f"{what} was not done in time")
        elif play.score.value < SUCCESS:
            parts = ", ".join(f"{k} {v:.3g}" for k, v in play.score.parts.items())
            self.add(kind, f"{what} scored {play.score.value:.3f} ({parts})")


def _guarded(player: Player, row: _Row, work: Callable[[Player, _Row], None]) -> None:
    """One pass over one task; a box that fails gets a second chance."""
    kept = list(row.found)
    for chance in (1, 2):
        try:
            work(player, row)
            break
        except GoldError as e:
            row.add("fails", str(e))
            break
        except DataError as e:
            row.add("no-files", str(e))
            break
        except InfrastructureError as e:
            row.found = list(kept)
            if chance == 2:
                row.add("box-failed", f"{type(e).__name__}: {e}")


def _first(player: Player, row: _Row) -> None:
    """The gold runs, scores 1, and prints no error."""
    play = player.play(row.i, row.solution)
    row.judge("gold-below-1", "the gold", play)
    if play.timed_out:
        return
    row.first = play
    if play.status != 0:
        row.add("status-1" if play.status == 1 else "fails", f"exit status {play.status}")
    row.found += read_signs(row.task.id, play.output)


def _second(player: Player, row: _Row) -> None:
    """Doing nothing scores less; the gold does the same again; every further gold scores 1."""
    if row.first is None:
        return
    start = player.start(row.i)
    if start.success:
        row.add("noop-scores-1", f"reward {start.value:g} right after reset")
    play = player.play(row.i, row.solution)
    if row.first.differs(play) and row.first.at // 3600 != play.at // 3600:
        row.first = play  # task files get new dates with the hour: compare within it
        time.sleep(_APART)
        play = player.play(row.i, row.solution)
    row.second = play
    if difference := row.first.differs(play):
        row.add("volatile", difference + _why(row.task))
    if all(f.kind != "gold-below-1" for f in row.found):
        row.judge("gold-below-1", "the gold", play)
    for n, gold in enumerate(row.task.golds[1:], 1):
        play = player.play(row.i, gold)
        row.judge("also-below-1", f"further gold {n}", play)
        for f in read_signs(row.task.id, play.output):
            row.add(f.kind, f"further gold {n}: {f.detail}")
    if not row.found and _facts(player.start(row.i)) != _facts(start):
        row.add("reset-differs", "doing nothing left another state after another reset")


def _why(task: Task) -> str:
    """What in a task's golds may make them differ from run to run."""
    codes = (*task.golds, task.setup or "")
    return next((f"; {why}" for code in codes if (why := unsteady(code, task.cwd))), "")


def _third(player: Player, row: _Row) -> None:
    """What the environment's own look at the gold's result shows."""
    if row.first is not None and row.first.state is not None:
        for found in LOOKS.load(player.env.name)(player, row.i, row.first):
            row.add(found.kind, found.detail)


def _facts(score: Score) -> tuple[object, ...]:
    return score.value, dict(score.parts), dict(score.details)


def _static(dataset: Dataset) -> Iterator[Finding]:
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
