"""Names of the version before: an error or a warning says the new one, and records are read."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import intercode
from intercode.cli import main
from intercode.cli.play import play_session
from intercode.cli.shared_options import RENAMED_OPTIONS
from intercode.core.config import make_config
from intercode.core.errors import ConfigError, UnknownNameError
from intercode_sandbox import Sandbox, SandboxPool


@pytest.mark.parametrize(
    "command",
    [
        ["eval", "starter", "--agent", "gold", "--sandbox", "docker"],
        ["sandbox", "run", "--sandbox=docker", "true"],
        ["check", "starter", "--sandbox", "docker"],
        ["serve", "--protocol", "sandboxes", "--sandbox", "docker"],
    ],
)
def test_an_old_option_says_the_new_one(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command) == 2
    assert "--sandbox: the option is now --backend" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "now"),
    [
        (["check", "starter", "--no-gold-cache"], "--set use_gold_cache=false"),
        (["check", "starter", "--format", "json"], "--json"),
        (["report", "x", "--plot-format", "png"], "--plot DIR, which draws SVG and PNG"),
        (["replay", "x", "--all"], "--sample all"),
        (["show", "x", "--lines", "9"], "--all"),
        (["show", "x", "--traceback"], "--all"),
        (["export", "x", "--to", "harbor", "--out", "y", "--environment", "ctf"], "a part of"),
        (["eval", "starter", "--agent", "gold", "--variants", "3"], "`intercode replay RUN"),
        (["serve", "bash", "--protocol", "mcp", "--http"], "--port N"),
        (["serve", "bash", "--token", "t"], "the variable INTERCODE_SERVE_TOKEN"),
        (["image", "pull", "x", "--http"], "the variable INTERCODE_REGISTRY_HTTP"),
        (["doctor", "--threat-model"], "`intercode-sandbox doctor --threat-model`"),
    ],
)
def test_an_old_option_of_one_command_says_what_it_is_now(
    command: list[str], now: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command) == 2
    assert f"the option is now {now}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "now"),
    [("shell", "run --terminal"), ("fork", "run --setup COMMAND --forks N COMMAND")],
)
def test_an_old_command_of_sandboxes_says_the_new_one(
    old: str, now: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sandbox", old, "--image", "host"]) == 2
    assert f"`intercode sandbox {old}` is now `intercode sandbox {now}`" in capsys.readouterr().err
    assert main(["sandbox", "run", "--backend", "none", old]) != 0  # a program of that name
    assert "is now" not in capsys.readouterr().err


def test_an_old_option_is_not_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    main(["eval", "--help"])
    shown = capsys.readouterr().out
    assert "--backend BACKEND" in shown
    assert "--sandbox " not in shown


def test_an_old_setting_of_a_run_says_the_new_one() -> None:
    with pytest.raises(ConfigError, match="sandbox is now backend"):
        make_config({"dataset": "starter", "agent": "gold", "sandbox": "docker"})


def test_an_old_setting_of_an_environment_is_taken() -> None:
    with pytest.warns(DeprecationWarning, match="sandbox is now backend: backend='docker'"):
        env = intercode.make("bash", "starter", sandbox="docker")
    with env:
        assert env.backend == "docker"


@pytest.mark.parametrize(
    ("option", "now"),
    [
        (["--deterministic"], "--set deterministic=true"),
        (["--clock", "real"], "--set deterministic.clock=TIME"),
        (["--env-option", "session=fresh"], "--set NAME=VALUE"),
        (["--timeout=3"], "--set timeout=SECONDS"),
        (["--address", "head:6379"], "--set runner=ray:HOST:PORT"),
        (["--max-cost-per-episode", "1"], "--set max_cost_per_episode=USD"),
    ],
)
def test_an_option_that_is_now_a_setting_says_so(
    option: list[str], now: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["eval", "starter", "--agent", "gold", *option]) == 2
    assert f"{option[0].partition('=')[0]}: the option is now {now}" in capsys.readouterr().err


def test_every_old_option_is_refused_by_the_command_that_had_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for old, now in RENAMED_OPTIONS.items():
        command = "play" if old == "--task" else "eval"
        assert main([command, "starter", old]) == 2, old
        assert f"the option is now {now}" in capsys.readouterr().err


@pytest.mark.parametrize("open_with", [Sandbox, SandboxPool])
def test_an_old_argument_of_a_sandbox_is_taken(open_with: type[Sandbox | SandboxPool]) -> None:
    with (
        pytest.warns(DeprecationWarning, match="back_end is now backend"),
        pytest.raises(UnknownNameError, match="'vm'"),
    ):
        open_with("host", back_end="vm")  # type: ignore[call-arg]


def test_a_session_of_play_with_an_old_setting_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    settings = {"dataset": "starter", "agent": "human", "out": str(tmp_path / "out")}
    play_session.save_session(play_session.PlaySession(settings, (0,)))
    [path] = tmp_path.rglob("unfinished/*.json")
    row = json.loads(path.read_text())
    path.write_text(json.dumps({**row, "settings": {**settings, "sandbox": "docker"}}))
    os.utime(path)
    assert play_session.load_session("starter").settings["env_options"] == {"backend": "docker"}
