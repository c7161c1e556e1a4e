"""The guide "Add an environment" works as it is written, and a model plays what it makes.

The files of the guide lie in a directory like an installed package, with the entry points of the
guide, so that everything finds the environment by its name.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import intercode
from intercode.agents import open_agent
from intercode.cli import main
from intercode.core.trajectories import read_run_metadata
from intercode.core.types import Trajectory
from intercode.environments import BashEnv, CTFEnv, PythonEnv, SandboxedEnv
from intercode.environments.recorded_descriptions import describe_environment, description_of
from intercode.evaluation.rollout import rollout
from intercode.integrations.trl import environment_class, rows
from intercode.models import ScriptedModel
from intercode.results.export.base import code_tool_name
from intercode.results.export.tools import offered_tools
from intercode.results.statistics.behaviour import exploration_flags
from intercode_sandbox import plugins
from support import pages
from support.serving import serving

GUIDE = "add-an-environment.md"
COUNT, ANSWER = "printf sandbox | wc -c", "7"
MODULES = ("number_env", "number_tasks")
pytestmark = pytest.mark.sandbox


def fenced(code: str) -> str:
    return f"Thought: think.\n```bash\n{code}\n```"


SCRIPTS: dict[str, list[Any]] = {
    "single-turn": [fenced(f"submit {ANSWER}")],
    "try-again": [fenced(COUNT), fenced(f"submit {ANSWER}")],
    "react": [
        f"Thought 1: count.\nAction 1: execute[{COUNT}]",
        f"Thought 2: done.\nAction 2: submit[{ANSWER}]",
    ],
    "plan-solve": ["1. Count the letters.\n2. Submit.", fenced(COUNT), fenced(f"submit {ANSWER}")],
    "tool-calling": [
        {"calls": [{"name": "run_command", "arguments": {"command": COUNT}}]},
        {"calls": [{"name": "submit", "arguments": {"number": ANSWER}}]},
    ],
}
"""What a model answers that solves the first task of the guide."""


def entry_points() -> str:
    """Return the entry points of the guide as an installed package declares them."""
    (text,) = (block.text for block in pages.blocks(GUIDE) if block.language == "toml")
    return text.replace('[project.entry-points."', "[").replace('"]', "]").replace('"', "")


def install(directory: Path) -> None:
    pages.write_files(GUIDE, directory)
    info = directory / "number-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: number\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry_points())


def forget_plugins() -> None:
    plugins.find_plugins.cache_clear()
    plugins._entry_points.cache_clear()
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Install the files of the guide for a test; return their directory."""
    directory = tmp_path / "package"
    directory.mkdir()
    install(directory)
    monkeypatch.syspath_prepend(str(directory))
    forget_plugins()
    yield directory
    forget_plugins()


def test_its_names_are_listed_and_its_dataset_has_no_subsets(
    package: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its loader has no parameters."""
    assert main(["list", "--json"]) == 0
    printed, said = capsys.readouterr()
    rows = json.loads(printed)
    assert rows["datasets"]["numbers"]["tasks"] == 2 and "number" in rows["environments"]
    assert not said
    assert main(["eval", "numbers:one", "--agent", "gold"]) == 2
    assert "'numbers' has no subsets" in capsys.readouterr().err


def test_a_loader_that_fails_is_named_and_the_others_are_listed(
    package: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (package / "number_tasks.py").write_text("def load():\n    return 1 / 0\n")
    assert main(["list", "datasets", "--json"]) == 0
    printed, said = capsys.readouterr()
    assert "'numbers' of number 1.0" in said and "ZeroDivisionError" in said
    assert "starter" in json.loads(printed)["datasets"]


def test_the_guide_gives_an_environment_that_passes_the_check(tmp_path: Path) -> None:
    pages.write_files(GUIDE, tmp_path)
    printed = pages.run_commands(GUIDE, tmp_path)
    assert printed == [block.text for block in pages.blocks(GUIDE) if block.language == "text"]


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_model_plays_it_with_every_agent(package: Path, name: str) -> None:
    model = ScriptedModel(SCRIPTS[name])
    with intercode.make("number", "numbers") as env:
        episode = rollout(open_agent(name, model=model), env, 0)
        assert env.reward_name == "number_env:same_number"
    actions = [step.action for step in episode.steps if step.action]
    assert (episode.score, episode.end) == (1.0, "submitted")
    assert actions[-1] == f"submit {ANSWER}"
    first = json.dumps(list(episode.steps[0].messages))
    assert "Bash" in first and "number code" not in first
    if name != "plan-solve":
        assert "The number that you submit is judged." in first


def test_a_policy_reads_its_actions(package: Path) -> None:
    """Its rules are those of the language, whatever the environment's name."""
    with intercode.make("number", "numbers", policy={"deny": ["command:wc"]}) as env:
        env.reset(options={"task": 0})
        refused, ran = env.execute(COUNT), env.execute("echo wc")
    assert (refused.refused, ran.refused) == (True, False)
    assert "`wc -c` is not allowed" in refused.observation


def test_a_vector_and_a_pool_play_it(package: Path) -> None:
    envs = intercode.make_vec("number", num_envs=2, dataset="numbers", tasks=[0, 0])
    try:
        envs.reset()
        _, rewards, terminated, _, _ = envs.step([f"submit {ANSWER}", "submit 41"])
        assert (list(rewards), list(terminated)) == ([1.0, 0.0], [True, True])
    finally:
        envs.close()

    async def play() -> float:
        async with intercode.Pool("number", size=1, dataset="numbers") as pool:
            episode = await pool.begin(task=0)
            await episode.step(COUNT)
            return (await episode.submit(ANSWER)).reward

    assert asyncio.run(play()) == 1.0


def test_trl_gets_its_tool(package: Path) -> None:
    row = rows("number", "numbers")[0]
    assert "with the tool run_command" in str(row["prompt"])
    assert "The number that you submit is judged." in str(row["prompt"])
    player: Any = environment_class("number")("numbers", max_turns=3)
    player.reset(**row)
    assert player.run_command(command=COUNT) == "7"
    player.run_command(f"submit {ANSWER}")
    assert player.get_reward() == 1.0


def test_inspect_plays_it(package: Path, tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai", reason="pip install 'intercode-gym[inspect]'")
    from inspect_ai import eval as inspect_eval
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    from intercode.integrations.inspect import environment

    texts = [ModelOutput.from_content("mock", text) for text in SCRIPTS["try-again"]]
    for text in texts:
        text.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    model = get_model("mockllm/model", custom_outputs=texts, memoize=False)
    [log] = inspect_eval(
        environment("number", dataset="numbers", agent="try-again"),
        model=model,
        limit=1,
        log_dir=str(tmp_path / "logs"),
        display="none",
        max_samples=1,
    )
    assert log.status == "success", log.error
    scores = (log.samples or [])[0].scores or {}
    assert scores["reward"].value == {"reward": 1.0, "success": 1.0}


def environment_variables(package: Path) -> Mapping[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(package), *sys.path])}


def test_a_server_describes_it_to_its_clients(package: Path) -> None:
    pytest.importorskip("openenv", reason="pip install 'intercode-gym[openenv]'")
    from openenv.core.generic_client import GenericEnvClient

    command = ("-m", "intercode", "serve", "number", "--dataset", "numbers")
    with (
        serving(*command, env=environment_variables(package)) as url,
        GenericEnvClient(base_url=url).sync() as client,
    ):
        client.reset(task=0)
        description = client.state()["task_metadata"]["brief"]["description"]
        assert description["judged"] == "The number that you submit is judged."
        assert description["language"]["title"] == "Bash"


def test_harbor_gets_its_tasks(package: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "intercode",
            "export",
            "numbers",
            "--to",
            "harbor",
            "--out",
            str(out),
        ],
        env=environment_variables(package),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    written = out / "numbers-1"
    assert "Write the number to /app/answer.txt." in (written / "instruction.md").read_text()
    script = (written / "tests" / "test.sh").read_text()
    assert "-eq 7 ]" in script and (written / "tests" / "test.sh").stat().st_mode & 0o111


def test_a_run_records_it_for_readers_that_lack_it(package: Path, tmp_path: Path) -> None:
    run: Callable[..., Any] = intercode.evaluate
    out = tmp_path / "run"
    model = ScriptedModel(SCRIPTS["tool-calling"])
    run("numbers", agent="tool-calling", model=model, out=out, limit=1, parallel=1)
    metadata = read_run_metadata(out)
    described = describe_environment("number")
    assert metadata["environment_description"] == described.record()
    (episode,) = load(out)
    assert exploration_flags(episode) == [True]
    assert [tool["function"]["name"] for tool in offered_tools(episode)] == [
        "run_command",
        "submit",
    ]
    assert code_tool_name(episode) == "bash"
    assert description_of(episode.run) is described
    forget_plugins()
    sys.path.remove(str(package))  # as on a machine without the package
    plugins.find_plugins.cache_clear()
    assert description_of(episode.run).record() == described.record()
    assert code_tool_name(episode) == "bash"


def load(path: Path) -> list[Trajectory]:
    from intercode.core.logs import load_log

    return load_log(path)


@pytest.mark.not_in_chroot("a loopback device of its own")
def test_a_program_plays_it(package: Path, tmp_path: Path) -> None:
    pages.write_files("run-any-program.md", tmp_path)
    out = tmp_path / "run"
    intercode.evaluate(
        "numbers",
        agent="program:python3 /opt/intercode/files/agent.py",
        agent_options={"files": str(tmp_path / "my_agent")},
        out=out,
        limit=1,
        parallel=1,
        model=ScriptedModel(
            [
                {"calls": [{"name": "run_command", "arguments": {"command": COUNT}}]},
                {"calls": [{"name": "submit", "arguments": {"answer": ANSWER}}]},
            ]
        ),
    )
    (episode,) = load(out)
    assert (episode.score, episode.end) == (1.0, "submitted")


def test_a_subclass_with_a_name_of_its_own_inherits_it(package: Path) -> None:
    class Careful(BashEnv):
        name = "careful"

    with Careful("starter", policy={"deny": ["command:rm"]}) as env:
        env.reset(options={"task": 0})
        assert env.execute("rm -rf x").refused
        assert (env.reward_name, env.brief.description) == ("bash-standard", BashEnv.description)


@pytest.mark.parametrize("base", [BashEnv, CTFEnv, PythonEnv])
def test_every_environment_asks_its_profile_in_the_same_way(base: type[SandboxedEnv]) -> None:
    calls: list[str] = []

    class Watched(base.standard_profile):  # type: ignore[misc, name-defined]
        def sandbox_spec(self, *arguments: Any) -> Any:
            calls.append("sandbox_spec")
            return super().sandbox_spec(*arguments)

        def close(self) -> None:
            calls.append("close")
            super().close()

    class Watching(base):  # type: ignore[misc, valid-type]
        name = f"watching-{base.name}"
        standard_profile = Watched

    with Watching("starter") as env:
        env.reset(seed=1, options={"task": 0})
        assert "sandbox_spec" in calls
        calls.clear()
        env.end_episode()
        assert set(calls) == {"close"}
