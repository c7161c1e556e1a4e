"""Settings from files and key=value texts."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from intercode import datasets
from intercode.core.config import (
    SETTING_NAMES,
    EvalConfig,
    make_config,
    recorded_settings,
)
from intercode.core.errors import ConfigError, UnknownNameError
from intercode.core.types import to_jsonable
from intercode.evaluation.evaluate.plan import open_env
from intercode_sandbox.toml import read_toml

GOOD = {"dataset": "starter", "agent": "gold"}


def test_values_become_settings() -> None:
    given = {
        "tasks": [1, "a/b"],
        "out": "runs/x",
        "timeout": 3,
        "env_options": {"session": "fresh"},
    }
    config = make_config({**GOOD, **given})
    assert config.tasks == ("1", "a/b")
    assert config.out == Path("runs/x")
    assert config.parallel == 4 and config.env_options == {"session": "fresh", "timeout": 3}


@pytest.mark.parametrize("value", [10**9, 10**400, 10**5000], ids=["1e9", "1e400", "1e5000"])
@pytest.mark.parametrize(
    "name",
    [
        "epochs",
        "limit",
        "sample",
        "max_turns",
        "parallel",
        "seed",
        "max_tokens",
        "max_cost",
        "max_seconds",
    ],
)
def test_a_number_above_the_greatest_value_is_one_line(name: str, value: int) -> None:
    if value == 10**9 and name not in ("epochs", "parallel"):
        assert getattr(make_config({**GOOD, name: value}), name) == value
        return
    with pytest.raises(ConfigError, match=f"^the settings: {name} = .* must be .*$") as error:
        make_config({**GOOD, name: value})
    assert len(str(error.value)) < 120


def test_an_unknown_key_is_refused_with_a_suggestion() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'max_turns'"):
        open_env(make_config({**GOOD, "max_turn": 3}), datasets.load("starter"))
    with pytest.raises(
        UnknownNameError, match=r"setting in run\.toml 'agnt'; did you mean 'agent'"
    ):
        make_config({"dataset": "starter", "agnt": "gold"}, "run.toml")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("parallel", 0),
        ("limit", -1),
        ("max_turns", 0),
        ("seed", -1),
        ("env_options", 3),
        ("parallel", "4"),
        ("parallel", True),
        ("agent_options", "a=b"),
        ("dataset", 3),
        ("tasks", "absent.txt"),
        ("out", ""),
        ("runner", 3),
        ("epochs", 0),
        ("epochs", 1.5),
        ("shuffle", 1),
        ("max_tokens", 0),
        ("max_tokens_per_episode", 1.5),
        ("max_cost", 0),
        ("max_cost", 10**400),
        ("max_seconds", 10**400),
        ("max_cost_per_episode", float("nan")),
        ("max_cost_per_episode", "1"),
        ("max_seconds", -1.0),
        ("max_seconds_per_episode", float("nan")),
        ("fail_on_error", "x"),
        ("fail_on_error", 0.1),
    ],
)
def test_an_invalid_value_is_named(key: str, value: object) -> None:
    with pytest.raises(ConfigError, match=key):
        make_config({**GOOD, key: value})


@pytest.mark.parametrize("key", ["dataset", "agent"])
def test_a_missing_setting_is_named(key: str) -> None:
    with pytest.raises(ConfigError, match=f"no {key} is given"):
        make_config({k: v for k, v in GOOD.items() if k != key})


def test_limits_and_epochs_are_settings() -> None:
    config = make_config(
        {
            **GOOD,
            "epochs": 3,
            "shuffle": True,
            "max_cost": 2,
            "max_seconds_per_episode": 0.5,
            "fail_on_error": "10%",
        }
    )
    assert (config.epochs, config.shuffle, config.max_cost, config.fail_on_error) == (
        3,
        True,
        2,
        "10%",
    )
    assert make_config(GOOD).epochs == 1 and make_config(GOOD).max_tokens is None
    assert make_config({**GOOD, "limit": None, "parallel": None}) == make_config(GOOD)


def test_tasks_may_be_a_file(tmp_path: Path) -> None:
    path = tmp_path / "chosen.txt"
    path.write_text("a/1\n# a remark\n  b#2  # another\n\n7\n")
    assert make_config({**GOOD, "tasks": str(path)}).tasks == ("a/1", "b#2", "7")


def test_broken_toml_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text("agent = 'gold'\ndataset = \n")
    with pytest.raises(ConfigError, match=r"bad\.toml.*line 2"):
        read_toml(path)
    with pytest.raises(ConfigError, match="No such file"):
        read_toml(tmp_path / "absent.toml")


def test_the_record_of_a_version_before_is_read() -> None:
    base = {"dataset": "starter", "agent": "gold"}
    record = {
        **base,
        "model": None,
        "seed": 0,
        "shuffle": False,
        "hashes": False,
        "clock": "+3d",
        "deterministic": {"seed": 3},
        "profile": "original",
        "env_options": {"session": "fresh"},
        "runner": "ray",
        "address": "head:6379",
    }
    of_environment = {
        "session": "fresh",
        "profile": "original",
        "deterministic": {"seed": 3, "clock": "+3d"},
    }
    found = recorded_settings(record)
    assert found == {
        **base,
        "seed": 0,
        "runner": "ray:head:6379",
        "env_options": of_environment,
    }
    assert recorded_settings(to_jsonable(make_config(found)))["env_options"] == of_environment


def test_a_setting_of_the_version_before_is_named_with_the_new_one() -> None:
    with pytest.raises(
        ConfigError, match=r'clock is now deterministic.clock: write deterministic.clock = "\+3d"'
    ):
        make_config({**GOOD, "clock": "+3d"})
    with pytest.raises(ConfigError, match=r'write runner = "ray:head:6379"'):
        make_config({**GOOD, "address": "head:6379"})
    with pytest.raises(ConfigError, match='write log = "content"'):
        make_config({**GOOD, "log_content": True})


def test_texts_are_reported_to_a_tracker_alone() -> None:
    with pytest.raises(ConfigError, match="name a tracker"):
        make_config({**GOOD, "log": "content"})
    assert recorded_settings({**GOOD, "log": ["otel"], "log_content": True}) == {
        **GOOD,
        "log": ["otel", "content"],
    }
    assert recorded_settings({**GOOD, "log": ["otel"], "log_content": False})["log"] == ["otel"]


def test_every_setting_is_declared_with_a_description() -> None:
    assert all(field.metadata["description"] for field in fields(EvalConfig))
    assert len(SETTING_NAMES) <= 26


def test_options_of_one_environment() -> None:
    config = make_config(
        {
            "dataset": "starter",
            "agent": "gold",
            "env_options": {"session": "fresh", "recycle": True},
        }
    )
    with open_env(config, datasets.load("starter")) as env:
        assert env.result_metadata()["env_options"] == {
            "session": "fresh",
            "separate_stderr": False,
        }
        assert env.result_metadata()["sandboxes"] == "recycled"
    for name, message in (
        ("sesion", "unknown setting of bash 'sesion'; did you mean 'session'"),
        ("shufle", "unknown setting of bash 'shufle'; did you mean 'shuffle'"),
        ("max_turns", "max_turns is no setting of the environment in a run: give it as one of"),
        ("extra_layers", "extra_layers is given by the agent of a run"),
    ):
        wrong = replace(config, env_options={name: "fresh"})
        with pytest.raises(UnknownNameError, match=message):
            open_env(wrong, datasets.load("starter"))


def test_arrays_are_taken() -> None:
    assert make_config({**GOOD, "tasks": np.array([1, 2])}).tasks == ("1", "2")
