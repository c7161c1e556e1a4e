"""The scripts that a session sends to its bash besides the actions.

A script must not be observable from the actions. Most are simple commands, which disturb no agent
that sets no traps and traces nothing. The *quiet* ones contain no simple command that the shell
itself would run, so they fire no DEBUG trap, print no trace, and leave ``$_`` and ``PIPESTATUS`` as
they are. They use that bash expands the words of a loop over nothing, and of a redirection that
fails. Scripts start no process, with one exception: if the sandbox has no room for one, bash would
retry for 15 seconds. A quiet script that reads the shell's whole state forks the shell once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

REPORT_FD, STATE_FD, CODE_FD = 63, 59, 58
"""Descriptor numbers in the shell."""
_LAST_DEBUG_TRAP = re.compile(r"^trap -- '(?:[^']|'\\'')*' DEBUG\n\Z", re.MULTILINE)
_TRAP_BEGINNING = re.compile(r"^trap -- ", re.MULTILINE)
_LAST_COMMAND = re.compile("^declare -- BASH_COMMAND=.*$", re.MULTILINE)
_UNSET_TRAP = re.compile(r"^trap -- - \S+\n", re.MULTILINE)  # listed in POSIX mode
_COMMAND_TRAP = re.compile(r"' (DEBUG|ERR|RETURN|SIGRTMAX)$", re.MULTILINE)
_OPTION_LINE = re.compile(r"^set [+-]o (\S+)$", re.MULTILINE)
CALL_STACK = r"\bcaller\b|\b(BASH_SOURCE|FUNCNAME|BASH_LINENO|BASH_ARG[CV])\b"
"""What shows the stack of calls, of which a sourced file is one."""
_SHOWS_CALLS = re.compile(
    r"^\s.*(\bcaller\b|\$\{?[#!]?(BASH_SOURCE|FUNCNAME|BASH_LINENO))", re.MULTILINE
)
"""In a function, of which bash indents the lines."""
_DEBUG_TRAP_FORM = re.compile("(trap -- '.*' DEBUG\n)?", re.DOTALL)

INIT_SCRIPT = "exec {code}; trap -- {stop} RTMAX; cd {cwd} 2>/dev/null || cd {root}; unset OLDPWD\n"
_STOP_TRAP_FORM = (
    "shopt -s extdebug; trap 'case $BASH_COMMAND in (builtin\\ *{report}*|builtin\\ trap*"
    "|builtin\\ shopt*) builtin : ;; (*) break 1000 2>/dev/null; builtin false ;; esac' DEBUG"
)
"""The trap that makes a shell give up an action. From then on, every command except ours leaves all
loops, or is skipped because the DEBUG trap fails (bash's extdebug option)."""
RESUME_SCRIPT = "builtin trap - DEBUG; builtin shopt -u extdebug; builtin jobs >/dev/null 2>&1\n"
"""``jobs`` makes bash notice which background jobs were killed. Otherwise it would report them in
the output of the next action."""
RESTORE_SCRIPT = (
    "exec 60>&1 61>&2 >/dev/null 2>&1\n"
    f"IFS=; builtin mapfile -u {STATE_FD} __state; exec {STATE_FD}<&-\n"
    'builtin eval "builtin unset -v __state; ${__state[*]}"\n'
    "[[ ${PWD-} == /* && $PWD -ef . ]] || builtin cd . || builtin :\n"
    "exec >&60 2>&61 60>&- 61>&-\n"
)
"""Restores the state from a file, which bash reads in blocks. It reads its script byte by byte.
The last but one line corrects ``$PWD`` if the directory of the state was deleted."""
ACCEPTANCE_SCRIPT = '{{ {source}builtin printf "%s %s\\0" {word} "$?" >&{report}; }} 2>&-\n'

_DUMP = (
    "builtin trap -p DEBUG >&{report}; builtin printf '%s\\n' {token} >&{report}; "
    "builtin trap -p >&{report}; builtin trap - DEBUG; {{ builtin printf '%s\\n' {token} "
    "'builtin unset -v IFS PS4 PATH HOME HOSTNAME OPTIND OPTERR'; builtin declare -p; "
    "builtin declare -f; builtin alias -p; builtin shopt -p; builtin umask -p; "
    "builtin printf 'set --'; (($#)) && builtin printf ' %q' \"$@\"; builtin printf '\\n'; "
    "builtin set +o; builtin printf '%s\\0' {token}; }} >&{report};"
)
"""Writes to the report descriptor: the DEBUG trap, all traps, and the rest of the state, with a
token after each. The DEBUG trap, which would run before every command, is removed between them.

Options are written late, because some of them would end the shell that restores the state. The
variables with which every bash starts are unset first, because the action may have unset them or
removed their export. The script opens no file, because a restricted shell may not.
"""

_WHERE = "[[ ${{PWD-}} -ef . ]] || {program} -p -c 'builtin printf %s\\\\n \"$PWD\"' >&{report};"
"""Reports where the kernel has the shell, unless ``$PWD`` is there, too. The path is empty if the
directory was deleted. Another shell finds it."""
_REPORT = (
    '{{ builtin printf %s "{token} $? $SHELLOPTS ${{PWD-}}">&{report};'
    '! [[ ${{PWD-}} -ef . ]];builtin printf "$?\\0">&{report};}} 2>&-\n'
)
"""In few characters, because bash reads a script byte by byte. The last one is 1 if ``$PWD`` is the
directory of the shell. Negated, the test ends no shell with errexit."""
_REPORT_FORM = re.compile(r" ([0-9]{1,3}) (\S*) (.*)", re.DOTALL)
_QUIET_PREFIX = re.compile("([^\n]*: /dev/null/)?")
_NOTHING = '{{ for _ in; do :; done <"/dev/null/{words}" || for _ in; do :; done; }} 2>&{to}\n'
"""Expands words and writes them to a descriptor, in the error about a file that cannot exist. The
second loop is there because a failure would fire the ERR trap."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a shell reports after an action: the exit status, its options, and the value of ``PWD``.

    ``is_there``: the kernel has the shell in that directory; None if this was not looked up.
    """

    status: int
    options: frozenset[str]
    directory: str
    is_there: bool | None


def parse_report(record: str, token: str) -> Report | None:
    """Return what a record of ``report_script`` says, or None if it is no such record."""
    before, first, rest = record.removesuffix("\0").partition(token)
    text = rest.partition(token)[0]
    fields = _REPORT_FORM.fullmatch(text)
    if not first or fields is None or int(fields[1]) > 255 or not _QUIET_PREFIX.fullmatch(before):
        return None
    options = frozenset(fields[2].split(":"))
    named, last = fields[3][:-1], fields[3][-1:]
    if before:
        return Report(int(fields[1]), options, fields[3].removesuffix("/") or "/", None)
    is_there = last == "1" and named.startswith("/")
    return Report(int(fields[1]), options, named or "/", is_there)


def quote(text: str) -> str:
    """Return a text as one word, in the form in which bash prints it."""
    return "'" + text.replace("'", "'\\''") + "'"


def loop_over_nothing(commands: str) -> str:
    """Return a quiet script that runs commands in a fork of the shell.

    With functrace a DEBUG trap fires in the fork. It can write, because with extdebug a trap that
    fails skips our commands.
    """
    return f"{{ for _ in $( {{ {commands} }} >/dev/null 2>&1 ); do :; done; }} 2>&-\n"


def dump_script(token: str, quiet: bool) -> str:
    """Return a script that writes the state of the shell; see ``parse_dump``.

    The first line is for bash's parser: an unterminated quote in an action leaves it confused for
    one line.
    """
    commands = _DUMP.format(token=token, report=REPORT_FD)
    return loop_over_nothing(commands) if quiet else f"builtin :\n{{ {commands} }} >&- 2>&-\n"


def parse_dump(
    output: str, token: str, options: frozenset[str] | None = None
) -> tuple[str, str] | None:
    """Return a state and its DEBUG trap, which is not in the state, or None for other output.

    ``options``: those of the shell, if a fork wrote the output, for which bash resets some.
    """
    parts = output.split(f"{token}\n")
    if len(parts) != 3 or not parts[2].endswith(f"{token}\0"):
        return None
    debug_trap, traps = (_UNSET_TRAP.sub("", part) for part in parts[:2])
    text = parts[2][: -len(token) - 1]
    if not _DEBUG_TRAP_FORM.fullmatch(debug_trap):
        return None
    if options is not None:
        start = text.rindex("\nset --")
        text = text[:start] + _OPTION_LINE.sub(
            lambda line: f"set {'-' if line[1] in options else '+'}o {line[1]}", text[start:]
        )
    traps = traps.replace(_STOP_TRAP_LINE, "")  # ours, which every new shell sets
    return text + traps.replace(debug_trap, "", 1), debug_trap


def report_script(token: str, quiet: bool) -> str:
    """Return a script that reports the exit status, the options and the directory."""
    if not quiet:
        return _REPORT.format(token=token, report=REPORT_FD)
    words = f"{token} $? $SHELLOPTS ${{PWD-}}/{token}"
    return _NOTHING.format(words=words, to=REPORT_FD)


def directory_script(program: str) -> str:
    """Return a quiet script that reports the directory in which the kernel has the shell, if it is
    not ``$PWD``."""
    return loop_over_nothing(_WHERE.format(program=program, report=REPORT_FD))


def parse_script(code: str) -> str:
    """Return a quiet script that parses some code as the shell would, and writes what bash has to
    say about it to the report descriptor."""
    text = quote(f"builtin set -n\n{code}\n")
    commands = f"builtin set +x; builtin trap - DEBUG; builtin eval {text} 2>&{REPORT_FD};"
    return loop_over_nothing(commands)


def quiet_assignment(name: str, value: int) -> str:
    """Return a quiet script that assigns a number to a variable. ``$?`` becomes 0."""
    return _NOTHING.format(words=f"$(({name}={value}))", to="-")


def status_script(status: int, quiet: bool) -> str:
    """Return a script that sets ``$?``, which is 0 before a quiet one.

    Only a simple command or a subshell can give another status than 0 and 1, so a quiet script for
    one fires the DEBUG trap, but what that prints is lost.
    """
    if not status:
        return ""
    if not quiet:
        return (
            f"__status() {{ builtin unset -f __status; builtin return {status}; }}\n"
            "{ __status; } >&- 2>&- && builtin :\n"
        )
    if status == 1:
        return "! for _ in; do :; done\n"
    return f"{{ ( exit {status} ) && :; }} >&- 2>&-\n"


STOP_TRAP = _STOP_TRAP_FORM.format(report=REPORT_FD)
ARM_SCRIPT = f"{{ builtin trap -- {quote(STOP_TRAP)} RTMAX; }} 2>&-\n"
DISARM_SCRIPT = "{ builtin trap - RTMAX; } 2>&-\n"
_STOP_TRAP_LINE = f"trap -- {quote(STOP_TRAP)} SIGRTMAX\n"


def split_debug_trap(state: str) -> tuple[str, str]:
    """Return a state without its DEBUG trap, and the trap: the last line of the state, or empty."""
    found = _LAST_DEBUG_TRAP.search(state)
    return (state[: found.start()], found[0]) if found else (state, "")


def observes_shell(state: str) -> bool:
    """Return whether a state holds something that lists traps or calls, or a trap that commands of
    ours would fire."""
    others = _TRAP_BEGINNING.sub("", _LAST_COMMAND.sub("", state.replace(_STOP_TRAP_LINE, "")))
    return bool(
        _COMMAND_TRAP.search(others)
        or re.search(r"\btrap\b", others)
        or _SHOWS_CALLS.search(others)
    )
