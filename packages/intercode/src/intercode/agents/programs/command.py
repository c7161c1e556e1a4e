"""Any command that a user gives."""

from __future__ import annotations

import shlex
from typing import Any

from intercode.agents.programs.program import Launch, Packages, Program, shell_command


class CommandProgram(Program):
    """A command for ``/bin/sh`` that plays a task.

    ``{query}`` and ``{query_file}`` in it stand for the query, quoted, and the path of a file with
    it. Without either, the query is its last argument.
    """

    def __init__(
        self, command: str, packages: tuple[Packages, ...] = (), files: str | None = None
    ) -> None:
        self.name, self.packages, self.files = command, packages, files

    def command(self, launch: Launch) -> list[str]:
        places = {"{query}": launch.query, "{query_file}": launch.query_file}
        text = self.name
        if not any(place in text for place in places):
            text += " {query}"
        for place, value in places.items():
            text = text.replace(place, shlex.quote(value))
        return shell_command(text)

    def metadata(self) -> dict[str, Any]:
        return super().metadata() | {"files": self.files}
