"""The data that every episode of a database begins with: nobody can change them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from intercode.sql.base import SqlLimits
from intercode.sql.server import database_copy
from intercode.sql.server import session_settings as settings
from intercode.sql.server.connection import Link
from intercode.sql.server.database_names import Names
from intercode.sql.server.database_server import Server, Slot
from intercode.sql.server.group_by_check import Grouping

if TYPE_CHECKING:
    from intercode.sql.server.session import MysqlSession


class Pristine:
    """One database on a server: ``shown`` to the episode, ``real`` there."""

    def __init__(self, server: Server, shown: str, real: str) -> None:
        self.server, self.shown, self.real = server, shown, real
        self.names = Names(shown, real, server.token)

    def open(self, limits: SqlLimits) -> MysqlSession:
        """A session that reads it."""
        from intercode.sql.server.session import MysqlSession

        return MysqlSession(self, limits)

    @cached_property
    def _recipe(self) -> database_copy.Recipe:
        with self.server.admin() as admin:
            return database_copy.recipe(admin, self.real)

    def copy(self, slot: Slot) -> None:
        """Make a slot's database a copy of it."""
        with self.server.admin() as admin:
            database_copy.copy(admin, self._recipe, slot.name, self.server.definer(slot))

    @cached_property
    def _fingerprint(self) -> dict[str, str]:
        return self.server.fingerprint(self.real, self.server.definitions(self.real))

    def fingerprint(self) -> dict[str, str]:
        """What is in it; see ``copying.fingerprint``."""
        return self._fingerprint

    @cached_property
    def _settings(self) -> dict[str, Any]:
        slot = self.server.take_slot()
        try:
            link = Link(self.server.address, slot.account, slot.password)
            try:
                return settings.base_of(link)
            finally:
                link.close()
        finally:
            self.server.return_slot(slot)

    def settings(self) -> dict[str, Any]:
        """The settings that every session begins with."""
        return self._settings

    @cached_property
    def grouping(self) -> Grouping:
        """The rule for grouped queries, as it applies to these tables."""
        return self.grouping_of(self.real)

    def grouping_of(self, database: str) -> Grouping:
        """The same for an episode's own tables."""
        with self.server.admin() as admin:
            return Grouping(admin, database, self.shown)
