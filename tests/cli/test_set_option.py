"""What `--set NAME=VALUE` gives: no order loses a value, and nothing is ignored."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from intercode.cli import main
from intercode.cli.shared_options import run_settings
from intercode.core.errors import ConfigError, UsageError
from intercode.core.types import Trajectory
from intercode.environments.base.policy.policy import read_policy
from intercode.evaluation.replay.recorded_environments import ReplayOptions, environment_settings


def _given(*texts: str, before: dict[str, Any] | None = None) -> dict[str, Any]:
    return run_settings({"set": list(texts)}, before or {})


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (
            ("limits.memory=2g", 'limits={"processes":64}'),
            {"env_options": {"limits": {"processes": 64, "memory": "2g"}}},
        ),
        (
            ("deterministic.clock=+3d", "deterministic=true"),
            {"env_options": {"deterministic": {"clock": "+3d"}}},
        ),
        (
            ("agent_options.refine=3", 'agent_options={"steps":2}'),
            {"agent_options": {"steps": 2, "refine": 3}},
        ),
        (
            ("env_options.limits.memory=2g", "limits.processes=64"),
            {"env_options": {"limits": {"memory": "2g", "processes": 64}}},
        ),
        (
            ('env_options={"limits":{"memory":"2g"}}', "limits.processes=64"),
            {"env_options": {"limits": {"memory": "2g", "processes": 64}}},
        ),
        (("log=otel", "log=wandb"), {"log": ["otel", "wandb"]}),
        (("log=otel", 'log=["wandb"]'), {"log": ["otel", "wandb"]}),
        (("tasks=3,5", "tasks=0-1"), {"tasks": ["3", "5", "0-1"]}),
    ],
)
def test_settings_are_the_same_in_any_order(
    texts: tuple[str, ...], expected: dict[str, Any]
) -> None:
    assert _given(*texts) == expected
    backwards = _given(*reversed(texts))
    assert {**backwards, **{n: v for n, v in expected.items() if isinstance(v, list)}} == expected
    assert all(sorted(backwards[n]) == sorted(v) for n, v in expected.items())


def test_policies_add_their_rules_in_any_order(tmp_path: Path) -> None:
    first, second = tmp_path / "first.toml", tmp_path / "second.toml"
    first.write_text('deny = ["command:rm"]\n')
    second.write_text('deny = ["command:dd"]\nunparsed = "refuse"\n')
    texts = (f"policy={first}", 'policy.deny=["command:mv","command:ln"]', f"policy={second}")
    rules = ["command:dd", "command:ln", "command:mv", "command:rm"]
    for order in (texts, texts[::-1], texts[1:] + texts[:1]):
        policy = _given(*order)["env_options"]["policy"]
        assert sorted(policy["deny"]) == rules and policy["unparsed"] == "refuse"
    before = {"env_options": {"policy": str(first)}}
    joined = _given("policy.deny=command:mv", "policy.deny=command:rm", before=before)
    assert joined["env_options"]["policy"] == {"deny": ["command:rm", "command:mv"]}
    with pytest.raises(ConfigError, match="deny is a list of rules, not 'command:rm'"):
        _given("policy.deny=command:mv", before={"env_options": {"policy": {"deny": "command:rm"}}})


def test_true_leaves_a_table_and_other_values_replace_it() -> None:
    before = {"env_options": {"deterministic": {"clock": "+3d"}, "timeout": 5}, "model": "m"}
    assert _given("deterministic=true", before=before) == before
    assert _given("deterministic=false", before=before)["env_options"]["deterministic"] is False
    assert _given("model=null", before=before)["model"] is None
    with pytest.raises(ConfigError, match=r"timeout = 5 is no table: timeout\.NAME cannot"):
        _given("timeout.x=1", before=before)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["timeout=20", "timeout=30"], "--set timeout=... is given twice"),
        (["policy=null", 'policy={"deny":["command:rm"]}'], "--set policy=... is given twice"),
        (["timeout.x=1", "timeout=3"], "--set timeout=... and --set timeout.x=... exclude each"),
        (["policy=null", "policy.deny=command:rm"], "exclude each other"),
        (["=3"], "--set '=3' is not of the form NAME=VALUE"),
        (["a..b=1"], "--set 'a..b=1' is not of the form NAME=VALUE"),
        ([".x=1"], "not of the form NAME=VALUE"),
        (["session"], "--set 'session' is not of the form NAME=VALUE"),
        (["clock=+3d"], r"--set clock is now --set deterministic.clock=+3d"),
        (["deny=command:rm"], "--set deny is now --set policy.deny=command:rm"),
        (["address=head:1"], "--set address is now --set runner=ray:head:1"),
    ],
)
def test_texts_that_contradict_or_name_nothing_are_refused(given: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        _given(*given)
    assert message in str(caught.value)


def test_a_setting_is_given_as_an_option_or_with_set() -> None:
    for options, text in (
        ({"dataset": "starter"}, "dataset=starter:sql"),
        ({"max_turns": 2}, "max_turns=1"),
        ({"log": ["otel"]}, "log=wandb"),
        ({"profile": "standard"}, "env_options.profile=original"),
    ):
        with pytest.raises(UsageError, match="is given as an argument and with --set: omit one"):
            run_settings({**options, "set": [text]}, {})


def test_a_setting_that_is_declared_as_a_text_is_one() -> None:
    assert _given("mcp.x=true", "out=2026", "model=7", "image=null", "seed=7") == {
        "env_options": {"mcp": {"x": "true"}, "image": None},
        "out": "2026",
        "model": "7",
        "seed": 7,
    }
    brackets = "[" * 100_000
    assert _given(f"session={brackets}") == {"env_options": {"session": brackets}}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["play", "starter", "--set", "max_cost=2", "--set", "epochs=2"], "no epochs, max_cost"),
        (["replay", "RUN", "--set", "reward=one.py:half"], "an option for it, --reward"),
        (["replay", "RUN", "--score", "standard", "--set", "profile=original"], "--profile"),
        (["replay", "RUN", "--set", "max_turns=3"], "an option for it, --max-turns"),
        (["replay", "RUN", "--set", "runner=ray"], "runner is a setting of a run"),
        (["check", "starter", "--set", "profile=original"], "an option for it, --profile"),
        (["check", "starter", "--set", "epochs=2"], "epochs is a setting of a run"),
    ],
)
def test_a_setting_without_an_effect_is_refused(
    words: Sequence[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "trajectories.jsonl").write_text(json.dumps({}) + "\n")
    assert main([str(run) if word == "RUN" else word for word in words]) == 2
    assert message in capsys.readouterr().err


def test_a_replay_joins_settings_with_the_recorded_ones() -> None:
    recorded = {
        "environment": "bash",
        "dataset": "starter",
        "determinism": {"clock": "+3d", "seed": 1},
        "limits": {"memory": 1 << 30},
        "policy": {"deny": ["command:rm"], "allow": [], "unparsed": "allow"},
    }
    record = Trajectory("t", 0, "q", (), run=recorded)
    given = run_settings(
        {"set": ["policy.deny=command:dd", "deterministic.seed=3", "limits.processes=64"]}, {}
    )
    _, _, settings = environment_settings(record, ReplayOptions(env_options=given["env_options"]))
    assert settings["policy"]["deny"] == ["command:rm", "command:dd"]
    assert read_policy(settings["policy"]).unparsed == "allow"
    limited = ReplayOptions(env_options={"policy": {"allow": ["command:ls"]}})
    policy = read_policy(environment_settings(record, limited)[2]["policy"])
    assert policy.unparsed == "refuse" and [str(rule) for rule in policy.deny] == ["command:rm"]
    assert settings["deterministic"] == {"clock": "+3d", "seed": 3}
    assert settings["limits"] == {"memory": 1 << 30, "processes": 64}
    switched = ReplayOptions(env_options={"deterministic": True, "limits": None})
    _, _, settings = environment_settings(record, switched)
    assert settings["deterministic"] == recorded["determinism"] and settings["limits"] is None
