"""How a task becomes a task directory in Harbor's form: the flag is written to a file there."""

from __future__ import annotations

import hashlib
import shlex

from intercode.core.types import Task
from intercode.datasets.payloads import CtfPayload
from intercode.environments.base.verifier_texts import REWARD_SCRIPT
from intercode_sandbox.valid_text import replace_surrogates

FLAG_PATH = "/app/flag.txt"
"""The path to write the flag to, because nothing can be submitted."""


def flag_files(task: Task, enter: str) -> dict[str, str]:
    """Return the files of a task by name. ``enter``: the line that enters its directory."""
    payload = CtfPayload.of(task)
    flags = [f for f in (task.flag, *payload.also_flags) if f]
    sums = "".join(f"{_digest(flag)}\n" for flag in flags)
    query = f"{task.query}\n\nThe files, if there are any, are in {task.cwd}. Write the flag, and "
    given = f'printf %s "$(cat {FLAG_PATH})" | sha256sum | cut -d " " -f 1'
    test = f'[ -f {FLAG_PATH} ] && {given} | grep -qxFf - "$(dirname "$0")/flags.sha256"'
    solution = payload.solution or f"printf '%s\\n' {shlex.quote(flags[0])}"
    return {
        "instruction.md": f"{query}nothing else, to {FLAG_PATH}.",
        "tests/test.sh": f"#!/bin/sh\n{REWARD_SCRIPT.format(test=test)}",
        "tests/flags.sha256": sums,
        "solution/solve.sh": f"#!/bin/bash\n{enter}(\n{solution}\n) > {FLAG_PATH}",
    }


def _digest(flag: str) -> str:
    try:
        data = flag.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        data = replace_surrogates(flag).encode()
    return hashlib.sha256(data).hexdigest()
