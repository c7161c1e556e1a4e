"""A run's directory contains its description, and no secret."""

from __future__ import annotations

import hashlib
import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import intercode
from intercode.core import trajectories
from intercode.core.config import EvalConfig
from intercode.core.errors import UsageError
from intercode.evaluation.evaluate.merge import merge
from intercode.evaluation.evaluate.plan import make_plan
from intercode.evaluation.evaluate.run import evaluate
from intercode.evaluation.evaluate.run_metadata import remove_secrets
from intercode.models import ScriptedModel
from support.faulty_endpoint import FaultyEndpoint, ok

pytestmark = pytest.mark.sandbox


def test_it_names_everything_that_a_result_depends_on(squares: str, tmp_path: Path) -> None:
    prompt = tmp_path / "mine.txt"
    with FaultyEndpoint(ok("```bash\necho 4\n```")) as server:
        own = Path(intercode.__file__).parent / "agents/prompts/single_turn.txt"
        prompt.write_text(own.read_text() + "\nBe quick.\n")
        config = EvalConfig(
            squares,
            "single-turn",
            model="m",
            out=tmp_path / "run",
            limit=1,
            epochs=2,
            base_url=server.base_url.replace("http://", "http://me:pass-word@"),
            model_options={"temperature": 0.5, "api_key": "sk-secret", "top_p": 0.9},
            agent_options={"prompt": str(prompt)},
        )
        out = evaluate(config, quiet=True)
    run = trajectories.read_run_metadata(out)
    assert run["generation"]["temperature"] == 0.5 and run["generation"]["top_p"] == 0.9
    assert run["prompts"] == [hashlib.sha256(prompt.read_bytes()).hexdigest()]
    assert "Be quick." in json.dumps(run["agent_metadata"])
    assert run["model_metadata"] and run["config"]["epochs"] == 2 and run["config"]["limit"] == 1
    assert run["versions"]["intercode"] == intercode.__version__ and "aiohttp" in run["versions"]
    assert {"dataset_hash", "image_digest", "tier", "arch", "profile", "scoring"} <= run.keys()
    everything = "".join(f.read_text() for f in out.iterdir())
    assert "sk-secret" not in everything and "pass-word" not in everything
    readme = (out / "README.txt").read_text()
    assert "intercode eval --resume run" in readme and "intercode show run TASK" in readme
    (first, _) = trajectories.read_trajectories(out / trajectories.TRAJECTORIES_FILE)
    assert first.run["dataset_hash"] == run["dataset_hash"]
    assert "agent_metadata" not in first.run  # whole prompts are stored once per run
    prompt.write_text(prompt.read_text() + "Be quicker.\n")
    with pytest.raises(UsageError, match="a run with prompts"):
        make_plan(config)


def test_another_temperature_is_another_run_and_another_key_is_not(
    squares: str, tmp_path: Path
) -> None:
    with FaultyEndpoint(ok("```bash\necho 4\n```")) as server:

        def config(**options: object) -> EvalConfig:
            return EvalConfig(
                squares,
                "single-turn",
                model="m",
                limit=1,
                out=tmp_path / "run",
                base_url=server.base_url,
                model_options=options,
            )

        evaluate(config(temperature=0.5), quiet=True)
        make_plan(config(temperature=0.5, api_key="k", concurrency=3, timeout=5))
        half = {"temperature": 0.5}
        others: list[dict[str, object]] = [
            {"temperature": 0.6},
            half | {"seed": 3},
            half | {"api": "completions"},
            half | {"thoughts": "reasoning_content"},
        ]
        for options in others:
            with pytest.raises(UsageError, match=r"a run with generation \{[^T]{,40}\}, not \{"):
                make_plan(config(**options))


def test_another_address_of_the_model_is_another_run(
    squares: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def config(address: str, **settings: Any) -> EvalConfig:
        return EvalConfig(squares, "single-turn", model="m", base_url=address, limit=1, **settings)

    with (
        FaultyEndpoint(ok("```bash\necho 0\n```")) as first,
        FaultyEndpoint(ok("```bash\necho 1\n```")) as second,
    ):
        one = evaluate(config(first.base_url), quiet=True)
        with_login = first.base_url.replace("http://", "http://me:pass-word@")
        for address in (first.base_url, first.base_url + "/", with_login):
            assert make_plan(config(address)).out == Path("runs") / one.name
        two = evaluate(config(second.base_url), quiet=True)
        assert two != one
        with pytest.raises(UsageError, match=r"(?s)endpoint .* not .*another model.*--base-url"):
            make_plan(config(second.base_url, out=one))
        with pytest.raises(UsageError, match=r"differ in endpoint .* and .*intercode report"):
            merge([one, two], tmp_path / "both")
    with pytest.raises(UsageError, match="a run with endpoint"):
        make_plan(config("http://127.0.0.1:9/v1", out=one))  # nothing listens there
    old = trajectories.read_run_metadata(one)
    del old["endpoint"]  # a run of an early release, which did not record it
    (one / trajectories.RUN_FILE).write_text(json.dumps({"v": 2, **old}))
    assert make_plan(config(second.base_url, out=one)).out == one


AGENT = """
from intercode.agents import Agent
from intercode.core.types import AgentOutput

class Own(Agent):
    def act(self, feedback):
        return AgentOutput({action!r}) if feedback is None else None
"""


def test_an_edited_agent_file_is_another_run(
    squares: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "own.py"
    config = EvalConfig(squares, f"{file}:Own", limit=1, parallel=1)
    file.write_text(AGENT.format(action="echo 0"))
    first = evaluate(config, quiet=True)
    assert trajectories.read_run_metadata(first)["sources"]["agent"].startswith("own.py:Own@")
    assert evaluate(config, quiet=True) == first
    file.write_text("import helper, json\n" + AGENT.format(action="echo 1"))
    (tmp_path / "helper.py").write_text("import tools.clean\n")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/__init__.py").write_text("")
    (tmp_path / "tools/clean.py").write_text("strip = str.strip\n")
    (tmp_path / "other.py").touch()
    second = evaluate(config, quiet=True)
    imported = {"helper.py", "tools/__init__.py", "tools/clean.py"}
    assert trajectories.read_run_metadata(second)["sources"].keys() == {"agent", *imported}
    (tmp_path / "tools/clean.py").write_text("strip = str.lstrip\n")
    with pytest.raises(UsageError, match=r"clean.py@.*: tools/clean.py changed since"):
        make_plan(replace(config, out=second))
    (episode,) = trajectories.read_trajectories(second / trajectories.TRAJECTORIES_FILE)
    assert second != first and episode.steps[0].action == "echo 1"
    with pytest.raises(UsageError, match=r"a run with sources \{'agent': 'own.py:Own@"):
        make_plan(replace(config, out=first))


def test_another_model_object_of_the_same_name_is_another_run(
    squares: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    config = EvalConfig(squares, "single-turn", limit=1, parallel=1)
    actions = []
    for answer in ("```bash\necho 0\n```", "```bash\necho 1\n```"):
        out = evaluate(config, model=ScriptedModel([answer]), quiet=True)
        (episode,) = trajectories.read_trajectories(out / trajectories.TRAJECTORIES_FILE)
        actions.append(episode.steps[0].action)
    assert actions == ["echo 0", "echo 1"]
    evaluate(replace(config, out=out), model=ScriptedModel([]))
    assert f"1 of 1 episodes are finished already in {out}" in capsys.readouterr().err


def test_the_commit_of_a_user_s_own_code_is_named(
    squares: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = tmp_path / "mine"
    code.mkdir()
    file = code / "own_agent_of_test.py"
    file.write_text("from intercode.agents.baselines import GoldAgent as Mine\n")
    git = ["git", "-C", str(code), "-c", "user.name=t", "-c", "user.email=t@t"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *words], check=True)
    commit = subprocess.run(
        [*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    monkeypatch.syspath_prepend(str(code))
    config = EvalConfig(squares, "own_agent_of_test:Mine", out=tmp_path / "run")
    told = {"file": "own_agent_of_test.py", "commit": commit, "changed": False}
    assert make_plan(config).metadata["code"] == {"agent": told}
    file.write_text(file.read_text() + "\n")
    assert make_plan(config).metadata["code"]["agent"]["changed"] is True
    assert make_plan(EvalConfig(squares, "gold")).metadata["code"] == {}


def test_values_named_like_a_secret_are_removed() -> None:
    told = remove_secrets(
        {
            "api_key": "x",
            "Authorization": "x",
            "max_tokens": 3,
            "token_ids": True,
            "nested": [{"x-api-key": "x", "password": "x", "url": "mysql://u:p@host/db"}],
            "headers": {"X-Auth-Token": "x", "X-Team": "blue", "Cookie": "x"},
        }
    )
    assert told == {
        "max_tokens": 3,
        "token_ids": True,
        "nested": [{"url": "mysql://host/db"}],
        "headers": {"X-Team": "blue"},
    }


def test_a_run_of_an_earlier_release_is_resumed(squares: str, tmp_path: Path) -> None:
    model = ScriptedModel(lambda _: "```bash\necho 4\n```")
    config = EvalConfig(
        squares,
        "single-turn",
        model="m",
        limit=1,
        out=tmp_path / "run",
        model_options={"temperature": 0.5},
    )
    out = evaluate(config, model=model, quiet=True)
    run = trajectories.read_run_metadata(out)
    for name in ("generation", "prompts", "agent_metadata", "model_metadata", "versions", "config"):
        del run[name]
    (out / trajectories.RUN_FILE).write_text(json.dumps({"v": 2, **run}))
    assert make_plan(config, model).pending_samples() == []
    other = EvalConfig(squares, "single-turn", model="m", out=out, model_options={"seed": 1})
    with pytest.raises(UsageError, match="a run with model_options"):
        make_plan(other, model)
