"""A moment of an episode on a server, as a database that no episode can reach."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from intercode.core.errors import DatabaseLostError
from intercode.sql.base import SqlLimits
from intercode.sql.server.session_settings import Settings

if TYPE_CHECKING:
    from intercode.sql.server.pristine import PristineDatabase
    from intercode.sql.server.session import MysqlSession


class ServerSnapshot:
    """See ``KeptDatabase``. ``name``: the database that holds the data; empty for pristine ones."""

    def __init__(
        self, pristine: PristineDatabase, limits: SqlLimits, name: str, default: str | None,
        settings: Settings, named: Iterable[str], left_behind: Iterable[str] = (),
    ) -> None:  # fmt: skip
        self.omitted_tables = tuple(sorted(left_behind))
        self._pristine, self._limits = pristine, limits
        self.name, self.default_database, self.settings, self.changed_names = (
            name,
            default,
            settings,
            set(named),
        )
        self._closed = False
        pristine.server.acquire()

    def open(self) -> MysqlSession:
        if self._closed:
            raise ValueError("this database was freed already")
        session = self._pristine.open(self._limits)
        try:
            session.restore_from(self)
        except BaseException:
            session.close()
            raise
        return session

    def open_last(self) -> MysqlSession:
        session = self.open()
        self.close()
        return session

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        server = self._pristine.server
        try:
            if self.name:
                with suppress(DatabaseLostError):  # then it is gone with its server
                    server.drop(self.name)
        finally:
            server.release()
