"""Messages of the command line that say what to do instead."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import intercode
from intercode.cli import main
from intercode.core.config import make_config
from intercode.core.errors import ConfigError, ModelRefusedError, UnknownNameError, UsageError
from intercode.evaluation.evaluate.plan import make_plan
from intercode.models import OpenAIModel, ScriptedModel, open_model
from intercode.results.rendering import render
from intercode.results.tables import Table
from support.faulty_endpoint import FaultyEndpoint, status
from support.sources import PACKAGES
from support.talks import run_in


def test_help_of_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["help", "eval"], ["eval", "--help"]):
        assert main(words) == 0
        assert "intercode eval" in capsys.readouterr().out
    assert main(["help"]) == 0
    assert "play tasks:" in capsys.readouterr().out
    assert main(["help", "evl"]) == 2
    assert "did you mean 'eval'?" in capsys.readouterr().err


def test_a_directory_is_no_bundle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = tmp_path / "run.tar.gz"
    directory.mkdir()
    assert main(["replay", str(directory)]) == 2
    said = capsys.readouterr().err
    assert f"`intercode export {directory} --to bundle --out FILE.tar.gz`" in said
    assert main(["replay", str(tmp_path / "none.tar.gz")]) == 2
    assert "Errno" not in capsys.readouterr().err


@pytest.mark.parametrize("command", ["report", "replay", "show", "compare", "export"])
@pytest.mark.parametrize("is_run", [False, True])
def test_a_log_without_episodes_is_an_error(
    command: str, is_run: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.jsonl"
    if is_run:
        log = run_in(tmp_path / "run", ())
    (log / "trajectories.jsonl" if is_run else log).write_text("")
    more = {"compare": [str(log)], "export": ["--to", "chat", "--out", str(tmp_path / "x")]}
    assert main([command, str(log), *more.get(command, [])]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and str(log) in captured.err and "no episode" in captured.err


def test_settings_that_choose_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for tasks in ([], (), "", range(0), iter(())):
        with pytest.raises(ConfigError, match="names no task; leave it out to play all tasks"):
            intercode.evaluate("starter:sql", "gold", tasks=tasks, quiet=True)  # type: ignore[arg-type]
    settings = tmp_path / "settings.toml"
    settings.write_text('dataset = "starter:sql"\nagent = "gold"\ntasks = []\n')
    assert main(["eval", "--config", str(settings)]) == 2
    assert "names no task" in capsys.readouterr().err


def test_an_empty_path_is_not_the_working_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(run_in(tmp_path / "run"))
    for words in (["report", ""], ["show", ""], ["eval", "starter:sql", "--out", ""]):
        assert main(words) == 2
        assert "the path is empty; the working directory is '.'" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="out is empty"):
        intercode.evaluate("starter:sql", "gold", tasks=0, out="", quiet=True)
    with pytest.raises(UsageError, match="the directory of a run is a path, not ''"):
        intercode.load_run("")


def test_values_with_which_nothing_could_run() -> None:
    with pytest.raises(UsageError, match=r"timeout = 1e-09 s is too short: give at least 0\.1"):
        intercode.evaluate("starter:sql", "gold", tasks=0, timeout=1e-9, quiet=True)
    with pytest.raises(ConfigError, match="seed = -1 must be at least 0"):
        intercode.evaluate("starter:sql", "gold", tasks=0, seed=-1, quiet=True)
    with pytest.raises(UsageError, match=r"an environment is a name such as 'bash', .*, not 5"):
        intercode.make(5)  # type: ignore[arg-type]
    with intercode.make("sql") as env:
        for seed in ("a", -1, 1.5, True):
            with pytest.raises(UsageError, match="a seed is a whole number of at least 0"):
                env.reset(seed=seed)  # type: ignore[arg-type]


def test_short_names_of_formats() -> None:
    table = Table("t", "T", ("a",), ((1,),))
    assert render([table], "md") == render([table], "markdown") != render([table])


def test_a_position_out_of_range_names_the_positions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "starter:bash", "--agent", "gold", "--tasks", "999"]) == 2
    assert "whose positions are 0 to " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("variables", "options", "said"),
    [
        ({"OPENAI_API_KEY": "k1"}, {}, "check the key in OPENAI_API_KEY"),
        ({"INTERCODE_API_KEY": "k1", "OPENAI_API_KEY": "k2"}, {}, "the key in INTERCODE_API_KEY"),
        ({}, {"api_key": "k1"}, "check the key in the option api_key"),
        ({}, {}, "none was sent, set OPENAI_API_KEY or INTERCODE_API_KEY"),
    ],
)
@pytest.mark.parametrize("code", [401, 403])
def test_a_refused_key_names_its_variable(
    code: int,
    variables: dict[str, str],
    options: dict[str, str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("OPENAI_API_KEY", "INTERCODE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with FaultyEndpoint(status(code, {"error": {"message": "bad key"}})) as server:
        model = open_model("m", server.base_url, **options).for_sample(1)
        with pytest.raises(ModelRefusedError, match=said):
            model.complete([{"role": "user", "content": "q"}])
        model.close()


def test_a_key_is_not_named_in_other_refusals() -> None:
    with (
        FaultyEndpoint(status(404, {"error": {"message": "no such model"}})) as server,
        OpenAIModel("m", server.base_url, api_key="k") as model,
        pytest.raises(ModelRefusedError) as error,
    ):
        model.complete([{"role": "user", "content": "q"}])
    assert "key" not in str(error.value)


def test_model_options_that_would_have_no_effect(tmp_path: Path) -> None:
    script = tmp_path / "s.json"
    script.write_text('["a"]')
    with pytest.raises(UnknownNameError, match="'temprature'; did you mean 'temperature'"):
        open_model(f"scripted:{script}", temprature=1)
    wrong = {"dataset": "starter:bash", "out": tmp_path, "model_options": {"temprature": 1}}
    with pytest.raises(UnknownNameError, match="did you mean 'temperature'"):
        make_plan(make_config({**wrong, "agent": "gold"}))
    with pytest.raises(UnknownNameError, match="did you mean 'temperature'"):
        make_plan(make_config({**wrong, "agent": "single-turn"}), ScriptedModel(["a"]))
    right = {**wrong, "agent": "single-turn", "model_options": {"temperature": 1}}
    with pytest.raises(ConfigError, match=r"\['temperature'\] have no effect on the model"):
        make_plan(make_config(right), ScriptedModel(["a"]))


def test_no_message_names_a_page_that_the_wheel_does_not_hold() -> None:
    named = [
        f"{file.relative_to(package)}, line {node.lineno}: {node.value[:80]}"
        for package in PACKAGES
        for file in package.rglob("*.py")
        for node in _messages(ast.parse(file.read_text()))
        if "/worlds/" not in file.as_posix()  # its own documents, in a sandbox
        and re.search(r'docs/\S*\.md|\bpage "', node.value)
    ]
    assert named == []


def _messages(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield the texts of a module that are no docstrings."""
    plain = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in plain:
            yield node


@pytest.mark.parametrize(
    ("words", "out"),
    [
        ("report RUN --out", "directory"),
        ("replay RUN --out", "directory"),
        ("export RUN --to chat --out", "file/below"),
        ("export starter:ctf --to harbor --out", "file"),
    ],
)
def test_a_path_that_cannot_be_written_is_named(
    words: str, out: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    if "replay" in words:
        intercode.evaluate("starter:sql", "gold", tasks=0, out=run, quiet=True)
    else:
        run_in(run, (1.0,))
    (tmp_path / "directory").mkdir()
    (tmp_path / "file").touch()
    named = tmp_path / out
    assert main([*words.replace("RUN", str(run)).split(), str(named)]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith(f"intercode: cannot use {named}: ")
    assert said.count(f"{named}: ") == 1


def test_a_page_of_nothing_that_can_be_read_is_not_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, broken, whole = tmp_path / "page.html", tmp_path / "broken.jsonl", tmp_path / "run"
    broken.write_text("[5]\n")
    assert main(["view", str(broken), "--html", str(page)]) == 2
    assert "line 1 cannot be read" in capsys.readouterr().err
    assert not page.exists()
    run_in(whole, (1.0,))
    assert main(["view", str(broken), str(whole), "--html", str(page)]) == 0
    assert f"Note: {broken}: line 1 cannot be read" in capsys.readouterr().err


def test_options_of_replay_that_would_have_no_effect(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(run_in(tmp_path / "run", (1.0,)))
    assert main(["replay", run, "--episode", "none"]) == 2
    assert "add --edit, --from or --agent" in capsys.readouterr().err
    assert main(["replay", run, "--set", "sesion=fresh"]) == 2
    assert "did you mean 'session'?" in capsys.readouterr().err


def test_the_address_of_a_model_is_no_option_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["eval", "starter", "--agent", "react", "--model", "m", "--dry-run"]
    assert main([*words, "--set", "model_options.base_url=http://127.0.0.1:9"]) == 2
    assert "give the model with --model and its address with --base-url" in capsys.readouterr().err
