"""Spider, BIRD and WikiSQL in the authors' layout."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from intercode.core.errors import DataError, UnknownNameError, UsageError
from intercode.datasets import load
from intercode.datasets.pins import load_pins
from intercode.datasets.sql.base import dump_schemas, schema_text
from intercode.datasets.sql.spider import HARDNESS
from intercode.datasets.sql.wikisql import AGGREGATES, parse_gold, to_sql

SIZES = {"easy": 248, "medium": 446, "hard": 174, "extra": 166}


@pytest.fixture
def data(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("INTERCODE_DATA", str(data_dir))
    return data_dir


def test_spider_is_whole(data: Path) -> None:
    dataset = load("spider")
    assert dataset.environment == "sql" and dataset.comparable
    assert len(dataset) == 1034 and len({t.id for t in dataset.tasks}) == 1034
    assert Counter(t.hardness for t in dataset.tasks) == SIZES and tuple(SIZES) == HARDNESS
    task = dataset.tasks[852]
    assert task.id == "spider/852" and task.database is not None
    assert task.group == task.database.name == "dog_kennels"
    assert task.database.kind == "mysql-dump" and task.database.path.is_file()
    assert not any("notes" in t.data for t in dataset.tasks)


def test_the_schema_is_that_of_the_authors_rows(data: Path) -> None:
    rows = json.loads((data / "sql" / "spider" / "ic_spider_dev.json").read_text())
    for row, task in zip(rows, load("spider").tasks, strict=True):
        theirs = {k.lower(): [c.lower() for c in v] for k, v in row["db_tables"].items()}
        ours = {k.lower(): [c.lower() for c in v] for k, v in task.data["schema"].items()}
        theirs.pop("sqlite_sequence", None)  # a table of SQLite, which a server does not have
        assert theirs.items() <= ours.items(), task.id  # the authors' rows lack qualifying_matches


def test_subsets_filter_and_add(data: Path) -> None:
    assert {name: len(load(f"spider:{name}")) for name in SIZES} == SIZES
    world = load("spider:world_1")
    assert len(world) == 120 and {t.group for t in world.tasks} == {"world_1"}
    both = load("spider:world_1+extra+schema")
    assert {t.id for t in both.tasks} == {t.id for t in world.tasks if t.hardness == "extra"}
    assert "- city: ID, Name, CountryCode" in both.tasks[0].data["notes"]
    assert load("spider:schema").hash == load("spider").hash


@pytest.mark.parametrize("spec", ["spider:exta", "spider:easy+wrld_1", "wikisql:easy"])
def test_an_unknown_subset_is_named_with_the_near_one(data: Path, spec: str) -> None:
    with pytest.raises(UnknownNameError, match=r"known: .*schema"):
        load(spec)


def test_a_choice_of_nothing_is_refused(data: Path) -> None:
    with pytest.raises(UsageError, match="holds no task"):
        load("spider:wta_1+world_1")


def test_wikisql_golds_are_sql_again(data: Path) -> None:
    dataset = load("wikisql")
    assert len(dataset) == 196
    found = {t.data["published"]: t for t in dataset.tasks}
    task = found[
        "SELECT School/Club_Team/Country FROM table_1_11734041_2 "
        "WHERE No.(s) = 10 AND Position = Forward"
    ]
    assert task.gold == (
        "SELECT `School/Club_Team/Country` FROM `table_1_11734041_2` "
        "WHERE `No.(s)` = '10' AND `Position` = 'Forward'"
    )
    assert list(task.data["schema"]) == ["table_1_11734041_2"]
    published = load("wikisql:published").tasks
    assert [t.gold for t in published] == [t.data["published"] for t in dataset.tasks]
    assert all(t.query.endswith(f"(Use table {next(iter(t.data['schema']))})") for t in published)


COLUMNS = {"t": ["No.", "Name", "Date of Birth", "It's"]}


@pytest.mark.parametrize(
    ("text", "gold"),
    [
        ("SELECT Name FROM t", "SELECT `Name` FROM `t`"),
        ("SELECT COUNT No. FROM t", "SELECT COUNT(`No.`) FROM `t`"),
        (
            "SELECT Name FROM t WHERE No. > 3 AND Name = Smith AND Sons",
            "SELECT `Name` FROM `t` WHERE `No.` > 3 AND `Name` = 'Smith AND Sons'",
        ),
        (
            "SELECT It's FROM t WHERE Date of Birth = \"May 4 — '03\"",
            "SELECT `It's` FROM `t` WHERE `Date of Birth` = '\"May 4  ''03\"'",
        ),
        (
            "SELECT MAX No. FROM t WHERE Name = x",
            "SELECT `No.` FROM `t` WHERE `Name` = 'x' AND `No.` IS NOT NULL "
            "ORDER BY `No.` + 0 DESC LIMIT 1",
        ),
    ],
)
def test_a_published_gold_is_read_by_the_columns(text: str, gold: str) -> None:
    assert to_sql(parse_gold(text, COLUMNS, "row 1"))[0] == gold


@pytest.mark.parametrize("text", ["SELECT x FROM t", "DELETE FROM t", "SELECT No. FROM t WHERE x"])
def test_another_form_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="row 1"):
        parse_gold(text, COLUMNS, "row 1")


def test_aggregates_are_numbered_as_in_the_release() -> None:
    assert AGGREGATES == ("", "MAX", "MIN", "COUNT", "SUM", "AVG")


DUMP = """\
CREATE USER 'admin'@'%' IDENTIFIED BY 'admin';
CREATE DATABASE  IF NOT EXISTS `superhero` /*!40100 DEFAULT CHARACTER SET utf8mb4 */;
USE `superhero`;
CREATE TABLE `hero` (
  `id` int NOT NULL AUTO_INCREMENT,
  `full name` text,
  PRIMARY KEY (`id`),
  KEY `k` (`full name`)
) ENGINE=InnoDB;
INSERT INTO `hero` VALUES (1,'A
CREATE TABLE'),(2,'B');
"""


def _bird(folder: Path, rows: list[dict[str, str]]) -> Path:
    root = folder / "sql" / "bird"
    root.mkdir(parents=True)
    (root / "ic_bird.json").write_text(json.dumps(rows))
    (root / "ic_bird_dbs.sql").write_text(DUMP)
    return root


ROW = {
    "question_id": "7",
    "evidence": "hero refers to full name",
    "difficulty": "moderate",
    "SQL": "SELECT 1",
    "query": "Who?",
    "db": "superhero",
    "gold": "SELECT `full name` FROM hero",
}


def test_bird_on_a_dump_of_its_shape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = _bird(tmp_path, [ROW, {**ROW, "difficulty": "simple", "evidence": ""}])
    monkeypatch.setenv("INTERCODE_DATA", str(tmp_path))
    first, second = load("bird").tasks
    assert (first.id, first.hardness, first.group) == ("bird/0", "moderate", "superhero")
    assert first.database is not None and first.database.path == root / "ic_bird_dbs.sql"
    assert first.data["schema"] == {"hero": ["id", "full name"]} and "notes" not in first.data
    assert [t.id for t in load("bird:simple").tasks] == [second.id]
    notes = load("bird:evidence+schema").tasks
    assert notes[0].data["notes"] == (
        "What is known: hero refers to full name\n"
        "The database has these tables, each with its columns:\n- hero: id, full name"
    )
    assert "known" not in notes[1].data["notes"]


def test_a_row_on_a_database_that_the_dump_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _bird(tmp_path, [{**ROW, "db": "toxicology"}])
    monkeypatch.setenv("INTERCODE_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"row 0: 'toxicology' is not .*ic_bird_dbs.sql"):
        load("bird")


def test_a_missing_dump_of_bird_is_an_error_with_a_remedy(data: Path) -> None:
    if (data / "sql" / "bird" / "ic_bird_dbs.sql").is_file():
        assert len(load("bird")) == 338
    else:
        with pytest.raises(UsageError, match=r"ic_bird_dbs.sql is not there.*list --fetch bird"):
            load("bird")


def test_a_dump_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "x.sql").write_text("SELECT 1;")
    with pytest.raises(DataError, match="creates no database"):
        dump_schemas(tmp_path / "x.sql")


def test_the_schema_in_the_prompt() -> None:
    assert schema_text({"a": ["b", "c"]}).splitlines()[-1] == "- a: b, c"


@pytest.mark.parametrize("name", ["spider", "bird", "wikisql"])
def test_the_files_are_pinned(data: Path, name: str) -> None:
    manifest = json.loads((data / "upstream_manifest.json").read_text())
    pin = load_pins()[name]
    assert pin.commit == manifest["commit"] and len(pin.files) == 2
    for file in pin.files:
        known = manifest["files"][file.path]
        assert file.sha256 == known.get("sha256", "")
        assert file.size == known.get("bytes")
        assert file.sha256 or file.git_blob_sha1 == known["git_blob_sha1"]
