"""One setting gives the sandboxes of every environment other limits, and results record it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import intercode
from intercode.cli import main
from intercode.core import trajectories
from intercode.core.errors import UnknownNameError, UsageError
from intercode.evaluation.replay import log_replay
from intercode.results.report.result_sets import describe_conditions
from intercode_sandbox import Limits

pytestmark = pytest.mark.sandbox
MIB = 1 << 20
GIVEN = {"memory": "120m", "file_size": "1 MiB", "processes": 40, "output": "8k", "disk": 64 * MIB}
READ = {
    "disk": 64 * MIB,
    "file_size": MIB,
    "memory": 120 * MIB,
    "output": 8192,
    "processes": 40,
}
WRITES = {
    "bash": "head -c 2M /dev/zero > /tmp/f",
    "ctf": "head -c 2M /dev/zero > /tmp/f",
    "python": "open('/tmp/f', 'wb').write(bytes(2 << 20))",
    "code": "require('fs').writeFileSync('/tmp/f', Buffer.alloc(2 << 20))",
}


@pytest.mark.parametrize("name", WRITES)
def test_every_environment_has_the_limits(name: str) -> None:
    with intercode.make(name, "starter", limits=GIVEN) as env:
        env.reset(seed=0, options={"task": 0})
        used = env.sandbox.spec.limits
        assert {key: getattr(used, key) for key in READ} == READ
        assert used.inodes == Limits().inodes, "the others are the environment's own"
        observation = env.step(WRITES[name])[0]
        assert "file too large" in observation.lower() or "1 MiB for one file" in observation
        assert env.result_metadata()["limits"] == READ
        (fork,) = env.fork()
        with fork:
            assert fork.sandbox.spec.limits == used
        with env.open_workspace().sandbox as gold:
            assert gold.spec.limits == used


def test_without_the_setting_nothing_is_recorded() -> None:
    with intercode.make("bash", "starter") as env:
        assert "limits" not in env.result_metadata()
    with intercode.make("bash", "starter", limits=Limits(memory=MIB << 9)) as env:
        assert env.result_metadata()["limits"]["memory"] == 512 * MIB


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"memroy": "1g"}, "memory"),
        ({"memory": "much"}, "limit memory is a whole number, or one with K, M or G"),
        ({"memory": 0}, "the limit memory has to be a whole number of at least 16777216"),
        ({"open_files": 3}, "the limit open_files has to be a whole number of at least 64, not 3"),
        ({"cpu_seconds": 1e-9}, "the limit cpu_seconds has to be a number .* at least 0.1, not"),
        ({"processes": 2}, "at least 5"),
        ({"processes": 1 << 31}, "processes has to be a whole number of at most 4194304, not"),
        ({"inodes": 1 << 62}, "inodes has to be a whole number of at most"),
        ({"time": 3}, "the seconds of an action are the setting timeout"),
        ({"cpu_seconds": "x"}, "limit cpu_seconds is a number"),
        ("2g", "limits is a mapping"),
    ],
)
def test_a_wrong_limit_is_an_error_with_the_way_out(limits: Any, said: str) -> None:
    with pytest.raises((UsageError, UnknownNameError), match=said):
        intercode.make("bash", "starter", limits=limits)


def test_sql_has_no_sandbox_to_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match="runs no sandbox"):
        intercode.make("sql", "starter", limits={"memory": "1g"})
    words = ["eval", "starter:sql", "--agent", "gold", "--set", "limits.memory=1g"]
    assert main([*words, "--out", str(tmp_path / "run")]) == 2
    assert "'sql' runs no sandbox" in capsys.readouterr().err


def test_they_are_a_part_of_what_a_run_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, words = tmp_path / "run", ["eval", "starter:bash", "--agent", "gold", "--limit", "1"]
    settings = tmp_path / "eval.toml"
    settings.write_text('limits = {memory = "600m", processes = 64}\n')
    given = ["--set", "limits.memory=500m", "--set", "limits.disk=100m"]
    assert main([*words, "--config", str(settings), *given, "--out", str(run)]) == 0
    expected = {"disk": 100 * MIB, "memory": 500 * MIB, "processes": 64}
    assert trajectories.read_run_metadata(run)["limits"] == expected
    (episode,) = trajectories.read_trajectories(run / trajectories.TRAJECTORIES_FILE)
    assert episode.run["limits"] == expected
    assert "limits disk=104857600 memory=524288000 processes=64" in describe_conditions(episode)
    assert main([*words, "--out", str(run)]) == 2
    assert "limits" in capsys.readouterr().err
    (report,) = log_replay.replay_logs([run], log_replay.ReplayOptions())
    assert report.steps and not report.mismatches
    with log_replay.RecordedEnvironments(log_replay.ReplayOptions()).borrow(episode) as env:
        assert json.loads(json.dumps(env.result_metadata()["limits"])) == expected
