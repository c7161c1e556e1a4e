"""MySQL's errors: numbers, SQL states and messages (MySQL 8.0 manual, Server Error Messages)."""

from __future__ import annotations

from intercode_sql.dialect.keywords import SYNTAX_COUNTS

ERROR_MESSAGES: dict[int, tuple[str, str]] = {
    1007: ("HY000", "Can't create database '{}'; database exists"),
    1008: ("HY000", "Can't drop database '{}'; database doesn't exist"),
    1044: ("42000", "Access denied for user to database '{}'"),
    1046: ("3D000", "No database selected"),
    1048: ("23000", "Column '{}' cannot be null"),
    1049: ("42000", "Unknown database '{}'"),
    1050: ("42S01", "Table '{}' already exists"),
    1051: ("42S02", "Unknown table '{}'"),
    1052: ("23000", "Column '{}' in {} is ambiguous"),
    1054: ("42S22", "Unknown column '{}' in '{}'"),
    1055: (
        "42000",
        "Expression #{} of {} is not in GROUP BY clause and contains nonaggregated column '{}' "
        "which is not functionally dependent on columns in GROUP BY clause; this is incompatible "
        "with sql_mode=only_full_group_by",
    ),
    1056: ("42000", "Can't group on '{}'"),
    1060: ("42S21", "Duplicate column name '{}'"),
    1061: ("42000", "Duplicate key name '{}'"),
    1062: ("23000", "Duplicate entry '{}' for key '{}'"),
    1064: (
        "42000",
        "You have an error in your SQL syntax; check the manual that corresponds to your MySQL "
        "server version for the right syntax to use near '{}' at line {}",
    ),
    1065: ("42000", "Query was empty"),
    1066: ("42000", "Not unique table/alias: '{}'"),
    1068: ("42000", "Multiple primary key defined"),
    1072: ("42000", "Key column '{}' doesn't exist in table"),
    1075: (
        "42000",
        "Incorrect table definition; there can be only one auto column and it must be defined "
        "as a key",
    ),
    1090: ("42000", "You can't delete all columns with ALTER TABLE; use DROP TABLE instead"),
    1091: ("42000", "Can't DROP '{}'; check that column/key exists"),
    1093: ("HY000", "You can't specify target table '{}' for update in FROM clause"),
    1096: ("HY000", "No tables used"),
    1109: ("42S02", "Unknown table '{}' in {}"),
    1110: ("42000", "Column '{}' specified twice"),
    1111: ("HY000", "Invalid use of group function"),
    1114: ("HY000", "The table '{}' is full"),
    1136: ("21S01", "Column count doesn't match value count at row {}"),
    1140: (
        "42000",
        "In aggregated query without GROUP BY, expression #{} of {} contains nonaggregated column "
        "'{}'; this is incompatible with sql_mode=only_full_group_by",
    ),
    1142: ("42000", "{} command denied to user for table '{}'"),
    1146: ("42S02", "Table '{}' doesn't exist"),
    1172: ("42000", "Result consisted of more than one row"),
    1176: ("42000", "Key '{}' doesn't exist in table '{}'"),
    1193: ("HY000", "Unknown system variable '{}'"),
    1210: ("HY000", "Incorrect arguments to {}"),
    1221: ("HY000", "Incorrect usage of {} and {}"),
    1222: ("21000", "The used SELECT statements have a different number of columns"),
    1227: (
        "42000",
        "Access denied; you need (at least one of) the {} privilege(s) for this operation",
    ),
    1231: ("42000", "Variable '{}' can't be set to the value of '{}'"),
    1235: ("42000", "This version of MySQL doesn't yet support '{}'"),
    1238: ("HY000", "Variable '{}' is a {} variable"),
    1241: ("21000", "Operand should contain {} column(s)"),
    1242: ("21000", "Subquery returns more than 1 row"),
    1247: ("42S22", "Reference '{}' not supported ({})"),
    1248: ("42000", "Every derived table must have its own alias"),
    1253: ("42000", "COLLATION '{}' is not valid for CHARACTER SET '{}'"),
    1264: ("22003", "Out of range value for column '{}' at row {}"),
    1265: ("01000", "Data truncated for column '{}' at row {}"),
    1273: ("HY000", "Unknown collation: '{}'"),
    1288: ("HY000", "The target table {} of the {} is not updatable"),
    1292: ("22007", "Incorrect {} value: '{}' for column '{}' at row {}"),
    1300: ("HY000", "Invalid {} character string: '{}'"),
    1305: ("42000", "FUNCTION {} does not exist"),
    1327: ("42000", "Undeclared variable: {}"),
    1347: ("HY000", "'{}' is not {}"),
    1353: (
        "HY000",
        "In definition of view, derived table or common table expression, SELECT list and column "
        "names list have different column counts",
    ),
    1364: ("HY000", "Field '{}' doesn't have a default value"),
    1365: ("22012", "Division by 0"),
    1366: ("HY000", "Incorrect {} value: '{}' for column '{}' at row {}"),
    1367: ("22007", "Illegal {} '{}' value found during parsing"),
    1406: ("22001", "Data too long for column '{}' at row {}"),
    1411: ("HY000", "Incorrect {} value: '{}' for function {}"),
    1426: ("42000", "Too-big precision {} specified for '{}'. Maximum is 6."),
    1441: ("22008", "Datetime function: {} field overflow"),
    1451: (
        "23000",
        "Cannot delete or update a parent row: a foreign key constraint fails ({})",
    ),
    1452: ("23000", "Cannot add or update a child row: a foreign key constraint fails ({})"),
    1471: ("HY000", "The target table {} of the {} is not insertable-into"),
    1525: ("HY000", "Incorrect {} value: '{}'"),
    1582: ("42000", "Incorrect parameter count in the call to native function '{}'"),
    1630: (
        "42000",
        "FUNCTION {} does not exist. Check the 'Function Name Parsing and Resolution' section in "
        "the Reference Manual",
    ),
    1690: ("22003", "{} value is out of range in '{}'"),
    1568: (
        "25001",
        "Transaction characteristics can't be changed while a transaction is in progress",
    ),
    1701: ("42000", "Cannot truncate a table referenced in a foreign key constraint ({})"),
    1792: ("25006", "Cannot execute statement in a READ ONLY transaction."),
    3020: ("2201E", "Invalid argument for logarithm"),
    3029: (
        "HY000",
        "Expression #{} of ORDER BY contains aggregate function and applies to the result of a "
        "non-aggregated query",
    ),
    3065: (
        "HY000",
        "Expression #{} of ORDER BY clause is not in SELECT list, references column '{}' which is "
        "not in SELECT list; this is incompatible with DISTINCT",
    ),
    3579: ("HY000", "Window name '{}' is not defined."),
    3580: ("HY000", "There is a circularity in the window dependency graph."),
    3581: ("HY000", "A window which depends on another cannot define partitioning."),
    3582: (
        "HY000",
        "Window '{}' has a frame definition, so cannot be referenced by another window.",
    ),
    3583: ("HY000", "Window '{}' cannot inherit '{}' since both contain an ORDER BY clause."),
    3593: ("HY000", "You cannot use the window function '{}' in this context.'"),
    3105: (
        "HY000",
        "The value specified for generated column '{}' in table '{}' is not allowed.",
    ),
    3064: ("HY000", "Incorrect type for argument {} in function {}."),
    3141: ("22032", 'Invalid JSON text in argument {} to function {}: "{}" at position {}.'),
    3143: (
        "42000",
        "Invalid JSON path expression. The error is around character position {}.",
    ),
    3149: (
        "42000",
        "In this situation, path expressions may not contain the * and ** tokens or an array "
        "range.",
    ),
    3153: ("42000", "The path expression '$' is not allowed in this context."),
    3154: (
        "42000",
        "The oneOrAll argument to {} may take these values: 'one' or 'all'.",
    ),
    3165: ("42000", "A path expression is not a path to a cell in an array."),
    3146: (
        "22032",
        "Invalid data type for JSON data in argument {} to function {}; a JSON string or JSON type "
        "is required.",
    ),
    3158: ("22032", "JSON documents may not contain NULL member names."),
    3140: ("22032", "Invalid JSON text: \"{}\" at position {} in value for column '{}'."),
    3636: (
        "HY000",
        "Recursive query aborted after {} iterations. Try increasing @@cte_max_recursion_depth to "
        "a larger value.",
    ),
    3685: ("HY000", "Illegal argument to a regular expression."),
    3697: (
        "HY000",
        "The regular expression contains an [x-y] character range where x comes after y.",
    ),
    3686: ("HY000", "Index out of bounds in regular expression search."),
    3773: ("HY000", "DEFAULT function cannot be used with default value expressions"),
    3887: ("HY000", "A capture group has an invalid name."),
    3818: ("HY000", "Check constraint '{}' cannot refer to an auto-increment column."),
    3819: ("HY000", "Check constraint '{}' is violated."),
    3953: ("HY000", "Multiple INTO clauses in one query block."),
    3954: (
        "HY000",
        "Misplaced INTO clause, INTO is not allowed inside subqueries, and must be placed at end "
        "of UNION clauses.",
    ),
    3730: (
        "HY000",
        "Cannot drop table '{}' referenced by a foreign key constraint '{}' on table '{}'.",
    ),
}


class StatementError(Exception):
    """The failure of a statement. ``number`` is MySQL's, or 0 if the engine lacks a feature.
    ``position`` is that of a syntax error in the text."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number = number
        self.message = message
        self.position: int | None = None

    @property
    def sqlstate(self) -> str:
        """The class of the error in standard SQL; 0A000 is a feature that the engine lacks."""
        return ERROR_MESSAGES[self.number][0] if self.number in ERROR_MESSAGES else "0A000"


def mysql_error(number: int, *values: object) -> StatementError:
    """Return MySQL's error of that number. ``values`` fill the placeholders of its message in
    order."""
    return StatementError(number, ERROR_MESSAGES[number][1].format(*values))


def argument_count_error(name: str) -> StatementError:
    """Return the error of a call with a wrong number of arguments."""
    return mysql_error(1064, "", 1) if name in SYNTAX_COUNTS else mysql_error(1582, name)


def truncated_error(kind: str, value: str) -> StatementError:
    """Return the error 1292 for a value inside an expression, of which only a part can be read."""
    return StatementError(1292, f"Truncated incorrect {kind} value: '{value}'")


def unsupported(what: str) -> StatementError:
    """Return the error for a feature that the embedded engine lacks."""
    return StatementError(
        0, f"The embedded engine cannot do this: {what} (a MySQL server could: engine='mysql')"
    )


def unexpected_error(error: Exception) -> StatementError:
    """Return the error for a statement at which this engine itself fails."""
    return unsupported(f"this statement ({type(error).__name__}: {str(error)[:200]})")


def access_denied(what: str, why: str) -> StatementError:
    """Return the error for a statement that no session may run, on any engine."""
    return StatementError(1227, f"Access denied: {what} is not allowed here ({why})")


def syntax_error(text: str, start: int) -> StatementError:
    """Return MySQL's syntax error at a position of the text. It quotes at most 80 characters, and
    no blanks before a word."""
    rest = text[start:]
    start += len(rest) - len(rest.lstrip())
    line = text.count("\n", 0, start) + 1
    error = mysql_error(1064, text[start : start + 80], line)
    error.position = start
    return error
