"""A moment of an episode on a server, as a database that no episode can reach."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from intercode.core.errors import DatabaseLostError
from intercode.sql.base import SqlLimits
from intercode.sql.server.session_settings import Settings

if TYPE_CHECKING:
    from intercode.sql.server.pristine import Pristine
    from intercode.sql.server.session import MysqlSession


class Kept:
    """See ``KeptDatabase``. ``name``: the database that holds the data; empty for pristine ones."""

    def __init__(
        self, pristine: Pristine, limits: SqlLimits, name: str, default: str | None,
        settings: Settings, named: Iterable[str], left_behind: Iterable[str] = (),
    ) -> None:  # fmt: skip
        self.left_behind = tuple(sorted(left_behind))
        self._pristine, self._limits = pristine, limits
        self.name, self.default, self.settings, self.named = name, default, settings, set(named)
        self._closed = False
        pristine.server.hold()

    def open(self) -> MysqlSession:
        if self._closed:
            raise ValueError("this database was freed already")
        session = self._pristine.open(self._limits)
        try:
            session.resume(self)
        except BaseException:
            session.close()
            raise
        return session

    def take(self) -> MysqlSession:
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
            server.let_go()
