"""Runs the snippets of a page of the documentation, in their order, as its reader would.

A snippet is a fenced block in ``python``, or in ``console``, ``sh`` or ``bash``. The snippets of a
page share a directory and the names of Python. A Python block whose first line is ``# NAME.py``
is a file that later commands use. Shown output is compared: that below a command of a ``console``
block, and a block without a language that follows a snippet of Python; ``...`` stands for any text.
The model of a page is a scripted endpoint, which answers for ENDPOINT and for every provider.
Two comments of HTML, which the site does not show, stand before a snippet where it needs them::

    <!-- not run: REASON -->
    <!-- setup: CODE -->        what its reader has done before, in the snippet's own language
"""

from __future__ import annotations

import ast
import asyncio
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from inspect import isawaitable
from pathlib import Path
from typing import Any

SHELLS = ("console", "sh", "bash")
_BLOCK = re.compile(
    r"(?:^<!-- (?P<kind>not run|setup): (?P<text>(?:(?!-->).)*?)\s*-->\n+)?"
    r"^(?P<indent> *)```(?P<language>\w*)\n(?P<body>.*?)^(?P=indent)```$"
    r"(?=\n+(?P<after>```\n(?P<output>.*?)^```$)?)",
    re.MULTILINE | re.DOTALL,
)
_FILE = re.compile(r"# ([\w./-]+\.(?:py|toml|jsonl?))\n")
_COMMAND = re.compile(r"(\$ |intercode |pip |python3? |inspect |docker |podman |make )")
ENDPOINT = "http://localhost:8000/v1"
"""The address that the pages give to an endpoint of the reader."""
_SECONDS = 120


@dataclass(frozen=True)
class Snippet:
    """A snippet of a page, with the number of its first line."""

    line: int
    language: str
    body: str
    output: str | None = None
    setup: str = ""
    reason: str = ""
    """Why it is not run. Empty: it is run."""

    @property
    def file(self) -> str:
        """The name of the file that it is, or an empty text."""
        found = _FILE.match(self.body)
        return found[1] if found and self.language not in SHELLS else ""


def read_snippets(text: str) -> Iterator[Snippet]:
    """Yield the snippets of a page. Raises ValueError for commands in a block without a language,
    which would not be run."""
    for found in _BLOCK.finditer(text + "\n"):
        line = text[: found.start("body")].count("\n")
        language, body = found["language"], found["body"]
        if not language and _COMMAND.match(body):
            raise ValueError(f"line {line}: a block of commands needs a language: console or sh")
        given = {found["kind"]: found["text"]}
        snippet = Snippet(
            line, language, body, found["output"] if language == "python" else None,
            given.get("setup", ""), given.get("not run", ""),
        )  # fmt: skip
        if language in ("python", *SHELLS) or snippet.file:
            yield snippet


@dataclass
class Reader:
    """Runs snippets in a directory. ``project``: the directory of the checkout. ``endpoint``: the
    address of the endpoint that answers."""

    directory: Path
    project: Path
    endpoint: str = ENDPOINT
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__page__"})

    def run(self, snippet: Snippet) -> None:
        """Run a snippet and compare its output. Raises AssertionError or what it raises."""
        snippet = replace(snippet, body=snippet.body.replace(ENDPOINT, self.endpoint))
        if snippet.file:
            path = self.directory / snippet.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(snippet.body, "utf-8")
        elif snippet.language == "python":
            self._run_python(snippet.setup)
            printed = self._run_python(snippet.body)
            if snippet.output is not None:
                compare(printed, snippet.output)
        else:
            if snippet.setup:
                self._run_shell(snippet.setup)
            if snippet.language == "console":
                for command, shown in commands(snippet.body):
                    printed = self._run_shell(command)
                    if shown:
                        compare(printed, shown)
            else:
                self._run_shell(snippet.body)

    def _run_python(self, code: str) -> str:
        printed = io.StringIO()
        with redirect_stdout(printed):
            found = eval(
                compile(code, "<page>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), self.names
            )
            if isawaitable(found):
                asyncio.run(_finish(found))
        return printed.getvalue()

    def _run_shell(self, code: str) -> str:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", code], cwd=self.directory, capture_output=True,
            text=True, timeout=_SECONDS, check=False, stdin=subprocess.DEVNULL,
            env={**os.environ, "PATH": path, "PYTHONPATH": str(self.project / "src"),
                 "COLUMNS": "200"},
        )  # fmt: skip
        assert done.returncode == 0, f"{code}\n{done.stdout}\n{done.stderr}"
        return done.stdout


async def _finish(awaitable: Any) -> None:
    await awaitable


def commands(body: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a console block with the output that is shown for it."""
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        while command.endswith("\\"):
            more, _, shown = shown.partition("\n")
            command = f"{command[:-1]}{more}"
        yield command, shown


def compare(printed: str, shown: str) -> None:
    """Fail unless the printed output is the shown one, in which ``...`` stands for any text."""

    def lines(text: str) -> str:
        return "\n".join(line.rstrip() for line in text.strip().splitlines())

    pattern = re.escape(lines(shown)).replace(r"\.\.\.", ".*").replace("…", ".*")
    if not re.fullmatch(pattern, lines(printed), re.DOTALL):
        raise AssertionError(f"the page shows\n{shown}\nbut this was printed\n{printed}")
