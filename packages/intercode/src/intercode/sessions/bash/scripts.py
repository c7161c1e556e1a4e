"""The scripts that a session sends to its bash besides the actions.

A script must not be observable from the actions. Most are simple commands, which disturb no agent
that sets no traps and traces nothing. The *quiet* ones contain no simple command that the shell
itself would run, so they fire no DEBUG trap, print no trace, and leave ``$_`` and ``PIPESTATUS`` as
they are. They use that bash expands the words of a loop over nothing, and of a redirection that
fails. Scripts start no process, with two exceptions: if the sandbox has no room for one, bash would
retry for 15 seconds. A quiet script that reads the shell's whole state, or that reports where bash
may expand aliases, forks the shell once, and ``pipeline_script`` runs a pipeline.
"""

from __future__ import annotations

import re
import secrets
from functools import lru_cache
from typing import NamedTuple

REPORT_FD, STATE_FD, CODE_FD, GIVEN_REPORT_FD = 50, 59, 58, 57
"""Descriptor numbers in the shell, under the least limit of open files. Bash itself uses those from
10 and from 63 down that are free."""
_OWN = f"__{secrets.token_hex(8)}_"
"""What the names of the session's own variables and functions begin with: no action knows it, so
none is one of the agent's, or has attributes that the agent gave it."""
MAX_LAST = 4096
"""Characters of ``$_`` that are kept from one action to the next."""
_LAST_DEBUG_TRAP = re.compile(r"^trap -- '(?:[^']|'\\'')*' DEBUG\n\Z", re.MULTILINE)
_TRAP_BEGINNING = re.compile(r"^trap -- ", re.MULTILINE)
_LAST_COMMAND = re.compile("^declare -- BASH_COMMAND=.*$", re.MULTILINE)
_UNSET_TRAP = re.compile(r"^trap -- - \S+\n", re.MULTILINE)  # listed in POSIX mode
_COMMAND_TRAP = re.compile(r"' (DEBUG|ERR|RETURN|SIGRTMAX)$", re.MULTILINE)
_HISTORY_OPTION = "\nset -o history\n"
"""The last line of a state, because bash enters the lines that follow it into the history."""
_SHELL_OPTIONS = re.compile(r"(?:^shopt -[su] \w+\n)+", re.MULTILINE)
_ALIASES_OPTION = re.compile(r"^shopt -([su]) expand_aliases\n", re.MULTILINE)
_BELOW_SHELL_OPTIONS = re.compile(
    r"umask .+\nset --.*\n(set [+-]o \S+\n)*(trap -- '(?:[^']|'\\'')*' \S+\n)*"
    rf"({_HISTORY_OPTION.lstrip()})?\Z"
)
"""What follows the shell's options in a state. The same lines in a function or a string of the
agent's are followed by something else."""
_MOST_TRIED = 16
"""How many places are tried, from the end: the agent can write any number of them."""
_OPTION_LINE = re.compile(r"^set [+-]o (\S+)$", re.MULTILINE)
CALL_STACK = r"\bcaller\b|\b(BASH_SOURCE|FUNCNAME|BASH_LINENO|BASH_ARG[CV])\b"
"""What shows the stack of calls, of which a sourced file is one."""
_SHOWS_CALLS = re.compile(
    r"^\s.*(\bcaller\b|\$\{?[#!]?(BASH_SOURCE|FUNCNAME|BASH_LINENO))", re.MULTILINE
)
"""In a function, of which bash indents the lines."""
_DEBUG_TRAP_FORM = re.compile("(trap -- '.*' DEBUG\n)?", re.DOTALL)

INIT_SCRIPT = (
    f"{{{{ exec {REPORT_FD}>&10 {{code}}; }}}} {GIVEN_REPORT_FD}>&- {CODE_FD}<&-; "
    f"exec {GIVEN_REPORT_FD}>&- {CODE_FD}<&-; "
    "{arm}cd {cwd} 2>/dev/null || cd {root}; unset OLDPWD\n"
)
"""The first line copies descriptors that no program inherits: bash keeps what a redirection closes
as 10 and 11, for itself, and copies the flag that says so."""
_STOP_TRAP_FORM = (
    "shopt -s extdebug; trap 'case $BASH_COMMAND in (builtin\\ *{report}*|builtin\\ trap*"
    f"|*{_OWN}options*|*builtin\\ shopt*|for\\ _\\ in*SHELLOPTS*|*-ef\\ .*|*HISTIGNORE*"
    "|builtin\\ history*) ;;"
    " (*) break 1000 2>/dev/null; builtin false ;; esac' DEBUG"
)
"""The trap that makes a shell give up an action. From then on, every command except ours leaves all
loops, or is skipped because the DEBUG trap fails (bash's extdebug option). For ours it runs no
command, which would change ``$_``."""
RESUME_SCRIPT = "builtin trap - DEBUG; builtin shopt -u extdebug; builtin jobs >/dev/null 2>&1\n"
"""``jobs`` makes bash notice which background jobs were killed. Otherwise it would report them in
the output of the next action."""
RESTORE_SCRIPT = (
    "exec 60>&1 61>&2 >/dev/null 2>&1\n"
    f"IFS=; builtin mapfile -u {STATE_FD} {_OWN}state; exec {STATE_FD}<&-\n"
    f'builtin eval "builtin unset -v {_OWN}state; ${{{_OWN}state[*]}}"\n'
    "\\builtin shopt -u expand_aliases\n"
    "[[ ${PWD-} == /* && $PWD -ef . ]] || builtin cd . || builtin :\n"
    "command exec >&60 2>&61 60>&- 61>&-\n"
)
"""Restores the state from a file, which bash reads in blocks. It reads its script byte by byte.
The last but one line corrects ``$PWD`` if the directory of the state was deleted."""
LINES_AFTER_STATE = 4
"""Lines that follow that in which options are restored, with the one of the first report."""
ACCEPTANCE_SCRIPT = (
    '{{ {source}builtin printf "%s %s\\0" {word} "$?" >&{report}; builtin : __status; }} 2>&-\n'
)

_OWN_BUILTINS = (
    "! for _ in; do :; done {BASH_XTRACEFD}>&-; "
    "POSIXLY_CORRECT=1; \\unset -f unset builtin enable; \\unset -v POSIXLY_CORRECT _; "
    "\\enable builtin trap printf unset declare alias shopt umask set eval; builtin set +x;"
)
"""What a fork of the shell runs first if the agent may have disabled builtins, or replaced them by
functions, or given ``$_`` an attribute with which it refuses words, or sent traces elsewhere: that
descriptor is closed. In POSIX mode bash prefers its own ``unset``."""
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
_STATUSES, _LAST = "${PIPESTATUS[*]/#/,}", f"${{_:0:{MAX_LAST}}}"
_REPORT = (
    'for _ in "{token} {options} {statuses} ${{PWD-}}{token}{last}";'
    "do ! [[ ${{PWD-}} -ef . ]];builtin printf '%s\\0' \"$_$?\">&{report};done"
)
"""Reports the exit status, the options, the statuses of the last pipeline, ``PWD`` and ``$_``. The
last character is 1 if ``$PWD`` is the directory of the shell. Negated, the test ends no shell with
errexit."""
_FORGET = f"builtin unset -v {_OWN}last {_OWN}statuses {_OWN}options;builtin trap - RETURN"
_ALIASES_OFF = f'\n{_OWN}options="$? $SHELLOPTS::$BASHOPTS"; \\builtin shopt -u expand_aliases\n'
"""The line before a report that aliases could change: bash expands those of reserved words, too,
but none where a word is quoted. The empty line before it is for bash's parser, which an open quote
in the action leaves confused for one line."""
ALIASES_OFF_SCRIPT = "\\builtin shopt -u expand_aliases\n"
"""Fires the DEBUG trap, and what that prints is not read."""
RETAINED_TEXT = f"{_OWN}last={_LAST} {_OWN}statuses={_STATUSES}"
RETAIN_SCRIPT = f"builtin trap -- '{RETAINED_TEXT}' RETURN\n"
"""Keeps what the next command that sources a file would change, for the report after it."""
UNLESS_REPORTED = f'||builtin printf "$?\\0">&{REPORT_FD}'
"""After the command that sources an action and its report: says that it did not get there."""
_UNREPORTED = re.compile(b"([0-9]{1,3})\0")
_REPORT_FORM = re.compile(r" ([0-9]{1,3}) (\S*) ((?:.?,[0-9]+)*) (.*)", re.DOTALL)
"""Before each status after the first is what ``IFS`` begins with."""
_EXPANDS_ALIASES = re.compile(r"\b(expand_aliases|posix)\b")  # in SHELLOPTS and BASHOPTS
_STATUS = re.compile(",([0-9]+)")
_QUIET_PREFIX = re.compile("([^\n]*: /dev/null/)?")
_NOTHING = '{{ for _ in; do :; done <"/dev/null/{words}" || for _ in; do :; done; }} 2>&{to}\n'
"""Expands words and writes them to a descriptor, in the error about a file that cannot exist. The
second loop is there because a failure would fire the ERR trap."""
_NOTHING_IN_FORK = '( \\: ) 2>&{to} <"/dev/null/{words}" && \\:\n'
"""The same without words that an alias could change, in a fork of the shell."""
_OPTIONS_IF_ONE_IS = "".join(
    f"${{BASH_ALIASES[{word}]+::$BASHOPTS}}"
    for word in (r"\{", r"\}", r"\!", r"\[\[", ":", "for", "do", "done", "builtin", "exit")
)
_OPTIONS_IF_ALIASED = f"${{BASH_ALIASES[*]+{_OPTIONS_IF_ONE_IS}}}"
"""The options of ``shopt`` if there are aliases of words that quiet scripts begin commands with."""
_ALIASES = f":${{!BASH_ALIASES*}}{_OPTIONS_IF_ALIASED}"
"""That, and before it the variable's name, unless it was unset, after which bash keeps aliases."""


class ActionReport(NamedTuple):
    """What a shell reports after an action: the exit status, its options, and the value of ``PWD``.

    ``is_there``: the kernel has the shell in that directory; None if this was not looked up.
    ``statuses``: those of the last pipeline; ``last``: ``$_``, as a word of a script. Both are
    empty if they were not looked up. ``has_aliases``: the action left aliases on, and the report
    has turned them off or a quiet one asks for it; None if they stay as they were.
    """

    status: int
    options: frozenset[str]
    directory: str
    is_there: bool | None
    statuses: tuple[int, ...] = ()
    last: str = ""
    has_aliases: bool | None = None


def parse_report(record: str, token: str) -> ActionReport | None:
    """Return what a record of ``report_script`` says, or None if it is no such record."""
    before, first, rest = record.partition(token)
    text, second, rest = rest.partition(token)
    if not first or not second or not _QUIET_PREFIX.fullmatch(before):
        return None
    return _make_report(text, rest.removesuffix("\0"), token if before else "")


@lru_cache(maxsize=2)  # actions often leave the same
def _make_report(text: str, rest: str, end: str) -> ActionReport | None:
    """Return what the text between the tokens and the rest of a record say. ``end``: what follows
    ``$_`` in a quiet one."""
    fields = _REPORT_FORM.fullmatch(text)
    if not fields or int(fields[1]) > 255:
        return None
    directory = (fields[4].removesuffix("/") if end else fields[4]) or "/"
    is_there = None if end else rest[-1:] == "1" and directory.startswith("/")
    options, retained, _ = fields[2].partition("::")
    return ActionReport(
        int(fields[1]),
        frozenset(options.split(":")),
        directory,
        is_there,
        tuple(map(int, _STATUS.findall(fields[3]))),
        quote_in_line(rest.partition(end)[0] if end else rest[:-1]),
        bool(_EXPANDS_ALIASES.search(fields[2])) if retained else options.endswith(":") or None,
    )


def unreported_status(record: bytes) -> int | None:
    """Return the exit status of an action that did not get to the report in its file, or None if
    that is not what a record says."""
    found = _UNREPORTED.fullmatch(record)
    return int(found[1]) if found else None


def quote(text: str) -> str:
    """Return a text as one word, in the form in which bash prints it."""
    return "'" + text.replace("'", "'\\''") + "'"


def quote_in_line(text: str) -> str:
    """Return a text as one word that is part of one line."""
    if "\n" not in text:
        return quote(text)
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return "$'" + text.replace("'", "\\x27").replace("!", "\\x21") + "'"


def loop_over_nothing(commands: str) -> str:
    """Return a quiet script that runs commands in a fork of the shell.

    With functrace a DEBUG trap fires in the fork. It can write, because with extdebug a trap that
    fails skips our commands.
    """
    return f"{{ for _ in $( {{ {commands} }} >/dev/null 2>&1 ); do :; done; }} 2>&-\n"


def dump_script(token: str, quiet: bool, altered: bool = False) -> str:
    """Return a script that writes the state of the shell; see ``parse_dump``. ``altered``: the
    agent may have disabled or replaced builtins.

    The first line is for bash's parser: an unterminated quote in an action leaves it confused for
    one line.
    """
    commands = _DUMP.format(token=token, report=REPORT_FD)
    if quiet:
        return loop_over_nothing(f"{_OWN_BUILTINS} {commands}" if altered else commands)
    return f"{{ builtin :; }}\n{{ {commands} builtin : __status; }} >&- 2>&-\n"


def with_aliases(script: str) -> str:
    """Return a script that also turns aliases on, after bash has read all of it."""
    return f"{{ {{ builtin shopt -s expand_aliases; }} >/dev/null 2>&1\n{script}}} 2>&-\n"


def parse_dump(output: str, token: str, options: frozenset[str] | None) -> tuple[str, str] | None:
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
    start = text.rindex("\nset --")
    if options is not None:
        text = text[:start] + _OPTION_LINE.sub(
            lambda line: f"set {'-' if line[1] in options else '+'}o {line[1]}", text[start:]
        )
    traps = traps.replace(_STOP_TRAP_LINE, "")  # ours, which every new shell sets
    before, option, after = text[start:].partition(_HISTORY_OPTION)
    separator = "\n" if option else ""
    text = text[:start] + before + separator + after + traps.replace(debug_trap, "", 1)
    return text + option.lstrip("\n"), debug_trap


def report_script(token: str, quiet: bool, retained: bool) -> str:
    """Return a script that reports the exit status, the options and the directory.
    ``retained``: and what ``RETAIN_SCRIPT`` retained, and it turns aliases off or, if quiet, asks
    for ``ALIASES_OFF_SCRIPT`` where that is needed."""
    if quiet:
        options = f"$SHELLOPTS{_ALIASES if retained else ''}"
        words = f"{token} $? {options} {_STATUSES} ${{PWD-}}/{token}{_LAST}{token}"
        return (_NOTHING_IN_FORK if retained else _NOTHING).format(words=words, to=REPORT_FD)
    if not retained:
        return f"{{ {_format_report(token, '', '')};builtin : __status;}} 2>&-\n"
    kept = f"${{{_OWN}statuses-}}", f"${{{_OWN}last-}}", f"${_OWN}options"
    report = _format_report(token, *kept)
    return f"{_ALIASES_OFF}{{ {report};{_FORGET};}} 2>&-\n"


def report_after_code(token: str, quiet: bool, aliases: bool) -> str:
    """Return a script that reports after an action that the shell did not source. ``aliases``: the
    shell may expand them."""
    if quiet:
        return report_script(token, quiet=True, retained=aliases)
    return f"{{ {report_in_code(token)}; builtin : __status; }} 2>&-\n"


def report_in_code(token: str) -> str:
    """Return a script that reports on the last line of the file that holds an action. With ``set
    -v`` bash would write a line after it when the report is there already."""
    return _REPORT_IN_CODE.replace("TOKEN", token)


def _format_report(token: str, statuses: str, last: str, options: str = "$? $SHELLOPTS") -> str:
    return _REPORT.format(
        token=token, statuses=statuses, last=last, options=options, report=REPORT_FD
    )


_REPORT_IN_CODE = _format_report("TOKEN", _STATUSES, _LAST)


def directory_script(program: str, altered: bool) -> str:
    """Return a quiet script that reports the directory in which the kernel has the shell, if it is
    not ``$PWD``. ``altered``: see ``dump_script``."""
    commands = _WHERE.format(program=program, report=REPORT_FD)
    return loop_over_nothing(f"{_OWN_BUILTINS} {commands}" if altered else commands)


def parse_script(code: str, altered: bool, aliases: bool) -> str:
    """Return a quiet script that parses some code as the shell would, and writes what bash has to
    say about it to the report descriptor. ``altered``: see ``dump_script``; ``aliases``: the shell
    will expand them."""
    options = "builtin shopt -s expand_aliases; " if aliases else ""
    text = quote_in_line(f"{options}builtin set -n\n{code}\n")
    commands = f"builtin set +x; builtin trap - DEBUG; builtin eval {text} 2>&{REPORT_FD};"
    return loop_over_nothing(f"{_OWN_BUILTINS} {commands}" if altered else commands)


def quiet_assignment(name: str, value: int) -> str:
    """Return a quiet script that assigns a number to a variable. ``$?`` becomes 0."""
    return _NOTHING.format(words=f"$(({name}={value}))", to="-")


def status_script(status: int, quiet: bool, last: str) -> str:
    """Return a script that sets ``$?``, which is 0 before a quiet one, and ``$_``.

    Only a simple command or a subshell can give another status than 0 and 1, so a quiet script for
    one fires the DEBUG trap, but what that prints is lost. A quiet script leaves ``$_``.
    """
    if not status:
        return "" if quiet or last == "__status" else f"builtin : {last}\n"
    if not quiet:
        return (
            f"{_OWN}status() {{ builtin unset -f {_OWN}status; builtin return {status}; }}\n"
            f"{{ {_OWN}status {last}; }} >&- 2>&- && builtin :\n"
        )
    if status == 1:
        return "! for _ in; do :; done\n"
    return f"{{ ( exit {status} ) && :; }} >&- 2>&-\n"


def pipeline_script(statuses: tuple[int, ...], status: int, pipefail: bool) -> str:
    """Return a script that runs a pipeline with these statuses, whose own status is ``status`` if
    that is possible. It leaves ``$_``."""
    failed = [each for each in statuses if each] if pipefail else [*statuses[-1:]]
    negation = "! " if bool(failed and failed[-1]) != bool(status) else ""
    pipeline = " | ".join(f"( exit {each} )" for each in statuses)
    return f"{{ {negation}{pipeline}; }} >&- 2>&- {'&&' if status else '||'} builtin :\n"


_WORDS = ("RETURN", "RTMAX", "__status", "expand_aliases")
OWN_WORDS = frozenset(map(quote, _WORDS))
"""What ``$_`` is after scripts that are not quiet, as words of a script."""
STOP_TRAP = _STOP_TRAP_FORM.format(report=REPORT_FD)
ARM_SCRIPT = f"{{ builtin trap -- {quote(STOP_TRAP)} RTMAX; }} 2>&-\n"
DISARM_SCRIPT = "{ builtin trap - RTMAX; } 2>&-\n"
_STOP_TRAP_LINE = f"trap -- {quote(STOP_TRAP)} SIGRTMAX\n"


def split_debug_trap(state: str) -> tuple[str, str]:
    """Return a state without its DEBUG trap, and the trap: the last line of the state, or empty."""
    found = _LAST_DEBUG_TRAP.search(state)
    return (state[: found.start()], found[0]) if found else (state, "")


def set_aliases(state: str, on: bool) -> tuple[str, bool]:
    """Return a state without DEBUG trap in which bash expands aliases or not, and whether it
    expanded them before."""
    for block in reversed(list(_SHELL_OPTIONS.finditer(state))[-_MOST_TRIED:]):
        if _BELOW_SHELL_OPTIONS.match(state, block.end()):
            option = _ALIASES_OPTION.search(state, *block.span())
            if option is None:
                break
            changed = state[: option.start(1)] + "us"[on] + state[option.end(1) :]
            return changed, option[1] == "s"
    return state, False


def observes_shell(state: str) -> bool:
    """Return whether a state holds something that lists traps or calls, or a trap that commands of
    ours would fire."""
    others = _TRAP_BEGINNING.sub("", _LAST_COMMAND.sub("", state.replace(_STOP_TRAP_LINE, "")))
    return bool(
        _COMMAND_TRAP.search(others)
        or re.search(r"\btrap\b", others)
        or _SHOWS_CALLS.search(others)
    )
