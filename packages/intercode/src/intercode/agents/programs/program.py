"""What a program is that plays as an agent: its packages, how it is started, what it reports."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from intercode.core.types.untrusted import parse_untrusted

INSTALLED = "/opt/intercode"
"""The directory of the sandbox in which programs are installed."""


@dataclass(frozen=True, slots=True)
class Packages:
    """Packages of a registry, such as ``mini-swe-agent==2.4.6`` or ``@openai/codex@0.169.0``.

    They are installed in the directory ``INSTALLED/REGISTRY``.
    """

    registry: Literal["pypi", "npm"]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Launch:
    """What a program is told about its episode.

    ``query``, ``query_file``: the task. ``home``: a directory in memory for the program's own
    files, and ``scratch`` one for many or large ones. ``model``: the name of the model.
    ``base_url``: the address of the bridge, without ``/v1``, and ``key`` what it asks for.
    """

    query: str
    query_file: str
    home: str
    scratch: str
    model: str
    base_url: str
    key: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a command, read from what a program sends to the model. ``exit_code`` is None
    where the program does not say it."""

    output: str
    exit_code: int | None = None


class Program(ABC):
    """A program that plays as an agent."""

    name: str
    packages: tuple[Packages, ...] = ()
    files: str | None = None
    """A directory of this machine that is copied to ``INSTALLED/files``."""

    @abstractmethod
    def command(self, launch: Launch) -> list[str]:
        """Return the command that plays the task and then ends."""

    def variables(self, launch: Launch) -> Mapping[str, str]:  # noqa: ARG002
        """Return the environment variables that this program needs beyond those that all get."""
        return {}

    def home_files(self, launch: Launch) -> Mapping[str, str]:  # noqa: ARG002
        """Return the files that are written to ``Launch.home`` before the start, by their names."""
        return {}

    def read_result(self, text: str) -> ToolResult:
        """Return the result in a text that the program sends to the model after a command."""
        return read_json_result(text)

    def metadata(self) -> dict[str, Any]:
        """Return what a run records of the program, as JSON types."""
        return {"program": self.name, "packages": [n for p in self.packages for n in p.names]}


def shell_command(text: str) -> list[str]:
    """Return a command for ``/bin/sh`` that also finds the programs of npm packages."""
    return ["/bin/sh", "-c", f"PATH=$PATH:{INSTALLED}/npm/node_modules/.bin; {text}"]


def read_json_result(text: str) -> ToolResult:
    """Return the result in an object with ``output`` and ``returncode``; any other text is the
    output."""
    try:
        data = parse_untrusted(text) if text.lstrip().startswith("{") else None
    except ValueError:
        data = None
    if not isinstance(data, dict) or not isinstance(data.get("output"), str):
        return ToolResult(text)
    code = data.get("returncode")
    return ToolResult(data["output"], code if type(code) is int else None)
