"""Builds SQLite databases from a MySQL dump, once per content.

Each database becomes a file whose rows are in the order of InnoDB's primary keys. ``catalog.json``
describes what SQLite cannot. The files are built in a temporary folder, which is renamed when it is
complete. A lock keeps two processes from building the same databases.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from intercode_sql.dump.reader import dump_digest
from intercode_sql.embedded.catalog.built import BuiltDatabases
from intercode_sql.embedded.catalog.catalog import from_json, to_json
from intercode_sql.embedded.load.loader import DumpLoader
from intercode_sql.errors import SqlDataError
from intercode_sql.host import cache_root

BUILDER_VERSION = "9"
"""Version of the databases built from a dump. Raise it when they change."""


def build_databases(dump: Path) -> BuiltDatabases:
    """Return the databases of a dump. They are built if they are not cached. Raises SqlDataError
    for a file that is not a valid dump."""
    digest = dump_digest(dump)[:32]
    folder = cache_root() / "sql" / f"{digest}-{BUILDER_VERSION}"
    if not (folder / "catalog.json").exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _file_lock(folder.parent / f"{folder.name}.lock"):
            if not (folder / "catalog.json").exists():
                _build(dump, folder, digest)
    text = (folder / "catalog.json").read_text(encoding="utf-8")
    return BuiltDatabases(digest, folder, from_json(json.loads(text)))


@contextmanager
def _file_lock(path: Path) -> Iterator[None]:
    """Hold a lock between processes by a transaction of SQLite, which works on every system."""
    with closing(sqlite3.connect(path, timeout=600, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        yield
        connection.execute("ROLLBACK")


def _build(dump: Path, folder: Path, digest: str) -> None:
    scratch = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".building-"))
    scratch.chmod(0o755)
    try:
        catalog = DumpLoader(scratch).load(dump, digest)
        (scratch / "catalog.json").write_text(json.dumps(to_json(catalog)), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        scratch.rename(folder)
    except sqlite3.Error as e:
        raise SqlDataError(f"{dump}: SQLite cannot hold it ({e})") from e
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
