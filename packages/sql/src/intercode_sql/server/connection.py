"""A connection to a server, with time limits and fast reading of results.

MySQL Connector/Python makes two system calls per packet and converts value by value. This module
reads the socket in large pieces and converts rows column by column, with the same results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from intercode_sql.base import SqlLimits
from intercode_sql.errors import EngineUnavailableError, ServerLostError, SqlUsageError
from intercode_sql.types import ResultColumn, StatementInfo, TypeCode

LOST_CONNECTION_ERRORS = (1053, 1927, 2002, 2003, 2006, 2013, 2055, 3024)
_CONNECT_SECONDS = 10
_FIRST_ROWS, _FETCH_ROWS, _FETCH_BYTES = 8, 500, 32 << 20
"""How many rows are read at first, and how many and how long ones at most before the limits are
compared: one row may have the length of a packet."""

RowList = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Address:
    """The address of a server and the account to use."""

    unix_socket: str = ""
    host: str = "127.0.0.1"
    port: int = 3306
    user: str = "root"
    password: str = ""

    @classmethod
    def parse(cls, dsn: str) -> Address:
        """Parse ``mysql://user:password@host:port`` or ``mysql://user@/?unix_socket=/path``.

        Raises SqlUsageError for any other text.
        """
        parts = urlsplit(dsn)
        options = dict(parse_qsl(parts.query))
        path = options.pop("unix_socket", "")
        if parts.scheme not in ("mysql", "mariadb") or options or not (path or parts.hostname):
            form = "mysql://user:password@host:port or mysql://user@/?unix_socket=/path"
            raise SqlUsageError(f"{dsn!r} is not the address of a MySQL server: write {form}")
        user, password = unquote(parts.username or "root"), unquote(parts.password or "")
        return cls(path, parts.hostname or "", parts.port or 3306, user, password)


class ServerStatementError(Exception):
    """The server rejected a statement or failed to run it."""

    def __init__(self, number: int, message: str, sqlstate: str = "") -> None:
        super().__init__(message)
        self.number, self.message, self.sqlstate = number, message, sqlstate or "HY000"


class StatementTimeoutError(Exception):
    """A statement exceeded its time limit. ``connection_lost`` says whether its connection ended
    too."""

    def __init__(self, link_lost: bool) -> None:
        super().__init__("time over")
        self.connection_lost = link_lost


def load_connector() -> Any:
    """Import the client library. Raises EngineUnavailableError if it is not installed."""
    try:
        import mysql.connector as library
    except ImportError as e:
        raise EngineUnavailableError(
            "the engine mysql needs MySQL Connector/Python: pip install 'intercode-sql[mysql]'"
        ) from e
    return library


class ServerConnection:
    """One connection to a server. ``info`` is what the last statement has reported.

    ``user`` and ``password`` replace those of the address. ``seconds`` is the server's own time
    limit for a statement (0: none).
    """

    def __init__(
        self,
        address: Address,
        user: str = "",
        password: str = "",
        database: str = "",
        seconds: float = 0.0,
    ) -> None:
        library = load_connector()
        self._error = library.Error
        self.killed = False
        self.info = StatementInfo()
        self._time_limit = seconds
        where: dict[str, Any] = {"host": address.host, "port": address.port}
        if address.unix_socket:
            where = {"unix_socket": address.unix_socket}
        try:
            self._connection = library.connect(
                **where,
                user=user or address.user,
                password=password if user else address.password,
                database=database or None,
                use_pure=True,
                charset="utf8mb4",
                collation="utf8mb4_general_ci",
                autocommit=True,
                connection_timeout=_CONNECT_SECONDS,
                ssl_disabled=True,
                allow_local_infile=False,
                client_flags=[-library.ClientFlag.MULTI_STATEMENTS],
            )
            buffer_socket_reads(self._connection, lambda: library.InterfaceError(errno=2013))
            self.id: int = self._connection.connection_id
            if seconds:
                self.query(self._limit_statement(seconds))
        except self._error as e:
            raise ServerLostError(f"no connection to the database server: {e}") from e

    @property
    def version(self) -> str:
        """The server's version string."""
        return str(self._connection.server_info)

    @property
    def is_mariadb(self) -> bool:
        """Whether the server is MariaDB."""
        return "MariaDB" in self.version

    def set_time_limit(self, seconds: float) -> None:
        """Set the server's own time limit for later statements."""
        if seconds != self._time_limit:
            self.query(self._limit_statement(seconds))
            self._time_limit = seconds

    def _limit_statement(self, seconds: float) -> str:
        """Return the statement that sets a session's limits.

        MariaDB's temporary tables are on disk: in memory, MariaDB orders ties by address, so
        results would differ between runs.
        """
        if self.is_mariadb:
            return f"SET SESSION max_statement_time={seconds:.3f}, tmp_memory_table_size=0"
        return f"SET SESSION max_execution_time={max(1, round(seconds * 1000))}"

    def query(
        self,
        code: str | bytes,
        limits: SqlLimits | None = None,
        kill: Callable[[], None] | None = None,
    ) -> tuple[RowList | None, bool]:
        """Run a statement. Return its rows, or None for a statement without a result, and whether
        there are more.

        ``limits`` bound what is fetched; ``kill`` then stops the statement. Raises
        ServerStatementError, StatementTimeoutError or ServerLostError.
        """
        try:
            if limits is None:
                result = self._connection.cmd_query(code)
                return self._connection.get_rows()[0] if "columns" in result else None, False
            first: tuple[RowList | None, bool] | None = None
            # a procedure can have several results
            for result in self._connection.cmd_query_iter(code):
                found = (
                    self._fetch(result["columns"], limits, kill)
                    if "columns" in result
                    else (None, False)
                )
                if first is None or (first[0] is None and found[0] is not None):
                    first, self.info = found, _statement_info(result)
            return first or (None, False)
        except Exception as e:  # a broken stream, or values that are not in our encoding
            raise self._translate_error(e) from e

    def has_warning(self, number: int) -> bool:
        """Return whether the last statement gave this warning."""
        rows, _ = self.query("SHOW WARNINGS")
        return any(row[1] == number for row in rows or ())

    def _fetch(
        self, columns: Sequence[Any], limits: SqlLimits, kill: Callable[[], None] | None
    ) -> tuple[RowList, bool]:
        rows: RowList = []
        size, end = 0, None
        while end is None:
            block, length, end = self._fetch_block()
            size += length
            rows += decode_rows(block, columns, self._connection.converter)
            if end is None and (len(rows) > limits.rows or size + 8 * len(rows) > limits.size * 2):
                if kill is not None:
                    kill()
                self._drain()
                return rows, True
        return rows, False

    def _fetch_block(self) -> tuple[RowList, int, Any]:
        """Read rows up to a number and a size. Return them as they were sent, their size in bytes,
        and the end of the result if it was reached."""
        block: RowList = []
        size, end, count = 0, None, _FIRST_ROWS
        while end is None and len(block) < _FETCH_ROWS and size < _FETCH_BYTES:
            chunk, end = self._connection.get_rows(count=count, raw=True)
            size += sum(len(v) for row in chunk for v in row if v is not None)
            block += chunk
            fitting = (_FETCH_BYTES - size) * len(block) // max(size, 1)
            count = max(1, min(_FETCH_ROWS - len(block), fitting))
        return block, size, end

    def _drain(self) -> None:
        """Read the rest of the result of a stopped statement."""
        try:
            while self._connection.get_rows(count=_FIRST_ROWS, raw=True)[1] is None:
                pass
        except self._error as e:
            if getattr(e, "errno", 0) in LOST_CONNECTION_ERRORS:
                raise

    def _translate_error(self, error: BaseException) -> Exception:
        number = int(error.errno or -1) if isinstance(error, self._error) else -1
        message = str(getattr(error, "msg", None) or error)
        if self.killed:
            return StatementTimeoutError(link_lost=True)
        if number in (1969, 3024):
            return StatementTimeoutError(link_lost=False)
        if number in LOST_CONNECTION_ERRORS or number < 0:
            return ServerLostError(f"the connection to the database server was lost: {error}")
        return ServerStatementError(number, message, str(getattr(error, "sqlstate", None) or ""))

    def close(self) -> None:
        """Close the connection."""
        try:
            self._connection.close()
        except (self._error, OSError):
            pass


def _statement_info(result: dict[str, Any]) -> StatementInfo:
    """Return what the first packet of an answer says."""
    if "columns" not in result:
        return StatementInfo((), result.get("affected_rows", -1), result.get("insert_id") or None)
    columns = []
    for name, kind, *_, nullable, _, charset in result["columns"]:
        code = _TYPE_CODES.get(kind, TypeCode.TEXT)
        if code is TypeCode.BLOB and charset != _BINARY_CHARSET:
            code = TypeCode.TEXT
        columns.append(ResultColumn(str(name), code, nullable=bool(nullable)))
    return StatementInfo(tuple(columns))


# ---------------------------------------------------------------- reading packets
_READ_SIZE = 1 << 16  # bytes
_HEADER_SIZE = 4  # bytes before a packet: three of its length, one of its number
_INTEGER_TYPES = frozenset({1, 2, 3, 8, 9, 13})  # TINY SHORT LONG LONGLONG INT24 YEAR
_FLOAT_TYPES = frozenset({4, 5})  # FLOAT DOUBLE
_DECIMAL_TYPES = frozenset({0, 246})
_TEXT_TYPES = frozenset(
    {15, 249, 250, 251, 252, 253, 254}
)  # VARCHAR, the BLOBs, VAR_STRING, STRING
_TYPE_CODES = {
    **dict.fromkeys(_INTEGER_TYPES, TypeCode.BIGINT),
    **dict.fromkeys(_TEXT_TYPES, TypeCode.BLOB),
    **dict.fromkeys(_DECIMAL_TYPES, TypeCode.DECIMAL),
    **{code.value: code for code in TypeCode},
    7: TypeCode.DATETIME,
    253: TypeCode.BLOB,
}
"""The types of results by their numbers in packets. A text is one with a character set."""
_BINARY_CHARSET = 63  # the character set of binary values


class _PacketReader:
    """Reads one packet after another, as the client's own method does."""

    def __init__(self, sock: Any, lost: Callable[[], Exception]) -> None:
        self._sock, self._lost_error = sock, lost
        self._data = b""
        self._offset = 0

    def __call__(self, read_timeout: int | None = None) -> bytearray:  # noqa: ARG002
        if len(self._data) - self._offset < _HEADER_SIZE:
            self._fill(_HEADER_SIZE)
        start = self._offset
        length = _HEADER_SIZE + int.from_bytes(self._data[start : start + 3], "little")
        if len(self._data) - start < length:
            self._fill(length)
        start, self._offset = self._offset, self._offset + length
        return bytearray(self._data[start : self._offset])

    def _fill(self, length: int) -> None:
        """Read until ``length`` bytes are buffered."""
        pieces = [self._data[self._offset :]]
        missing = length - len(pieces[0])
        while missing > 0:
            piece = self._sock.recv(_READ_SIZE)
            if not piece:
                raise self._lost_error()
            pieces.append(piece)
            missing -= len(piece)
        self._data, self._offset = b"".join(pieces), 0


def buffer_socket_reads(connection: Any, lost: Callable[[], Exception]) -> None:
    """Make a connection read its socket in large pieces, if the client allows it.

    ``lost`` returns the client's error for a closed socket.
    """
    holder: Any = getattr(connection, "_socket", None)
    if getattr(holder, "sock", None) is not None and hasattr(holder, "recv"):
        holder.sock.settimeout(None)  # the timeout was for connecting
        holder.recv = _PacketReader(holder.sock, lost)


def decode_value(value: object) -> str:
    """Return a value of a row of bytes as text."""
    return bytes(value).decode() if isinstance(value, (bytes, bytearray)) else str(value)


def decode_rows(
    rows: Sequence[tuple[Any, ...]], columns: Sequence[Any], converter: Any
) -> list[tuple[Any, ...]]:
    """Convert rows of bytes to the values that the client would return, and SETs to their text."""
    if not rows:
        return []
    found = []
    for column, values in zip(columns, zip(*rows, strict=True), strict=True):
        convert = _column_converter(column, converter)
        found.append([None if v is None else convert(v) for v in values])
    return list(zip(*found, strict=True))


def _column_converter(column: Any, converter: Any) -> Callable[[Any], Any]:
    """Return the converter of a column's values. ``column`` is the client's description of it."""
    kind, charset = column[1], column[8]
    if kind in _INTEGER_TYPES:
        return int
    if kind in _FLOAT_TYPES:
        return float
    if kind in _DECIMAL_TYPES:
        return _to_decimal
    if kind in _TEXT_TYPES and charset != _BINARY_CHARSET:
        return _to_text
    return partial(converter.to_python, column)


def _to_decimal(value: bytes) -> Decimal:
    return Decimal(value.decode("ascii"))


def _to_text(value: bytes) -> str | bytes:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value
