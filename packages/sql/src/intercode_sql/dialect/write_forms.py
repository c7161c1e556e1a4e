"""Words of UPDATE, DELETE, INSERT and REPLACE that sqlglot does not parse: priorities, IGNORE,
``table.*`` in DELETE, and REPLACE itself."""

from __future__ import annotations

from intercode_sql.dialect.tokens import Token, tokenize

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
