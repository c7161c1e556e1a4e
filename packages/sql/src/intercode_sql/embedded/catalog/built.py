"""The databases that were built from a dump."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from intercode_sql.embedded.catalog.catalog import Catalog


@dataclass(frozen=True, slots=True)
class BuiltDatabases:
    """The databases of one dump: a file each, and their catalog."""

    digest: str
    folder: Path
    catalog: Catalog

    def file(self, database: str) -> Path:
        return self.folder / f"{database}.sqlite"
