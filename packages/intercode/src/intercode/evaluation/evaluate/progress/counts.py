"""Counts what a run has done so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from intercode.core.types import Trajectory, Usage
from intercode.evaluation.evaluate.run_state import EpisodeKey, EpisodeOutcome
from intercode.models import Traffic
from intercode.results.statistics.intervals import Cluster, Estimate, estimate_proportion
from intercode_sandbox.clock import SYSTEM_CLOCK, Clock


@dataclass
class Progress:
    """The counts of a run. An episode that ended in an error counts as not solved.

    ``total`` is the number of episodes of the run; ``finished`` are those that earlier processes
    finished. ``usage`` returns what the run has used so far, with earlier processes; ``traffic``
    the counts of requests of this process, or None if the model has none. ``running`` has the
    episodes in progress, with the time when each began. ``done`` counts the episodes that have
    ended, with those of earlier processes. A thread that draws may read all of it meanwhile.
    """

    total: int
    finished: Mapping[EpisodeKey, EpisodeOutcome] = field(default_factory=dict)
    usage: Callable[[], Usage] = Usage
    traffic: Callable[[], Traffic | None] = lambda: None
    errors: int = 0
    retried: int = 0
    ended_here: int = 0
    running: dict[EpisodeKey, float] = field(default_factory=dict)
    clock: Clock = SYSTEM_CLOCK

    def __post_init__(self) -> None:
        self.started = self.clock.now()
        self._tasks: dict[str, Cluster] = {}
        self.done = 0
        for key, outcome in self.finished.items():
            self._count(key.task, outcome.success)

    def start(self, key: EpisodeKey) -> None:
        """Count an episode that begins."""
        self.running[key] = self.clock.now()

    def add(self, trajectory: Trajectory) -> None:
        """Count an episode that has ended."""
        self.running.pop(EpisodeKey(trajectory.task, trajectory.epoch), None)
        self.ended_here += 1
        failed = trajectory.end == "error"
        self.errors += failed
        self.retried += not failed and trajectory.run.get("attempts", 1) > 1
        self._count(trajectory.task, not failed and trajectory.success)

    @property
    def seconds(self) -> float:
        """The seconds since this process began."""
        return self.clock.now() - self.started

    @property
    def seconds_left(self) -> float | None:
        """The seconds that the rest will take at the speed so far; None if it is not known."""
        left = self.total - self.done
        return left * self.seconds / self.ended_here if self.ended_here and left else None

    def success_estimate(self) -> Estimate | None:
        """Return the share of solved episodes so far with its 95 % interval, None before any."""
        return estimate_proportion(list(self._tasks.values()))

    def success_text(self) -> str:
        """Return the success so far with its 95 % interval."""
        found = self.success_estimate()
        if found is None:
            return "-"
        text = f"{100 * found.value:.1f} %"
        if found.low is None or found.high is None:
            return text
        return f"{text} [{100 * found.low:.0f}, {100 * found.high:.0f}]"

    def speed_text(self) -> str:
        """Return the episodes that end in a second, or in a minute."""
        rate = self.ended_here / self.seconds if self.seconds > 0 else 0.0
        return f"{rate:.1f}/s" if rate >= 1 else f"{60 * rate:.1f}/min"

    def usage_texts(self) -> list[str]:
        """Return the counts of errors, requests, tokens, cost, retries, rate limits and time-outs;
        without what is zero or not known, except the errors."""
        usage, traffic = self.usage(), self.traffic() or Traffic()
        prompt, completion = usage.prompt_tokens, usage.completion_tokens
        counts = (
            (self.retried, "episode repeated", "episodes repeated"),
            (usage.requests, "request", "requests"),
            ((prompt or 0) + (completion or 0), "token", "tokens"),
            (traffic.retries, "retry", "retries"),
            (traffic.overloads, "rate limit", "rate limits"),
            (traffic.timeouts, "time-out", "time-outs"),
        )
        texts = [counted(self.errors, "error", "errors")]
        texts += [counted(n, one, many) for n, one, many in counts if n]
        if usage.cost:
            texts.append(f"${usage.cost:,.2f}" if usage.cost >= 0.1 else f"${usage.cost:.4f}")
        return texts

    def running_texts(self, most: int) -> list[str]:
        """Return the episodes in progress, longest first, with their time; at most so many."""
        now = self.clock.now()
        rows = sorted(self.running.copy().items(), key=lambda row: row[1])
        texts = [
            f"{one_line(key.task)}{f' #{key.epoch}' if key.epoch else ''} "
            f"{format_duration(now - since)}"
            for key, since in rows[:most]
        ]
        return [*texts, f"{len(rows) - most} more"] if len(rows) > most else texts

    def _count(self, task: str, solved: bool) -> None:
        old = self._tasks.get(task, Cluster(0, 0))
        self._tasks[task] = Cluster(old.hits + solved, old.size + 1)
        self.done += 1


def format_duration(seconds: float) -> str:
    """Return seconds as ``M:SS`` or ``H:MM:SS``."""
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


def one_line(text: str) -> str:
    """Return a text as one line without characters that would control a terminal."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def counted(number: int, one: str, many: str) -> str:
    """Return a number with the word for one or for several."""
    return f"{number:,} {one if number == 1 else many}"
