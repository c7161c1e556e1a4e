"""The tracebacks of exceptions in a user's own agent, model, policy or reward, for the record."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from intercode.core.errors import InterCodeError
from intercode.core.types import ActionError
from intercode_sandbox.long_output import shorten

MAX_CHARACTERS = 20_000
"""The length of a recorded traceback; more is cut out of its middle."""
_FRAME = re.compile(r'(?m)^(?P<start>[ |]*File )"(?P<path>[^"\n]+)"(?=, line \d)')


def traceback_metadata(error: BaseException) -> dict[str, str]:
    """Return ``{"traceback": text}`` for the ``run`` of an episode's record.

    Empty for an error that this package raises deliberately: its message says everything. The text
    names each file by its path below the directory from which it was imported, so that a record
    that is given to others holds no path of this machine.
    """
    if isinstance(error, InterCodeError):
        return {}
    return {"traceback": portable_traceback("".join(traceback.format_exception(error)))}


def action_error_metadata(error: ActionError) -> dict[str, dict[str, str]]:
    """Return ``{"action_error": …}`` for the ``run`` of an episode's record."""
    trace = portable_traceback(error.traceback)
    row = {"type": error.type, "message": error.message, "traceback": trace}
    return {"action_error": row | ({"reward": error.reward} if error.reward else {})}


def recorded_action_error(run: Mapping[str, Any]) -> ActionError | None:
    """Return the action error that the ``run`` of an episode's record has, None without one."""
    row = run.get("action_error") or {}
    names = [f.name for f in fields(ActionError)]
    given = {name: str(row[name]) for name in names if name in row}
    return ActionError(**{"type": "an exception", "message": ""} | given) if row else None


def portable_traceback(text: str) -> str:
    """Return a traceback without directories of this machine, and shorter if it is long."""
    text = text.rstrip("\n")
    text = _FRAME.sub(lambda m: f'{m["start"]}"{_import_path(m["path"])}"', text)
    return shorten(text, MAX_CHARACTERS).text


def _import_path(file: str) -> str:
    """Return the path of a source file below the directory in ``sys.path`` that contains it, or its
    name if there is none."""
    path = Path(file)
    if not path.is_absolute():
        return file
    parents = [Path(entry).resolve() for entry in sys.path]
    below = [path.relative_to(p).as_posix() for p in parents if path.is_relative_to(p)]
    return min(below, key=len, default=path.name)
