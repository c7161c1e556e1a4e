"""The packaged list of verified Spider tasks: complete and right on both engines."""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path

import pytest

import intercode
from intercode.datasets import load
from intercode.evaluation.check.dataset import check

LISTING = json.loads(
    resources.files("intercode.datasets").joinpath("sql/spider_verified.json").read_text()
)
AUDIT = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "spider.md"


@pytest.fixture
def data(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERCODE_DATA", str(data_dir))


def test_every_task_is_listed_once_with_a_reason() -> None:
    include, exclude = set(LISTING["include"]), set(LISTING["exclude"])
    assert not include & exclude
    assert include | exclude == {f"spider/{n}" for n in range(1034)}
    reason = re.compile(r"[\w-]+(, [\w-]+)*|(wrong-gold|text-order|ambiguous|right-by-luck): \S.+")
    assert all(reason.fullmatch(why) for why in LISTING["exclude"].values())


def test_every_replaced_or_further_gold_has_a_reason() -> None:
    entries = [entry for entry in LISTING["include"].values() if entry]
    assert entries
    for entry in entries:
        assert bool(entry.get("repair")) == ("gold" in entry)
        assert bool(entry.get("also_reason")) == ("also" in entry)


def test_the_audit_agrees_with_the_list() -> None:
    text = AUDIT.read_text(encoding="utf-8")
    assert f"`{LISTING['hash']}`" in text
    assert f"**{len(LISTING['include'])} of 1034 tasks are sound.**" in text
    kinds = re.findall(r"^\| ([\w-]+) \| (\d+) \| [^|]+ \| ([\d ]+) \|$", text, re.MULTILINE)
    assert kinds
    for kind, count, tasks in kinds:
        listed = {k for k, why in LISTING["exclude"].items() if kind in re.split(", |: .*", why)}
        assert listed == {f"spider/{n}" for n in tasks.split()} and len(listed) == int(count), kind


def test_the_subset_loads_with_its_hash(data: None) -> None:
    dataset = load("spider:verified")
    assert dataset.hash == LISTING["hash"]
    assert [task.id for task in dataset.tasks] == list(LISTING["include"])
    hard = load("spider:hard+verified")
    assert 0 < len(hard) < 174 and {t.hardness for t in hard.tasks} == {"hard"}


def test_corrected_golds_replace_those_of_the_dataset(data: None) -> None:
    """Task 111 counted one number for each country. A schema in the prompt stays beside it."""
    (task,) = (t for t in load("spider:schema+verified").tasks if t.id == "spider/111")
    (own,) = (t for t in load("spider").tasks if t.id == "spider/111")
    assert task.gold == LISTING["include"]["spider/111"]["gold"] != own.gold
    assert task.query == own.query and "car_makers" in task.data["notes"].lower()
    (open_form,) = (t for t in load("spider:verified").tasks if t.id == "spider/899")
    assert list(open_form.also) == LISTING["include"]["spider/899"]["also"]
    with intercode.make("sql", load("spider:schema+verified"), reward="spider-lenient") as env:
        env.reset(options={"task": "spider/111"})
        env.step("SELECT 4, 'countries'")
        assert env.score().value == 1.0
        assert env.result_metadata()["reward"] == "spider-lenient"


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["embedded", pytest.param("mysql", marks=pytest.mark.mysql)])
def test_every_gold_scores_1(data: None, engine: str) -> None:
    report = check("spider:verified", env_options={"engine": engine})
    assert report.faults == ()
    assert len(report.fingerprints) == report.tasks == len(LISTING["include"])
