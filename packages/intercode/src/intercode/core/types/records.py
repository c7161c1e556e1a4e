"""Records of episodes: outputs of agents, steps and trajectories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from intercode.core.types.execution import SUCCESS_THRESHOLD, ActionError, Score
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


_NOT_RECORDED = {"key": None}
"""The metadata of a field that no record has: it has no key in one."""


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of an episode: what the agent gave, and its result.

    ``Episode.execute`` returns it, and a trajectory holds it. An agent gets what ``feedback``
    returns. With ``AgentOutput`` it shares ``message``, ``thought``, ``usage``, ``actor``,
    ``messages`` and ``context``; an episode leaves these empty. A step is compared by its values,
    and has no hash.

    ``executed``: false for a turn without code. ``valid``: whether the action ran and succeeded;
    None if nothing ran. ``exit_code`` and ``timed_out`` are those of ``ExecResult``. ``score``:
    that of the state after the turn; None if it was not scored. ``changes``: the paths that the
    episode has changed so far. ``hashes``: of the observation and the state, if enabled.
    ``refused``: a policy or the environment refused the action. ``diffs``: how the action changed
    each path, if recorded. ``seconds``: how long the action took, without the agent and the model
    (None: unknown, or nothing ran).

    A record leaves out the fields after ``seconds``, also a ``reward`` that was given, and the
    details of a score: it has the ``score``. ``reward``: what the turn pays to a trainer, which
    depends on the reward mode; None in a record. ``terminated``, ``truncated``: as in
    Gymnasium. ``task``: its id. ``omitted_bytes``: how much the observation leaves out.
    ``sandbox_lost``: what ran in the sandbox ended it, so that the episode has failed.

    >>> import intercode
    >>> with intercode.make("bash") as env:
    ...     _ = env.reset(seed=1)
    ...     step = env.execute("cat nowhere")
    >>> step.observation, step.exit_code, step.valid
    ('cat: nowhere: No such file or directory\\n', 1, False)
    """

    action: str
    observation: str
    executed: bool = True
    valid: bool | None = True
    exit_code: int | None = 0
    timed_out: bool = False
    score: Score | None = None
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
    reward: float | None = field(default=None, metadata=_NOT_RECORDED)
    terminated: bool = field(default=False, metadata=_NOT_RECORDED)
    truncated: bool = field(default=False, metadata=_NOT_RECORDED)
    task: str = field(default="", metadata=_NOT_RECORDED)
    omitted_bytes: int = field(default=0, metadata=_NOT_RECORDED)
    sandbox_lost: bool = field(default=False, metadata=_NOT_RECORDED)

    @classmethod
    def without_code(cls, output: AgentOutput) -> Step:
        """Return the record of a turn in which the model wrote no code."""
        step = cls("", output.reply, executed=False, valid=False, exit_code=None, score=Score(0.0))
        return step.with_output(replace(output, action=""))

    @classmethod
    def without_turn(cls) -> Step:
        """Return the record of an episode that has no turn, for the score of its state."""
        return cls("", "", executed=False, valid=None, exit_code=None)

    def with_output(self, output: AgentOutput) -> Step:
        """Return this step with the output of the agent that led to it."""
        return replace(self, **shared_fields(output, Step))

    def feedback(self, score: Score | None = None) -> Step:
        """Return what an agent is told of this turn, with a score if it is to see one.

        It has the observation, ``valid``, ``timed_out``, and the action that the agent gave, and
        nothing else. The agent may change what it gets.
        """
        if score is not None:
            score = Score(score.value, dict(score.parts), dict(score.details))
        return Step(
            self.action,
            self.observation,
            executed=self.executed,
            valid=self.valid,
            exit_code=None,
            timed_out=self.timed_out,
            score=score,
        )

    def as_recorded(self) -> Step:
        """Return what a record holds of this step."""
        score = None if self.score is None else Score(self.score.value, self.score.parts)
        return Step(**{name: getattr(self, name) for name in RECORDED_FIELDS} | {"score": score})

    def agent_output(self) -> AgentOutput:
        """Return the output of the agent from which this step was made."""
        action = self.action if self.executed else None
        values = shared_fields(self, AgentOutput) | {"action": action}
        return AgentOutput(**values, reply=self.observation)

    @property
    def score_value(self) -> float | None:
        """The value of the score; None if the turn was not scored."""
        return None if self.score is None else self.score.value

    @property
    def action_score(self) -> Score | None:
        """The score of the state after an action. None for a turn without code: its 0 is for the
        record alone."""
        return self.score if self.executed else None

    @property
    def paid(self) -> float:
        """The reward of the turn; 0 where none was paid, as in a record."""
        return self.reward or 0.0

    @property
    def parts(self) -> Mapping[str, float]:
        """The parts of the score."""
        return {} if self.score is None else self.score.parts

    @property
    def action_error(self) -> ActionError | None:
        """The exception with which the action ended the episode, if it did."""
        return None if self.score is None else self.score.action_error

    @property
    def done(self) -> bool:
        """Whether the action ended the episode."""
        return self.terminated or self.truncated

    @property
    def info(self) -> dict[str, Any]:
        """Gymnasium's ``info`` of this step."""
        info: dict[str, Any] = {
            "task": self.task,
            "valid": self.valid,
            "exit_code": self.exit_code,
            "timed_out": self.timed_out,
            "omitted_bytes": self.omitted_bytes,
            "changes": list(self.changes),
        }
        if self.score is not None:
            info |= {"parts": dict(self.score.parts), "score": self.score.value}
        if self.refused:
            info["refused"] = True
        if self.sandbox_lost:
            info["sandbox_lost"] = True
        if (error := self.action_error) is not None:
            info["action_error"] = {"type": error.type, "message": error.message}
        return info | ({"hashes": dict(self.hashes)} if self.hashes else {})

    def as_gymnasium(self) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Return observation, reward, terminated, truncated and info."""
        return self.observation, self.paid, self.terminated, self.truncated, self.info


RECORDED_FIELDS = tuple(f.name for f in fields(Step) if f.metadata != _NOT_RECORDED)
"""The fields of a step that a record has."""


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
        return max((s.score.value for s in self.steps if s.score is not None), default=0.0)

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
            (str(n), step.action or step.message, step.observation, _score_text(step.score_value))
            for n, step in enumerate(self.steps, 1)
        ]
        title = f"{self.task}: {self.end}, {'solved' if self.success else 'not solved'}"
        notes = [self.query, *([self.error] if self.error else [])]
        return html_table(
            ("turn", "action", "observation", "score"), rows, title=title, notes=notes
        )


def _score_text(score: float | None) -> str:
    return "" if score is None else f"{score:.2f}"
