"""Random statements: every clause in pairs, aggregates, windows, subqueries, writes and settings.

A case is a list of statements for one session, which ends by restoring the data.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

from hostile.sql.enumerated import Enumerated, keys
from hostile.sql.expressions_grammar import FUNCTIONS, Expressions
from hostile.sql.rules import CASES_OF_A_RULE, asked_seldom
from hostile.sql.tables import COLUMNS

AGGREGATES = (
    "COUNT",
    "SUM",
    "AVG",
    "MIN",
    "MAX",
    "COUNT",
    "SUM",
    "AVG",
    "MIN",
    "MAX",
    "STD",
    "VAR_SAMP",
    "BIT_AND",
    "BIT_OR",
    "BIT_XOR",
    "STDDEV_SAMP",
    "VAR_POP",
    "GROUP_CONCAT",
)
WINDOWS = (
    "ROW_NUMBER",
    "RANK",
    "DENSE_RANK",
    "NTILE",
    "LAG",
    "LEAD",
    "FIRST_VALUE",
    "LAST_VALUE",
    "NTH_VALUE",
    "PERCENT_RANK",
    "CUME_DIST",
)
_OFTEN = (3, 3, 3, 3, 3, 3, 3, 3, 3, 1, 1)
KEYS = (
    "e",
    "v",
    "i",
    "y",
    "da",
    "d",
    "u",
    "c",
    "vb",
    "ti % 2",
    "YEAR(da)",
    "UPPER(v)",
    "tm",
    "x",
    "bl",
    "l",
    "d0",
)
S_COLUMNS = {
    "int": ("s.k", "s.i"),
    "text": ("s.v",),
    "enum": ("s.e",),
    "date": ("s.da",),
    "decimal": ("s.price",),
}
_T_COLUMNS = {k: tuple(f"t.{n}" for n in v) for k, v in COLUMNS.items()}
_BOTH = {k: _T_COLUMNS.get(k, ()) + S_COLUMNS.get(k, ()) for k in {*_T_COLUMNS, *S_COLUMNS}}


class Statements:
    """Makes random cases, and in turn with them those that are ``enumerated``, until ``unreached``
    is empty. Two with equal seeds make the same ones."""

    def __init__(self, seed: int, enumerated: bool = False) -> None:
        self.rng = random.Random(seed)
        self.enumerated = Enumerated(self.rng)
        self.unreached = list(keys()) if enumerated else []
        self.rng.shuffle(self.unreached)
        self.total = len(self.unreached)
        self.asked: Counter[str] = Counter()
        self.of_t = Expressions(self.rng)
        self.of_both = Expressions(self.rng, dict(sorted(_BOTH.items())))
        self._makers: list[tuple[int, Callable[[], list[str]]]] = [
            (30, self.values),
            (10, self.functions),
            (14, self.clauses),
            (10, self.groups),
            (8, self.windows),
            (8, self.joins),
            (8, self.subqueries),
            (5, self.set_operations),
            (8, self.writes),
            (3, self.settings),
            (3, self.tables),
            (2, self.mistakes),
        ]

    def case(self) -> list[str]:
        """Return the statements of a case."""
        if self.unreached and self._chance(0.5):
            return self.enumerated.case(self.unreached.pop())
        (maker,) = self.rng.choices([m for _, m in self._makers], [w for w, _ in self._makers])
        case = maker()
        while (rules := asked_seldom(case)) and not self._asks(rules):
            case = maker()
        return case

    def _asks(self, rules: set[str]) -> bool:
        """Return whether a case is made that these rules concern. Once each of them has been shown
        with enough cases, others are made instead."""
        if not self._chance(0.1) or all(self.asked[rule] >= CASES_OF_A_RULE for rule in rules):
            return False
        self.asked.update(rules)
        return True

    def _chance(self, share: float) -> bool:
        return self.rng.random() < share

    # ------------------------------------------------------------ expressions
    def values(self) -> list[str]:
        """One expression over every row."""
        this = self.of_t.value(self.rng.choice((1, 1, 1, 2, 2, 3)))
        if self._chance(0.25):
            return [f"SELECT id FROM t WHERE {this} ORDER BY id"]
        return [f"SELECT id, {this} FROM t ORDER BY id"]

    def functions(self) -> list[str]:
        """One call of a function."""
        this = self.of_t.call(self.rng.choice((0, 0, 1)), self.rng.choice(FUNCTIONS))
        return [f"SELECT id, {this} FROM t ORDER BY id"]

    # ------------------------------------------------------------ queries
    def _where(self, made: Expressions, free: bool = True) -> str:
        simple = (
            f"{made.column('int')} > 0",
            f"{made.column('text')} LIKE '%n%'",
            f"{made.column('enum')} = {self.rng.choice(('1', chr(39) + 'low' + chr(39)))}",
            f"{made.column('date')} >= '2001-01-01'",
            f"{made.column()} IS NOT NULL",
            f"{made.column('decimal')} BETWEEN 1 AND 20.5",
        )
        if self._chance(0.3 if free else 0.1):
            return " WHERE " + made.value(2)
        return f" WHERE {self.rng.choice(simple)}" if self._chance(0.5) else ""

    def clauses(self) -> list[str]:
        """A query of one table with clauses in pairs."""
        distinct = self._chance(0.3)
        columns = [
            self.of_t.value(self.rng.choice((0, 0, 1))) for _ in range(self.rng.randint(1, 3))
        ]
        shown = [f"{c} AS a{n}" if self._chance(0.5) else c for n, c in enumerate(columns)]
        names = [
            s.rpartition(" AS ")[2] if " AS a" in s else str(n + 1) for n, s in enumerate(shown)
        ]
        way = self.rng.choice(("", " DESC"))
        if distinct:
            order = f" ORDER BY {', '.join(n + way for n in names)}"
            return [f"SELECT DISTINCT {', '.join(shown)} FROM t{self._where(self.of_t)}{order}"]
        key = self.rng.choice((*names, self.of_t.column(), self.of_t.value(1)))
        limit = self.rng.choice(("", " LIMIT 3", " LIMIT 2 OFFSET 1", " LIMIT 1, 2", " LIMIT 0"))
        order = f" ORDER BY {key}{way}, id"
        return [f"SELECT {', '.join(shown)} FROM t{self._where(self.of_t)}{order}{limit}"]

    def _aggregate(self, made: Expressions) -> str:
        name = self.rng.choice(AGGREGATES)
        if name == "COUNT" and self._chance(0.5):
            return "COUNT(*)"
        word = (
            "DISTINCT "
            if self._chance(0.2) and name in ("COUNT", "SUM", "AVG", "MIN", "MAX")
            else ""
        )
        this = made.column() if self._chance(0.7) else made.value(1)
        if name.startswith(("STD", "VAR")) and self._chance(0.7):
            this = made.column(self.rng.choice(("double", "float")))  # of others, digits differ
        if name != "GROUP_CONCAT":
            return f"{name}({word}{this})"
        word = "DISTINCT " if self._chance(0.3) else ""
        key = self.rng.choice((this, "1")) if word else self.rng.choice(("1", this, made.column()))
        tie = "" if word else f", {made.column('int').replace('.i', '.id')}"
        way = self.rng.choice(("", " DESC"))
        glue = self.rng.choice(("", " SEPARATOR '; '", " SEPARATOR ''"))
        tie = ", id" if tie and made is self.of_t else ""
        return f"GROUP_CONCAT({word}{this} ORDER BY {key}{way}{tie}{glue})"

    def groups(self) -> list[str]:
        """A query that groups, or aggregates all rows."""
        key, aggregate = self.rng.choice(KEYS), self._aggregate(self.of_t)
        if self._chance(0.25):
            tail = self.rng.choice(("", " + 1", " IS NULL", " / 2"))
            if aggregate.startswith(("STD", "VAR")):  # MariaDB takes some of them for NULL
                tail = ""
            inner = f"{aggregate}{tail}"
            return [f"SELECT {inner}, COUNT(*) FROM t{self._where(self.of_t)}"]
        by = self.rng.choice((key, "1", "g"))
        other = self._aggregate(self.of_t)
        if other.startswith(("STD", "VAR")):  # MariaDB takes some of them for NULL
            other = "AVG(i)"
        tests = (
            "COUNT(*) > 1",
            f"{other} IS NOT NULL",
            "n >= 1",
            "g IS NOT NULL",
            f"MAX({self.of_t.column('int')}) > 0",
            f"COUNT(*) >= ALL (SELECT COUNT(*) FROM t GROUP BY {key})",
            f"COUNT(*) {self.rng.choice(('<=', '<', '>'))} ANY (SELECT COUNT(*) FROM s GROUP BY i)",
            "SUM(i) > (SELECT MIN(i) FROM s)",
        )
        having = f" HAVING {self.rng.choice(tests)}" if self._chance(0.4) else ""
        if self._chance(0.1):
            groups = self.rng.choice((by, f"{by}, {self.rng.choice(KEYS)}"))
            return [f"SELECT {key} AS g, {aggregate} AS n FROM t GROUP BY {groups} WITH ROLLUP"]
        order = self.rng.choice(("g", "1", "g DESC", "n DESC, g", "COUNT(*), g", "1 DESC"))
        limit = self.rng.choice(("", "", " LIMIT 2"))
        return [
            f"SELECT {key} AS g, {aggregate} AS n FROM t{self._where(self.of_t)} GROUP BY "
            f"{by}{having} "
            f"ORDER BY {order}{limit}"
        ]

    def windows(self) -> list[str]:
        """A window function or an aggregate over a window."""
        order = f"ORDER BY {self.of_t.column()}{self.rng.choice(('', ' DESC'))}, id"
        part = f"PARTITION BY {self.rng.choice(KEYS)} " if self._chance(0.5) else ""
        name, this = self.rng.choices(WINDOWS, _OFTEN)[0], self.of_t.column()
        if self._chance(0.4):
            name = self.rng.choice(("COUNT", "SUM", "AVG", "MIN", "MAX"))
            frame = self.rng.choice(
                ("", " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING", " ROWS UNBOUNDED PRECEDING")
            )
            return [f"SELECT id, {name}({this}) OVER ({part}{order}{frame}) FROM t ORDER BY id"]
        if self._chance(0.15):
            inner = self.rng.choice(
                (
                    "SUM(SUM(i)) OVER ()",
                    "RANK() OVER (ORDER BY COUNT(*))",
                    "SUM(COUNT(*)) OVER (ORDER BY e)",
                    "AVG(MAX(d)) OVER ()",
                )
            )
            return [f"SELECT e, {inner} FROM t GROUP BY e ORDER BY e"]
        if name in ("ROW_NUMBER", "RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST"):
            if name != "ROW_NUMBER" and self._chance(0.7):
                order = order.removesuffix(", id")
            call = f"{name}()"
        elif name == "NTILE":
            call = f"NTILE({self.rng.randint(1, 4)})"
        elif name in ("LAG", "LEAD"):
            call = f"{name}({this}{self.rng.choice(('', ', 1', ', 2'))})"
        else:
            call = f"{name}({this}{', 2' if name == 'NTH_VALUE' else ''})"
        return [f"SELECT id, {call} OVER ({part}{order}) FROM t ORDER BY id"]

    def joins(self) -> list[str]:
        """A join of both tables."""
        made = self.of_both
        on = self.rng.choice(
            (
                "t.i = s.i",
                "t.v = s.v",
                "t.e = s.e",
                "t.da = s.da",
                "t.id = s.k",
                "t.d = s.price",
                "t.i < s.i",
                made.value(1),
            )
        )
        how = self.rng.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "INNER JOIN"))
        source = f"t {how} s ON {on}"
        if self._chance(0.15):
            source = self.rng.choice(("t CROSS JOIN s", "t, s", "t JOIN s USING (i)"))
        columns = ", ".join(made.value(self.rng.choice((0, 0, 1))) for _ in range(2))
        return [f"SELECT t.id, s.k, {columns} FROM {source}{self._where(made)} ORDER BY t.id, s.k"]

    def subqueries(self) -> list[str]:
        """A subquery in any place."""
        column, other = (
            self.of_t.column(),
            self.rng.choice(("s.i", "s.v", "s.da", "s.price", "s.e")),
        )
        op = self.rng.choice(("=", "<", ">", "<=", ">=", "<>"))
        forms = (
            f"SELECT id FROM t WHERE {column} IN (SELECT {other} FROM s) ORDER BY id",
            f"SELECT id FROM t WHERE {column} NOT IN (SELECT {other} FROM s WHERE {other} "
            "IS NOT NULL) ORDER BY id",
            f"SELECT id FROM t WHERE EXISTS (SELECT 1 FROM s WHERE s.i {op} t.{column}) "
            "ORDER BY id",
            f"SELECT id, (SELECT MAX({other}) FROM s WHERE s.i = t.i) FROM t ORDER BY id",
            f"SELECT id FROM t WHERE {column} {op} (SELECT MIN({other}) FROM s) ORDER BY id",
            f"SELECT id FROM t WHERE {column} {op} "
            f"{self.rng.choice(('ALL', 'ANY', 'SOME'))} (SELECT {other} FROM s) ORDER BY id",
            f"SELECT id, {column} {op} ALL (SELECT {other} FROM s) FROM t ORDER BY id",
            f"SELECT q.a, COUNT(*) FROM (SELECT {self.of_t.value(1)} AS a FROM t) q GROUP "
            "BY q.a ORDER BY 1",
            f"WITH q AS (SELECT id, {self.of_t.value(1)} AS a FROM t) SELECT * FROM q ORDER BY id",
            "SELECT id, i AS a, (SELECT a + 1) FROM t ORDER BY id",
            f"SELECT id, {self.of_t.value(1)} AS a, (SELECT CONCAT(a, '!')) FROM t ORDER BY id",
            f"SELECT COUNT(*) {op} ALL (SELECT COUNT(*) FROM s GROUP BY i) FROM t",
            f"SELECT id, CASE WHEN {column} IN (SELECT {other} FROM s) THEN 1 ELSE 0 END "
            "FROM t ORDER BY id",
        )
        return [self.rng.choice(forms)]

    def set_operations(self) -> list[str]:
        """UNION, EXCEPT and INTERSECT."""
        word = self.rng.choice(("UNION", "UNION ALL", "UNION", "EXCEPT", "INTERSECT"))
        a, b = self.of_t.atom(), self.rng.choice((self.of_t.atom(), self.of_t.value(1)))
        order = self.rng.choice((" ORDER BY 1", " ORDER BY a", " ORDER BY 1 DESC"))
        return [f"SELECT {a} AS a FROM t {word} SELECT {b} FROM t{order}"]

    # ------------------------------------------------------------ writes
    def _stored(self, name: str) -> str:
        kind = next(k for k, names in COLUMNS.items() if name in names)
        if self._chance(0.7):
            kind = {"unsigned": "int", "float": "double", "year": "int", "enum": "text"}.get(
                kind, kind
            )
            return self.of_t.literal(kind)
        return self.of_t.literal()

    def writes(self) -> list[str]:
        """A statement that writes, in a transaction, and the data left."""
        name = self.of_t.column()
        while name == "id":
            name = self.of_t.column()
        where = self._where(self.of_t, free=False)  # where types differ, strict modes do
        forms = (
            f"INSERT INTO t (id, {name}) VALUES (20, {self._stored(name)})",
            f"INSERT INTO t ({name}) VALUES ({self._stored(name)}), ({self._stored(name)})",
            f"INSERT INTO t SET id = 30, {name} = {self._stored(name)}",
            "INSERT IGNORE INTO t (id, v) VALUES (1, 'x'), (40, 'y')",
            "INSERT INTO s (k, v) VALUES (1, 'new') ON DUPLICATE KEY UPDATE v = "
            "VALUES(v), i = i + 1",
            f"REPLACE INTO s (k, v) VALUES ({self.rng.choice('1239')}, 'new')",
            f"INSERT INTO t (id, {name}) SELECT k + 50, "
            f"{self.rng.choice(('i', 'v', 'da', 'price', 'e'))} FROM s",
            f"UPDATE t SET {name} = {self._stored(name)}{where}",
            f"UPDATE t SET {name} = {self.of_t.value(1)} WHERE id = {self.rng.randint(1, 8)}",
            f"UPDATE t SET i = i + 1, d = d * 2{where} ORDER BY id LIMIT 3",
            f"UPDATE t SET {name} = DEFAULT WHERE id = 1",
            f"DELETE FROM t{where}",
            f"DELETE FROM t{where} ORDER BY id DESC LIMIT 2",
        )
        statement = self.rng.choice(forms)
        begin = self.rng.choice(("START TRANSACTION", "BEGIN", "SET autocommit=0"))
        look = ["SELECT * FROM t ORDER BY id", "SELECT * FROM s ORDER BY k"]
        if self._chance(0.2):
            look.append(self.rng.choice(("SELECT ROW_COUNT()", "SELECT LAST_INSERT_ID()")))
            look.reverse()
            look = [look[0], *look[:0:-1]] if look[0].startswith("SELECT ROW") else look
            return [begin, statement, look[0], "ROLLBACK", "SET autocommit=1"]
        return [begin, statement, *look, "ROLLBACK", "SET autocommit=1"]

    def mistakes(self) -> list[str]:
        """A query with a mistake in its syntax, whose error quotes the text from there."""
        maker = self.rng.choice((self.clauses, self.groups, self.joins, self.subqueries))
        words = maker()[0].split(" ")
        at = self.rng.randrange(1, len(words))
        wrong = self.rng.choice(("FROM", "WHERE", ")", "= =", "ORDER", "SELECT", ",", "1 2", "BY"))
        return [" ".join([*words[:at], wrong, *words[at:]])]

    def settings(self) -> list[str]:
        """Transactions, savepoints and settings."""
        look = "SELECT k, i, v FROM s ORDER BY k"
        change = self.rng.choice(
            ("UPDATE s SET i = 99", "DELETE FROM s WHERE k > 2", "INSERT INTO s (k) VALUES (77)")
        )
        other = self.rng.choice(("DELETE FROM s", "UPDATE s SET v = 'z'"))
        forms = (
            ["SET autocommit=0", change, look, "ROLLBACK", look, "SET autocommit=1"],
            ["BEGIN", change, "SAVEPOINT a", other, "ROLLBACK TO a", look, "ROLLBACK", look],
            ["START TRANSACTION READ ONLY", change, look, "COMMIT", look],
            [
                "SET SESSION TRANSACTION READ ONLY",
                change,
                "SET SESSION TRANSACTION READ WRITE",
                look,
            ],
            ["SET autocommit=0", "SELECT @@autocommit", "SET autocommit=1", "SELECT @@autocommit"],
            ["BEGIN", change, "SET autocommit=1", look, "ROLLBACK"],
            ["SET @x = " + self.of_t.literal(), "SELECT @x", "SELECT @x + 1, CONCAT(@x, 'a')"],
            ["BEGIN", change, "RELEASE SAVEPOINT b", look, "ROLLBACK"],
            ["START TRANSACTION WITH CONSISTENT SNAPSHOT", change, "ROLLBACK WORK", look],
        )
        return [*self.rng.choice(forms), "ROLLBACK", "SET autocommit=1"]

    def tables(self) -> list[str]:
        """CREATE, ALTER and AUTO_INCREMENT."""
        this = self.of_t.value(1)
        word = self.rng.choice(("2", "'Y'", "0", "9", "'2'"))
        forms = (
            [f"CREATE TABLE z AS SELECT id, {this} AS a FROM t", "SELECT * FROM z ORDER BY id"],
            [
                "CREATE TABLE z (id int AUTO_INCREMENT PRIMARY KEY, a int)",
                f"INSERT INTO z VALUES ({self.rng.choice(('5', '0', 'NULL', '-3'))}, 1)",
                "INSERT INTO z (a) VALUES (2)",
                self.rng.choice(
                    (
                        "ALTER TABLE z AUTO_INCREMENT = 50",
                        "DELETE FROM z",
                        "TRUNCATE TABLE z",
                        "UPDATE z SET id = 90 WHERE a = 2",
                    )
                ),
                "INSERT INTO z (a) VALUES (3), (4)",
                "SELECT * FROM z ORDER BY id",
            ],
            [
                "CREATE TABLE z LIKE s",
                "INSERT INTO z SELECT * FROM s",
                "SELECT * FROM z ORDER BY k",
            ],
            [
                "CREATE TABLE z (a enum('x','y','z'), b int)",
                f"INSERT INTO z VALUES ({word}, 1)",
                "SELECT a, a + 0, b FROM z",
            ],
            [
                f"CREATE VIEW w AS SELECT id, {this} AS a FROM t",
                "SELECT * FROM w ORDER BY id",
                "DROP VIEW w",
            ],
        )
        return [*self.rng.choice(forms), "DROP TABLE IF EXISTS z"]
