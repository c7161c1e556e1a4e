"""Enforces limits on tokens, cost and time of a run and of its episodes, and counts their usage."""

from __future__ import annotations

import dataclasses
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from intercode.core.config import EvalConfig
from intercode.core.errors import BudgetError, UsageError
from intercode.core.types import Usage
from intercode.evaluation.evaluate.run_state import Sample
from intercode.evaluation.saving import SavedEpisode
from intercode.evaluation.tracking.base import EpisodeTracker
from intercode.models.base import Completion, Message, Model, Tool
from intercode.models.budget import Budget, SpendingLimits
from intercode.models.endpoint import Endpoint
from intercode.models.limited_model import LimitedModel

MAX_REFUSALS = 3
"""If the endpoint refuses this many episodes before its first answer, the run fails."""


class RunBudget:
    """The budget of a run. It can be shared by several threads.

    ``before`` is what earlier processes used for the same run, and ``lost`` what their limits
    counted for lost answers; both count towards the limits.
    ``usage`` is what this process has used so far, as the endpoints report it; ``saved`` is what of
    it belongs to the saved parts of episodes in progress. ``on_error`` is called with the first
    error of an endpoint. Raises BudgetError if a limit is already reached, and UsageError if a
    limit is set on usage that is not known.
    """

    def __init__(self, config: EvalConfig, before: Usage, lost: Usage = Usage()) -> None:  # noqa: B008
        self.config = config
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._refused = 0
        self._answered = before.requests > 0
        self._answered_here = self._has_error = False
        self.on_error: Callable[[str], None] = lambda _: None
        self.usage = Usage()
        self.saved: dict[Sample, Usage] = {}
        before = before + lost if before.requests else replace(lost, seconds=before.seconds)
        _check_remaining(config, before)
        limits = SpendingLimits(config.max_tokens, config.max_cost, config.max_seconds)
        self.budget = Budget(limits, whole_run=True, spent=before)

    def start_episode(
        self,
        model: Model | None,
        sample: Sample | None = None,
        tracker: EpisodeTracker | None = None,
        saved: SavedEpisode | None = None,
    ) -> EpisodeBudget:
        """Return the budget of one attempt at an episode. The attempt's time limit starts now.

        ``tracker`` is told of its requests. ``saved``: what the attempt goes on from.
        """
        return EpisodeBudget(
            self, model, sample or Sample(0, 0), tracker or EpisodeTracker(), saved
        )

    @property
    def final_usage(self) -> Usage:
        """The usage without that of saved parts, which counts in the process that goes on with
        them."""
        with self._lock:
            return self.usage + negative(sum(self.saved.values(), Usage()))

    @property
    def is_unanswered(self) -> bool:
        """Whether no endpoint has answered this process yet. Cached answers do not count."""
        return not self._answered_here

    def add(self, answer: Completion, saved_of: Sample | None = None) -> None:
        """Add the usage of an answer to that of the run. ``saved_of``: the episode in progress of
        which an earlier process got it and saved it."""
        with self._lock:
            self.usage += answer.usage
            self._answered = True
            if saved_of is not None:
                self.saved[saved_of] = self.saved.get(saved_of, Usage()) + answer.usage
            elif not answer.cached:
                self._answered_here = True

    def note_saved(self, sample: Sample, usage: Usage) -> None:
        """Take note of the usage of the saved part of an episode in progress."""
        with self._lock:
            self.saved[sample] = usage

    def report_error(self, text: str) -> None:
        """Call ``on_error`` if this is the first error."""
        with self._lock:
            first, self._has_error = not self._has_error, True
        if first:
            self.on_error(text)

    def count_refusal(self) -> bool:
        """Count an episode that the endpoint refused.

        Returns whether MAX_REFUSALS episodes were refused before the first answer. If so, the run
        has to stop, because the content of a single episode is not the cause.
        """
        with self._lock:
            self._refused += 1
            return not self._answered and self._refused >= MAX_REFUSALS

    def stop(self) -> None:
        """End the run: every later request raises BudgetError."""
        self._stopped.set()

    def check(self) -> None:
        """Raise BudgetError if the run was stopped or has reached a limit."""
        if self._stopped.is_set():
            raise BudgetError("the run has been stopped", run_limit=True)
        self.budget.check()


def check_limits(config: EvalConfig, model: Model) -> None:
    """Raise ConfigError if a limit cannot be enforced because the price of the model is unknown."""
    RunBudget(config, Usage()).start_episode(model)


class EpisodeBudget:
    """The budget of one attempt at the episode ``sample``.

    ``model`` wraps the model of the run: it enforces the limits, and returns the answers of the
    sample's epoch, the ``answers`` so far. It is None if the agent uses no model.
    Answers that were ``saved`` are given again without a request.
    """

    def __init__(
        self,
        run: RunBudget,
        model: Model | None,
        sample: Sample,
        tracker: EpisodeTracker,
        saved: SavedEpisode | None = None,
    ) -> None:
        self._run, self._sample, self.usage = run, sample, Usage()
        self.answers: list[Completion] = []
        self._given = () if saved is None else saved.answers
        seconds = 0.0 if saved is None else saved.record.seconds or 0.0
        config = run.config
        self._budget = Budget(
            SpendingLimits(
                config.max_tokens_per_episode,
                config.max_cost_per_episode,
                config.max_seconds_per_episode,
            ),
            spent=Usage(seconds=seconds),
        )
        self.model: Model | None = None
        if model is not None:
            sampled = model.for_sample(sample.epoch) if sample.epoch else model
            budgets = self._budget, run.budget
            self.model = MeteredModel(
                sampled, budgets, run.check, self._add, run.report_error, tracker, self._given
            )

    @property
    def is_limited(self) -> bool:
        """Whether a limit of its own ends the episode some time."""
        limits = self._budget.limits
        return limits.seconds is not None or (self.model is not None and limits.metered)

    def check(self) -> None:
        """Raise BudgetError if the run was stopped, or if it or the attempt has reached a limit."""
        self._run.check()
        self._budget.check()

    def _add(self, answer: Completion) -> None:
        again = len(self.answers) < len(self._given)
        self.answers.append(answer)
        self.usage += answer.usage
        self._run.add(answer, self._sample if again else None)


class MeteredModel(LimitedModel):
    """A model within budgets that calls ``check`` before each request and ``record`` with each
    answer. ``tracker`` is told of both. The first answers are those that an earlier process was
    ``given``, for which it sends no request."""

    def __init__(
        self,
        model: Model,
        budgets: Sequence[Budget],
        check: Callable[[], None],
        record: Callable[[Completion], None],
        on_error: Callable[[str], None],
        tracker: EpisodeTracker,
        given: Sequence[Completion] = (),
    ) -> None:
        super().__init__(model, budgets, on_error)
        self._given = deque(given)
        self._check, self._record, self._tracker = check, record, tracker
        self._sent: Counter[str] = Counter()
        self._counting = threading.Lock()

    def complete(self, messages: Sequence[Message], *, tools: Sequence[Tool] = ()) -> Completion:
        """Send a request; see ``Model.complete``."""
        self._check()
        if self._given:
            completion = self._given.popleft()
            with self._view(messages, tools):
                self.count_again(messages, tools, completion)
        else:
            with (
                self._view(messages, tools) as model,
                self._tracker.request(messages, tools) as report,
            ):
                completion = self._complete_by(model, messages, tools)
                report(completion)
        self._record(completion)
        return completion

    @contextmanager
    def _view(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[Model]:
        """Yield the view of the model for a request, which counts as sent unless it fails: an equal
        one after it is another sample, and has another answer in the cache."""
        model = self.model
        key = model.answer_key(messages, tools) if isinstance(model, Endpoint) else ""
        if not isinstance(model, Endpoint) or not key:
            yield model
            return
        with self._counting:
            repeat = self._sent[key]
            self._sent[key] += 1
        try:
            yield model.for_repeat(repeat)
        except BaseException:
            with self._counting:
                self._sent[key] -= 1
            raise


def _check_remaining(config: EvalConfig, before: Usage) -> None:
    """Raise BudgetError if ``before`` reaches a limit of the run.

    Raises UsageError if a limit cannot be enforced because ``before`` does not include its value.
    """
    has_requests = before.requests > 0
    limits: tuple[tuple[str, float | None, float | None], ...] = (
        ("max_tokens", config.max_tokens, total_tokens(before) if has_requests else 0),
        ("max_cost", config.max_cost, before.cost if has_requests else 0.0),
        ("max_seconds", config.max_seconds, before.seconds),
    )
    for name, limit, spent in limits:
        if limit is not None and spent is None:
            raise UsageError(
                f"{name} = {limit:g} cannot be enforced: the endpoint did not report what this run "
                "has used so far; leave the limit out to resume the run"
            )
        if limit is not None and spent is not None and spent >= limit:
            raise BudgetError(f"{name} = {limit:g} is reached: {spent:g} are used", run_limit=True)


def negative(usage: Usage) -> Usage:
    """Return what takes a usage from a sum."""
    counts = dataclasses.asdict(usage).items()
    negated: dict[str, Any] = {name: None if n is None else -n for name, n in counts}
    return Usage(**negated)


def total_tokens(usage: Usage) -> int | None:
    """Return the tokens of prompts and answers together, or None if the number is not known."""
    if usage.prompt_tokens is None or usage.completion_tokens is None:
        return None
    return usage.prompt_tokens + usage.completion_tokens
