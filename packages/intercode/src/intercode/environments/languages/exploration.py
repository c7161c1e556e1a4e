"""Decides from its text whether an action only explores: it changes nothing outside the shell or
interpreter. An action that cannot be parsed, or is not known to be harmless, does not count."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Sequence

from intercode.core.python_syntax import parse_python
from intercode.core.types import ActionLanguage
from intercode.environments.base.policy.bash import bash_action_parts
from intercode.environments.base.policy.rules import ActionLimitError, ActionPart

_READING_COMMANDS_TEXT = """
ls dir vdir cat tac head tail more less nl wc grep egrep fgrep zgrep zcat bzcat xzcat rg ag cut
tr uniq comm join paste diff cmp sdiff fold fmt column rev od hexdump strings file stat du df
tree pwd basename dirname realpath readlink md5sum sha1sum sha224sum sha256sum sha384sum
sha512sum cksum sum b2sum base64 base32 echo printf true false test [ [[ : seq yes expr bc which
whereis type command whatis apropos man info help compgen locate id whoami groups who w users
last finger uname hostname arch nproc cal uptime free ps pgrep pstree top lsof jobs vmstat lscpu
lsblk lsmod lspci lsusb mount env printenv locale getconf getent tty dmesg history cd pushd popd
dirs read sleep shuf factor numfmt jq host dig nslookup ping whois traceroute exiftool readelf
objdump nm ldd pdfinfo pdftotext identify mmls fls icat fsstat istat img_stat srch_strings
zipinfo xxd tshark capinfos ip ifconfig netstat ss route
"""
READING_COMMANDS = frozenset(_READING_COMMANDS_TEXT.split())
"""Commands that read regardless of their options. Those with options that write are in
``CONDITIONAL_COMMANDS``."""

_WRAPPER_COMMANDS = frozenset(
    ("sudo", "nohup", "nice", "stdbuf", "builtin", "exec", "busybox", "setsid", "timeout")
)
"""Commands that run others, which are judged by themselves."""
_OPTIONS_ONLY_COMMANDS = frozenset(("mount", "hostname", "env", "ifconfig"))
_HARMLESS_TARGETS = ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty")
_AWK_WRITES = re.compile(r"""print[^;}]*[>|]\s*["\w$(/]|system\s*\(|getline|\|&""")
_SED_WRITES = re.compile(r"(?:^|[;}\d$/!\s])[wWe]\s+\S|/[gpiI\d]*[we](?:\s|$)")
_FIND_WRITES = ("-delete", "-fprint", "-fprintf", "-fprint0", "-fls")

Words = Sequence[str]


def is_shell_exploration(code: str) -> bool:
    """Return whether every command in a text reads, and none writes, starts or ends anything."""
    if re.search(r"(?:^|[;&|\s])function\s|\w+\s*\(\)\s*\{", code):
        return False
    try:
        action = bash_action_parts(code)
    except ActionLimitError:
        return False
    if action.uncertainty or not (action.parts or code.lstrip().startswith("[[")):
        return False
    return all(map(_only_reads, action.parts, [*action.parts[1:], None]))


def _only_reads(part: ActionPart, following: ActionPart | None) -> bool:
    """Return whether one simple command reads, or a redirection writes nothing. ``following``: the
    next part, which a command that runs another has at its end."""
    name, rest = part.words[0].rpartition("/")[2], part.words[1:]
    if part.kind == "redirect":
        return part.words[0] in _HARMLESS_TARGETS
    if name in _WRAPPER_COMMANDS:
        return following is not None and rest[-len(following.words) :] == following.words
    if name in _OPTIONS_ONLY_COMMANDS:
        return all(word.startswith("-") for word in rest)
    if name in CONDITIONAL_COMMANDS:
        return CONDITIONAL_COMMANDS[name](rest)
    return name in READING_COMMANDS


def _without_options(*options: str) -> Callable[[Words], bool]:
    """Return a predicate that is true unless one of these options is present. Short options may be
    bundled."""
    short = {o[1] for o in options if len(o) == 2}
    long = [o for o in options if len(o) > 2]

    def reads(rest: Words) -> bool:
        for word in rest:
            if word.startswith("--"):
                if any(word == o or word.startswith(f"{o}=") for o in long):
                    return False
            elif word.startswith("-") and short & set(word[1:]):
                return False
        return True

    return reads


def _sed(rest: Words) -> bool:
    inert = _without_options("-i", "--in-place")(rest)
    return inert and not any(_SED_WRITES.search(w) for w in rest if not w.startswith("-"))


def _tar(rest: Words) -> bool:
    """Return whether an archive is only listed."""
    modes = [w.lstrip("-") for w in rest[:1]] + [w for w in rest if w.startswith("--")]
    return bool(rest) and ("t" in modes[0] and not set(modes[0]) & set("xcruA"))


def _shell(rest: Words) -> bool:
    """Return whether a shell runs a text, which is judged by itself."""
    return len(rest) == 2 and rest[0] == "-c"


CONDITIONAL_COMMANDS: dict[str, Callable[[Words], bool]] = {
    "find": lambda rest: not any(word in _FIND_WRITES for word in rest),
    "xargs": lambda _: True,
    "sed": _sed,
    "awk": lambda rest: not any(_AWK_WRITES.search(word) for word in rest),
    "gawk": lambda rest: not any(_AWK_WRITES.search(word) for word in rest),
    "mawk": lambda rest: not any(_AWK_WRITES.search(word) for word in rest),
    "sort": _without_options("-o", "--output"),
    "tree": _without_options("-o"),
    "tar": _tar,
    "time": _without_options("-o", "--output"),
    "bash": _shell,
    "sh": _shell,
    "unzip": lambda rest: any(w in ("-l", "-v", "-Z", "-t", "-p") for w in rest),
    "gzip": lambda rest: any(w in ("-l", "-t", "--list") for w in rest),
    "gunzip": lambda rest: any(w in ("-c", "-l", "-t") for w in rest),
    "zip": lambda rest: "-sf" in rest,
    "xxd": lambda rest: not any(w in ("-r", "-revert") for w in rest),
    "binwalk": _without_options("-e", "-M", "-D", "--extract", "--dd"),
    "zsteg": _without_options("-E"),
    "curl": _without_options(
        "-o",
        "-O",
        "-d",
        "-X",
        "-T",
        "-F",
        "--output",
        "--data",
        "--request",
        "--upload-file",
        "--form",
        "--remote-name",
    ),
    "uniq": lambda rest: sum(not w.startswith("-") for w in rest) < 2,
    "git": lambda rest: bool(rest) and rest[0] in ("status", "log", "show", "diff", "blame"),
    "tcpdump": lambda rest: "-r" in rest and "-w" not in rest,
    "date": lambda rest: _without_options("-s", "--set")(rest) and not any(map(str.isdigit, rest)),
    "crontab": lambda rest: list(rest) == ["-l"],
    "set": lambda rest: not rest,
    "export": lambda rest: not rest or list(rest) == ["-p"],
    "alias": lambda rest: not any("=" in word for word in rest),
    "python3": lambda rest: list(rest) in (["--version"], ["-V"]),
    "python": lambda rest: list(rest) in (["--version"], ["-V"]),
}
"""Commands that read in some forms only."""


MAX_ACTION_LENGTH = 20_000
"""A longer action is a program, and is not analysed."""

_WRAPPED = re.compile(r"\s*execute\[(.*)\]\s*", re.DOTALL)
_FENCED = re.compile(
    r"\s*```(?:(?:bash|sh|shell|sql|mysql|python|py)\b)?\s*(.*?)\s*(?:```\s*)?",
    re.DOTALL | re.IGNORECASE,
)

_SQL_COMMENT = re.compile(r"--[^\n]*|\#[^\n]*|/\*.*?\*/", re.DOTALL)
_SQL_STRING = re.compile(r"'(?:''|\\.|[^'\\])*'", re.DOTALL)
_SQL_METADATA_STATEMENT = re.compile(
    r"(?:SHOW|DESC|DESCRIBE|EXPLAIN|HELP|USE)\b|PRAGMA\b[^=]*$", re.IGNORECASE
)
_SQL_QUERY = re.compile(r"(?:SELECT|WITH)\b", re.IGNORECASE)
_SQL_TABLES = re.compile(
    r"\b(?:FROM|JOIN)\s+(.*?)(?=[()]|\b(?:FROM|JOIN|INNER|LEFT|RIGHT|CROSS|NATURAL|STRAIGHT_JOIN|ON"
    r"|USING|WHERE|GROUP|HAVING|ORDER|LIMIT|UNION|INTERSECT|EXCEPT|WINDOW|INTO|SELECT)\b|$)",
    re.IGNORECASE | re.DOTALL,
)
_CATALOG = re.compile(
    r"(?:information_schema|performance_schema|mysql|sys)\.|sqlite_(?:temp_)?(?:master|schema)$"
    r"|pragma_\w+$",
    re.IGNORECASE,
)

_PYTHON_MUTATORS = frozenset(
    (
        "exec",
        "eval",
        "compile",
        "open",
        "input",
        "exit",
        "quit",
        "setattr",
        "delattr",
        "__import__",
        "system",
        "popen",
        "run",
        "call",
        "check_call",
        "check_output",
        "Popen",
        "remove",
        "unlink",
        "rmdir",
        "mkdir",
        "makedirs",
        "rename",
        "write",
        "write_text",
        "write_bytes",
        "append",
        "extend",
        "insert",
        "pop",
        "clear",
        "update",
        "sort",
        "reverse",
        "add",
        "discard",
    ),
)


def is_exploration(action: str, language: ActionLanguage) -> bool:
    """Return whether an action explores: it reads and changes nothing. False for a language that
    does not say which of its actions do."""
    code = unwrap_action(action)
    if not code.strip() or len(code) > MAX_ACTION_LENGTH:
        return False
    return language.is_exploration(code)


def unwrap_action(action: str) -> str:
    """Return an action without the ``execute[...]`` or the fence that some published logs leave on
    it."""
    for form in (_WRAPPED, _FENCED):
        if match := form.fullmatch(action):
            action = match[1]
    return action


def is_sql_exploration(code: str) -> bool:
    """Return whether all statements are SHOW, DESCRIBE, EXPLAIN, USE, or SELECT from the catalog
    alone; a query of the data does not count."""
    bare = _SQL_COMMENT.sub(" ", _SQL_STRING.sub("''", code)).strip().strip("`")
    statements = [s.strip() for s in bare.split(";") if s.strip()]
    return bool(statements) and all(map(_is_statement_exploration, statements))


def _is_statement_exploration(statement: str) -> bool:
    if _SQL_METADATA_STATEMENT.match(statement):
        return True
    names = ",".join(_SQL_TABLES.findall(statement)).replace("`", "").replace('"', "")
    tables = [table.split()[0] for table in names.split(",") if table.strip()]
    reads = _SQL_QUERY.match(statement) is not None
    return reads and bool(tables) and all(map(_CATALOG.match, tables))


def is_python_exploration(code: str) -> bool:
    """Return whether the code is imports and expressions without definitions, assignments and
    calls of mutating functions."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = parse_python(code)
    except (SyntaxError, ValueError):
        return False
    allowed = (ast.Expr, ast.Import, ast.ImportFrom)
    return bool(tree.body) and all(
        isinstance(s, allowed) and not _calls_mutator(s) and not _is_constant(s) for s in tree.body
    )


def _calls_mutator(statement: ast.stmt) -> bool:
    for node in ast.walk(statement):
        if isinstance(node, ast.NamedExpr):
            return True
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func
            name = name.id if isinstance(name, ast.Name) else name
            if name in _PYTHON_MUTATORS:
                return True
    return False


def _is_constant(statement: ast.stmt) -> bool:
    """Return whether a statement is a bare constant, which reads nothing."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
