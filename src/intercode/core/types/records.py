"""What is kept of an episode: its moves, steps and trajectory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from intercode.core.types.execution import SUCCESS_THRESHOLD


@dataclass(frozen=True, slots=True)
class Usage:
    """What was spent on a model. Unknown counts are None, never zero, and make a sum unknown.

    ``cached_tokens`` are those prompt tokens that the endpoint had at hand, ``reasoning_tokens``
    those completion tokens that were thoughts. ``cost`` is in US dollars, ``seconds`` the time
    spent waiting for answers, retries included.
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
    """What an agent decided: an action, or None when there was no code in what the model wrote.

    ``reply`` is what the agent is told in place of an observation when ``action`` is None.
    ``actor``: who decided, ``agent`` or ``person``. ``messages`` are those that joined the
    conversation with the model in this turn, in order and in the chat format, its answer last; an
    answer may hold ``tokens`` as the endpoint gave them. ``context`` says what of the conversation
    the model was not shown in this turn (empty: it was shown everything).
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

    ``executed`` is false for a turn that held no code. ``valid`` is None where nothing ran.
    ``refused``: a policy or the environment did not let the action through. ``reward`` is None
    where the turn was not scored. ``hashes``: of observation and state. ``diffs``: where asked for,
    how this turn changed each path (see environments/base/diffs/file_diffs.py). The rest is Move's.
    """

    action: str
    observation: str
    executed: bool = True
    valid: bool | None = True
    exit_code: int | None = 0
    timed_out: bool = False
    reward: float | None = None
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


EndReason = Literal[
    "solved", "submitted", "turn_limit", "agent_stopped", "budget", "error", "unknown"
]
"""Why an episode ended. ``budget``: a limit on tokens, cost or time was reached."""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One episode's record. ``run`` says what it was obtained with (see trajectories.py); a branch
    has its first ``branched_at`` steps in common with the episode that ``parent`` names. ``seed``:
    what its task was made from, where a task is another one in every episode. ``epoch``: which of
    several samples of one task this is, from 0. ``tags``: the task's."""

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

    @property
    def reward(self) -> float:
        """The best reward of the episode (paper, section 3); 0 where nothing was scored."""
        return max((s.reward for s in self.steps if s.reward is not None), default=0.0)

    @property
    def success(self) -> bool:
        return self.reward >= SUCCESS_THRESHOLD

    @property
    def turns(self) -> int:
        return len(self.steps)

    @property
    def usage(self) -> Usage:
        return sum((s.usage for s in self.steps), Usage())

    def replace(self, **changes: Any) -> Trajectory:
        return replace(self, **changes)
