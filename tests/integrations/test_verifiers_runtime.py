"""verifiers runs a taskset with a harness in our sandboxes, by the first command and the program of
docs/verifiers.md.

It needs the virtual environment of ``test_verifiers.py``. One process checks everything, because
importing verifiers takes seconds.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from intercode.core.errors import UsageError
from support import requirements
from support.answering_endpoint import AnsweringEndpoint
from support.sources import SOURCES

pytestmark = [pytest.mark.sandbox, pytest.mark.slow("long")]
ROOT = Path(__file__).parents[2]
SUPPORT = ROOT / "tests/support/verifiers_runtime"
CONFIG = """
model = "scripted"
push = false
output_dir = "{folder}"
[client]
base_url = "{endpoint}"
api_key_var = "NO_KEY_IS_NEEDED"
[env.taskset]
id = "counting_v1"
counts = [3, 4, 5, 6]
[env.agent.runtime]
type = "intercode"
allow = []
[env.agent.timeout]
rollout = 10
"""
COMMANDS = {
    "3": "ls files | wc -l > answer.txt",
    "4": "echo 3 > answer.txt",
    "5": "sleep 3600",
    "6": "id -u > answer.txt",
}


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[int, Any]]:
    """Return what the operations of the runtime have returned, and the traces of the tasks by
    their numbers of files."""
    programs = requirements.framework_programs("verifiers")
    folder = tmp_path_factory.mktemp("verifiers")
    (folder / "tools").mkdir()
    (folder / "tools/greet").write_text("#!/bin/sh\necho hello\n")
    (folder / "tools/greet").chmod(0o755)

    def answer(messages: list[dict[str, Any]]) -> str:
        return COMMANDS[messages[-1]["content"].split()[2]]

    with AnsweringEndpoint(answer) as endpoint:
        config = folder / "eval.toml"
        config.write_text(CONFIG.format(folder=folder, endpoint=endpoint.url))
        path = os.pathsep.join([*SOURCES, str(ROOT / "tests"), str(SUPPORT)])
        prime = {"PRIME_INFERENCE_URL": endpoint.url, "PRIME_API_KEY": "none"}
        argv: list[str | Path] = [
            programs / "python",
            SUPPORT / "operations.py",
            folder / "tools",
            "eval",
            "@",
            config,
        ]
        done = subprocess.run(
            argv,
            env={**os.environ, "PYTHONPATH": path, **prime},
            capture_output=True,
            text=True,
            timeout=500,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    [traces] = folder.glob("*/traces.jsonl")
    rows = [json.loads(line)["traces"][0] for line in traces.read_text().splitlines()]
    found = json.loads(done.stdout.splitlines()[0])
    return found, {row["task"]["data"]["count"]: row for row in rows}


def test_an_import_after_verifiers_says_which_comes_first(monkeypatch) -> None:
    """The list of runtimes is read while verifiers is imported; a module stands for it here."""
    monkeypatch.setitem(sys.modules, "verifiers.v1", ModuleType("verifiers.v1"))
    with pytest.raises(UsageError, match=r"import intercode\.integrations\.verifiers before it"):
        importlib.import_module("intercode.integrations.verifiers")


def test_commands_run_in_the_working_directory_with_all_variables(checked) -> None:
    found, _ = checked
    assert found["run"] == [3, "/app\na b\n", "e\n"]
    assert found["signal"] == 128 + 15
    assert found["no program"] == 126


def test_files_cross_as_bytes_within_a_bound(checked) -> None:
    found, _ = checked
    assert found["bytes"] and found["exact"]
    assert "over the 255 byte limit" in found["too long"]
    assert "No such file" in found["no file"]
    assert found["layer"] == "hello\n"


def test_a_live_process_reads_and_writes_while_it_runs(checked) -> None:
    found, _ = checked
    assert found["live"] == ["line\n", None] and found["live error"] == "e\n"
    assert found["terminated"] == -15 and found["rest"] == []


def test_a_background_server_is_reached_from_the_machine(checked) -> None:
    found, _ = checked
    assert "bytes" in found["exposed"]


def test_a_tool_server_gets_a_configuration_that_its_verifiers_knows(checked) -> None:
    """It ended at once, as the verifiers in its sandbox has no runtime ``intercode``."""
    found, _ = checked
    assert found["server"] == {"runtime": {"type": "subprocess"}, "colocated": False}


def test_only_the_framework_is_reached_from_the_sandbox(checked) -> None:
    found, _ = checked
    assert found["set-up"] == found["framework"] == [0, "200", "greeting of the machine"]
    assert found["machine"][:2] == [7, "000"]
    assert found["outside"][:2] == [0, "403"]
    assert found["devices"] == ["lo"]


def test_a_cancelled_command_is_killed_with_what_it_started(checked) -> None:
    found, _ = checked
    assert "http.server" in found["after the limit"] and "3600" not in found["after the limit"]


def test_an_agent_with_a_user_of_its_own_has_no_more_than_its_rights(checked) -> None:
    """For commands, live and background programs, and files."""
    found = checked[0]["agent"]
    assert found["run"][0] == "1001\n/home/agent\n" and "not permitted" in found["run"][1]
    assert found["bytes"] and found["owner"] == "1001\n"
    assert "over the 255 byte limit" in found["too long"]
    assert found["live"] == ["1001\n"]
    *errors, answer = found["refused"]
    assert all("ermission denied" in error for error in errors), errors
    assert answer == "42"


def test_a_stopped_runtime_says_so(checked) -> None:
    found, _ = checked
    assert found["stopped"] and found["tier"]


def test_a_harness_plays_a_taskset_that_is_scored_in_the_sandbox(checked) -> None:
    _, traces = checked
    scores = {count: trace["rewards"]["counted"]["score"] for count, trace in traces.items()}
    assert scores == {3: 1.0, 4: 0.0, 5: 0.0, 6: 1.0}
    runtime = traces[3]["agent"]["runtime"]
    assert (runtime["type"], runtime["image"], bool(runtime["tier"])) == ("intercode", "host", True)


def test_an_agent_that_does_not_end_is_killed_and_scored(checked) -> None:
    _, traces = checked
    assert "timeout" in traces[5]["stop_condition"], traces[5]["stop_condition"]
    assert "No such file" in traces[5]["info"]["error"]
    assert "3600" not in traces[5]["info"]["running"]


def test_the_program_of_the_page_runs_an_agent_in_a_sandbox(checked) -> None:
    assert checked[0]["page"] == ["intercode", 1.0, []]
