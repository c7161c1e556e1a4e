"""One episode on a server: it reads the pristine data until it first writes, then its own copy."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from intercode.core.errors import DatabaseLostError
from intercode.core.types import ExecResult
from intercode.sql.base import SqlLimits, answered, failed, timed_out
from intercode.sql.deadline import aborted
from intercode.sql.server import session_settings
from intercode.sql.server.change_tracker import Footprint
from intercode.sql.server.connection import Link, Rows, StatementError, TimeOverError
from intercode.sql.server.database_names import Names
from intercode.sql.server.database_server import Slot
from intercode.sql.server.error_messages import reworded
from intercode.sql.server.pristine import Pristine
from intercode.sql.server.snapshot import Kept
from intercode.sql.server.statement_analysis import Reading, read
from intercode.sql.server.statement_rewrites import in_memory, unsorted

_LOST = "[the connection was ended: settings, variables and temporary tables are lost]\n"
_RECURSION = 1931
"""MariaDB's warning where it stops a recursion; MySQL's is an error."""
_ABORTED = (
    "Recursive query aborted after 1001 iterations. Try increasing @@cte_max_recursion_depth to a "
    "larger value."
)
_FULL = "The episode's data are larger than {} bytes: delete or drop something first"
_SHRINKS = {"DELETE", "DROP", "TRUNCATE", "ROLLBACK", "COMMIT", "SET", "OPTIMIZE"}


@dataclass
class _Own:
    """A private database, and the connection to it while there is one."""

    slot: Slot
    names: Names
    footprint: Footprint
    link: Link | None = None


class MysqlSession:
    """See ``SqlSession``."""

    def __init__(self, pristine: Pristine, limits: SqlLimits) -> None:
        self._pristine, self._server, self._limits = pristine, pristine.server, limits
        self._own: _Own | None = None
        self._default: str | None = pristine.shown
        self._settings: set[str] = set()
        self._temporary: set[str] = set()
        self._full = False
        self._last_read = ""
        self._closed = self._aborted = False
        self._guard = threading.Lock()
        self._running: Link | None = None
        self._server.hold()

    @property
    def database(self) -> str:
        return self._default or ""

    # -------------------------------------------------------------------- run
    def run(self, code: str, timeout: float) -> ExecResult:
        reading = read(code, any(not name.startswith("@") for name in self._settings))
        if reading.kind == "refused":
            return failed(reading.argument)
        if reading.kind == "nothing":
            return answered(None, self._limits)
        try:
            result = self._ask(code, reading, timeout)
        except DatabaseLostError:
            if not self._aborted:
                self._server.suspect()
            raise
        if self._aborted:
            raise aborted()
        return result

    def abort(self) -> None:
        with self._guard:
            self._aborted = True
            if self._running is not None:
                self._server.watchdog.hurry(self._running)

    def _ask(self, code: str, reading: Reading, timeout: float) -> ExecResult:
        """Run a statement on the server."""
        if reading.kind == "use":
            return self._use(reading.argument, timeout)
        if self._own is None and reading.kind in ("plain", "nonsense"):
            result = self._read(code, reading, timeout)
        else:
            result = self._write(code, reading, timeout)
        if reading.grouped and result.ok and "sql_mode" not in self._settings:
            rule = self._own.footprint.grouping() if self._own else self._pristine.grouping
            fault = rule.fault(code)
            return failed(fault) if fault else result
        return result

    def _read(self, code: str, reading: Reading, timeout: float) -> ExecResult:
        """Run what only reads on a connection that others have used and will use."""
        database = self._pristine.real
        link = self._server.reader(database, timeout)
        names = self._pristine.names
        code = _served(code, reading, names, link)
        try:
            result = self._timed(link, code, names, timeout, reading.recursive)
        except BaseException:
            link.close()
            raise
        self._last_read = code
        if link.killed or (reading.kind == "nonsense" and result.ok):
            link.close()
        else:
            self._server.give_back(link, database, timeout)
        return result

    def _write(self, code: str, reading: Reading, timeout: float) -> ExecResult:
        if self._full and reading.kind == "own" and reading.first not in _SHRINKS:
            return failed(_FULL.format(self._limits.storage))
        own = self._own or self._move()
        link = own.link or self._connect(own, timeout)
        self._settings |= reading.assigned
        self._temporary |= reading.temporary
        own.footprint.touch(reading)
        code = _served(code, reading, own.names, link)
        result = self._timed(link, code, own.names, timeout, reading.recursive)
        if link.killed:
            self._forget(own)
            return replace(result, note=result.note + _LOST)
        if reading.writes:
            self._full = self._server.size(own.slot.name) > self._limits.storage
        return result

    def _timed(
        self, link: Link, code: str, names: Names, timeout: float, recursive: bool = False
    ) -> ExecResult:
        watchdog, began = self._server.watchdog, time.monotonic()
        with self._guard:
            if self._aborted:
                raise aborted()
            self._running = link
            watchdog.watch(link, timeout)
        try:
            link.allow(timeout)
            rows, more = link.query(code, self._limits, self._interrupter(link))
            stopped = recursive and link.warned(_RECURSION)
        except TimeOverError:
            return timed_out()
        except StatementError as e:
            return failed(names.outward(reworded(e, names)))
        finally:
            with self._guard:
                self._running = None
                watchdog.leave(link)
        if not more and time.monotonic() - began >= timeout:
            return timed_out()  # what was interrupted inside a function gives a result
        if stopped:
            return failed(_ABORTED)
        result = answered(rows, self._limits, more)
        if rows and names.hides(result.output):
            result = answered(_outward(rows, names), self._limits, more)
        return result

    def _interrupter(self, link: Link) -> Callable[[], None]:
        return lambda: self._server.interrupt(link.id)

    def _use(self, name: str, timeout: float) -> ExecResult:
        """Change the default database, where there is another one that may be used."""
        shown = self._pristine.shown.lower()
        if name.lower() not in (shown, "information_schema"):
            return failed(f"Unknown database '{name}'")
        if self._own is None and name.lower() == shown:
            return answered(None, self._limits)
        own = self._own or self._move()
        link = own.link or self._connect(own, timeout)
        real = own.slot.name if name.lower() == shown else name.lower()
        result = self._timed(link, f"USE `{real}`", own.names, timeout)
        if result.ok:
            self._default = self._pristine.shown if real == own.slot.name else real
        return result

    # --------------------------------------------------------------- own copy
    def _move(self) -> _Own:
        """From now on the episode has data of its own."""
        self._own = self._take(self._pristine.copy)
        return self._own

    def _take(self, copy: Callable[[Slot], None]) -> _Own:
        slot = self._server.take_slot()
        try:
            copy(slot)
        except BaseException:
            with suppress(Exception):  # what failed is told, not this
                self._server.return_slot(slot)
            raise
        names = Names(self._pristine.shown, slot.name, self._server.token)
        return _Own(slot, names, Footprint(self._pristine, slot.name))

    def _connect(self, own: _Own, seconds: float) -> Link:
        there = own.slot.name if self._default == self._pristine.shown else self._default or ""
        own.link = Link(self._server.address, own.slot.account, own.slot.password, there, seconds)
        if self._last_read:  # so that FOUND_ROWS() and SHOW WARNINGS tell of it
            with suppress(StatementError, TimeOverError):
                own.link.query(self._last_read, self._limits, self._interrupter(own.link))
        return own.link

    def _forget(self, own: _Own) -> None:
        """After the connection was killed: another one will be opened, which knows nothing."""
        if own.link is not None:
            own.link.close()
        own.link = None
        self._settings, self._temporary, self._last_read = set(), set(), ""
        self._default = self._pristine.shown

    # ------------------------------------------------------------------ state
    def snapshot(self) -> Kept:
        name = ""
        known: session_settings.Settings = ()
        if self._own is not None:
            name, known = self._server.name_for_keeping(), self._known()
            self._server.copy(self._own.slot.name, name)
        return Kept(
            self._pristine, self._limits, name, self._default, known, self._settings,
            [f"temporary table {table}" for table in self._temporary],
        )  # fmt: skip

    def _known(self) -> session_settings.Settings:
        """Settings and variables of our connection."""
        if self._own is None or self._own.link is None or not self._settings:
            return ()
        return session_settings.taken(self._own.link, self._pristine.settings(), self._settings)

    def resume(self, kept: Kept) -> None:
        """Become what was kept, right after this session was made."""
        self._default, self._settings = kept.default, set(kept.named)
        if not kept.name:
            return
        own = self._own = self._take(lambda slot: self._server.copy(kept.name, slot.name, slot))
        link = self._connect(own, 0.0)
        session_settings.give(link, kept.settings)

    def changes(self) -> list[str]:
        if self._own is None:
            return []
        changed = self._own.footprint.changed()
        said = [f"{thing}: {how}" for thing, how in changed.items()]
        return sorted([*said, *(f"setting {name}" for name in self._settings)])

    def told(self) -> str:
        own = self._own
        data = own.footprint.told(own.footprint.changed()) if own else []
        return json.dumps([self._default, data, self._known()])

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        own, self._own = self._own, None
        try:
            if own is not None:
                if own.link is not None:
                    own.link.close()
                with suppress(DatabaseLostError):  # then it is gone with its server
                    self._server.return_slot(own.slot)
        finally:
            self._server.let_go()


def _served(code: str, reading: Reading, names: Names, link: Link) -> str:
    """A statement as this server has to be asked, to answer as MySQL 8 does."""
    code = names.inward(code, reading.tokens)
    if reading.grouped:
        code = unsorted(code)
    boxed = reading.kind == "plain" and link.is_mariadb
    return in_memory(code, reading.tokens) if boxed else code


def _outward(rows: Rows, names: Names) -> Rows:
    return [tuple(names.outward(v) if isinstance(v, str) else v for v in row) for row in rows]
