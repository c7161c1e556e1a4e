"""Any command that a user gives."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from intercode.agents.programs.program import INSTALLED, Launch, Packages, Program

_PATH = f"{INSTALLED}/npm/node_modules/.bin"


class CommandProgram(Program):
    """A command for ``/bin/sh`` that plays a task.

    ``{query}`` and ``{query_file}`` in it stand for the query, quoted, and the path of a file with
    it. Without either, the query is its last argument.
    """

    def __init__(
        self,
        command: str,
        pypi: Sequence[str] = (),
        npm: Sequence[str] = (),
        files: str | None = None,
    ) -> None:
        self.name, self.files = command, files
        given = (Packages("pypi", tuple(pypi)), Packages("npm", tuple(npm)))
        self.packages = tuple(packages for packages in given if packages.names)

    def command(self, launch: Launch) -> list[str]:
        places = {"{query}": launch.query, "{query_file}": launch.query_file}
        text = self.name
        if not any(place in text for place in places):
            text += " {query}"
        for place, value in places.items():
            text = text.replace(place, shlex.quote(value))
        return ["/bin/sh", "-c", f"PATH=$PATH:{_PATH}; {text}"]

    def metadata(self) -> dict[str, Any]:
        return super().metadata() | {"files": self.files}
