"""Classifies the error of an action by the text of its observation, for each language."""

from __future__ import annotations

import re
from collections.abc import Sequence

STATUS_ONLY = "status only"
OTHER = "other"

Rules = Sequence[tuple[str, re.Pattern[str]]]


def _compile_rules(*pairs: tuple[str, str]) -> Rules:
    return [(name, re.compile(words, re.MULTILINE)) for name, words in pairs]


_SHELL = _compile_rules(
    ("time-out", r"^Command timed out"),
    ("not started", r"^Malformed command|^OCI runtime exec failed|Argument list too long"),
    ("command not found", r": (?:command )?not found$|executable file not found"),
    (
        "syntax error",
        r"[Ss]yntax error|unexpected (?:EOF|end of file|character|newline)|"
        r"unterminated|[Uu]nmatched|missing closing|Invalid preceding regular expression",
    ),
    (
        "permission denied",
        r"[Pp]ermission denied|Operation not permitted|Read-only file system|"
        r"are you root\?|must be root",
    ),
    ("no such file", r"No such file or directory|[Cc]annot (?:find|locate)|does not exist$"),
    (
        "wrong kind of file",
        r"[Ii]s a directory|Not a directory|File exists|Directory not empty|"
        r"are the same file|cannot execute binary file|not a symbolic link|File format "
        r"not recognized|"
        r"not in gzip format|does not look like a tar archive",
    ),
    (
        "wrong option",
        r"(?:invalid|unrecognized|illegal|unknown) (?:command-line )?"
        r"(?:option|predicate|argument)|"
        r"missing (?:operand|argument|destination)|extra operand|requires an argument|^[Uu]sage:|"
        r"paths must precede expression|invalid (?:number|mode|type|field|range|line|suffix|date)|"
        r"^Try '.* --help'",
    ),
    (
        "network",
        r"Name or service not known|[Cc]ould not resolve|Connection (?:refused|timed out)|"
        r"Network is unreachable|[Tt]emporary failure in name resolution|no servers could "
        r"be reached|"
        r"name resolution",
    ),
    (
        "out of resources",
        r"^Killed|Cannot allocate memory|No space left|fork: retry|Resource "
        r"temporarily unavailable|Segmentation fault",
    ),
)

_SQL = _compile_rules(
    (
        "syntax error (1064)",
        r"error in your SQL syntax|near \".*\": syntax error|incomplete input|"
        r"unrecognized token|PROCEDURE .* can't return|Incorrect usage of",
    ),
    ("no such table (1146)", r"Table '.*' doesn't exist|[Nn]o such table|Unknown table"),
    ("no such column (1054)", r"Unknown column|[Nn]o such column|has no column named"),
    ("ambiguous column (1052)", r"is ambiguous|ambiguous column name"),
    (
        "GROUP BY (1055, 1140)",
        r"not in GROUP BY clause|In aggregated query without GROUP BY|"
        r"only_full_group_by|Mixing of GROUP columns",
    ),
    (
        "aggregate (1111, 3029)",
        r"Invalid use of group function|misuse of (?:window|aggregate)|"
        r"contains aggregate function",
    ),
    ("no such database (1049, 1046)", r"Unknown database|No database selected"),
    (
        "no such function (1305)",
        r"FUNCTION .* does not exist|no such function|"
        r"Incorrect parameter count|wrong number of arguments",
    ),
    (
        "shape (1222, 1241, 1242)",
        r"different number of columns|Operand should contain|"
        r"Subquery returns more than 1 row|same number of result columns|sub-select returns|"
        r"Column count doesn't match",
    ),
    ("alias (1066, 1248)", r"Not unique table/alias|must have its own alias"),
    ("access denied (1044, 1142, 1227)", r"[Aa]ccess denied|command denied"),
    ("duplicate (1050, 1062)", r"already exists|Duplicate (?:entry|column)|UNIQUE constraint"),
    ("value (1292, 1366, 1525)", r"Incorrect .* value|Out of range|[Dd]ata (?:truncated|too long)"),
    (
        "time-out",
        r"maximum statement execution time|execution was interrupted|^Command timed out|"
        r"timed out",
    ),
    ("not supported", r"doesn't yet support|embedded engine cannot do this|not supported"),
)

_EXCEPTION = re.compile(
    r"^[ \t]*(?:[\w.]+\.)?([A-Z]\w*(?:Error|Exception|Interrupt|Exit|Iteration|Warning|Timeout))"
    r"(?::|\s*$)",
    re.MULTILINE,
)
_SERVICE = re.compile(r"'error': ([\"'])(?!\1)\s*(?:Error executing action: |Error: )?(\S.*)")
_SERVICE_WORDS = _compile_rules(
    (
        "SyntaxError",
        r"invalid syntax|unexpected indent|EOL while|unterminated|was never closed|"
        r"expected an indented block|unindent does not match|EOF while scanning",
    ),
    ("NameError", r"name '.*' is not defined"),
    ("ModuleNotFoundError", r"No module named"),
    (
        "TypeError",
        r"unsupported operand|not (?:callable|iterable|subscriptable)|positional "
        r"argument|object cannot be interpreted|must be str",
    ),
    ("AttributeError", r"has no attribute"),
    ("IndexError", r"index out of range"),
    ("ValueError", r"invalid literal|not enough values|too many values"),
    ("ZeroDivisionError", r"division (?:or modulo )?by zero"),
    ("RecursionError", r"maximum recursion depth"),
)


def shell_error(observation: str, failed: bool) -> str | None:
    """Return the class of a command's error, or that of a Python program that a shell ran."""
    if not failed:
        return None
    return (
        _first_match(_SHELL[:2], observation)
        or _python_error_in_shell(observation)
        or _first_match(_SHELL[2:], observation)
        or (OTHER if observation.strip() else STATUS_ONLY)
    )


def sql_error(observation: str, failed: bool) -> str | None:
    """Return the class of a statement's error."""
    return (_first_match(_SQL, observation) or OTHER) if failed else None


def python_error(observation: str, failed: bool) -> str | None:
    """Return the exception that a traceback names, or that the authors' Python service reports."""
    if not failed:
        return _service_exception(observation)
    return _last_exception(observation) or _service_exception(observation) or OTHER


def _first_match(rules: Rules, observation: str) -> str | None:
    return next((name for name, words in rules if words.search(observation)), None)


def _last_exception(observation: str) -> str | None:
    """Return the last exception that a traceback names."""
    names = _EXCEPTION.findall(observation)
    return names[-1] if names else None


def _python_error_in_shell(observation: str) -> str | None:
    """Return the exception of a Python program that a shell ran."""
    if "Traceback (most recent call last)" not in observation and "SyntaxError" not in observation:
        return None
    name = _last_exception(observation)
    return f"Python {name}" if name else None


def _service_exception(observation: str) -> str | None:
    """Return the exception that the authors' Python service reports, by its name or its message."""
    match = _SERVICE.search(observation)
    if match is None:
        return None
    return _last_exception(match[2]) or _first_match(_SERVICE_WORDS, match[2]) or OTHER
