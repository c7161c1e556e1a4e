"""MySQL's grammar of expressions: what can follow what (MySQL 8.0 manual, Expressions).

Each method moves behind one form, or raises StatementError 1064 at the first word that cannot
follow.
"""

from __future__ import annotations

from collections.abc import Callable

from intercode_sql.dialect.keywords import (
    AGGREGATE_FUNCTIONS,
    CAST_TYPES,
    NO_SPACE_FUNCTIONS,
    RESERVED_FUNCTION_NAMES,
    RESERVED_WORDS,
    SYNTAX_COUNTS,
    UNITS,
    WINDOW_FUNCTIONS,
    word_set,
)
from intercode_sql.dialect.token_reader import TokenReader

_COMPARISONS = ("=", "<=>", "<", ">", "<=", ">=", "<>", "!=")
_LOGIC = ("AND", "OR", "XOR", "&&", "||")
_ARITHMETIC = ("|", "&", "<<", ">>", "+", "-", "*", "/", "%", "DIV", "MOD", "^")
_PREFIXES = ("+", "-", "~", "!", "BINARY")
_QUERY_WORDS = ("SELECT", "WITH", "VALUES", "TABLE")
_QUERY_TAIL = ("UNION", "EXCEPT", "INTERSECT", "ORDER", "LIMIT")
_MOMENTS = word_set("""
    CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER LOCALTIME LOCALTIMESTAMP UTC_DATE
    UTC_TIME UTC_TIMESTAMP""")
"""Functions that are called with or without brackets."""
_DATE_SUMS = word_set("DATE_ADD DATE_SUB ADDDATE SUBDATE")
_TEXT_PREFIXES = word_set("X B N")
_UNREAD_CALLS = word_set("JSON_VALUE WEIGHT_STRING")
"""Functions with words of their own that are not in the grammar here."""


class UnreadSyntaxError(Exception):
    """A form of MySQL's that the grammar here does not hold."""


class ExpressionSyntax(TokenReader):
    """Reads expressions."""

    def query(self) -> None:
        """Move behind a query."""
        raise NotImplementedError

    def query_tail(self) -> None:
        """Move behind what follows the first part of a query in brackets."""
        raise NotImplementedError

    def expression(self) -> None:
        """Move behind an expression."""
        while True:
            while self.accept("NOT"):
                pass
            self._test()
            if not self.accept_any(*_LOGIC):
                return

    def expressions(self) -> None:
        """Move behind expressions with commas between them."""
        self.listed(self.expression)

    def _test(self) -> None:
        self._predicate()
        while True:
            if self.accept("IS"):
                self.accept("NOT")
                if self.accept_any("TRUE", "FALSE", "UNKNOWN"):
                    return
                self.expect("NULL")
            elif self.accept_any(*_COMPARISONS):
                some = self.word in ("ANY", "SOME") and self.ahead(1).word == "("
                if some or self.word == "ALL":
                    self.take()
                    self.subquery()
                else:
                    self._predicate()
            else:
                return

    def _predicate(self) -> None:
        self._sum()
        negated = self.accept("NOT")
        if self.accept("IN"):
            if self.word != "(":
                raise self.error()
            self.in_brackets()
        elif self.accept("BETWEEN"):
            self._sum()
            self.expect("AND")
            self._predicate()
        elif self.accept("LIKE"):
            self._operand()
            if self.accept("ESCAPE"):
                self._operand()
        elif self.accept_any("REGEXP", "RLIKE"):
            self._sum()
        elif negated:
            raise self.error()
        elif self.accept("SOUNDS", "LIKE"):
            self._sum()
        elif self.accept("MEMBER", "OF"):
            self._operand()

    def _sum(self) -> None:
        self._operand()
        while sign := self.accept_any(*_ARITHMETIC):
            if sign in "+-" and self.accept("INTERVAL"):
                self._interval()
            else:
                self._operand()

    def _interval(self) -> bool:
        """Move behind what follows INTERVAL. Return whether it ends with a unit, because it can
        also be the arguments of a function of that name."""
        call = self.word == "("
        self.expression()
        if self.accept_any(*UNITS):
            return True
        if not call:
            raise self.error()
        return False

    def _operand(self) -> None:
        while self.accept_any(*_PREFIXES):
            pass
        self._value()
        while True:
            if self.accept("COLLATE"):
                if not (self.accept("BINARY") or self.accept_kind("string")):
                    self.name()
            elif self.accept_any("->", "->>"):
                self.expect_kind("string")
            else:
                return

    def _value(self) -> None:
        token, word, after = self.token, self.word, self.ahead(1)
        joined = after.start == token.end
        if token.kind == "string":
            while self.accept_kind("string"):
                pass
        elif self.accept_kind("number") or self.accept_any("NULL", "TRUE", "FALSE", "?"):
            return
        elif token.kind == "variable":
            self._variable()
        elif word == "{" or word in _UNREAD_CALLS:
            raise UnreadSyntaxError
        elif word == "(":
            self.in_brackets()
        elif after.kind in ("string", "number") and self._prefixed(word, joined):
            self.at += 2
        elif word.startswith("_") and after.word in ("X", "B") and self._is_joined_string(2):
            self.at += 3
        elif word in _FORMS:
            self.take()
            _FORMS[word](self)
        elif word in _MOMENTS:
            self.take()
            if self.accept("("):
                self.accept_kind("number")
                self.expect(")")
        elif after.word == "(" and token.kind in ("word", "quoted"):
            apart = not joined and not self._ignore_space and word in NO_SPACE_FUNCTIONS
            self._call("" if apart and word not in _ARGUMENTS else word)
        elif word in RESERVED_FUNCTION_NAMES:
            self.take()
            raise self.error()
        else:
            self.qualified_name()
            if self.accept("("):  # a function of a database
                if self.word != ")":
                    self.expressions()
                self.expect(")")

    def _is_joined_string(self, n: int) -> bool:
        """Return whether a later token is a string directly behind the one before it."""
        return self.ahead(n).kind == "string" and self.ahead(n).start == self.ahead(n - 1).end

    def _prefixed(self, word: str, joined: bool) -> bool:
        """Return whether a word belongs to the literal after it: DATE '...', x'...', _utf8'...'."""
        if self.ahead(1).kind == "string" and word in ("DATE", "TIME", "TIMESTAMP"):
            return True
        return word.startswith("_") or (joined and word in _TEXT_PREFIXES)

    def _variable(self) -> None:
        self.take()
        before = self.ahead(-1)
        if before.end - before.start == 1:
            self.accept_kind("string", "quoted")
        if self.accept(":="):
            self.expression()

    # ------------------------------------------------------------ brackets
    def in_brackets(self) -> bool:
        """Move behind brackets that hold a query or expressions. Return whether it is a query."""
        self.expect("(")
        if self.word in _QUERY_WORDS and (self.word, self.ahead(1).word) != (
            "VALUES",
            "(",
        ):
            self.query()
            self.expect(")")
            return True
        if self.word == "(":
            query = self.in_brackets()
            if query and self.word in (*_QUERY_TAIL, ")"):
                self.query_tail()
                self.expect(")")
                return True
            self._rest_of_expression()
        else:
            self.expression()
        while self.accept(","):
            self.expression()
        self.expect(")")
        return False

    def _rest_of_expression(self) -> None:
        """Move behind what follows a value in brackets, up to the end of its expression."""
        self.at -= 1  # the closing bracket stands for the value
        self.tokens[self.at] = self.token._replace(kind="number", word="")
        self.expression()

    def subquery(self) -> None:
        """Move behind a query in brackets."""
        if self.word != "(":
            raise self.error()
        if self.ahead(1).word not in ("(", *_QUERY_WORDS):
            self.take()
            raise self.error()
        if not self.in_brackets():
            raise self.error()

    # ------------------------------------------------------------ calls
    def _call(self, word: str) -> None:
        if word in RESERVED_WORDS - RESERVED_FUNCTION_NAMES - _ARGUMENTS.keys():
            raise self.error()
        self.take()
        self.expect("(")
        if word in AGGREGATE_FUNCTIONS:
            self._aggregate(word)
        elif word in _ARGUMENTS:
            _ARGUMENTS[word](self)
        elif word in _DATE_SUMS:
            self._date_sum()
        elif word in SYNTAX_COUNTS:
            self._counted(*SYNTAX_COUNTS[word])
        elif self.word != ")":
            self.listed(self._argument)
        self.expect(")")
        window = word in WINDOW_FUNCTIONS
        if window and self.accept("RESPECT"):
            self.expect("NULLS")
        if (window or word in AGGREGATE_FUNCTIONS) and self.accept("OVER"):
            self._window()
        elif window:
            raise self.error()

    def _counted(self, least: int, most: int) -> None:
        for number in range(most):
            if number >= least and not (number and self.word == ","):
                return
            if number:
                self.expect(",")
            self.expression()

    def _argument(self) -> None:
        self.expression()
        self.alias()

    def alias(self) -> None:
        """Move behind the other name of an expression, if there is one."""
        named = self.accept("AS")
        if not self.accept_kind("string") and (named or self.is_name()):
            self.name()

    def _aggregate(self, word: str) -> None:
        if word == "COUNT":
            self.accept("ALL")
            if self.accept("*"):
                return
        distinct = not word.startswith("BIT_") and self.accept_any("DISTINCT", "ALL") == "DISTINCT"
        several = word == "GROUP_CONCAT" or (distinct and word == "COUNT")
        if several:
            self.expressions()
        else:
            self.expression()
        if word == "GROUP_CONCAT":
            self.order()
            if self.accept("SEPARATOR") and not self.accept_kind("string"):
                raise self.error()

    def _date_sum(self) -> None:
        self.expression()
        self.expect(",")
        if self.accept("INTERVAL"):
            self._interval()
        else:
            self.expression()

    def _cast(self) -> None:
        self.expression()
        self.expect("AS")
        self._type()

    def _type(self) -> None:
        self.expect_any(*CAST_TYPES)
        if self.ahead(-1).word in ("SIGNED", "UNSIGNED"):
            self.accept_any("INT", "INTEGER")
        self.accept("PRECISION")
        if self.accept("("):
            self.listed(self._number)
            self.expect(")")
        if self.accept_any("CHARACTER", "CHARSET"):
            self.accept("SET")
            self.name()

    def _number(self) -> None:
        self.expect_kind("number")

    def _convert(self) -> None:
        self.expression()
        if self.accept("USING"):
            if not (self.accept("BINARY") or self.accept_kind("string")):
                self.name()
        else:
            self.expect(",")
            self._type()

    def _extract(self) -> None:
        self.expect_any(*UNITS)
        self.expect("FROM")
        self.expression()

    def _trim(self) -> None:
        if self.accept_any("LEADING", "TRAILING", "BOTH"):
            if self.accept("FROM"):
                self.expression()
                return
            self.expression()
            self.expect("FROM")
            self.expression()
            return
        self.expression()
        if self.accept("FROM"):
            self.expression()

    def _substring(self) -> None:
        self.expression()
        if self.accept("FROM"):
            self.expression()
            if self.accept("FOR"):
                self.expression()
            return
        self.expect(",")
        self.expression()
        if self.accept(","):
            self.expression()

    def _position(self) -> None:
        self._sum()
        self.expect("IN")
        self.expression()

    def _of_unit(self) -> None:
        self.expect_any(*UNITS)
        for _ in range(2):
            self.expect(",")
            self.expression()

    def _char(self) -> None:
        self.expressions()
        if self.accept("USING"):
            self.name()

    # ------------------------------------------------------------ forms with words of their own
    def _case(self) -> None:
        if self.word != "WHEN":
            self.expression()
        if self.word != "WHEN":
            raise self.error()
        while self.accept("WHEN"):
            self.expression()
            self.expect("THEN")
            self.expression()
        if self.accept("ELSE"):
            self.expression()
        self.expect("END")

    def _sum_of_interval(self) -> None:
        if self._interval():
            self.expect("+")
            self._operand()

    def _row(self) -> None:
        if self.word != "(":
            raise self.error()
        self.in_brackets()

    def _match(self) -> None:
        bracketed = self.accept("(")
        self.listed(self.qualified_name)
        if bracketed:
            self.expect(")")
        self.expect("AGAINST", "(")
        self._sum()
        if self.accept("IN") and not self.accept("NATURAL", "LANGUAGE", "MODE"):
            self.expect("BOOLEAN", "MODE")
        if self.accept("WITH"):
            self.expect("QUERY", "EXPANSION")
        self.expect(")")

    def _of_column(self) -> None:
        self.expect("(")
        self.qualified_name()
        self.expect(")")

    # ------------------------------------------------------------ windows and order
    def order(self) -> None:
        """Move behind ORDER BY with what follows, if it comes next."""
        if not self.accept("ORDER"):
            return
        self.expect("BY")
        self.listed(self._key)

    def _key(self) -> None:
        self.expression()
        self.accept_any("ASC", "DESC")

    def _window(self) -> None:
        if self.word != "(":
            self.name()
            return
        self.window()

    def window(self) -> None:
        """Move behind the definition of a window."""
        self.expect("(")
        if self.token.kind == "quoted" or (self.is_name() and self.word != "PARTITION"):
            self.name()
        if self.accept("PARTITION"):
            self.expect("BY")
            self.expressions()
        self.order()
        if self.accept_any("ROWS", "RANGE", "GROUPS"):
            if self.accept("BETWEEN"):
                self._bound()
                self.expect("AND")
            self._bound()
        self.expect(")")

    def _bound(self) -> None:
        if self.accept("CURRENT"):
            self.expect("ROW")
            return
        if self.accept("INTERVAL"):
            self._interval()
        elif not (self.accept_any("UNBOUNDED", "?") or self.accept_kind("number")):
            raise self.error()
        self.expect_any("PRECEDING", "FOLLOWING")


_FORMS: dict[str, Callable[[ExpressionSyntax], None]] = {
    "CASE": ExpressionSyntax._case,
    "EXISTS": ExpressionSyntax.subquery,
    "ROW": ExpressionSyntax._row,
    "INTERVAL": ExpressionSyntax._sum_of_interval,
    "MATCH": ExpressionSyntax._match,
    "DEFAULT": ExpressionSyntax._of_column,
    "VALUES": ExpressionSyntax._of_column,
}
_ARGUMENTS: dict[str, Callable[[ExpressionSyntax], None]] = {
    "CAST": ExpressionSyntax._cast,
    "CONVERT": ExpressionSyntax._convert,
    "EXTRACT": ExpressionSyntax._extract,
    "TRIM": ExpressionSyntax._trim,
    "SUBSTRING": ExpressionSyntax._substring,
    "SUBSTR": ExpressionSyntax._substring,
    "MID": ExpressionSyntax._substring,
    "POSITION": ExpressionSyntax._position,
    "TIMESTAMPADD": ExpressionSyntax._of_unit,
    "TIMESTAMPDIFF": ExpressionSyntax._of_unit,
    "CHAR": ExpressionSyntax._char,
}
"""What stands between the brackets of functions whose arguments have words of their own."""
