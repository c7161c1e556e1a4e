"""What a session of the embedded engine is at a moment, and keeping it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from intercode.sql.base import SqlLimits
from intercode.sql.embedded.catalog.catalog import Catalog
from intercode.sql.embedded.load.build import BuiltDatabases

if TYPE_CHECKING:
    from intercode.sql.embedded.engine import EmbeddedEngine
    from intercode.sql.embedded.execute.session import EmbeddedSession


@dataclass(frozen=True, slots=True)
class EmbeddedState:
    """What a session is at a moment, but for the content of databases.

    ``touched``: (database, table) to ``new``, ``gone`` or ``changed``. ``settings`` and
    ``variables`` hold what differs from the start.
    """

    catalog: Catalog
    database: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, Any] = field(default_factory=dict)
    table_changes: Mapping[tuple[str, str], str] = field(default_factory=dict)
    session_values: Mapping[str, Any] = field(default_factory=dict)


class EmbeddedSnapshot:
    """See ``sessions.sql.base.KeptDatabase``. ``contents``: of the databases that were written."""

    omitted_tables: tuple[str, ...] = ()

    def __init__(
        self,
        engine: EmbeddedEngine,
        built: BuiltDatabases,
        state: EmbeddedState,
        limits: SqlLimits,
        contents: dict[str, bytes | Path],
    ) -> None:
        self.engine, self.state, self.limits, self.contents = engine, state, limits, contents
        self._databases = built

    def open(self) -> EmbeddedSession:
        """A new session that begins with it."""
        return self.engine.new_session(self._databases, self.state, self.limits, self.contents)

    def open_last(self) -> EmbeddedSession:
        """As ``open``, for the last time."""
        session = self.open()
        self.close()
        return session

    def close(self) -> None:
        """Free what is held."""
        for content in self.contents.values():
            if isinstance(content, Path):
                content.unlink(missing_ok=True)
        self.contents = {}
