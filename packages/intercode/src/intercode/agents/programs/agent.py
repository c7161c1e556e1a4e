"""The agent whose turns a program takes by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from intercode.agents.base import Agent
from intercode.agents.programs.claude_code import ClaudeCode
from intercode.agents.programs.codex import Codex
from intercode.agents.programs.command import CommandProgram
from intercode.agents.programs.mini_swe_agent import MiniSweAgent
from intercode.agents.programs.program import Program
from intercode.core.errors import ConfigError, UsageError
from intercode.core.types import AgentOutput, Step
from intercode.models.base import Model
from intercode.models.options import check_integer

PROGRAMS = {kind.name: kind for kind in (MiniSweAgent, Codex, ClaudeCode)}


class ProgramAgent(Agent):
    """A program in the sandbox that talks to the model through a bridge; see
    docs/program-agents.md.

    ``program`` is one of PROGRAMS, or a command. ``seconds`` is the time that it has. ``version``
    is the release of one of PROGRAMS; ``pypi``, ``npm`` and ``files`` are what a command needs.
    """

    def __init__(
        self,
        program: str,
        *,
        model: Model,
        max_turns: int | None = 100,
        seconds: float = 1800.0,
        version: str | None = None,
        pypi: Sequence[str] = (),
        npm: Sequence[str] = (),
        files: str | None = None,
    ) -> None:
        check_integer("max_turns", max_turns)
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0:
            raise ConfigError(f"seconds = {seconds!r} is not a number above 0")
        self.model, self.max_turns, self.seconds = model, max_turns, seconds
        self.program = make_program(program, version=version, pypi=pypi, npm=npm, files=files)

    def act(self, feedback: Step | None) -> AgentOutput | None:  # noqa: ARG002
        """Raise UsageError: a program does not take turns one by one."""
        raise UsageError(
            f"{self.program.name} takes its turns by itself: play it with `intercode eval`"
        )

    def metadata(self) -> dict[str, Any]:
        return {**self.program.metadata(), "max_turns": self.max_turns, "seconds": self.seconds}


def make_program(
    name: str,
    *,
    version: str | None = None,
    pypi: Sequence[str] = (),
    npm: Sequence[str] = (),
    files: str | None = None,
) -> Program:
    """Return a program by its name or its command; see ProgramAgent. Raises ConfigError."""
    if not name.strip():
        raise ConfigError(
            f"program: names no program; write one of {', '.join(PROGRAMS)}, or a "
            "command, as in 'program:python3 agent.py'"
        )
    kind = PROGRAMS.get(name)
    if kind is None:
        if version is not None:
            raise ConfigError(f"version is an option of {', '.join(PROGRAMS)}, not of a command")
        return CommandProgram(name, _names("pypi", pypi), _names("npm", npm), files)
    if pypi or npm or files:
        raise ConfigError(f"pypi, npm and files are options of a command, not of {name}")
    return kind() if version is None else kind(version)


def _names(option: str, value: Any) -> Sequence[str]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(n, str) for n in names):
        raise ConfigError(f'{option} = {value!r} is not a list of packages, such as ["name==1.0"]')
    return names
