"""Sessions that run bounded statements in the owner's process and all others in a worker.

The owner's process has only pristine sessions. Once a statement has changed anything, the session
has a worker of its own until it is closed. After each such statement the worker returns the state,
so that a session whose worker is killed continues in another one with the state before that
statement; an open transaction is rolled back.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from intercode_sql.base import (
    SqlDeterminism,
    SqlDialect,
    SqlLimits,
    abort_error,
    differences,
    error_result,
    timeout_result,
)
from intercode_sql.errors import SessionStateError
from intercode_sql.types import DatabaseSpec, ExecResult
from intercode_sql.worker.ends_soon import UnboundedStatementError
from intercode_sql.worker.process import (
    START_SECONDS,
    EngineSource,
    Saved,
    Worker,
    WorkerLostError,
    variables,
    workers,
)

GRACE_SECONDS = 0.3
"""How long after its limit a worker is killed."""
CHECK_SECONDS = 30.0
"""Limit for comparing a session's data with the pristine data."""
Variables = tuple[tuple[str, str | None], ...]
PackedState = tuple[bytes | None, str]
"""What a worker has saved, or None for pristine data, and the name of the default database."""
_NOT_READ = "its data could not be read in time"
_RESOURCES_MESSAGE = "the statement needs too many resources"


class LocalSession:
    """A session in one process, which a subclass makes able to run statements: on pristine data,
    it runs none. What it shares with ``SqlSession`` is described there.

    ``values`` are results of functions such as LAST_INSERT_ID, which no state contains.
    ``cacheable`` is the key under which the result of the last statement can be cached, or None.
    """

    values: Mapping[str, Any] = {}
    cacheable: Any = None

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def database(self) -> str:
        return self._name

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return False

    @property
    def dirty(self) -> bool:
        """Whether the session differs from a pristine one."""
        return False

    def run(self, code: str, timeout: float) -> ExecResult:  # noqa: ARG002
        """Run one statement. Raises UnboundedStatementError for one that a worker must run."""
        raise UnboundedStatementError

    def take_change(self) -> bool:
        """Return whether the state changed since the last call, and no transaction is open."""
        return False

    def saved(self) -> Any:
        """Return the state, which ``LocalEngine.open`` reads. It can be pickled."""

    def cache_result(self, key: Any, result: ExecResult) -> None:
        """Cache a result of a worker."""

    def table_digests(self) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """Return digests of the pristine tables and of the current ones, by their names."""
        return {}, {}

    def changes(self) -> list[str]:
        """Return the tables that are new, gone or changed."""
        found = differences(*self.table_digests())
        return sorted(f"table {name}: {how}" for name, how in found.items())

    def state_text(self) -> str:
        """Return the state as text for a fingerprint."""
        before, after = self.table_digests()
        changed = {name: after.get(name, "gone") for name in differences(before, after)}
        return json.dumps({"database": self.database, "tables": changed}, sort_keys=True)

    def abort(self) -> None:
        """Stop the running statement from another thread, and end the session."""

    def close(self) -> None:
        """Release what the session holds."""


class LocalEngine:
    """An ``SqlEngine`` whose sessions are local. With ``bounded``, they raise
    UnboundedStatementError for statements that may take long.

    ``modules`` are those that a worker imports before. ``SHARES_WORKERS`` says that a worker goes
    on to other sessions after statements that changed nothing. The others are described in
    ``engines``.
    """

    kind: str
    dialect: SqlDialect
    SETTINGS: frozenset[str] = frozenset()
    PRELOADED = True
    SHARES_WORKERS = True
    modules: Collection[str] = ()

    def __init__(self, *, bounded: bool, determinism: SqlDeterminism | None = None) -> None:
        self.bounded, self.determinism = bounded, determinism

    @classmethod
    def start(cls, **settings: Any) -> GuardedEngine:
        """Open the engine."""
        return GuardedEngine(cls(bounded=True, **settings))

    @property
    def version(self) -> str:
        """Product and version."""
        raise NotImplementedError

    def metadata(self) -> Mapping[str, Any]:
        """Return what else results depend on."""
        return {}

    def open(
        self,
        database: DatabaseSpec,
        limits: SqlLimits = SqlLimits(),  # noqa: B008
        saved: Any = None,
    ) -> LocalSession:
        """Open a session, pristine or with a saved state. Raises SqlDataError and SqlUsageError as
        ``SqlEngine.open`` does."""
        raise NotImplementedError

    def close(self) -> None:
        """Release what the engine holds."""


class GuardedSession:
    """An ``SqlSession`` whose statements end in time whatever they do."""

    def __init__(
        self,
        engine: LocalEngine,
        variables: Variables,
        database: DatabaseSpec,
        limits: SqlLimits,
        saved: Saved | None = None,
        name: str | None = None,
    ) -> None:
        self._engine, self._variables = engine, variables
        self._spec, self._limits = database, limits
        self._local = engine.open(database, limits)
        self._saved, self._dirty = saved, saved is not None
        self._name = name or self._local.database
        self._worker: Worker | None = None
        self._lock = threading.Lock()
        self._aborted = self._closed = self._in_transaction = False

    @property
    def database(self) -> str:
        return self._name

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._in_transaction or self._local.in_transaction

    def run(self, code: str, timeout: float) -> ExecResult:
        """Run one statement, here if it is bounded."""
        if not self._dirty:
            try:
                return self._local.run(code, timeout)
            except UnboundedStatementError:
                pass
        try:
            answer = self._ask(timeout + GRACE_SECONDS, "run", code, timeout, self._local.values)
        except WorkerLostError as e:
            return timeout_result() if e.late else error_result(_RESOURCES_MESSAGE)
        result, dirty, self._in_transaction, self._name, values, key, saved = answer
        if key is not None:
            self._local.cache_result(key, result)
        self._local.values = values
        self._dirty = dirty or self._dirty
        self._saved = saved or self._saved
        if not self._dirty and self._engine.SHARES_WORKERS:
            self._release()
        return result  # type: ignore[no-any-return]

    def _ask(self, seconds: float, *request: Any) -> tuple[Any, ...]:
        """Ask the session's worker. Raises WorkerLostError; the next call gets another worker."""
        if self._closed:
            raise SessionStateError("the SQL session is closed: open another one")
        try:
            worker = self._opened_worker()
            return worker.ask(request, seconds)
        except WorkerLostError:
            self._drop_worker()
            if self._aborted:
                raise abort_error() from None
            raise
        except BaseException:  # also Ctrl-C: its answer is not read
            self._drop_worker()
            raise

    def _opened_worker(self) -> Worker:
        if self._worker is not None:
            return self._worker
        engine = self._engine
        opener = f"{type(engine).__module__}:{type(engine).__qualname__}"
        is_own = opener.startswith(f"{__name__.partition('.')[0]}.")
        path = () if is_own else tuple(sys.path)  # a worker may be older than these
        modules = tuple(engine.modules)
        source = EngineSource(opener, modules, self._variables, engine.determinism, path)
        tenant = None if self._dirty else (source, self._spec, self._limits)
        worker = workers().take(tenant)
        with self._lock:
            self._worker = worker
            if self._aborted:
                worker.kill()
        if tenant is None or worker.tenant != tenant:
            worker.tenant = None
            worker.ask(("open", source, self._spec, self._limits, self._saved), START_SECONDS)
            worker.tenant = tenant
        return worker

    def _release(self) -> None:
        """Give back the worker, or end it if no other session may have it."""
        with self._lock:
            worker, self._worker = self._worker, None
        if worker is not None and self._engine.SHARES_WORKERS and not self._aborted:
            workers().give_back(worker)
        elif worker is not None:
            worker.close()

    def _drop_worker(self) -> None:
        self._in_transaction = False
        with self._lock:
            worker, self._worker = self._worker, None
        if worker is not None:
            worker.kill()
            worker.close()

    # ------------------------------------------------------------ state
    def snapshot(self) -> GuardedSnapshot:
        """Copy the current state."""
        saved = self._saved
        if self._dirty:
            with suppress(WorkerLostError):
                (saved,) = self._ask(CHECK_SECONDS, "save")
        return GuardedSnapshot(
            self._engine, self._variables, self._spec, self._limits, saved, self._name
        )

    def changes(self) -> list[str]:
        """Return the tables and settings that the session has changed."""
        if not self._dirty:
            return self._local.changes()
        try:
            found: list[str] = self._ask(CHECK_SECONDS, "changes")[0]
        except WorkerLostError:
            return [f"database {self._name}: {_NOT_READ}"]
        return found

    def state_text(self) -> str:
        """Return the state as text for a fingerprint."""
        if not self._dirty:
            return self._local.state_text()
        try:
            return str(self._ask(CHECK_SECONDS, "state_text")[0])
        except WorkerLostError:
            return f"database {self._name}: {_NOT_READ}"

    def abort(self) -> None:
        """Stop the running statement and end the session."""
        self._local.abort()
        with self._lock:
            self._aborted = True
            if self._worker is not None:
                self._worker.kill()

    def close(self) -> None:
        """End the session and discard its changes."""
        self._closed = True
        self._local.close()
        if self._worker is not None:
            self._worker.tenant = None
            self._release()


class GuardedSnapshot:
    """A ``DatabaseSnapshot``: the state as a worker has saved it, or None for pristine data."""

    omitted_tables: tuple[str, ...] = ()

    def __init__(
        self,
        engine: LocalEngine,
        variables: Variables,
        database: DatabaseSpec,
        limits: SqlLimits,
        saved: Saved | None,
        name: str,
    ) -> None:
        self._arguments = engine, variables, database, limits
        self._saved, self._name = saved, name

    def open(self) -> GuardedSession:
        """Open a session with this state."""
        return GuardedSession(*self._arguments, self._saved, self._name)

    def open_last(self) -> GuardedSession:
        """Open a session with this state and close the snapshot."""
        session = self.open()
        self.close()
        return session

    def pack(self) -> PackedState:
        """Return the state, which ``GuardedEngine.unpack`` reads in any process."""
        return None if self._saved is None else self._saved.content(), self._name

    def close(self) -> None:
        """Delete the snapshot's data."""
        self._saved = None


class GuardedEngine:
    """An ``SqlEngine`` around a local engine with ``bounded``."""

    def __init__(self, local: LocalEngine) -> None:
        self._local, self._variables = local, variables()
        self.kind, self.dialect = local.kind, local.dialect
        self.metadata, self.close = local.metadata, local.close

    @property
    def version(self) -> str:
        return self._local.version

    def open(self, database: DatabaseSpec, limits: SqlLimits = SqlLimits()) -> GuardedSession:  # noqa: B008
        """Open a session on pristine data."""
        return GuardedSession(self._local, self._variables, _located(database), limits)

    def unpack(
        self, database: DatabaseSpec, limits: SqlLimits, packed: PackedState
    ) -> GuardedSnapshot:
        """Return the snapshot that was packed. It contains code: use those of a source that you
        trust."""
        content, name = packed
        saved = None if content is None else Saved(content)
        return GuardedSnapshot(
            self._local, self._variables, _located(database), limits, saved, name
        )


def _located(database: DatabaseSpec) -> DatabaseSpec:
    """Return the database with its whole path: a worker may have another working directory."""
    return replace(database, path=database.path.absolute())
