"""Short fingerprints of what an agent saw and of what it left, by which two runs are compared."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping

from intercode.core.types import FileEntry

HASH_LENGTH = 16
"""Hex digits that are kept of a SHA-256."""

_VOLATILE_VARIABLES = (
    "_", "BASHPID", "BASH_ARGC", "BASH_ARGV", "BASH_ARGV0", "BASH_COMMAND", "BASH_COMPAT",
    "BASH_LINENO", "BASH_SOURCE", "BASH_SUBSHELL", "COMP_WORDBREAKS", "DIRSTACK", "EPOCHREALTIME",
    "EPOCHSECONDS", "FUNCNAME", "GROUPS", "HISTCMD", "LINENO", "PIPESTATUS", "PPID", "RANDOM",
    "SECONDS", "SRANDOM",
)  # fmt: skip
"""Variables that bash changes by itself, or makes up when they are looked at."""
_VOLATILE_DECLARATION = re.compile(rf"declare -[a-zA-Z-]+ ({'|'.join(_VOLATILE_VARIABLES)})(=|$)")


def observation_hash(text: str) -> str:
    """The fingerprint of an observation."""
    return _digest(text)


def state_hash(files: Mapping[str, FileEntry], cwd: str, shell: str) -> str:
    """The fingerprint of a state: what changed of the files but their dates, the directory, and
    what the shell knows, without the variables that change by themselves."""
    rows = [
        [path, f.kind, f.mode, f.size if f.kind == "file" else 0, f.digest, f.target]
        for path, f in sorted(files.items())
    ]
    return _digest(json.dumps([rows, cwd, without_volatile_variables(shell)]))


def without_volatile_variables(shell: str) -> str:
    """The dump of a shell without the variables that bash itself changes."""
    return "\n".join(line for line in shell.split("\n") if not _VOLATILE_DECLARATION.match(line))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_LENGTH]
