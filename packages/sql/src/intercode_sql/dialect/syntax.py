"""MySQL's grammar of queries and writes, which tells where MySQL stops reading a statement.

Each method moves behind one form, or raises StatementError 1064 at the first word that cannot
follow.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from intercode_sql.dialect.errors import mysql_error
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
from intercode_sql.dialect.tokens import TokenReader

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
_WITHOUT_DIGITS = word_set("CURRENT_DATE CURRENT_USER UTC_DATE")
_CLOCK_NAMES = {
    "CURRENT_TIME": "curtime",
    **dict.fromkeys(("CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"), "now"),
}
"""The names of functions of the time in errors, where that is not their own."""
_DATE_SUMS = word_set("DATE_ADD DATE_SUB ADDDATE SUBDATE")
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
        elif word in _UNREAD_CALLS:
            raise UnreadSyntaxError
        elif word == "(":
            self.in_brackets()
        elif self.accept("{"):
            self.name()
            self.expression()
            self.expect("}")
        elif after.kind in ("string", "number") and self._prefixed(word):
            self.at += 2
        elif word.startswith("_") and after.word in ("X", "B") and self._is_joined_string(2):
            self.at += 3
        elif word in _FORMS:
            self.take()
            _FORMS[word](self)
        elif word in _MOMENTS:
            self.take()
            if self.accept("("):
                if word not in _WITHOUT_DIGITS:
                    self._digits()
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

    def _prefixed(self, word: str) -> bool:
        """Return whether a word belongs to the literal after it: DATE '...', x'...', _utf8'...'."""
        if self.ahead(1).kind == "string" and word in ("DATE", "TIME", "TIMESTAMP"):
            return True
        return word.startswith("_") or self.is_prefixed_string()

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
            self._date_sum(word)
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
        plain = word.startswith(("BIT_", "JSON_"))
        distinct = not plain and self.accept_any("DISTINCT", "ALL") == "DISTINCT"
        several = word == "GROUP_CONCAT" or (distinct and word == "COUNT")
        if several:
            self.expressions()
        else:
            self.expression()
        if word == "JSON_OBJECTAGG":
            self.expect(",")
            self.expression()
        if word == "GROUP_CONCAT":
            self.order()
            if self.accept("SEPARATOR") and not self.accept_kind("string"):
                raise self.error()

    def _date_sum(self, word: str) -> None:
        self.expression()
        self.expect(",")
        if self.accept("INTERVAL"):
            self._interval()
        elif word.startswith("DATE_"):
            raise self.error()
        else:
            self.expression()

    def _cast(self) -> None:
        self.expression()
        self.expect("AS")
        self._type()

    def _type(self) -> None:
        kind = self.expect_any(*CAST_TYPES)
        if kind in ("SIGNED", "UNSIGNED"):
            self.accept_any("INT", "INTEGER")
        self.accept("PRECISION")
        if self.accept("("):
            if kind in ("TIME", "DATETIME"):
                self._check_digits("CAST")
            else:
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

    def _digits(self) -> None:
        """Move behind how many digits the fraction of a second has."""
        name = self.ahead(-2).word
        if self.word != ")":
            self._check_digits(_CLOCK_NAMES.get(name, name.lower()))

    def _check_digits(self, name: str) -> None:
        digits = self.number()
        if digits > 6:
            raise mysql_error(1426, digits, name)

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
    "CURDATE": lambda _: None,
    **dict.fromkeys(("NOW", "SYSDATE", "CURTIME"), ExpressionSyntax._digits),
}
"""What stands between the brackets of functions whose arguments have words of their own."""


_SELECT_OPTIONS = word_set("""
    ALL DISTINCT DISTINCTROW HIGH_PRIORITY STRAIGHT_JOIN SQL_SMALL_RESULT SQL_BIG_RESULT
    SQL_BUFFER_RESULT SQL_NO_CACHE SQL_CALC_FOUND_ROWS""")
_SETS = ("UNION", "EXCEPT", "INTERSECT")
_JOINS = word_set("JOIN INNER CROSS LEFT RIGHT NATURAL STRAIGHT_JOIN")
_WRITE_OPTIONS = ("LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "QUICK", "IGNORE")


def check_syntax(text: str, ignore_space: bool) -> None:
    """Raise StatementError 1064 where MySQL stops reading a statement. Statements and forms that
    the grammar here does not hold are not checked."""
    with suppress(RecursionError, UnreadSyntaxError):
        _QuerySyntax(text, ignore_space=ignore_space).statement()


class _QuerySyntax(ExpressionSyntax):
    """Reads queries and writes."""

    def statement(self) -> None:
        """Move behind a statement, up to the end of the text."""
        word = self.word
        if self.accept_any("EXPLAIN", "DESCRIBE", "DESC"):
            word = self.word
        self._start, self._clauses_into = self.at, 0
        if word == "WITH":
            self._with()
            word = self.word
            if word not in ("SELECT", "(", "UPDATE", "DELETE", "VALUES", "TABLE"):
                raise self.error()
        self._start = self.at
        if word in ("SELECT", "(", "VALUES", "TABLE"):
            self._query_body()
        elif word in ("INSERT", "REPLACE"):
            self._insert()
        elif word == "UPDATE":
            self._update()
        elif word == "DELETE":
            self._delete()
        else:
            return
        self.expect_end()
        if self._clauses_into > 1:
            raise mysql_error(3953)

    # ------------------------------------------------------------ queries
    def query(self) -> None:
        if self.word == "WITH":
            self._with()
        self._query_body()

    def query_tail(self) -> None:
        while self.accept_any(*_SETS):
            self.accept_any("ALL", "DISTINCT")
            self._query_term()
        self.order()
        self._limit()
        stored = self._is_of_statement() and self._into()
        self._locks()
        if not stored and self._is_of_statement():
            self._into()

    def _is_of_statement(self) -> bool:
        """Return whether all brackets around the next token are those around the statement."""
        depths = [0]
        for token in self.tokens[self._start : self.at]:
            depths.append(depths[-1] + (token.text == "(") - (token.text == ")"))
        return min(depths[depths[-1] :]) == depths[-1] == max(depths[: depths[-1] + 1])

    def _query_body(self) -> None:
        self._query_term()
        self.query_tail()

    def _query_term(self) -> None:
        if self.word == "(":
            self.subquery()
        elif self.accept("VALUES"):
            self.listed(self._row_constructor)
        elif self.accept("TABLE"):
            self.qualified_name()
        else:
            self.expect("SELECT")
            self._select()

    def _with(self) -> None:
        self.expect("WITH")
        self.accept("RECURSIVE")
        self.listed(self._named_query)

    def _named_query(self) -> None:
        self.name()
        self._names()
        self.expect("AS")
        self.subquery()

    def _names(self) -> None:
        """Move behind names in brackets, if a bracket comes next."""
        if self.accept("("):
            self.listed(self.name)
            self.expect(")")

    def _select(self) -> None:
        while self.accept_any(*_SELECT_OPTIONS):
            pass
        if not self.accept("*"):
            self._item()
        while self.accept(","):
            self._item()
        self._into()
        if self.accept("FROM") and not self.accept("DUAL"):
            self._tables()
        if self.accept("WHERE"):
            self.expression()
        if self.accept("GROUP"):
            self.expect("BY")
            self.expressions()
            if self.accept("WITH"):
                self.expect("ROLLUP")
        if self.accept("HAVING"):
            self.expression()
        if self.accept("WINDOW"):
            self.listed(self._named_window)

    def _named_window(self) -> None:
        self.name()
        self.expect("AS")
        self.window()

    def _item(self) -> None:
        if self.is_name() and self.ahead(1).word == ".":
            if self.ahead(2).word == "*":
                self.at += 3
                return
            if self.ahead(3).word == "." and self.ahead(4).word == "*":
                self.at += 5
                return
        self.expression()
        self.alias()

    def _limit(self, second: bool = True) -> None:
        if not self.accept("LIMIT"):
            return
        self._limit_value()
        if second and self.accept_any(",", "OFFSET"):
            self._limit_value()

    def _limit_value(self) -> None:
        if not (self.accept("?") or self.accept_kind("number")):
            raise self.error()

    def _into(self) -> bool:
        if not self.accept("INTO"):
            return False
        if self.accept_any("OUTFILE", "DUMPFILE"):
            raise UnreadSyntaxError
        self.listed(self.variable)
        self._clauses_into += 1
        return True

    def _locks(self) -> None:
        if self.accept("FOR"):
            self.expect_any("UPDATE", "SHARE")
            if self.accept("OF"):
                self.listed(self._target)
            if self.accept("SKIP"):
                self.expect("LOCKED")
            self.accept("NOWAIT")
        elif self.accept("LOCK"):
            self.expect("IN", "SHARE", "MODE")

    # ------------------------------------------------------------ tables
    def _tables(self) -> None:
        self.listed(self._joined)

    def _joined(self) -> None:
        self._table()
        while self.word in _JOINS:
            natural = self.accept("NATURAL")
            outer = self.accept_any("LEFT", "RIGHT")
            if outer:
                self.accept("OUTER")
            elif not self.accept("STRAIGHT_JOIN"):
                self.accept_any("INNER", *() if natural else ("CROSS",))
            if self.ahead(-1).word != "STRAIGHT_JOIN":
                self.expect("JOIN")
            if natural:
                self._table()
                continue
            self._joined()
            if self.accept("ON"):
                self.expression()
            elif self.accept("USING"):
                if self.word != "(":
                    raise self.error()
                self._names()
            elif outer:
                raise self.error()

    def _table(self) -> None:
        if self.accept("LATERAL") or self._holds_query():
            if self.ahead(1).word == "(":
                raise UnreadSyntaxError  # a query in brackets, or tables that begin with one
            self.subquery()
            self._table_alias()
            self._names()
            return
        if self.accept("("):
            self._tables()
            self.expect(")")
            return
        if self.word in ("{", "JSON_TABLE"):
            raise UnreadSyntaxError
        self.qualified_name(1)
        if self.accept("PARTITION"):
            self._names()
        self._table_alias()
        while self.accept_any("USE", "FORCE", "IGNORE"):
            self.expect_any("INDEX", "KEY")
            if self.accept("FOR"):
                raise UnreadSyntaxError
            self.expect("(")
            if self.word != ")":
                self.listed(self._index_name)
            self.expect(")")

    def _index_name(self) -> None:
        if not self.accept("PRIMARY"):
            self.name()

    def _holds_query(self) -> bool:
        n = 0
        while self.ahead(n).word == "(":
            n += 1
        return self.ahead(n).word in ("SELECT", "WITH", "VALUES", "TABLE")

    def _table_alias(self) -> None:
        if self.accept_any("AS", "=") or self.is_name():
            self.name()

    # ------------------------------------------------------------ writes
    def _row_constructor(self) -> None:
        self.expect("ROW")
        self._row_of_values()

    def _row_of_values(self) -> None:
        self.expect("(")
        if self.word != ")":
            self.listed(self._stored)
        self.expect(")")

    def _stored(self) -> None:
        """Move behind a value of a column, which can be the word DEFAULT."""
        if self.word == "DEFAULT" and self.ahead(1).word != "(":
            self.take()
        else:
            self.expression()

    def _assignment(self) -> None:
        self.qualified_name()
        self.expect_any("=", ":=")
        self._stored()

    def _insert(self) -> None:
        self.take()
        while self.accept_any(*_WRITE_OPTIONS):
            pass
        self.accept("INTO")
        self.qualified_name(1)
        if self.accept("PARTITION"):
            self._names()
        if self.accept("SET"):
            self.listed(self._assignment)
        else:
            if self.word == "(" and not self._holds_query():
                self._columns()
            if self.accept_any("VALUES", "VALUE"):
                self.listed(self._row_of_values)
            elif self.word in ("SELECT", "WITH", "TABLE", "("):
                self.query()
            else:
                raise self.error()
        if self.accept("AS"):
            self.name()
            self._names()
        if self.accept("ON"):
            self.expect("DUPLICATE", "KEY", "UPDATE")
            self.listed(self._assignment)

    def _columns(self) -> None:
        self.expect("(")
        if self.word != ")":
            self.listed(self.qualified_name)
        self.expect(")")

    def _update(self) -> None:
        self.take()
        while self.accept_any(*_WRITE_OPTIONS):
            pass
        self._tables()
        self.expect("SET")
        self.listed(self._assignment)
        self._conditions()

    def _conditions(self) -> None:
        if self.accept("WHERE"):
            self.expression()
        self.order()
        self._limit(second=False)

    def _delete(self) -> None:
        self.take()
        while self.accept_any(*_WRITE_OPTIONS):
            pass
        several = not self.accept("FROM")
        self.listed(self._target)
        if several:
            self.expect("FROM")
            self._tables()
        elif self.accept("USING"):
            self._tables()
        else:
            self._table_alias()
            if self.accept("PARTITION"):
                self._names()
        self._conditions()

    def _target(self) -> None:
        self.name()
        for _ in range(2):
            if self.accept(".") and not self.accept("*"):
                self.accept_kind("word", "quoted")
