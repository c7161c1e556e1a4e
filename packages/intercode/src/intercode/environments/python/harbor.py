"""How a task becomes a task directory in Harbor's form: the program is written to a file there."""

from __future__ import annotations

import json
from importlib import resources

from intercode.core.errors import UsageError
from intercode.core.types import Task
from intercode.datasets.payloads import PythonPayload

PROGRAM_PATH = "/app/solution.py"
"""The path to write the program to, because nothing can be submitted."""


def hidden_test_files(task: Task, enter: str) -> dict[str, str]:  # noqa: ARG001
    """Return the files of a task by name. Raises UsageError for tests of another form."""
    payload = PythonPayload.of(task)
    mode = payload.mode
    if mode not in ("assert", "stdin"):
        raise UsageError(f"tests of the form {mode!r} cannot be exported to Harbor")
    tests = {"mode": mode, "tests": payload.tests, "setup": payload.setup, "cwd": task.cwd}
    runner = resources.files(__package__).joinpath("harbor_verifier.py").read_text("utf-8")
    subject = "the whole program" if mode == "stdin" else "what you define"
    query = "\n\n".join(
        filter(None, (task.query, payload.notes, f"Write {subject} to {PROGRAM_PATH}."))
    )
    return {
        "instruction.md": query,
        "tests/test.sh": '#!/bin/sh\nexec python3 -I "$(dirname "$0")/run.py"',
        "tests/run.py": runner,
        "tests/tests.json": json.dumps(tests, ensure_ascii=False, indent=1),
        "solution/solve.sh": f"#!/bin/sh\ncp /solution/solution.py {PROGRAM_PATH}",
        "solution/solution.py": task.solution or "",
    }
