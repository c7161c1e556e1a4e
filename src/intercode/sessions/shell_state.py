"""What a bash knows, as text that another bash can be given.

Carried: variables of every kind (arrays, exported, read-only, namerefs), functions, aliases, traps,
options, umask, positional parameters. Not carried: jobs, `$!`, open descriptors, the directory
stack, ulimits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

DUMP = (
    "builtin :\n{{ builtin declare -p; builtin declare -f; builtin alias -p; builtin shopt -p; "
    "builtin trap -p; builtin printf 'umask %s\\n' \"$(builtin umask)\"; "
    "builtin printf 'set --'; (($#)) && builtin printf ' %q' \"$@\"; builtin printf '\\n'; "
    "builtin set +o; builtin printf '\\0'; }} 2>/dev/null >&{report}\n"
)
"""Writes the state to the report descriptor, a NUL byte behind it. Options come last: some of them,
once set, would end the shell that restores. The first line
is for bash's parser, which an unterminated quote in the action leaves confused for one line."""

_ENDING = re.compile(
    r"\b(exit|exec|logout|kill|killall|pkill|set|trap|return|suspend|ulimit|unset|builtin|enable"
    r"|source|eval|printf)\b|(^|[;&|]|\s)\.\s|\$\$"
)


@dataclass(frozen=True, slots=True)
class SessionState:
    """A directory, and what a shell knew as text; empty where it was never asked."""

    cwd: str
    text: str = ""


def may_end(code: str) -> bool:
    """Whether an action looks as if it could end or cripple the shell that runs it."""
    return _ENDING.search(code) is not None
