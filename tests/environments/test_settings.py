"""The settings of environments: declared once, validated, recorded, listed."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, dataclass
from typing import ClassVar

import pytest

import intercode
from intercode.core.errors import UsageError
from intercode.environments import BashEnv, SandboxSettings, setting, setting_names

pytestmark = pytest.mark.sandbox


@dataclass(frozen=True, kw_only=True)
class GreetingSettings(SandboxSettings):
    timeout: float = setting(30.0, "seconds for each action")
    greeting: str = setting("hello", "the first word", recorded=True)
    plain: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.greeting:
            raise UsageError("greeting is empty")


class GreetingEnv(intercode.environments.SandboxedEnv):
    """Greets."""

    name: ClassVar[str] = "bash"
    description = BashEnv.description
    settings_class: ClassVar[type[SandboxSettings]] = GreetingSettings


def test_a_setting_is_declared_once() -> None:
    with GreetingEnv("starter", greeting="good day") as env:
        assert env.result_metadata()["env_options"] == {"greeting": "good day"}
        assert env.new_like().settings == env.settings
        assert pickle.loads(pickle.dumps(env)).settings == env.settings
        with pytest.raises(FrozenInstanceError):
            env.settings.greeting = ""  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="greeting is empty"):
        GreetingEnv(greeting="")
    with pytest.raises(TypeError, match="unexpected keyword argument 'greting'"):
        GreetingEnv(greting="good day")


def test_the_default_of_a_timeout_is_that_of_the_environment() -> None:
    for given in ({}, {"timeout": None}):
        with GreetingEnv(**given) as env:
            assert env.timeout == 30.0
    with GreetingEnv(timeout=2.0) as env:
        assert env.timeout == 2.0


def test_the_names_of_settings_are_those_of_the_fields() -> None:
    bash, sql = setting_names("bash"), setting_names("sql")
    assert {"session", "recycle", "max_turns"} <= bash and "engine" not in bash
    assert {"engine", "limits", "max_turns"} <= sql and "recycle" not in sql


def test_environments_are_listed_with_their_own_settings(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from intercode.cli import main

    assert main(["list", "environments"]) == 0
    printed = capsys.readouterr().out
    assert '--env-option session="persistent": persistent: one shell' in printed
    assert "record_diffs" not in printed
