"""The tokens of MySQL's statements, and a reader of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import accumulate, islice, takewhile
from typing import Literal, NamedTuple

from intercode_sql.dialect.errors import StatementError, mysql_error, syntax_error
from intercode_sql.dialect.keywords import NO_SPACE_FUNCTIONS, RESERVED_WORDS

TokenKind = Literal["word", "number", "quoted", "string", "variable", "sign", "end"]

TOKEN_PATTERN = re.compile(
    r"""
    (?P<blank>\s+ | --(?=\s|\Z)[^\n]* | \#[^\n]* | /\*(?!M?!).*?(?:\*/|\Z) | /\*M?!\d* | \*/)
    | (?P<string>'(?:[^'\\]++|\\.|'')*+'? | "(?:[^"\\]++|\\.|"")*+"?)
    | (?P<quoted>`(?:[^`]++|``)*+`?)
    | (?P<variable>@@?[\w$.]*)
    | (?P<word>[\w$]+)
    | (?P<sign>.)
    """,
    re.VERBOSE | re.DOTALL,
)
"""The content of an executable comment (``/*! … */``) counts as code for every version."""
_NUMBER = re.compile(r"0x[0-9a-f]+\b|0b[01]+\b|(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?(?![\w$])", re.I)
_OPERATOR = re.compile(r"<=>|<=|>=|<>|!=|<<|>>|\|\||&&|:=|->>|->")
_OPERATOR_STARTS = frozenset("<>!|&:-")
_DIGITS = frozenset("0123456789")
_MODIFIERS = frozenset(
    {
        "OR",
        "REPLACE",
        "TEMPORARY",
        "UNIQUE",
        "FULLTEXT",
        "SPATIAL",
        "ONLINE",
        "OFFLINE",
        "IGNORE",
        "ALGORITHM",
        "DEFINER",
        "INVOKER",
        "SQL",
        "SECURITY",
        "AGGREGATE",
        "IF",
    }
)
"""Words before the one that says what a statement defines."""
_MAX_MODIFIERS = 24
"""Limit of the tokens in which that word is looked for."""

_COMMENT = re.compile(
    r"""
    (?P<text>'(?:[^'\\]++|\\.|'')*+'? | "(?:[^"\\]++|\\.|"")*+"? | `(?:[^`]++|``)*+`?)
    | (?P<open>/\*!(?P<version>\d{5,6})?)
    | (?P<close>\*/)
    | --(?=\s|\Z)[^\n]* | \#[^\n]* | /\*(?![!+]).*?\*/
    """,
    re.VERBOSE | re.DOTALL,
)


class Token(NamedTuple):
    """A token and its position. ``word`` is a word in upper case or a sign, which can be an
    operator of several characters, and empty for any other token. ``quoted`` names are in
    backquotes."""

    kind: TokenKind
    text: str
    start: int
    word: str

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def upper(self) -> str:
        """A word in upper case; any other token unchanged."""
        return self.word or self.text

    @property
    def name(self) -> str:
        """A name or a string without its quotes."""
        if self.kind not in ("quoted", "string"):
            return self.text
        mark = self.text[0]
        return self.text[1:].removesuffix(mark).replace(mark * 2, mark)


def tokenize(code: str) -> Iterator[Token]:
    """Yield the tokens of a statement, without comments and spaces. An unterminated string reaches
    to the end."""
    behind, in_name = 0, False
    for match in TOKEN_PATTERN.finditer(code):
        kind, start = match.lastgroup, match.start()
        if kind == "blank" or start < behind:
            continue
        text, word = match.group(), ""
        if kind in ("word", "sign"):
            number = None
            if text[0] in _DIGITS or (text == "." and not (in_name and behind == start)):
                number = _NUMBER.match(code, start)
            elif text in _OPERATOR_STARTS:
                found = _OPERATOR.match(code, start)
                text = text if found is None else found.group()
            if number is None:
                word = text.upper()
            else:
                kind, text = "number", number.group()
        yield Token(kind, text, start, word)  # type: ignore[arg-type]
        behind, in_name = start + len(text), kind == "word"


def first_token(code: str) -> Token:
    """Return the first word of a statement, which names its kind."""
    end = Token("end", "", len(code), "")
    return next((token for token in tokenize(code) if token.text != "("), end)


def definition_kind(code: str) -> str:
    """Return the word that says what a CREATE, ALTER, DROP or RENAME defines, such as TABLE."""
    before = ""
    for token in islice(tokenize(code), 1, _MAX_MODIFIERS):
        if token.kind == "word" and before != "=" and token.word not in _MODIFIERS:
            return token.word
        before = token.text
    return ""


def without_comments(code: str, version: int) -> str:
    """Return a statement with blanks in place of its comments, so that nothing moves.

    The content of an executable comment (``/*!40101 … */``) stays if it is for no later version of
    MySQL than ``version``. Optimizer hints (``/*+ … */``) and what has no end stay, too.
    """
    if not any(mark in code for mark in ("/*", "--", "#")):
        return code
    pieces, at, opened = list[str](), 0, False
    while found := _COMMENT.search(code, at):
        start, end = found.span()
        if found["open"] and int(found["version"] or 0) > version:
            end = code.find("*/", end) + 2
            end = end if end > start else len(code)
        if found["text"] or (found["close"] and not opened):
            start = end
        elif found["open"] or found["close"]:
            opened = bool(found["open"]) and end == found.end()
        pieces += [code[at:start], re.sub(r"\S", " ", code[start:end])]
        at = end
    return "".join((*pieces, code[at:]))


class TokenReader:
    """The tokens of a statement and a position among them.

    Each method moves behind what it reads, or raises StatementError 1064 at the first token that
    cannot follow. ``reserved`` says whether reserved words are rejected as names, which older
    servers allowed. ``ignore_space`` is the mode of that name.
    """

    def __init__(self, code: str, reserved: bool = True, ignore_space: bool = False) -> None:
        self.code = code
        self.tokens = list(tokenize(code))
        while self.tokens and self.tokens[-1].text == ";":
            self.tokens.pop()
        self.at = 0
        self._end = Token("end", "", len(code), "")
        self._reserved, self._ignore_space = reserved, ignore_space

    @property
    def token(self) -> Token:
        """The next token, or one of the kind ``end``."""
        return self.tokens[self.at] if self.at < len(self.tokens) else self._end

    @property
    def word(self) -> str:
        """The next token in upper case if it is a word or a sign, or an empty string."""
        return self.tokens[self.at].word if self.at < len(self.tokens) else ""

    @property
    def done(self) -> bool:
        """Whether there are no more tokens."""
        return self.at >= len(self.tokens)

    def ahead(self, n: int = 1) -> Token:
        """Return a later token, or one of the kind ``end``."""
        at = self.at + n
        return self.tokens[at] if at < len(self.tokens) else self._end

    def take(self) -> Token:
        """Return the next token."""
        if self.done:
            raise self.error()
        self.at += 1
        return self.tokens[self.at - 1]

    def accept(self, *words: str) -> bool:
        """Move behind these words if all of them come next. Return whether they do."""
        for n, word in enumerate(words, self.at):
            if n >= len(self.tokens) or self.tokens[n].word != word:
                return False
        self.at += len(words)
        return True

    def accept_any(self, *words: str) -> str:
        """Move behind the next word if it is one of these. Return it, or an empty string."""
        word = self.word
        if not word or word not in words:
            return ""
        self.at += 1
        return word

    def accept_kind(self, *kinds: str) -> bool:
        """Move behind the next token if it is of one of these kinds. Return whether it is."""
        if self.token.kind not in kinds:
            return False
        self.at += 1
        return True

    def expect(self, *words: str) -> None:
        """Move behind these words."""
        for word in words:
            if not self.accept(word):
                raise self.error()

    def expect_any(self, *words: str) -> str:
        """Return the next word, which is one of these."""
        if found := self.accept_any(*words):
            return found
        raise self.error()

    def expect_kind(self, *kinds: str) -> Token:
        """Return the next token, which is of one of these kinds."""
        if not self.accept_kind(*kinds):
            raise self.error()
        return self.tokens[self.at - 1]

    def expect_end(self) -> None:
        """Do nothing at the end."""
        if not self.done:
            raise self.error()

    def listed(self, read: Callable[[], object]) -> None:
        """Move behind one or more forms with commas between them. ``read`` moves behind one."""
        read()
        while self.accept(","):
            read()

    def is_name(self) -> bool:
        """Return whether the next token can be a name."""
        token, after = self.token, self.ahead()
        if self.is_prefixed_string():
            return False
        if token.word in NO_SPACE_FUNCTIONS and after.word == "(":
            return not (self._ignore_space or after.start == token.end)
        return token.kind == "quoted" or (
            token.kind == "word" and not (self._reserved and token.word in RESERVED_WORDS)
        )

    def is_prefixed_string(self) -> bool:
        """Return whether the next token is directly before a string, and says what is in it."""
        token, after = self.token, self.ahead()
        joined = after.kind == "string" and after.start == token.end
        return joined and token.word in ("X", "B", "N")

    def name(self) -> str:
        """Return the next name."""
        if not self.is_name():
            raise self.error()
        return self.take().name

    def qualified_name(self, outer: int = 2) -> list[str]:
        """Return a name behind the names of at most so many things that it is in. Any word is a
        name directly behind a dot."""
        found = [self.name()]
        while len(found) <= outer and self.accept("."):
            joined = self.token.start == self.ahead(-1).end
            if joined and self.token.kind in ("word", "number"):
                found.append(self.take().text)
            else:
                found.append(self.name())
        return found

    def names(self) -> tuple[str, str]:
        """Return a database (empty if there is none) and a name: ``name`` or ``database.name``."""
        *outer, name = self.qualified_name(1)
        return "".join(outer), name

    def bracketed_names(self) -> tuple[str, ...]:
        """Return the names of a list in brackets, or nothing if none comes next."""
        found: list[str] = []
        while self.accept("," if found else "("):
            found.append(self.name())
        if found:
            self.expect(")")
        return tuple(found)

    def number(self) -> int:
        """Return the next whole number."""
        token = self.take()
        if not token.text.isdigit():
            raise self.error(token)
        return int(token.text)

    def variable(self) -> str:
        """Return the text of the next variable: ``@name``, or a quoted name behind the sign. Raises
        StatementError 1327 at a name without it, which only a stored program can declare."""
        if self.token.kind != "variable":
            raise mysql_error(1327, self.name())
        token = self.take()
        if token.text.startswith("@@"):
            raise syntax_error(self.code, token.start + 1)
        if token.text != "@":
            return token.text
        if self.token.start != token.end:
            raise self.error()
        return token.text + self.expect_kind("string", "quoted").text

    def bracketed(self) -> str:
        """Return the text between the next brackets, and move behind them."""
        start = self.token
        self.expect("(")
        depth = 1
        while depth:
            token = self.take()
            depth += (token.text == "(") - (token.text == ")")
        return self.code[start.end : self.tokens[self.at - 1].start].strip()

    def rest(self) -> str:
        """Return the text from the next token on."""
        return "" if self.done else self.code[self.token.start : self.tokens[-1].end]

    def error(self, token: Token | None = None) -> StatementError:
        """Return the syntax error at a token, or at the next one."""
        return syntax_error(self.code, (token or self.token).start)


_INTO_VARIABLE = re.compile(r"\bINTO\s*@", re.I)
_SETS = ("UNION", "EXCEPT", "INTERSECT")


def into_variables(code: str) -> tuple[str, list[str]] | None:
    """Return a query without its ``INTO @a, @`b c```, and the texts of these variables. Return None
    for any other statement, also for one with such words in a query that is a part of it."""
    if _INTO_VARIABLE.search(code) is None or first_token(code).word not in ("SELECT", "WITH"):
        return None
    reader = TokenReader(code)
    tokens = reader.tokens
    depths = [*accumulate((t.text == "(") - (t.text == ")") for t in tokens)]
    opened = sum(1 for _ in takewhile(lambda t: t.text == "(", tokens))
    closed = sum(1 for _ in takewhile(lambda t: t.text == ")", reversed(tokens)))
    level = min(depths[max(0, opened - 1) : len(tokens) - closed])
    own = [i for i, t in enumerate(tokens) if depths[i] == level and tokens[i - 1].text != "."]
    words = [tokens[i].word for i in own]
    if words.count("INTO") != 1 or not {*words[words.index("INTO") :]}.isdisjoint(_SETS):
        return None
    start = reader.at = own[words.index("INTO")]
    names = list[str]()
    while reader.accept("," if names else "INTO"):
        names.append(reader.variable())
    return code[: tokens[start].start] + code[tokens[reader.at - 1].end :], names
