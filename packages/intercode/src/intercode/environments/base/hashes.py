"""Short hashes of observations and states, with which two runs are compared."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping

from intercode.core.types import FileEntry

HASH_LENGTH = 16
"""Hexadecimal digits of a hash, the first of a SHA-256."""

_VOLATILE_VARIABLES = (
    "_",
    "BASHPID",
    "BASH_ARGC",
    "BASH_ARGV",
    "BASH_ARGV0",
    "BASH_COMMAND",
    "BASH_COMPAT",
    "BASH_LINENO",
    "BASH_SOURCE",
    "BASH_SUBSHELL",
    "COMP_WORDBREAKS",
    "DIRSTACK",
    "EPOCHREALTIME",
    "EPOCHSECONDS",
    "FUNCNAME",
    "GROUPS",
    "HISTCMD",
    "LINENO",
    "PIPESTATUS",
    "PPID",
    "RANDOM",
    "SECONDS",
    "SRANDOM",
)
"""Variables that bash changes by itself or computes when they are read."""
_VOLATILE_DECLARATION = re.compile(rf"declare -[a-zA-Z-]+ ({'|'.join(_VOLATILE_VARIABLES)})(=|$)")


def observation_hash(text: str) -> str:
    """Return the hash of an observation."""
    return _digest(text)


def state_hash(files: Mapping[str, FileEntry], cwd: str, shell: str) -> str:
    """Return the hash of a state.

    It covers the changed files except their dates, the working directory, and the variables and
    functions of the shell except volatile variables.
    """
    rows = [
        [path, f.kind, f.mode, f.size if f.kind == "file" else 0, f.digest, f.target]
        for path, f in sorted(files.items())
    ]
    return _digest(json.dumps([rows, cwd, without_volatile_variables(shell)]))


def without_volatile_variables(shell: str) -> str:
    """Return the declarations of a shell without those of volatile variables."""
    return "\n".join(line for line in shell.split("\n") if not _VOLATILE_DECLARATION.match(line))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_LENGTH]
