"""Parses MySQL statements with sqlglot, and rejects what MySQL 8 rejects.

sqlglot accepts more than MySQL: clauses in any order, reserved words as names, functions of other
dialects. So MySQL's grammar (``syntax.py``) reads a statement before. Function calls become
``Anonymous`` nodes under MySQL's names, marked with ``FUNCTION_MARK``.
"""

from __future__ import annotations

import logging
import math
import re
import threading
from collections.abc import Sequence
from functools import lru_cache
from itertools import takewhile

from sqlglot import exp
from sqlglot.dialects.mysql import MySQL
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from intercode_sql.dialect.errors import StatementError, mysql_error, syntax_error, unsupported
from intercode_sql.dialect.keywords import (
    FUNCTION_NAMES,
    NO_SPACE_FUNCTIONS,
    UNITS,
    word_set,
)
from intercode_sql.dialect.syntax import check_syntax
from intercode_sql.dialect.tokens import TOKEN_PATTERN, first_token, tokenize

FUNCTION_MARK = "f__"
"""Prefix of the names of called functions, so that no dialect interprets them."""
MAX_TOKENS = 20_000
MAX_DEPTH = 80
"""Limit of nested brackets, CASE and prefix operators. It bounds the parsers' recursion."""
MAX_PARSED_TOKENS = 200_000
"""Limit of the tokens that sqlglot parses, which tries some constructs in two ways, one after the
other, and so takes twice as long for each such construct inside another."""


class _TextPaths(MySQL):
    """MySQL's dialect, in which a path in a document stays the text that it is."""

    def to_json_path(self, path: exp.Expr | None) -> exp.Expr | None:
        return path


DIALECT = _TextPaths()
_EXPONENT = re.compile(r"[\d.]e\+?\d", re.I)
_STATEMENT_KEYWORDS = word_set("""
    SELECT WITH INSERT UPDATE DELETE REPLACE CREATE ALTER DROP TRUNCATE SHOW DESCRIBE DESC
    EXPLAIN USE SET START BEGIN COMMIT ROLLBACK SAVEPOINT RELEASE LOCK UNLOCK CALL DO HANDLER LOAD
    GRANT REVOKE FLUSH KILL ANALYZE OPTIMIZE CHECK CHECKSUM REPAIR RENAME PREPARE EXECUTE DEALLOCATE
    TABLE VALUES RESET PURGE CHANGE XA SIGNAL RESIGNAL GET INSTALL UNINSTALL IMPORT CLONE HELP CACHE
    BINLOG SHUTDOWN RESTART STOP""")
_CALLABLE_TOKENS = frozenset(MySQL.Parser.FUNC_TOKENS) | {TokenType.VAR, TokenType.DEFAULT}
_BEFORE_NON_CALLS = word_set("INTO AS . TABLE WITH RECURSIVE REFERENCES INDEX KEY UPDATE FROM JOIN")
_BARE_FUNCTIONS = ("UTC_DATE", "UTC_TIME", "UTC_TIMESTAMP")
_OPEN, _CLOSE, _END = TokenType.L_PAREN, TokenType.R_PAREN, TokenType.SEMICOLON
_PREFIX_OPERATORS = {TokenType.NOT, TokenType.DASH, TokenType.TILDE, TokenType.CASE, TokenType.PLUS}
_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END}
_TYPE_NAMES = {*MySQL.Parser.TYPE_TOKENS, TokenType.IDENTIFIER} - {TokenType.BINARY}
_OPERAND_FACTORS = {TokenType.BINARY: 4, TokenType.OFFSET: 2}
"""Tokens whose operand is parsed several times."""
_LITERAL_TOKENS = {TokenType.DATE, TokenType.TIME, TokenType.TIMESTAMP}
"""Types whose name makes a literal of a string."""
_FORMS_WITH_FROM = {"TRIM", "EXTRACT", "SUBSTRING", "SUBSTR", "MID"}
"""Functions that have the word FROM between their arguments."""
_OPERAND_ENDS = {
    TokenType.VAR,
    TokenType.IDENTIFIER,
    TokenType.NUMBER,
    TokenType.STRING,
    TokenType.R_PAREN,
    TokenType.NULL,
    TokenType.TRUE,
    TokenType.FALSE,
    TokenType.END,
    TokenType.HEX_STRING,
    TokenType.BIT_STRING,
}
_JOIN_KINDS = frozenset(
    getattr(TokenType, name) for name in ("INNER", "CROSS", "LEFT", "RIGHT", "OUTER", "NATURAL")
)
_FEW_TOKENS = 24
"""A statement that is no longer than this is parsed at once, whatever it holds."""


class _FallbackWarningFilter(logging.Filter):
    """Suppresses sqlglot's warnings about statements that it does not parse."""

    def filter(self, record: logging.LogRecord) -> bool:
        return "Falling back to parsing" not in record.getMessage()


class _ThreadParsers(threading.local):
    """A tokenizer and a parser per thread, because they have state."""

    def __init__(self) -> None:
        self.tokenizer = DIALECT.tokenizer()
        self.parser = DIALECT.parser()


_PARSERS = _ThreadParsers()


@lru_cache(maxsize=4)
def sqlglot_tokens(text: str) -> tuple[Token, ...]:
    """Return the tokens of a statement. Raises StatementError 1064 for an unterminated
    quotation."""
    first = first_token(text)
    if not text.strip().strip("(;"):
        raise mysql_error(1065)
    if first.word not in _STATEMENT_KEYWORDS:  # or a comment without an end
        raise syntax_error(text, text.find("/*") if first.kind == "end" else first.start)
    try:
        tokens: list[Token] = _PARSERS.tokenizer.tokenize(text)
    except TokenError as e:
        *_, last = TOKEN_PATTERN.finditer(text)  # a quotation or a comment without an end
        raise syntax_error(text, last.start()) from e
    if len(tokens) > MAX_TOKENS:
        raise unsupported(f"a statement of {len(tokens)} words (at most {MAX_TOKENS})")
    return tuple(tokens)


def require_single_statement(text: str) -> str:
    """Return the text if it holds one statement. Raises StatementError 1064 at a second one."""
    if ";" in text.rstrip().rstrip(";"):
        tokens = sqlglot_tokens(text)
        for i, token in enumerate(tokens[:-1]):
            if token.token_type == _END:
                after = tokens[i + 1]
                if after.token_type != _END:
                    raise syntax_error(text, after.start)
    return text


def require_finite_numbers(text: str) -> None:
    """Raise StatementError 1367 at a number with an exponent that no double can hold."""
    if not _EXPONENT.search(text):
        return
    for token in tokenize(text):
        number = token.text if token.kind == "number" else ""
        if "e" in number.lower() and number[1:2] not in ("x", "X") and float(number) == math.inf:
            raise mysql_error(1367, "double", number[:192])


@lru_cache(maxsize=2048)
def parse(text: str, ignore_space: bool = False, database: str = "") -> exp.Expr:
    """Parse one statement. The tree is cached and must not be changed.

    Raises StatementError: 1064 for what MySQL 8 considers a syntax error, 1305 and 1630 for unknown
    functions, and number 0 for a statement that is too deep or too long.
    """
    tokens = sqlglot_tokens(text)
    while tokens and tokens[-1].token_type == _END:
        tokens = tokens[:-1]
    if not tokens:  # only comments and semicolons
        raise mysql_error(1065)
    check_syntax(text, ignore_space)
    check_depth(tokens)
    plain = _without_braces(tokens) if "{" in text else tokens
    marked_tokens = _mark_function_calls(plain, text, ignore_space, database)
    logger = logging.getLogger("sqlglot")
    quiet = _FallbackWarningFilter()
    logger.addFilter(quiet)
    try:
        trees = _PARSERS.parser.parse(marked_tokens, text)
    except ParseError as e:
        raise _error_from_sqlglot(e, text) from e
    except RecursionError as e:
        raise unsupported("expressions that are nested so deeply") from e
    finally:
        logger.removeFilter(quiet)
    found: list[exp.Expr] = [t for t in trees if t is not None]
    if len(found) != 1:
        raise syntax_error(text, 0)
    _keep_column_texts(found[0], tokens, text)
    return found[0]


_QUOTED = (TokenType.STRING, TokenType.NATIONAL_STRING, TokenType.IDENTIFIER)
_BEHIND_COLUMNS = word_set("""
    FROM INTO WHERE GROUP HAVING WINDOW ORDER LIMIT UNION EXCEPT INTERSECT FOR LOCK WITH ON""")
_BEFORE_COLUMNS = frozenset(MySQL.Parser.OPERATION_MODIFIERS) | word_set("ALL DISTINCT DISTINCTROW")


def _keep_column_texts(tree: exp.Expr, tokens: Sequence[Token], text: str) -> None:
    """Store with each column that a query selects how it is written, which is its name."""
    found = _column_texts(tokens, text)
    selects = _selects(tree) if found else []
    if len(found) != len(selects):
        return
    for select, texts in zip(selects, found, strict=True):
        for column, written in zip(select.expressions, texts, strict=False):
            if len(texts) == len(select.expressions) and not isinstance(column, exp.Alias):
                column.meta["text"] = written


def _selects(tree: exp.Expr) -> list[exp.Select]:
    """Return the SELECTs of a statement in the order in which they are written."""
    found: list[exp.Select] = []
    waiting = [tree]
    behind = set[int]()
    while waiting:
        node = waiting.pop()
        common = node.args.get("with_")
        if common is not None and id(node) not in behind:
            behind.add(id(node))
            waiting += [node, common]
            continue
        if isinstance(node, exp.Select):
            found.append(node)
        values = [value for key, value in node.args.items() if key != "with_"]
        children = [v for value in values for v in (value if isinstance(value, list) else [value])]
        waiting += [v for v in reversed(children) if isinstance(v, exp.Expr)]
    return found


def _column_texts(tokens: Sequence[Token], text: str) -> list[list[str]]:
    """Return the columns of each SELECT as they are written."""
    found: list[list[str]] = []
    inside: list[tuple[list[str], int]] = []  # the columns before, and the depth of brackets
    spans: list[list[int]] = []  # the start and the end of the column
    depth = 0
    for token in tokens:
        kind = token.token_type
        depth += (kind == _OPEN) - (kind == _CLOSE)
        if inside:
            (columns, level), span = inside[-1], spans[-1]
            words = [] if kind in _QUOTED else token.text.upper().split()
            word = words[0] if words else ""  # of GROUP BY
            last = depth < level or (depth == level and word in _BEHIND_COLUMNS)
            if last or (depth == level and kind == TokenType.COMMA):
                columns.append(text[span[0] : span[1]])
                span[0] = -1
                if last:
                    del inside[-1], spans[-1]
                    for outer in spans[-1:]:
                        outer[1] = token.end + 1
            elif span[0] != -2 or word not in _BEFORE_COLUMNS:
                span[:] = [token.start if span[0] < 0 else span[0], token.end + 1]
        if kind == TokenType.SELECT:
            found.append([])
            inside.append((found[-1], depth))
            spans.append([-2, 0])
    for (columns, _), span in zip(inside, spans, strict=True):
        columns.append(text[span[0] : span[1]])
    return found


def mysql_text(node: exp.Expr) -> str:
    """Return a part of a statement as MySQL's SQL, with functions under their own names."""
    return node.sql(DIALECT).replace(FUNCTION_MARK, "").replace(FUNCTION_MARK.upper(), "")


def all_nodes(tree: exp.Expr) -> list[exp.Expr]:
    """Return all nodes of a tree in breadth-first order, as ``tree.walk()`` does."""
    found = [tree]
    for node in found:
        for value in node.args.values():
            if isinstance(value, exp.Expr):
                found.append(value)
            elif isinstance(value, list):
                found += [v for v in value if isinstance(v, exp.Expr)]
    return found


def check_depth(tokens: Sequence[Token]) -> None:
    """Raise StatementError for a statement that sqlglot takes too much recursion or time to
    parse."""
    if len(tokens) <= _FEW_TOKENS:
        return
    depth = run = 0
    for token in tokens:
        kind = token.token_type
        if kind in _OPENING:
            depth += 1
        elif kind in _CLOSING:
            depth -= 1
        run = run + 1 if kind in _PREFIX_OPERATORS else 0
        if depth > MAX_DEPTH or run > MAX_DEPTH:
            raise unsupported(f"more than {MAX_DEPTH} expressions in each other")
    if _count_parsed_tokens(tokens) > MAX_PARSED_TOKENS:
        raise unsupported("so many names of types, BINARY or OFFSET in each other")


def _count_parsed_tokens(tokens: Sequence[Token]) -> int:
    """Return about how many tokens sqlglot parses, where a token counts each time. It parses what
    is in brackets after the name of a type as a type and then as a function's arguments."""
    count, factor, operand_factor = 0, 1, 1
    outer: list[int] = []
    before: TokenType | None = None
    for token in tokens:
        kind = token.token_type
        if kind in _OPENING:
            outer.append(factor)
            factor *= operand_factor * (2 if before in _TYPE_NAMES else 1)
            operand_factor = 1
        elif kind in _CLOSING:
            factor, operand_factor = outer.pop() if outer else 1, 1
        elif kind == TokenType.COMMA:
            operand_factor = 1
        operand_factor *= _OPERAND_FACTORS.get(kind, 1)
        count += factor
        if count > MAX_PARSED_TOKENS:
            break
        before = kind
    return count


_ODBC_LITERALS = {"D": TokenType.DATE, "T": TokenType.TIME, "TS": TokenType.TIMESTAMP}


def _without_braces(tokens: Sequence[Token]) -> Sequence[Token]:
    """Return the tokens with literals and brackets in place of ODBC's forms: ``{d '2024-02-29'}``
    is a date, and ``{name expression}`` the expression."""
    out: list[Token] = []
    named = False
    for i, token in enumerate(tokens):
        place = (token.line, token.col, token.start, token.end)
        kind, after = token.token_type, [t.token_type for t in tokens[i + 1 : i + 4]]
        if named:
            named = False
            literal = _ODBC_LITERALS.get(token.text.upper())
            if literal and after[:2] == [TokenType.STRING, TokenType.R_BRACE]:
                out.append(Token(literal, literal.name, *place))
        elif kind == TokenType.L_BRACE:
            out.append(Token(_OPEN, "(", *place))
            named = True
        elif kind == TokenType.R_BRACE:
            out.append(Token(_CLOSE, ")", *place))
        else:
            out.append(token)
    return out


def _mark_function_calls(
    tokens: Sequence[Token], text: str, ignore_space: bool, database: str
) -> list[Token]:
    """Return the tokens with the names of called functions marked."""
    if tokens[0].text.upper() in ("CREATE", "ALTER") and not any(
        t.token_type == TokenType.SELECT for t in tokens
    ):
        return list(tokens)
    out = [
        Token(TokenType.STRING, t.text, t.line, t.col, t.start, t.end)
        if t.token_type == TokenType.NATIONAL_STRING
        else t
        for t in tokens
    ]
    literals: list[int] = []
    inside = [""]
    for i, follows in enumerate(tokens[1:]):
        token = tokens[i]
        if token.token_type == _OPEN:
            inside.append(tokens[i - 1].text.upper() if i else "")
        elif token.token_type == _CLOSE and len(inside) > 1:
            inside.pop()
        elif follows.token_type == TokenType.STRING and token.token_type in _LITERAL_TOKENS:
            literals.append(i)
        if follows.token_type != _OPEN or token.token_type not in _CALLABLE_TOKENS:
            continue
        name = token.text.upper()
        before = tokens[i - 1].text.upper() if i else ""
        if name == "MOD" and i and tokens[i - 1].token_type in _OPERAND_ENDS:
            out[i] = Token(TokenType.MOD, "%", token.line, token.col, token.start, token.end)
            continue
        if before == "," and inside[-1] == "CONVERT":
            continue  # a type
        if before == "FROM" and inside[-1] in _FORMS_WITH_FROM:
            before = ""
        if name in NO_SPACE_FUNCTIONS and not ignore_space and follows.start > token.end + 1:
            raise _space_before_bracket_error(tokens, i, text, database)
        if name in FUNCTION_NAMES and before not in _BEFORE_NON_CALLS and name != "GROUP_CONCAT":
            out[i] = Token(
                TokenType.VAR,
                FUNCTION_MARK + token.text,
                token.line,
                token.col,
                token.start,
                token.end,
                token.comments,
            )
    for i in reversed(literals):  # DATE '...' becomes a call
        if i and tokens[i - 1].text.upper() in ("AS", "."):
            continue
        name_, text_ = tokens[i], tokens[i + 1]
        place = (name_.line, name_.col, name_.start, name_.end)
        out[i : i + 2] = [
            Token(TokenType.VAR, f"{FUNCTION_MARK}{name_.text.upper()}_LITERAL", *place),
            Token(_OPEN, "(", *place),
            text_,
            Token(_CLOSE, ")", *place),
        ]
    return _with_brackets(out)


_SELECT_OPTIONS = MySQL.Parser.OPERATION_MODIFIERS


def _with_brackets(tokens: list[Token]) -> list[Token]:
    """Return the tokens with brackets around a fraction or a string after INTERVAL, where sqlglot
    makes integers strings, around what is added to an interval, and behind functions that are
    called without them. DISTINCT comes before other options of SELECT."""
    out: list[Token] = []
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        place = (token.line, token.col, token.start, token.end)
        number = token.token_type == TokenType.NUMBER and not token.text.isdigit()
        bare = token.token_type == TokenType.VAR and token.text.upper() in _BARE_FUNCTIONS
        sum_of_interval = token.token_type in (TokenType.STRING, TokenType.NUMBER) and (
            [t.text.upper() in UNITS for t in out[-2:-1]] == [True] and out[-1].text == "+"
        )
        before = out[-1].token_type if out else None
        if token.token_type == TokenType.JOIN and before not in _JOIN_KINDS:
            out.append(Token(TokenType.INNER, "INNER", *place))  # else sqlglot reads a comma
        if token.token_type == TokenType.DISTINCT:
            options = takewhile(lambda t: t.text.upper() in _SELECT_OPTIONS, reversed(out))
            out.insert(len(out) - sum(1 for _ in options), token)
            continue
        sized = number or token.token_type == TokenType.STRING
        if sum_of_interval or (sized and before == TokenType.INTERVAL):
            out += [Token(_OPEN, "(", *place), token, Token(_CLOSE, ")", *place)]
        elif bare and (after is None or after.token_type != _OPEN):
            marked = Token(TokenType.VAR, FUNCTION_MARK + token.text, *place)
            out += [marked, Token(_OPEN, "(", *place), Token(_CLOSE, ")", *place)]
        else:
            out.append(token)
    return out


def _space_before_bracket_error(
    tokens: Sequence[Token], i: int, text: str, database: str
) -> StatementError:
    """Return MySQL's error for a space between the name of a function and its bracket."""
    special = ("CAST", "EXTRACT", "POSITION", "TRIM", "GROUP_CONCAT")
    if tokens[i].text.upper() in special:
        return syntax_error(text, tokens[i + 1].start)
    return mysql_error(1630, f"{database}.{tokens[i].text}".lstrip("."))


_OBJECT_STATEMENTS = word_set("CREATE DROP ALTER TRUNCATE SHOW")


def _error_from_sqlglot(error: ParseError, text: str) -> StatementError:
    """Return MySQL's syntax error at the position where sqlglot stopped."""
    where = error.errors[0] if error.errors else {}
    mark, after = where.get("highlight") or "", where.get("end_context") or ""
    before = where.get("start_context") or ""
    start = text.find(before + mark + after) + len(before) if mark or after else len(text)
    short = text.split()[0].upper() in _OBJECT_STATEMENTS and len(text.split()) < 3
    if not after and (mark == "(" or short):
        start = len(text)  # the statement ends too early
    return syntax_error(text, start if start >= 0 else 0)
