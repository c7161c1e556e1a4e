"""The data that every episode of a database begins with: nobody can change them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from intercode.sql.base import SqlLimits
from intercode.sql.server import database_copy
from intercode.sql.server import session_settings as settings
from intercode.sql.server.connection import ServerConnection
from intercode.sql.server.database_names import DatabaseNames
from intercode.sql.server.database_server import DatabaseAccount, DatabaseServer
from intercode.sql.server.group_by_check import GroupByCheck

if TYPE_CHECKING:
    from intercode.sql.server.session import MysqlSession


class PristineDatabase:
    """One database on a server: ``shown`` to the episode, ``real`` there."""

    def __init__(self, server: DatabaseServer, shown: str, real: str) -> None:
        self.server, self.public_name, self.server_name = server, shown, real
        self.names = DatabaseNames(shown, real, server.token)

    def open(self, limits: SqlLimits) -> MysqlSession:
        """A session that reads it."""
        from intercode.sql.server.session import MysqlSession

        return MysqlSession(self, limits)

    @cached_property
    def _copy_script(self) -> database_copy.CopyScript:
        with self.server.admin() as admin:
            return database_copy.copy_script(admin, self.server_name)

    def copy_to(self, slot: DatabaseAccount) -> None:
        """Make a slot's database a copy of it."""
        with self.server.admin() as admin:
            database_copy.copy_database(
                admin, self._copy_script, slot.name, self.server.definer(slot)
            )

    @cached_property
    def _content_digests(self) -> dict[str, str]:
        return self.server.content_digests(
            self.server_name, self.server.definition_digests(self.server_name)
        )

    def content_digests(self) -> dict[str, str]:
        """What is in it; see ``copying.fingerprint``."""
        return self._content_digests

    @cached_property
    def _settings(self) -> dict[str, Any]:
        slot = self.server.take_account()
        try:
            link = ServerConnection(self.server.address, slot.user, slot.password)
            try:
                return settings.read_settings(link)
            finally:
                link.close()
        finally:
            self.server.return_account(slot)

    def settings(self) -> dict[str, Any]:
        """The settings that every session begins with."""
        return self._settings

    @cached_property
    def group_by_check(self) -> GroupByCheck:
        """The rule for grouped queries, as it applies to these tables."""
        return self.group_by_check_for(self.server_name)

    def group_by_check_for(self, database: str) -> GroupByCheck:
        """The same for an episode's own tables."""
        with self.server.admin() as admin:
            return GroupByCheck(admin, database, self.public_name)
