"""The packaged list of verified NL2Bash tasks: complete and right on the image."""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path

import pytest

from intercode.datasets import load
from intercode.environments.bash.outputs import COMPARISONS
from intercode.evaluation.check.dataset import check
from support import requirements

LISTING = json.loads(
    resources.files("intercode.datasets").joinpath("bash/nl2bash_verified.json").read_text()
)
AUDIT = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "audits.md"
SIZES = {"fs_1": 60, "fs_2": 53, "fs_3": 60, "fs_4": 27}


@pytest.fixture
def data(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERCODE_DATA", str(data_dir))


def test_every_task_is_listed_once_with_a_reason() -> None:
    include, exclude = set(LISTING["include"]), set(LISTING["exclude"])
    every = {f"nl2bash/{name}/{n}" for name, size in SIZES.items() for n in range(size)}
    assert not include & exclude
    assert include | exclude == every and len(every) == 200
    assert all(len(reason) > 10 for reason in LISTING["exclude"].values())


def test_at_least_150_tasks_each_compared_in_a_known_way() -> None:
    assert len(LISTING["include"]) >= 150
    include = LISTING["include"].values()
    compared = {word for entry in include for word in entry.get("compare", "").split()}
    assert compared == set(COMPARISONS) - {"changes"}


def test_the_page_of_audits_agrees_with_the_list() -> None:
    text = AUDIT.read_text(encoding="utf-8")
    include = LISTING["include"].values()
    repairs = sum("repair" in entry for entry in include)
    assert (
        f"| `nl2bash:verified` | {len(include)} of 200 | `{LISTING['hash']}` "
        f"| read; {repairs} repaired, {len(LISTING['exclude'])} left out |"
    ) in text
    compared = {entry["compare"].removeprefix("order ") for entry in include if "compare" in entry}
    assert {f"| `{kind}` |" for kind in compared} <= set(re.findall(r"(?m)^\| `[a-z ]+` \|", text))


@pytest.mark.nl2bash
def test_the_subset_loads_with_its_hash(data: None) -> None:
    dataset = load("nl2bash:verified")
    assert dataset.hash == LISTING["hash"]
    assert [task.id for task in dataset.tasks] == list(LISTING["include"])
    queries = {task.id: task.query for task in load("nl2bash").tasks}
    assert all(task.query == queries[task.id] for task in dataset.tasks)
    also = {task.id: list(task.also) for task in dataset.tasks}
    assert also == {k: v.get("also", []) for k, v in LISTING["include"].items()}


@pytest.mark.nl2bash
@pytest.mark.rootfs
@pytest.mark.slow
def test_every_gold_scores_1_on_the_image(data: None) -> None:
    image = requirements.image("nl2bash")
    report = check("nl2bash:verified", image=image)
    assert report.faults == ()
    assert len(report.fingerprints) == report.tasks == len(LISTING["include"])
