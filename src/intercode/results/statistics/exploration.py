"""Whether an action only looks: nothing outside the shell or interpreter is changed by it, as far
as its text can tell. What cannot be read, or is not known to be harmless, does not only look.
"""

from __future__ import annotations

import ast
import re
import warnings

from intercode.core.python_syntax import parse_python
from intercode.results.statistics.exploration_shell import is_shell_exploration

MAX_ACTION_LENGTH = 20_000
"""An action of more characters is a program, and not read."""

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
    ("exec", "eval", "compile", "open", "input", "exit", "quit", "setattr", "delattr", "__import__",
     "system", "popen", "run", "call", "check_call", "check_output", "Popen", "remove", "unlink",
     "rmdir", "mkdir", "makedirs", "rename", "write", "write_text", "write_bytes", "append",
     "extend", "insert", "pop", "clear", "update", "sort", "reverse", "add", "discard"),
)  # fmt: skip


def is_exploration(action: str, environment: str) -> bool:
    """Whether an action explores: it reads and changes nothing.

    ``bash``, ``ctf``, ``harbor``: every command in it is a known reading one, without an option
    that writes, and nothing is redirected into a file. ``sql``: SHOW, DESCRIBE, EXPLAIN, USE, and
    SELECT from the catalog alone; a query of the data is an act. ``python``: imports and
    expressions that define, assign and call nothing that changes. False for other environments.
    """
    code = unwrap_action(action)
    if not code.strip() or len(code) > MAX_ACTION_LENGTH:
        return False
    if environment in ("bash", "ctf", "harbor"):
        return is_shell_exploration(code)
    if environment == "sql":
        return _is_sql_exploration(code)
    return environment == "python" and _is_python_exploration(code)


def unwrap_action(action: str) -> str:
    """An action without the ``execute[...]`` or the fence that some published logs leave on it."""
    for form in (_WRAPPED, _FENCED):
        if found := form.fullmatch(action):
            action = found[1]
    return action


def _is_sql_exploration(code: str) -> bool:
    bare = _SQL_COMMENT.sub(" ", _SQL_STRING.sub("''", code)).strip().strip("`")
    statements = [s.strip() for s in bare.split(";") if s.strip()]
    return bool(statements) and all(map(_is_statement_exploration, statements))


def _is_statement_exploration(statement: str) -> bool:
    if _SQL_METADATA_STATEMENT.match(statement):
        return True
    listed = ",".join(_SQL_TABLES.findall(statement)).replace("`", "").replace('"', "")
    tables = [table.split()[0] for table in listed.split(",") if table.strip()]
    reads = _SQL_QUERY.match(statement) is not None
    return reads and bool(tables) and all(map(_CATALOG.match, tables))


def _is_python_exploration(code: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = parse_python(code)
    except (SyntaxError, ValueError):
        return False
    looks = (ast.Expr, ast.Import, ast.ImportFrom)
    return bool(tree.body) and all(
        isinstance(s, looks) and not _calls_mutator(s) and not _is_constant(s) for s in tree.body
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
    """A bare constant looks at nothing."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
