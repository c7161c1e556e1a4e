"""Generated schemas over every column type have equal contents in both engines, in three forms."""

from __future__ import annotations

from pathlib import Path

import pytest

from intercode_sql.types import DatabaseSpec
from support import dump_forms as forms
from support.sql_engines import engine_or_skip

SCHEMAS = {f"s{seed}": forms.generated_schema(seed) for seed in range(4)}


def written(folder: Path, form: str) -> Path:
    path = folder / "dump.sql"
    make = forms.phpmyadmin if form == "phpmyadmin" else forms.hand_written
    path.write_text("".join(make(name, tables) for name, tables in SCHEMAS.items()), "utf-8")
    if form == "mariadb-dump":
        path.write_bytes(forms.by_mariadb_dump(path, list(SCHEMAS), []))
    return path


@pytest.mark.mysql
@pytest.mark.parametrize("form", ["hand_written", "phpmyadmin", "mariadb-dump"])
def test_generated_schemas_have_equal_contents(tmp_path: Path, form: str) -> None:
    server, embedded = engine_or_skip("mysql"), engine_or_skip("embedded")
    dump = written(tmp_path, form)
    for name, tables in SCHEMAS.items():
        spec = DatabaseSpec("mysql-dump", dump, name)
        sessions = [engine.open(spec) for engine in (embedded, server)]
        shown = [forms.table_names(session) for session in sessions]
        assert shown[0] == shown[1]
        assert len(shown[0]) >= len(tables)
        for table in shown[0]:
            found = [forms.contents(session, table) for session in sessions]
            assert found[0] == found[1], table
        for session in sessions:
            session.close()
    server.close()
    embedded.close()
