"""MySQL's grammar of queries and writes, which tells where MySQL stops reading a statement."""

from __future__ import annotations

from contextlib import suppress

from intercode_sql.dialect.expression_syntax import ExpressionSyntax, UnreadSyntaxError
from intercode_sql.dialect.keywords import word_set

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
        if word == "WITH":
            self._with()
            word = self.word
            if word not in ("SELECT", "(", "UPDATE", "DELETE", "VALUES", "TABLE"):
                raise self.error()
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
        self._into()
        self._locks()

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

    def _into(self) -> None:
        if not self.accept("INTO"):
            return
        if self.accept_any("OUTFILE", "DUMPFILE"):
            raise UnreadSyntaxError
        self.listed(self._variable_or_name)

    def _variable_or_name(self) -> None:
        if not self.accept_kind("variable"):
            self.name()

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
            self._names()

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
