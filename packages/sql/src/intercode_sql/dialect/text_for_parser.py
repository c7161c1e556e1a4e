"""The text of a statement as the parser reads it: in MySQL's default mode, and without words that
sqlglot does not parse."""

from __future__ import annotations

import re
from collections.abc import Collection

from intercode_sql.dialect.errors import StatementError, syntax_error, unsupported
from intercode_sql.dialect.tokens import Token, tokenize

REWRITTEN_MODES = frozenset(
    {"ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "PIPES_AS_CONCAT", "REAL_AS_FLOAT"}
)
_ESCAPED = r"(?:[^{q}\\]++|\\.|{q}{q})*+{q}?"
_RAW = r"(?:[^{q}]++|{q}{q})*+{q}?"
_REST = r"`(?:[^`]++|``)*+`?|--(?=\s|\Z)[^\n]*|\#[^\n]*|/\*.*?(?:\*/|\Z)|\|\||\bREAL\b"


def default_mode_text(code: str, modes: Collection[str]) -> str:
    """Return a statement as the default mode reads it.

    Raises StatementError for ``||`` where it concatenates, because its precedence is another.
    """
    return "".join(text for _, text in _pieces(code, modes))


def in_own_mode(error: StatementError, code: str, modes: Collection[str]) -> StatementError:
    """Return an error about a rewritten statement as one about the statement itself."""
    if error.position is None:
        return error
    before = error.position
    for start, text in _pieces(code, modes):
        if before < len(text):
            return syntax_error(code, start + (before if len(text) > 1 else 0))
        before -= len(text)
    return syntax_error(code, len(code))


def _pieces(code: str, modes: Collection[str]) -> list[tuple[int, str]]:
    """Return the rewritten pieces of a statement and the positions where they were."""
    content = _RAW if "NO_BACKSLASH_ESCAPES" in modes else _ESCAPED
    strings = "|".join(q + content.replace("{q}", q) for q in "'\"")
    found, end = list[tuple[int, str]](), 0
    for match in re.finditer(f"{strings}|{_REST}", code, re.S | re.I):
        found += [(end, code[end : match.start()]), (match.start(), _rewritten(match[0], modes))]
        end = match.end()
    return [*found, (end, code[end:])]


def _rewritten(text: str, modes: Collection[str]) -> str:
    if text == "||" and "PIPES_AS_CONCAT" in modes:
        raise unsupported("|| with sql_mode PIPES_AS_CONCAT: write CONCAT")
    if text.upper() == "REAL":
        return "FLOAT" if "REAL_AS_FLOAT" in modes else text
    if text[0] == '"' and "ANSI_QUOTES" in modes:
        name = text[1:].removesuffix('"').replace('""', '"').replace("`", "``")
        return f"`{name}`" if len(text) > 1 and text.endswith('"') else text
    if text[0] in "'\"" and "NO_BACKSLASH_ESCAPES" in modes:
        return text.replace("\\", "\\\\")
    return text


_MODIFIERS = {
    "UPDATE": ("LOW_PRIORITY",),
    "DELETE": ("LOW_PRIORITY", "QUICK"),
    "INSERT": ("LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY"),
    "REPLACE": ("LOW_PRIORITY", "DELAYED"),
}


def parsed_form(code: str, word: str) -> tuple[str, bool]:
    """Return the statement with blanks in place of these words and INSERT in place of REPLACE, and
    whether IGNORE is one of them. ``word`` is its first word. IGNORE of INSERT stays, because it is
    parsed."""
    if word not in _MODIFIERS:
        return code, False
    tokens = list(tokenize(code))
    at = 1
    while at < len(tokens) and tokens[at].upper in _MODIFIERS[word]:
        at += 1
    blank, ignore = tokens[1:at], False
    if word in ("UPDATE", "DELETE") and at < len(tokens) and tokens[at].upper == "IGNORE":
        ignore = True
        blank.append(tokens[at])
        at += 1
    if word == "DELETE":
        blank += _stars(tokens[at:])
    if word == "REPLACE":
        code = f"{code[: tokens[0].start]}INSERT {code[tokens[0].end :]}"
    for token in blank:
        code = code[: token.start] + " " * len(token.text) + code[token.end :]
    return code, ignore


def _stars(tokens: list[Token]) -> list[Token]:
    """Return the tokens of ``.*`` after the tables to delete from."""
    found: list[Token] = []
    for n, token in enumerate(tokens[:-1]):
        if token.upper in ("USING", "WHERE", "JOIN") or (token.upper == "FROM" and n):
            break
        if token.text == "." and tokens[n + 1].text == "*":
            found += [token, tokens[n + 1]]
    return found
