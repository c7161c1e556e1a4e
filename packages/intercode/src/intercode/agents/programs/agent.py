"""The agent whose turns a program takes by itself."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from importlib import import_module
from typing import Any

from intercode.agents.base import Agent
from intercode.agents.programs.acp import ACP_AGENTS, AcpAgent, AcpProgram
from intercode.agents.programs.claude_code import ClaudeCode
from intercode.agents.programs.codex import Codex
from intercode.agents.programs.command import CommandProgram
from intercode.agents.programs.mini_swe_agent import MiniSweAgent
from intercode.agents.programs.program import Packages, Program
from intercode.core.errors import ConfigError, UsageError
from intercode.core.types import AgentOutput, Step
from intercode.models.base import Model
from intercode.models.options import check_integer

PROGRAM, ACP = "program:", "acp:"
"""What the name of an agent begins with that is followed by a program or a command."""
PROGRAMS = {kind.name: kind for kind in (MiniSweAgent, Codex, ClaudeCode)}


class ProgramAgent(Agent):
    """A program in the sandbox that talks to the model through a bridge; see
    docs/program-agents.md.

    ``program`` is one of PROGRAMS, or a command; after ``acp:``, one of ACP_AGENTS, or the command
    of an agent. ``seconds`` is the time that it has. ``version`` is the release of a program with a
    name; ``pypi``, ``npm`` and ``files`` are what a command needs.
    """

    can_resume = False

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
    prefix = ACP if name.startswith(ACP) else PROGRAM
    command = name.removeprefix(prefix)
    known: Collection[str] = ACP_AGENTS if prefix == ACP else PROGRAMS
    if not command.strip():
        raise ConfigError(
            f"{prefix} names no program; write one of {', '.join(known)}, or a "
            f"command, as in '{prefix}python3 agent.py'"
        )
    if prefix == ACP:
        try:
            import_module("acp")
        except ModuleNotFoundError as e:
            text = f"{name} needs agent-client-protocol: pip install 'intercode-gym[agents]'"
            raise ConfigError(text) from e
    if command not in known:
        if version is not None:
            raise ConfigError(f"version is an option of {', '.join(known)}, not of a command")
        packages = given_packages(_names("pypi", pypi), _names("npm", npm))
        if prefix == ACP:
            return AcpProgram(AcpAgent(command, command), packages, files)
        return CommandProgram(command, packages, files)
    if pypi or npm or files:
        raise ConfigError(f"pypi, npm and files are options of a command, not of {command}")
    if prefix == ACP:
        return AcpProgram.named(command, version)
    kind = PROGRAMS[command]
    return kind() if version is None else kind(version)


def given_packages(pypi: Sequence[str], npm: Sequence[str]) -> tuple[Packages, ...]:
    """Return the packages that a user names for a command."""
    given = (Packages("pypi", tuple(pypi)), Packages("npm", tuple(npm)))
    return tuple(packages for packages in given if packages.names)


def _names(option: str, value: Any) -> Sequence[str]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(n, str) for n in names):
        raise ConfigError(f'{option} = {value!r} is not a list of packages, such as ["name==1.0"]')
    return names
