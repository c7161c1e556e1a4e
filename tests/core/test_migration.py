"""Records of version 1, written by InterCode 0.1.0, are read as records of the present version."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import intercode
from intercode.core import trajectories
from intercode.core.errors import DataError, UsageError
from intercode.core.logs import load_log
from intercode.core.migration import (
    SCHEMA_VERSION,
    migrate_run_metadata,
    migrate_snapshot,
    migrate_trajectory,
)
from intercode.core.types import ExecResult
from intercode.environments.base.snapshots.storage import MATCHING_KEYS, read_snapshot
from intercode.results.export.bundle.bundle import read_bundle

V1 = Path(__file__).parents[1] / "records" / "v1"
RUNS = sorted(path.parent.name for path in V1.glob("*/trajectories.jsonl"))
OLD_WORDS = ("boxes", "agent_facts", "model_facts", "pay", "reuse", "apart", "cached_golds")


def keys(value: object) -> set[str]:
    """Return every key in JSON types."""
    if isinstance(value, dict):
        return set(value).union(*map(keys, value.values()))
    return set().union(*map(keys, value)) if isinstance(value, list) else set()


@pytest.mark.parametrize("name", RUNS)
def test_every_old_run_is_read(name: str) -> None:
    run = intercode.load_run(V1 / name)
    lines = (V1 / name / "trajectories.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(run.episodes) == len(lines) > 0
    assert load_log(V1 / name) == list(run.episodes)
    for episode, line in zip(run.episodes, lines, strict=True):
        old = json.loads(line)
        assert old["v"] == 1
        assert [s.action for s in episode.steps] == [s["action"] for s in old["steps"]]
        assert [s.reward for s in episode.steps] == [s["reward"] for s in old["steps"]]
        assert {s.actor for s in episode.steps} <= {"agent", "human"}
        assert keys(episode.run).isdisjoint(OLD_WORDS)
    metadata = trajectories.read_run_metadata(V1 / name)
    assert keys(metadata).isdisjoint({*OLD_WORDS, "v"})
    assert "diffs" not in metadata.get("config", {})


def test_renamed_keys_and_values() -> None:
    metadata = trajectories.read_run_metadata(V1 / "bash-difference")
    assert metadata["env_options"] == {"session": "persistent", "separate_stderr": True}
    options = {"reward_mode": "delta", "separate_stderr": True, "recycle": True}
    assert metadata["config"]["env_options"] == options
    assert metadata["config"]["record_diffs"] is False
    assert (metadata["sandboxes"], metadata["golds"]) == ("recycled", "cached")
    assert metadata["agent_metadata"]["prompt"]["text"]
    (episode,) = intercode.load_run(V1 / "human").episodes
    assert {s.actor for s in episode.steps} == {"human"}
    assert {turn["actor"] for turn in episode.run["undone"]} == {"human"}


def test_the_probe_part_is_renamed_with_its_reward() -> None:
    step = {"action": "ls", "observation": "", "parts": {"look": 0.5}}
    row = {"v": 1, "steps": [step], "run": {"reward": "look"}}
    assert migrate_trajectory(row)["run"] == {"reward": "probe"}
    assert migrate_trajectory(row)["steps"][0]["parts"] == {"probe": 0.5}
    row["run"] = {"reward": "own.py:score"}
    assert migrate_trajectory(row)["steps"][0]["parts"] == {"look": 0.5}


def test_an_old_run_resumes_in_the_present_version(tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(V1 / "bash-pay", run)
    metadata = trajectories.read_run_metadata(run)
    trajectories.write_run_metadata(run, metadata)  # the metadata of the same run are equal
    written = json.loads((run / trajectories.RUN_FILE).read_text(encoding="utf-8"))
    assert written == {"v": SCHEMA_VERSION, **metadata}
    assert trajectories.read_run_metadata(run) == metadata
    log = run / trajectories.TRAJECTORIES_FILE
    first = next(trajectories.read_trajectories(log))
    trajectories.append_trajectory(log, first.replace(epoch=1))
    versions = [json.loads(line)["v"] for line in log.read_text(encoding="utf-8").splitlines()]
    assert versions == [1] * (len(versions) - 1) + [SCHEMA_VERSION]
    assert list(trajectories.read_trajectories(log))[-1] == first.replace(epoch=1)
    with pytest.raises(UsageError, match="holds another run"):
        trajectories.write_run_metadata(run, {**metadata, "agent": "noop"})


@pytest.mark.parametrize("name", ["bash-gold", "python-gold"])
def test_old_bundles_are_read(name: str) -> None:
    bundle = read_bundle(V1 / f"{name}.tar.gz")
    assert bundle.results["solved"] == len(bundle.episodes) > 0
    assert bundle.metadata["sandboxes"] == "new"


@pytest.mark.parametrize("version", [0, SCHEMA_VERSION + 1, "1", True, None])
def test_unknown_versions_are_refused(version: object) -> None:
    for migrate in (migrate_trajectory, migrate_run_metadata, migrate_snapshot):
        with pytest.raises(DataError, match="schema version"):
            migrate({"v": version})
    assert migrate_run_metadata({"boxes": "new"}) == {"sandboxes": "new"}


def test_an_old_snapshot_is_read() -> None:
    old = json.loads((V1 / "snapshot" / "snapshot.json").read_text(encoding="utf-8"))
    metadata = {name: old[name] for name in MATCHING_KEYS}
    values, stored = read_snapshot(V1 / "snapshot", metadata)
    assert (values["task_seed"], values["turns"], values["previous_score"]) == (None, 1, 0.0)
    assert values["last_result"] == ExecResult("", 0)
    assert values["omitted"] == ()
    assert stored.state.cwd == "/tmp" and "declare -- x=" in str(stored.state)
    with pytest.raises(UsageError, match="another profile"):
        read_snapshot(V1 / "snapshot", {**metadata, "profile": "original"})
