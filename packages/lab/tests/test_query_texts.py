"""The texts of the queries of task families: articles, numbers, quoted values and layers."""

from __future__ import annotations

import base64
import gzip
import io
import re
import tarfile
import zipfile

import pytest

from intercode_lab.families.ctf.forensics import nested_archives
from intercode_lab.families.family import Draw, find_family, load_families
from intercode_lab.families.sql import (
    grouping,
    joining,
    nesting,
    schema,
    selecting,
    sets,
    sql_task,
    windows,
    writing,
)

QUOTED = re.compile(r"(?<!\w)'([^']*)'(?!\w)")
FUNCTION_WORDS = "among|and|are|as|at|in|is|it|of|on|or|if|each|other|every|all"
FAULTS = (
    re.compile(rf"\b[Aa]n? (?:{FUNCTION_WORDS})\b"),
    re.compile(r"\b[Aa] [aeio]|\b[Aa]n [^aeio]"),
    re.compile(r"\b1 \w+s\b|\b(which|first|top|best) 1\b"),
    re.compile(r"\beach [^.,:;]* have\b|\btotal total\b"),
    re.compile(r"\bX or X and \w"),
    re.compile(r"  |,,| [.,;:?]"),
)


def test_queries_of_sql_have_no_faults_of_composition(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_rows(_draw: Draw, names: schema.Schema, _gold: str = "") -> schema.Data:
        return schema.Data(names)

    for module in (grouping, joining, nesting, selecting, sets, windows, writing):
        for name in ("draw_data", "draw_data_with_answer"):
            monkeypatch.setattr(module, name, without_rows, raising=False)
    monkeypatch.setattr(sql_task, "database_of", lambda _data: None)
    queries = {}
    for family in load_families("sql"):
        seeds = range(2) if family.group == "exploration" else range(24)
        for task in (family(seed, difficulty) for seed in seeds for difficulty in range(1, 6)):
            queries[task.id] = text = task.query.partition("\n\nTables:")[0]
            golds = " ".join(task.golds)
            if family.group != "exploration":
                assert all(value in golds for value in QUOTED.findall(text)), (task.id, text)
    assert len(queries) > 3000
    found = [
        (i, q) for i, q in queries.items() if any(f.search(QUOTED.sub("X", q)) for f in FAULTS)
    ]
    assert not found


def test_a_letter_is_in_quotes_and_keeps_its_form() -> None:
    query = find_family("sql", "missing-values")(1, 5).query
    assert "the letter 'a'" in query and "letter an" not in query


def test_a_defined_word_is_no_value_of_a_table() -> None:
    levels = {level for domain in schema.DOMAINS for level in domain.levels}
    for difficulty, seed in ((1, 32), (2, 1), (4, 27), (4, 44)):
        task = find_family("sql", "defined-word")(seed, difficulty)
        assert task.database is not None
        dump = task.database.path.read_text()
        (word,) = re.findall(r"'(?!new|large|old)(\w+): a ", dump)
        assert word in task.query and word not in levels


@pytest.mark.parametrize("difficulty", range(1, 6))
def test_the_innermost_of_nested_archives_holds_the_named_file(difficulty: int) -> None:
    for seed in range(8):
        (entry,) = [e for e in nested_archives(seed, difficulty).initial_files if e.data]
        data, names = entry.data, []
        while not names or "flag.txt" not in names:
            if data.startswith(b"\x1f\x8b"):
                data = gzip.decompress(data)
            elif data.startswith(b"PK"):
                with zipfile.ZipFile(io.BytesIO(data)) as box:
                    names = box.namelist()
                    data = box.read(_next(names))
            else:
                with tarfile.open(fileobj=io.BytesIO(data)) as box:
                    names = box.getnames()
                    member = box.extractfile(_next(names))
                    assert member is not None
                    data = member.read()
        assert base64.b64decode(data).startswith(b"flag{")


def _next(names: list[str]) -> str:
    return next(n for n in names if n == "flag.txt" or n.partition("-")[2].isdigit())
