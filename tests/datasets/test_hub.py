"""Datasets of the Hugging Face hub, read by its client from a local server."""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from intercode import load_run
from intercode.core.errors import UnknownNameError, UsageError
from intercode.datasets.hub import split_files
from support.hub import Hub, serving

pytest.importorskip("huggingface_hub", reason="pip install 'intercode-gym[data]'")

CHILD = """
import json, sys
from intercode import datasets
from intercode.core.errors import InterCodeError
for spec in sys.argv[1:]:
    try:
        d = datasets.load(spec)
        rows = [[t.id, t.query, t.gold] for t in d.tasks]
        print(json.dumps([d.name, d.environment, d.image, rows]))
    except InterCodeError as e:
        print(json.dumps([type(e).__name__, str(e)]))
"""
COMMAND = (
    "intercode eval 'hub:OWNER/NAME?config=main&split=test&query=question&gold=answer' --agent gold"
)
"""That of docs/datasets.md."""
ROWS = [{"question": "list", "answer": "ls"}, {"question": "where", "answer": "pwd"}]


def lines(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@pytest.fixture
def hub() -> Hub:
    older = {"train.jsonl": lines(ROWS[:1])}
    newer = {"README.md": b"", "train.jsonl": lines(ROWS), "test.jsonl": lines(ROWS[1:])}
    named = {"a.csv": b"query,gold\none,1\n", "b/x-1.csv": b"query,gold\ntwo,2\n"}
    named["b/x-0.csv"] = b"query,gold\nzero,0\n"
    sly = lines([{"query": "q", "gold": "", "files": ["/etc"]}])
    found = Hub(
        {
            "someone/plain": {"main": newer, "v1": older},
            "someone/named": {"main": named},
            "someone/gated": {"main": older},
            "someone/sly": {"main": {"train.jsonl": sly}},
        }
    )
    found.cards["someone/named"] = {
        "configs": [
            {"config_name": "one", "data_files": "a.csv"},
            {"config_name": "many", "data_files": [{"split": "test", "path": ["b/*.csv"]}]},
        ]
    }
    found.gated["someone/gated"] = "secret"
    return found


@pytest.fixture
def address(hub: Hub) -> Iterator[str]:
    with serving(hub) as found:
        yield found


def run(address: str, home: Path, *arguments: str, **variables: str) -> str:
    """Return what a new process of Python prints. The cache of the client is in ``home``."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "HUGGING"))}
    environment |= {"HF_ENDPOINT": address, "HF_HOME": str(home), **variables}
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=180,
        env=environment,
    ).stdout


def loaded(address: str, home: Path, *specs: str, **variables: str) -> list[Any]:
    """Return what a new process loads."""
    printed = run(address, home, "-c", CHILD, *specs, **variables)
    return [json.loads(line) for line in printed.splitlines()]


@pytest.mark.slow
def test_splits_revisions_and_columns(hub: Hub, address: str, tmp_path: Path) -> None:
    spec, names = "hub:someone/plain", "query=question&gold=answer"
    (tmp_path / "rows.py").write_text(
        "def upper(row):\n    return {'query': row['question'].upper(), 'gold': row['answer']}\n"
    )
    train, test, first, again, made = loaded(
        address,
        tmp_path,
        f"{spec}?split=train&{names}",
        f"{spec}?split=test&{names}&environment=sql&image=recipe:x",
        f"{spec}@v1?{names}",
        f"{spec}@{Hub.commit(hub.datasets['someone/plain']['v1'])}?{names}",
        f"{spec}@v1?preprocess={tmp_path}/rows.py:upper",
    )
    commit = Hub.commit(hub.datasets["someone/plain"]["main"])
    assert train == [
        f"hub:someone/plain@{commit}?split=train&{names}",
        "bash",
        "host",
        [["plain/0", "list", "ls"], ["plain/1", "where", "pwd"]],
    ]
    assert test[1:] == ["sql", "recipe:x", [["plain/0", "where", "pwd"]]]
    assert first == again
    assert made[3] == [["plain/0", "LIST", "ls"]]
    assert len(first[3]) == 1
    before = sum(path.startswith("datasets") for path in hub.asked)
    (cached,) = loaded(address, tmp_path, again[0])
    assert cached == again
    # the file is not fetched again
    assert sum(path.startswith("datasets") for path in hub.asked) == before


@pytest.mark.slow
@pytest.mark.sandbox
def test_the_command_of_the_page_plays_the_rows_of_a_split(tmp_path: Path) -> None:
    hub = Hub({"OWNER/NAME": {"main": {"test.jsonl": lines(ROWS), "train.jsonl": lines(ROWS[:1])}}})
    files = [{"split": split, "path": f"{split}.jsonl"} for split in ("train", "test")]
    hub.cards["OWNER/NAME"] = {"configs": [{"config_name": "main", "data_files": files}]}
    out = tmp_path / "run"
    with serving(hub) as address:
        command = [*shlex.split(COMMAND)[1:], "--out", str(out)]
        run(address, tmp_path, "-m", "intercode", *command)
    played = {episode.query: episode.success for episode in load_run(out).episodes}
    assert played == {"list": True, "where": True}


@pytest.mark.slow
def test_configs_of_the_card(address: str, tmp_path: Path) -> None:
    one, many, none = loaded(
        address,
        tmp_path,
        "hub:someone/named?config=one",
        "hub:someone/named?config=many",
        "hub:someone/named",
    )
    assert [row[1] for row in one[3]] == ["one"]
    assert [row[1] for row in many[3]] == ["zero", "two"]
    assert none[0] == "UsageError" and "choose one with ?config=… from many, one" in none[1]


@pytest.mark.slow
def test_faults_say_what_to_do(hub: Hub, address: str, tmp_path: Path) -> None:
    absent, revision, split, sly, gated, form, option = loaded(
        address,
        tmp_path,
        "hub:someone/absent",
        "hub:someone/plain@v2",
        "hub:someone/plain?split=dev",
        "hub:someone/sly",
        "hub:someone/gated",
        "hub:plain",
        "hub:someone/plain?splt=train",
    )
    assert absent[0] == "UsageError" and "no dataset someone/absent" in absent[1]
    assert revision == ["UsageError", "the dataset someone/plain has no revision 'v2'"]
    assert split[0] == "UnknownNameError" and "known: test, train" in split[1]
    assert sly[0] == "DataError" and "would name files of this machine" in sly[1]
    assert gated[0] == "UsageError" and "HF_TOKEN" in gated[1]
    assert form[0] == "UsageError" and "OWNER/NAME" in form[1]
    assert option[0] == "UnknownNameError" and "did you mean 'split'" in option[1]
    spec = "hub:someone/gated?query=question&gold=answer"
    (opened,) = loaded(address, tmp_path, spec, HF_TOKEN="secret")
    assert opened[3] == [["gated/0", "list", "ls"]]
    hub.down = True
    (down,) = loaded(address, tmp_path, "hub:someone/plain")
    assert down[0] == "InfrastructureError" and "someone/plain" in down[1]


@pytest.mark.slow
def test_parquet_as_the_hub_converts_it(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow", reason="pip install 'intercode-gym[data]'")
    parquet = pytest.importorskip("pyarrow.parquet")

    def table(rows: list[dict[str, str]]) -> bytes:
        out = io.BytesIO()
        parquet.write_table(arrow.Table.from_pylist(rows), out)
        return out.getvalue()

    converted = {
        "main/train/0000.parquet": table(ROWS[:1]),
        "main/train/0001.parquet": table(ROWS[1:]),
        "main/test/0000.parquet": table(ROWS),
        "socratic/train/0000.parquet": table(ROWS),
    }
    hub = Hub({"a/b": {"main": {"x.py": b""}, "refs/convert/parquet": converted}})
    with serving(hub) as address:
        none, found = loaded(
            address,
            tmp_path,
            "hub:a/b",
            "hub:a/b@refs/convert/parquet?config=main&split=train&query=question&gold=answer",
        )
    assert none[0] == "UsageError" and "hub:a/b@refs/convert/parquet" in none[1]
    assert found[3] == [["b/0", "list", "ls"], ["b/1", "where", "pwd"]]


def test_names_of_files_determine_splits() -> None:
    names = [
        "README.md",
        "dataset_infos.json",
        ".gitattributes",
        "data/train-00000-of-00002.parquet",
        "data/train-00001-of-00002.parquet",
        "data/test-00000-of-00001.parquet",
        "dev.json",
        "trainer_state.csv",
    ]
    assert split_files("a/b", names, None, None, "train") == [*names[3:5], "trainer_state.csv"]
    assert split_files("a/b", names, None, None, "validation") == ["dev.json"]
    with pytest.raises(UnknownNameError, match="known: test, train, validation"):
        split_files("a/b", names, None, None, "tset")
    deep = [{"config_name": "c", "data_dir": "x", "data_files": "**/t*.csv"}]
    there = ["x/t1.csv", "x/y/z/t2.csv", "x/y/u.csv", "t3.csv"]
    assert split_files("a/b", there, deep, "c", None) == there[:2]
    shallow = [{"config_name": "c", "data_files": [{"split": "train", "path": "x/*.csv"}]}]
    assert split_files("a/b", there, shallow, None, None) == there[:1]
    with pytest.raises(UsageError, match="has no"):
        split_files("a/b", ["model.bin"], None, None, None)
