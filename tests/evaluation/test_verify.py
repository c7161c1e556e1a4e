"""Verification of bundles by executing them again in real sandboxes."""

from __future__ import annotations

import json
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from intercode.cli import main
from intercode.core import trajectories
from intercode.core.config import EvalConfig
from intercode.core.errors import DataError, UsageError
from intercode.evaluation.evaluate.run import evaluate
from intercode.evaluation.replay.record_safety import reject_unsafe_record
from intercode.evaluation.replay.recorded_environments import ReplayOptions
from intercode.evaluation.replay.verify import verify, write_receipt
from intercode.results.export.bundle.bundle import Bundle, read_bundle, write_bundle
from intercode.results.export.bundle.receipt import read_receipt
from intercode_sql import engines

SAFE = {
    "environment": "bash",
    "dataset": "starter",
    "reward": "bash-standard",
    "timeout": 10.0,
    "network": "none",
    "image": "host",
    "env_options": {"session": "fresh"},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("verify") / "run"
    config = EvalConfig(
        "starter", "gold", limit=5, parallel=2, out=out, env_options={"deterministic": True}
    )
    return evaluate(config, quiet=True)


def _changed(run: Path, out: Path, change: Any, **meta: Any) -> Bundle:
    """Return a bundle of the run with each episode's row changed, as a forger would make it."""
    facts = {**trajectories.read_run_metadata(run), **meta}
    trajectories.write_run_metadata(out, facts)
    rows = [json.loads(r) for r in (run / trajectories.TRAJECTORIES_FILE).read_text().splitlines()]
    for row in rows:
        row["run"] |= meta
        change(row)
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (out / trajectories.TRAJECTORIES_FILE).write_text(text)
    return write_bundle(out, out.with_suffix(".tar.gz"))


@pytest.mark.sandbox
def test_a_correct_bundle_is_reproduced_as_a_whole_and_in_part(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a.tar.gz"
    assert main(["export", str(run), "--to", "bundle", "--out", str(out)]) == 0
    bundle = read_bundle(out)
    assert f"it claims, not yet verified: {bundle.statement}\n" in capsys.readouterr().out
    assert main(["replay", str(out), "--sample", "2"]) == 0
    counted = "executed again: 2 of 5 episodes (`--sample all` for all)"
    printed = capsys.readouterr().out.splitlines()
    assert printed[:2] == [f"it claims: {bundle.statement}", counted]
    assert main(["replay", str(bundle.path), "--sample", "all"]) == 0
    receipt = read_receipt(bundle.path, bundle.sha256)
    assert receipt is not None and receipt.equal
    assert (receipt.episodes, receipt.of, receipt.differing) == (5, 5, 0)
    part = verify(bundle.path, ReplayOptions(), sample=2, seed=3)
    again = verify(bundle.path, ReplayOptions(), sample=2, seed=3)
    assert part.equal and part.report.episodes == 2
    assert [s.task for s in part.report.steps] == [s.task for s in again.report.steps]


@pytest.mark.sandbox
def test_a_lie_is_named_by_its_first_step(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def lie(row: dict[str, Any]) -> None:
        if row["index"] == 3:
            row["steps"][0]["observation"] = "\x1b[2Jnot what was printed"

    bundle = _changed(run, tmp_path / "lie", lie)
    verdict = verify(bundle.path, ReplayOptions(), sample=None)
    assert verdict.first_mismatch is not None and len(verdict.report.native_mismatches) == 1
    liar = next(t for t in bundle.episodes if t.index == 3)
    assert (verdict.first_mismatch.task, verdict.first_mismatch.turn) == (liar.task, 0)
    assert verdict.first_mismatch.differs_in == ["observation"]
    write_receipt(verdict)
    assert main(["replay", str(bundle.path), "--sample", "all"]) == 1
    out = capsys.readouterr().out
    assert out.splitlines()[-1].startswith("DIFFERS  1 of 5 executed episodes (5 in the bundle)")
    assert "every reward is equal: only observations or states differ" in out
    assert "\x1b" not in out


@pytest.mark.sandbox
def test_another_version_of_the_data_cannot_be_verified(run: Path, tmp_path: Path) -> None:
    bundle = _changed(run, tmp_path / "old", lambda _: None, dataset_hash="0" * 16)
    with pytest.raises(DataError, match="was made with dataset_hash '0000000000000000'"):
        verify(bundle.path, ReplayOptions())


@pytest.mark.sandbox
def test_another_image_is_noted(run: Path, tmp_path: Path) -> None:
    bundle = _changed(run, tmp_path / "image", lambda _: None, image_digest="sha256:other")
    verdict = verify(bundle.path, ReplayOptions(), sample=1)
    assert any("'sha256:other' in the bundle" in note for note in verdict.notes)


@pytest.mark.parametrize(
    ("metadata", "way_out"),
    [
        ({"environment": "os:system"}, "does not exist here"),
        ({"dataset": "mine.jsonl"}, "--dataset"),
        ({"dataset": "package.module:load"}, "--dataset"),
        ({"dataset": "/etc/passwd"}, "--dataset"),
        ({"dataset": "harbor:/srv/tasks"}, "--dataset"),
        ({"dataset": "hub:owner/name"}, "--dataset"),
        ({"dataset": "swe-bench:rows.parquet"}, "--dataset"),
        ({"dataset": "swe-bench:verified?images=/etc/passwd"}, "--dataset"),
        ({"dataset": "families:./evil.py@seed=0..9"}, "--dataset"),
        ({"dataset": "families:evil@seed=0"}, "--dataset"),
        ({"dataset": "families:package.evil/logs"}, "--dataset"),
        ({"dataset": "worlds:bash/../evil.py"}, "--dataset"),
        ({"dataset": "worlds:bash.evil"}, "--dataset"),
        ({"reward": "os:system"}, "--reward"),
        ({"image": "dir:/"}, "--image"),
        ({"image": "tar:/tmp/x.tar"}, "--image"),
        ({"image": "dockerfile:/tmp/x"}, "--image"),
        ({"image": "recipe:/tmp/x/recipe.toml"}, "--image"),
        ({"image": "registry:127.0.0.1:1/x"}, "--image"),
        ({"network": "host"}, "--set network=host"),
        ({"timeout": 1e9}, "--set timeout"),
        ({"timeout": "long"}, "--set timeout"),
        ({"policy": "/etc/shadow"}, "policy"),
        ({"env_options": {"dsn": "mysql://elsewhere"}}, "--set dsn"),
        ({"env_options": {"engine": "foreign"}}, "--set engine"),
        ({"env_options": {"engine": ["sqlite"]}}, "--set engine"),
        ({"env_options": {"interpreter": "sh -c x"}}, "--set interpreter"),
        ({"env_options": {"language": "evil.py:X"}}, "--set language"),
        ({"env_options": {"build": True}}, "--set build"),
        ({"env_options": "x"}, "not settings"),
        ({"limits": {"memory": 1 << 40}}, "--set limits"),
        ({"limits": {"cgroups": "x"}}, "--set limits"),
    ],
)
def test_a_record_cannot_choose_files_code_or_the_network(
    metadata: dict[str, Any], way_out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign = EntryPoint("foreign", "elsewhere.engine:Engine", engines.GROUP)
    installed = {
        name: EntryPoint(name, f"intercode_sql.{name}:Engine", engines.GROUP)
        for name in engines.engine_names()
    }
    monkeypatch.setattr(engines, "_entries", lambda: {**installed, "foreign": foreign})
    reject_unsafe_record(SAFE, ReplayOptions())
    with pytest.raises(UsageError, match=way_out):
        reject_unsafe_record({**SAFE, **metadata}, ReplayOptions())


def test_what_code_and_harbor_write_down_is_allowed() -> None:
    for environment, settings in (
        ("code", {"language": None, "test_timeout": None}),
        ("code", {"language": "javascript", "test_timeout": 2.0}),
        ("harbor", {"build": False}),
    ):
        own = {"environment": environment, "env_options": settings}
        reject_unsafe_record({**SAFE, **own}, ReplayOptions())
    limits = {"memory": 2 << 30, "cpu_seconds": 3.0}
    reject_unsafe_record({**SAFE, "limits": limits}, ReplayOptions())
    reject_unsafe_record({**SAFE, "reward": "variants"}, ReplayOptions())


def test_what_the_user_gives_is_allowed() -> None:
    given = ReplayOptions(
        dataset="mine.jsonl",
        image="dir:/srv/image",
        network="host",
        timeout=5.0,
        env_options={"reward": "mine:strict", "dsn": "x"},
    )
    unsafe = {
        "dataset": "theirs.jsonl",
        "reward": "mine:strict",
        "image": "dir:/",
        "timeout": 1e9,
        "network": "host",
        "env_options": {"dsn": "y"},
    }
    reject_unsafe_record({**SAFE, **unsafe}, given)


def test_a_table_that_is_given_leaves_the_rest_of_a_record_to_the_check() -> None:
    record = {**SAFE, "limits": {"memory": 1 << 40}}
    for own in ({"memory": "1g"}, None):
        reject_unsafe_record(record, ReplayOptions(env_options={"limits": own}))
    for own in ({"processes": 8}, True):
        with pytest.raises(UsageError, match="--set limits"):
            reject_unsafe_record(record, ReplayOptions(env_options={"limits": own}))
    hidden = {**SAFE, "env_options": {"policy": "/etc/shadow"}}
    with pytest.raises(UsageError, match="--set policy"):
        rules = {"deny": ["command:rm"]}
        reject_unsafe_record(hidden, ReplayOptions(env_options={"policy": rules}))


@pytest.mark.sandbox
def test_a_bundle_is_verified_under_its_own_profile_alone(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = write_bundle(run, tmp_path / "a.tar.gz")
    for words in (["--profile", "original"], ["--set", "profile=original"]):
        assert main(["replay", str(bundle.path), *words]) == 2
        assert "--profile" in capsys.readouterr().err
    assert read_receipt(bundle.path, bundle.sha256) is None
