"""Records of episodes: outputs of agents, steps and trajectories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from intercode.core.types.execution import SUCCESS_THRESHOLD, Feedback, Score, StepResult
from intercode.core.types.html import html_table

SUBMIT = "submit"
"""The action that submits. An answer may follow it, as in ``submit 42``."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage of a model. Unknown counts are None, and a sum with them is unknown.

    ``cached_tokens``: the prompt tokens that the endpoint had cached. ``reasoning_tokens``: the
    completion tokens that were reasoning. ``cost``: US dollars. ``seconds``: time spent waiting for
    answers, including retries; 0.0 if that is unknown.
    """

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    requests: int = 0
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost: float | None = None
    seconds: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        if other == Usage():
            return self
        if self == Usage():
            return other
        counts = ("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens", "cost")
        both = {name: (getattr(self, name), getattr(other, name)) for name in counts}
        sums = {name: None if a is None or b is None else a + b for name, (a, b) in both.items()}
        return Usage(
            requests=self.requests + other.requests, seconds=self.seconds + other.seconds, **sums
        )


@dataclass(frozen=True, slots=True)
class AgentOutput:
    """The output of an agent for one turn: an action, or None if the model wrote no code.

    ``reply``: what the agent sees instead of an observation if ``action`` is None. ``actor``:
    ``agent`` or ``human``. ``messages``: the messages that were added to the conversation in this
    turn, in the chat format, the model's answer last. An answer may have the endpoint's ``tokens``.
    ``context``: which parts of the conversation were hidden from the model in this turn (empty:
    none).
    """

    action: str | None
    message: str = ""
    thought: str = ""
    reply: str = ""
    usage: Usage = Usage()
    actor: str = "agent"
    messages: tuple[Mapping[str, Any], ...] = ()
    context: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """One turn: an action and its observation.

    ``executed``: false for a turn without code. ``valid``: None if nothing ran. ``refused``: a
    policy or the environment refused the action. ``score``: the value of the state's Score after
    the turn, None if it was not scored; what the turn paid is ``StepResult.reward``.
    ``seconds``: how long the action took, without the agent and the model (None: unknown, or
    nothing ran). The other fields are those of StepResult and AgentOutput.
    """

    action: str
    observation: str
    executed: bool = True
    valid: bool | None = True
    exit_code: int | None = 0
    timed_out: bool = False
    score: float | None = None
    parts: Mapping[str, float] = field(default_factory=dict)
    changes: tuple[str, ...] = ()
    message: str = ""
    thought: str = ""
    usage: Usage = Usage()
    hashes: Mapping[str, str] = field(default_factory=dict)
    refused: bool = False
    actor: str = "agent"
    messages: tuple[Mapping[str, Any], ...] = ()
    context: Mapping[str, Any] = field(default_factory=dict)
    diffs: Mapping[str, str] = field(default_factory=dict)
    seconds: float | None = field(default=None, compare=False)

    @classmethod
    def of_result(cls, output: AgentOutput, result: StepResult, score: Score | None) -> Step:
        """Return the record of an executed action: what the step gave, and its score."""
        value, parts = (None, {}) if score is None else (score.value, score.parts)
        values = {**shared_fields(result, cls), **shared_fields(output, cls)}
        return cls(**values | {"action": output.action or "", "score": value, "parts": parts})

    @classmethod
    def without_code(cls, output: AgentOutput) -> Step:
        """Return the record of a turn in which the model wrote no code."""
        step = cls("", output.reply, executed=False, valid=False, exit_code=None, score=0.0)
        return replace(step, **shared_fields(output, cls) | {"action": ""})

    @classmethod
    def without_turn(cls) -> Step:
        """Return the record of an episode that has no turn, for the score of its state."""
        return cls("", "", executed=False, valid=None, exit_code=None)

    def feedback(self, score: Score | None = None) -> Feedback:
        """Return what an agent is told of this turn, with a score if it is to see one."""
        return Feedback(self.observation, self.valid, self.timed_out, score)

    def agent_output(self) -> AgentOutput:
        """Return the output of the agent from which this step was made."""
        action = self.action if self.executed else None
        values = shared_fields(self, AgentOutput) | {"action": action}
        return AgentOutput(**values, reply=self.observation)


def shared_fields(value: Any, kind: type) -> dict[str, Any]:
    """Return the values of the fields that ``kind`` has, too."""
    return {
        f.name: getattr(value, f.name)
        for f in fields(value)
        if f.name in kind.__dataclass_fields__  # type: ignore[attr-defined]
    }


EndReason = Literal[
    "solved",
    "submitted",
    "turn_limit",
    "agent_stopped",
    "budget",
    "sandbox_lost",
    "action_error",
    "error",
    "unknown",
]
"""Why an episode ended. ``budget``: a limit on tokens, cost or time was reached. ``sandbox_lost``:
what ran in the sandbox ended it, which is a failure. ``action_error``: an action caused an
exception, which is a failure as well, while the machine worked."""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """The record of one episode.

    ``run``: metadata of the run (see docs/records.md). ``parent``: the id of the episode from which
    this one branched off, and with which it shares the first ``branched_at`` steps. ``seed``: the
    seed from which its task was made, if the task varies. ``epoch``: the number of this sample of
    the task, from 0. ``tags``: those of the task. ``started``: when the episode began, in UTC as
    ISO 8601 (None: unknown). ``restarts``: after how many steps the agent began the task again, in
    its first state.
    """

    task: str
    index: int
    query: str
    steps: tuple[Step, ...]
    end: EndReason = "unknown"
    error: str | None = None
    group: str | None = None
    hardness: str | None = None
    seconds: float | None = None
    run: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""
    parent: str | None = None
    branched_at: int | None = None
    seed: int | None = None
    epoch: int = 0
    tags: tuple[str, ...] = ()
    started: str | None = field(default=None, compare=False)
    restarts: tuple[int, ...] = ()

    @property
    def score(self) -> float:
        """The best score of the episode, which the paper (section 3) calls its reward. 0 if nothing
        was scored."""
        return max((s.score for s in self.steps if s.score is not None), default=0.0)

    @property
    def success(self) -> bool:
        return self.score >= SUCCESS_THRESHOLD

    @property
    def turns(self) -> int:
        return len(self.steps)

    @property
    def usage(self) -> Usage:
        return sum((s.usage for s in self.steps), Usage())

    def replace(self, **changes: Any) -> Trajectory:
        return replace(self, **changes)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the query and one row for each turn."""
        rows = [
            (str(n), step.action or step.message, step.observation, _score_text(step.score))
            for n, step in enumerate(self.steps, 1)
        ]
        title = f"{self.task}: {self.end}, {'solved' if self.success else 'not solved'}"
        notes = [self.query, *([self.error] if self.error else [])]
        return html_table(
            ("turn", "action", "observation", "score"), rows, title=title, notes=notes
        )


def _score_text(score: float | None) -> str:
    return "" if score is None else f"{score:.2f}"
