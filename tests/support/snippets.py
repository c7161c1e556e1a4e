"""Runs the snippets of a page of the documentation, in their order, as its reader would.

A snippet is a fenced block in ``python``, or in ``console``, ``sh`` or ``bash``. The snippets of a
page share a directory and the names of Python; the commands of a block share a shell. A Python
block whose first line is ``# NAME.py`` is a file that later commands use. Shown output is compared:
that below a command of a ``console`` block, and a block without a language that follows a snippet
of Python; ``...`` stands for any text. The model of a page is a scripted endpoint, which answers
for ENDPOINT and for every provider. ``pip`` has no index: it checks that a package is installed.
Comments of HTML, which the site does not show, stand before a snippet that needs them::

    <!-- needs: NAMES -->    what the machine must have: names of support/requirements.py
    <!-- setup: CODE -->     what its reader has done before, in the snippet's own language
    <!-- run by: FILES -->   tests or scripts that run it: they name the page or have its commands
    <!-- not run: REASON --> one of NOT_RUN

A function of the shell in the setup makes a command shorter (``--limit 2``) or ends it: in
``intercode() { until_prints http intercode "$@"; }``, a server ends when it has printed ``http``.
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

from support.sources import PYTHONPATH

SHELLS = ("console", "sh", "bash")
NOT_RUN = ("needs several machines",)
"""Every reason for which a snippet is left out. They hold on any machine of CI."""
_COMMENT = re.compile(r"<!-- (needs|setup|run by|not run): (.*?)\s*-->\n+", re.DOTALL)
_BLOCK = re.compile(
    rf"(?P<comments>(?:^{_COMMENT.pattern.replace('(.*?)', '(?:(?!-->).)*?')})*)"
    r"^(?P<indent> *)```(?P<language>\w*)\n(?P<body>.*?)^(?P=indent)```$"
    r"(?=\n+(?P<after>```\n(?P<output>.*?)^```$)?)",
    re.MULTILINE | re.DOTALL,
)
_FILE = re.compile(r"# ([\w./-]+\.(?:py|toml|jsonl?))\n")
_COMMAND = re.compile(r"(\$ |intercode |pip |python3? |inspect |docker |podman |make )")
ENDPOINT = "http://localhost:8000/v1"
"""The address that the pages give to an endpoint of the reader."""
_SECONDS = 300
_MARK = "--- next command ---"
_FUNCTIONS = f"""
until_prints() {{
  command python {Path(__file__).with_name("until_prints.py")} "$@"
}}
label() {{  # label DATASET: prints a label, which says that the gold of the first task is correct
  command python -c 'if True:
    import json, sys
    from intercode import datasets
    task = datasets.load(sys.argv[1]).tasks[0]
    print(json.dumps({{"task": task.id, "query": task.query, "actions": [task.gold],
                      "label": "correct"}}))' "$1"
}}
shorten() {{  # shorten LOG DIRECTORY: copies the beginning of a log of the authors
  mkdir -p "$2"
  command python -c 'if True:
    import json, sys
    log = json.load(open(sys.argv[1]))  # steps, or episodes by their number
    log = log[:8] if isinstance(log, list) else dict(list(log.items())[:2])
    json.dump(log, open(sys.argv[2], "w"))' "$1" "$2/${{1##*/}}"
}}
"""
"""What the setup of a snippet can call."""


@dataclass(frozen=True)
class Snippet:
    """A snippet of a page, with the number of its first line."""

    line: int
    language: str
    body: str
    output: str | None = None
    setup: str = ""
    needs: tuple[str, ...] = ()
    """What it needs of the machine: names of ``support.requirements.CHECKS``."""
    runner: str = ""
    """The tests or scripts that run it, from the directory of the checkout."""
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
        given = dict(_COMMENT.findall(found["comments"]))
        snippet = Snippet(
            line,
            language,
            body,
            found["output"] if language == "python" else None,
            given.get("setup", ""),
            tuple(re.findall(r"[\w:]+", given.get("needs", ""))),
            given.get("run by", ""),
            given.get("not run", ""),
        )
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
        elif snippet.language == "console":
            self._run_console(snippet)
        else:
            self._run_shell(f"{snippet.setup}\n{snippet.body}")

    def _run_console(self, snippet: Snippet) -> None:
        steps = list(commands(snippet.body))
        code = "".join(f"echo '{_MARK}'\n{command}\n" for command, _ in steps)
        printed = self._run_shell(f"{snippet.setup}\n{code}").split(f"{_MARK}\n")[1:]
        for (_, shown), output in zip(steps, printed, strict=True):
            if shown:
                compare(output, shown)

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
            ["bash", "-euo", "pipefail", "-c", _FUNCTIONS + code],
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
            env={
                **os.environ,
                "PATH": path,
                "PYTHONPATH": PYTHONPATH,
                "COLUMNS": "200",
                "PIP_NO_INDEX": "1",
                "PROJECT": str(self.project),
            },
        )
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
