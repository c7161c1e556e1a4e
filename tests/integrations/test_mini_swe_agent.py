"""mini-swe-agent's own agents, models and command line use our environment class."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from intercode.core.errors import SandboxLostError

os.environ.setdefault("MSWEA_SILENT_STARTUP", "1")
pytest.importorskip("minisweagent", reason="pip install 'intercode-gym[agents]'")

from minisweagent.agents.default import DefaultAgent
from minisweagent.environments import get_environment
from minisweagent.models.test_models import DeterministicModel, make_output

from intercode.integrations.mini_swe_agent import MiniSweAgentEnvironment
from support import backend
from support.sandboxes import PATIENCE
from support.time_limits import limit_at

pytestmark = pytest.mark.sandbox
CLASS = "intercode.integrations.mini_swe_agent.MiniSweAgentEnvironment"
SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
WORK = "/tmp/work"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A directory with a program that adds wrongly."""
    directory = tmp_path / "source"
    directory.mkdir()
    (directory / "add.sh").write_text("echo $(( $1 - $2 ))\n")
    return directory


@pytest.fixture
def env(source: Path) -> Iterator[MiniSweAgentEnvironment]:
    made = get_environment(
        {
            "environment_class": CLASS,
            "upload": {WORK: source},
            "cwd": WORK,
            "backend": backend.chosen(),
            "env": {"PAGER": "cat"},
        }
    )
    assert isinstance(made, MiniSweAgentEnvironment)
    yield made
    made.cleanup()


def _agent(env: MiniSweAgentEnvironment, *commands: str, **settings: Any) -> DefaultAgent:
    outputs = [make_output("I will.", [{"command": command}]) for command in commands]
    return DefaultAgent(
        DeterministicModel(outputs=outputs),
        env,
        cost_limit=0,
        system_template="You use Bash on {{system}}.",
        instance_template="{{task}}",
        **settings,
    )


def test_an_agent_repairs_a_program(
    env: MiniSweAgentEnvironment, source: Path, tmp_path: Path
) -> None:
    saved = tmp_path / "trajectory.json"
    repair = "cp add.sh add.old; sed -i s/-/+/ add.sh"
    patch = f"{SUBMIT}; diff add.old add.sh || true"
    agent = _agent(env, "sh add.sh 2 3", repair, "sh add.sh 2 3", patch, output_path=saved)
    assert agent.run("Repair add.sh.") == {
        "exit_status": "Submitted",
        "submission": "1c1\n< echo $(( $1 - $2 ))\n---\n> echo $(( $1 + $2 ))\n",
    }
    observed = [m["content"] for m in agent.messages if m["role"] == "user"][1:]
    texts = ["<output>\n-1\n</output>", "<output>\n</output>", "<output>\n5\n</output>"]
    assert [text.split("</returncode>\n")[1] for text in observed] == texts
    assert (source / "add.sh").read_text() == "echo $(( $1 - $2 ))\n"
    info = json.loads(saved.read_text())["info"]
    assert info["config"]["environment_type"] == CLASS
    assert info["isolation_tier"] == env.sandbox.tier


def test_results_of_commands(env: MiniSweAgentEnvironment) -> None:
    def execute(command: str, **settings: Any) -> dict[str, Any]:
        return env.execute({"command": command}, **settings)

    assert execute("echo out; echo err >&2; echo $PAGER; pwd; exit 3") == {
        "output": f"out\nerr\ncat\n{WORK}\n",
        "returncode": 3,
        "exception_info": "",
    }
    assert execute("pwd", cwd="/usr")["output"] == "/usr\n"
    assert execute("sleep 60 & echo $HOME")["returncode"] == 0
    with limit_at("begun"):
        late = execute("echo begun; sleep 60", timeout=PATIENCE)
    assert late["output"] == "begun\n" and late["returncode"] == -1
    assert "timed out after 120 seconds" in late["exception_info"]
    assert late["extra"]["exception_type"] == "TimeoutExpired"
    missing = execute("pwd", cwd="/missing")
    assert missing["returncode"] == -1 and "/missing" in missing["exception_info"]
    failed = execute(f"{SUBMIT}; exit 1")  # a command that fails ends no task
    assert failed["returncode"] == 1


def test_variables_are_forwarded_by_name_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIVEN", "from here")
    monkeypatch.setenv("KEY", "secret")
    env = MiniSweAgentEnvironment(
        backend=backend.chosen(), forward_env=["GIVEN", "UNSET"], env={"SET": "1"}
    )
    try:
        printed = env.execute({"command": 'echo "$GIVEN,${UNSET-none},$SET,${KEY-none}"'})
        assert printed["output"] == "from here,none,1,none\n"
    finally:
        env.cleanup()


def test_a_lost_sandbox_ends_the_agent(env: MiniSweAgentEnvironment) -> None:
    agent = _agent(env, "true", SUBMIT)
    env.cleanup()
    with pytest.raises(SandboxLostError):
        agent.run("Do nothing.")
    assert agent.messages[-1]["extra"]["exit_status"].startswith("Sandbox")


@pytest.mark.slow
def test_its_command_line(source: Path, tmp_path: Path) -> None:
    """The command of docs/mini-swe-agent.md, with a scripted model."""
    commands = ["sh add.sh 20 3 > result; cat result", SUBMIT]
    settings = {
        "environment": {
            "environment_class": CLASS,
            "upload": {WORK: str(source)},
            "cwd": WORK,
            "backend": backend.chosen(),
        },
        "model": {
            "model_class": "minisweagent.models.test_models.DeterministicModel",
            "outputs": [make_output("I will.", [{"command": text}]) for text in commands],
        },
    }
    file, saved = tmp_path / "sandbox.yaml", tmp_path / "trajectory.json"
    file.write_text(json.dumps(settings))  # which is YAML, too
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "minisweagent",
            "--yolo",
            "--exit-immediately",
            "--task",
            "Add.",
            "--model",
            "scripted",
            "--config",
            "mini.yaml",
            "--config",
            file,
            "--output",
            saved,
        ],
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "MSWEA_CONFIGURED": "true", "MSWEA_GLOBAL_CONFIG_DIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    record = json.loads(saved.read_text())
    assert record["info"]["exit_status"] == "Submitted"
    shown = [m["content"] for m in record["messages"] if m["role"] == "user"]
    assert json.loads(shown[1]) == {"returncode": 0, "output": "17\n"}
    assert not (source / "result").exists()


@pytest.mark.namespace_only("others have no gateway")
def test_the_network_may_have_rules() -> None:
    environment = MiniSweAgentEnvironment(network="allow:Index.test")
    try:
        assert "198.19.0.1" in environment.execute({"command": "getent hosts index.test"})["output"]
    finally:
        environment.cleanup()
