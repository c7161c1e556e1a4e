"""What is kept of an episode: its moves, steps and trajectory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from intercode.types.execution import SUCCESS


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and requests that a model spent. Unknown counts are None, never zero."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    requests: int = 0

    def __add__(self, other: Usage) -> Usage:
        def add(a: int | None, b: int | None) -> int | None:
            return b if a is None else a if b is None else a + b

        prompt = add(self.prompt_tokens, other.prompt_tokens)
        completion = add(self.completion_tokens, other.completion_tokens)
        return Usage(prompt, completion, self.requests + other.requests)


@dataclass(frozen=True, slots=True)
class Move:
    """What an agent decided: an action, or None when there was no code in what the model wrote.

    ``reply`` is what the agent is told in place of an observation when ``action`` is None.
    """

    action: str | None
    message: str = ""
    thought: str = ""
    reply: str = ""
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True)
class Step:
    """One turn: an action and its observation.

    ``executed`` is false for a turn that held no code. ``valid`` is None where nothing ran.
    ``reward`` is None where the turn was not scored. ``hashes``: of observation and state.
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


EndReason = Literal["solved", "submitted", "turn_limit", "agent_stopped", "error", "unknown"]


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One episode's record. ``run`` says what it was obtained with (see trajectories.py); a branch
    has its first ``branched_at`` steps in common with the episode that ``parent`` names. ``seed``:
    what its task was made from, where a task is another one in every episode."""

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

    @property
    def reward(self) -> float:
        """The best reward of the episode (paper, section 3); 0 where nothing was scored."""
        return max((s.reward for s in self.steps if s.reward is not None), default=0.0)

    @property
    def success(self) -> bool:
        return self.reward >= SUCCESS

    @property
    def turns(self) -> int:
        return len(self.steps)

    @property
    def usage(self) -> Usage:
        return sum((s.usage for s in self.steps), Usage())

    def replace(self, **changes: Any) -> Trajectory:
        return replace(self, **changes)
