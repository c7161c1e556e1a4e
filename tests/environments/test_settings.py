"""The settings of environments: declared once, validated, recorded, listed."""

from __future__ import annotations

import math
import pickle
from dataclasses import FrozenInstanceError, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

import intercode
from intercode.core.errors import UsageError
from intercode.environments import BashEnv, CTFEnv, SandboxSettings, setting, setting_names

if TYPE_CHECKING:
    from fractions import Fraction

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
    standard_profile = CTFEnv.standard_profile
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


@dataclass(frozen=True, kw_only=True)
class OtherSettings(SandboxSettings):
    share: Fraction | float = setting(0.5, "of a type that is imported for type checkers alone")
    directory: Path = setting(Path(), "a path, which is made of a text")
    words: tuple[str, ...] | None = setting((), "a list from a command")
    anything: Any = setting(None, "any value")
    greeting: str = setting(5, "with a default of another type")
    nothing: int = setting(None, "with the default None")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(directory=Path(self.directory))


def test_settings_of_other_types_are_left_to_their_class() -> None:
    given = {"share": "1/3", "words": ["a"], "anything": object(), "recycle": True}
    settings = OtherSettings(**given, directory="x", greeting=5, nothing=None)  # type: ignore[arg-type]
    assert settings.directory == Path("x")
    assert {name: getattr(settings, name) for name in given} == given
    for name, value in (("greeting", 6), ("nothing", "x"), ("recycle", 1)):
        with pytest.raises(UsageError, match=f"{name} is "):
            OtherSettings(**{name: value})  # type: ignore[arg-type]


def test_a_flag_on_the_command_line_is_true_or_false(capsys: pytest.CaptureFixture[str]) -> None:
    from intercode.cli import main

    words = [
        "eval",
        "starter:bash",
        "--agent",
        "gold",
        "--limit",
        "1",
        "--set",
        "recycle=no",
    ]
    assert main(words) == 2
    printed = capsys.readouterr().err
    assert "recycle is True or False, not 'no'; an option of a command takes true or" in printed


def test_the_default_of_a_timeout_is_that_of_the_environment() -> None:
    for given in ({}, {"timeout": None}):
        with GreetingEnv(**given) as env:
            assert env.timeout == 30.0
    with GreetingEnv(timeout=2.0) as env:
        assert env.timeout == 2.0


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"backend": "namespac"}, "unknown back end 'namespac'; did you mean 'namespace'"),
        ({"image": "recipe:nl2bsh"}, "unknown image recipe 'nl2bsh'; did you mean 'nl2bash'"),
        ({"image": "debian:12"}, "is not an image; did you mean docker.io/library/debian:12"),
        ({"image": "tar:/absent.tar"}, "there is no file /absent.tar"),
        ({"image": "dockerfile:/absent"}, "there is no /absent: name a directory"),
        ({"image": "oci:/absent:tag"}, "there is no file or directory /absent"),
        ({"image": "docker-archive:/absent.tar"}, "there is no file or directory /absent.tar"),
        ({"image": "image:absent"}, "no image is imported as 'absent'"),
        ({"image": "built:absent"}, "no such image was built here"),
        ({"image": "/usr:bar"}, "did you mean oci:/usr:bar?"),
        ({"image": "/etc/passwd:bar"}, "did you mean docker-archive:/etc/passwd:bar?"),
    ],
)
def test_a_name_of_nothing_is_refused_when_the_environment_is_made(
    settings: dict[str, str], reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        intercode.make("bash", **settings)


@pytest.mark.parametrize("settings", [{}, {"dataset": "starter"}])
@pytest.mark.parametrize("name", ["harbor", "swe-bench"])
def test_an_environment_without_starter_tasks_asks_for_a_dataset(
    name: str, settings: dict[str, str]
) -> None:
    reason = f"{name} has no starter tasks: give a dataset, such as {name}:PATH"
    with pytest.raises(UsageError, match=reason):
        intercode.make(name, **settings)


@pytest.mark.parametrize("timeout", [1e7, math.inf])
@pytest.mark.parametrize(
    ("environment", "action", "observation"),
    [
        ("bash", "echo 1", "1\n"),
        ("python", "print(1)", "1\n"),
        ("sql", "SELECT 1", "[(1,)]"),
        ("ctf", "echo 1", "1\n"),
    ],
)
def test_a_timeout_may_have_any_length(
    environment: str, action: str, observation: str, timeout: float
) -> None:
    with intercode.make(environment, "starter", timeout=timeout) as env:
        env.reset(seed=0)
        assert env.step(action)[0] == observation
        assert env.score() is not None


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
    assert '--set session="persistent": persistent: one shell' in printed
    assert "record_diffs" not in printed


@pytest.mark.sandbox
@pytest.mark.namespace_only("others have no gateway")
def test_results_have_the_rules_of_the_network() -> None:
    with intercode.make("bash", network="allow:Index.test, *.git.test:22") as env:
        assert env.result_metadata()["network"] == "allow:index.test:443,*.git.test:22"
        env.reset(seed=1)
        assert "198.19." in env.step("getent hosts index.test")[0]
        assert env.step("getent hosts other.test")[4]["exit_code"] != 0
        copy = env.fork(1)[0]
        with copy:
            assert "198.19." in copy.step("getent hosts a.git.test")[0]
