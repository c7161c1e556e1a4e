"""The languages of actions: Bash, SQL and Python.

An environment of your own uses one of them, or describes another with ``ActionLanguage``. What only
some callers need is named by a text, and imported when it is used.
"""

from __future__ import annotations

from intercode.core.types import ActionLanguage, Terminal, Typing

__all__ = ["BASH", "PYTHON", "SQL"]

_USER = r"[\w.+-]+@[\w.-]+"

BASH = ActionLanguage(
    "bash",
    "Bash",
    (
        "bash",
        "sh",
        "shell",
        "zsh",
        "ksh",
        "dash",
        "console",
        "terminal",
        "shell-session",
        "shellsession",
        "shellscript",
        "shell-script",
        "bash-session",
        "command",
        "cmd",
    ),
    is_code="intercode.environments.languages.recognition:is_shell",
    terminal=Terminal(
        rf"(?:\$|{_USER}[: ][^\s$#]*[$#]|\[{_USER} [^\]\n]*\][$#]|(?:ba)?sh-[\d.]+[$#])",
        r">",
        "intercode.environments.languages.shell_lines:is_open_command",
    ),
    without_here_documents="intercode.environments.languages.shell_lines:without_here_documents",
    typing=Typing(
        "{}$ ",
        "> ",
        "intercode.environments.languages.typing_rules:is_unfinished_shell",
        " (Bash's own is `builtin help`)",
        "BashLexer",
    ),
    rule_kinds=("command", "redirect"),
    policy_parser="intercode.environments.base.policy.bash:bash_action_parts",
    explores="intercode.environments.languages.exploration:is_shell_exploration",
    error_class="intercode.environments.languages.errors:shell_error",
)
SQL = ActionLanguage(
    "sql",
    "SQL",
    ("sql", "mysql", "sqlite", "sqlite3"),
    is_code="intercode.environments.languages.recognition:is_sql",
    terminal=Terminal(r"(?:mysql|sqlite|MariaDB \[[^\]\n]*\])>", r"(?:->|\.\.\.>)"),
    typing=Typing(
        "{}> ",
        "  -> ",
        "intercode.environments.languages.typing_rules:is_unfinished_sql",
        lexer="MySqlLexer",
    ),
    rule_kinds=("statement", "table", "function"),
    policy_parser="intercode.environments.base.policy.sql:sql_action_parts",
    explores="intercode.environments.languages.exploration:is_sql_exploration",
    error_class="intercode.environments.languages.errors:sql_error",
)
PYTHON = ActionLanguage(
    "python",
    "Python",
    ("python", "py", "python3"),
    is_code="intercode.environments.languages.recognition:is_python",
    terminal=Terminal(r">>>", r"\.\.\."),
    typing=Typing(
        ">>> ",
        "... ",
        "intercode.environments.languages.typing_rules:is_unfinished_python",
        " (Python's own is `help()`)",
        "PythonLexer",
        indents=True,
    ),
    rule_kinds=("import", "call", "attribute"),
    policy_parser="intercode.environments.base.policy.python:python_action_parts",
    explores="intercode.environments.languages.exploration:is_python_exploration",
    error_class="intercode.environments.languages.errors:python_error",
)
