"""What a bash knows, as text that another bash can be given.

Carried: variables of every kind (arrays, exported, read-only, namerefs), functions, aliases, traps,
options, umask, positional parameters. Not carried: jobs, `$!`, open descriptors, the directory
stack, ulimits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

DUMP_SCRIPT = (
    "builtin :\n{{ (builtin trap - DEBUG; builtin printf '%s\\n' {token} "
    "'builtin unset -v IFS PS4 PATH HOME HOSTNAME OPTIND OPTERR'; builtin declare -p; "
    "builtin declare -f; builtin alias -p; builtin shopt -p; builtin umask -p; "
    "builtin printf 'set --'; (($#)) && builtin printf ' %q' \"$@\"; builtin printf '\\n'; "
    "builtin set +o); builtin trap -p; builtin printf '%s\\0' {token}; }} 2>&- >&{report}\n"
)
"""Writes the state to the report descriptor, between two tokens, a NUL byte behind it. Options come
late: some of them, once set, would end the shell that restores; traps last: one for DEBUG would run
at every line. The first line is for bash's parser, which an unterminated quote in the action leaves
confused for one line. What every bash begins with is unset first: it may have been unset, or no
longer be exported. Nothing is opened, which a restricted shell may not."""

_MAY_END_SHELL = re.compile(
    r"\b(exit|exec|logout|kill|killall|pkill|set|trap|return|suspend|ulimit|unset|builtin|enable"
    r"|source|eval|printf)\b|(^|[;&|]|\s)\.\s|\$\$"
)


@dataclass(frozen=True, slots=True)
class SessionState:
    """A directory, and what a shell knew as text; empty where it was never asked. ``actions``: how
    many it had run, by which ``$RANDOM`` goes on in a deterministic box."""

    cwd: str
    text: str = ""
    actions: int = 0


def may_end_shell(code: str) -> bool:
    """Whether an action looks as if it could end or cripple the shell that runs it."""
    return _MAY_END_SHELL.search(code) is not None
