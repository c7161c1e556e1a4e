"""Agents of the Agent Client Protocol play as docs/program-agents.md says: their files, their
terminals and their model are those of the episode."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import intercode
from intercode.agents.programs import ProgramAgent
from intercode.agents.programs.acp import ACP_AGENTS
from intercode.core.errors import ConfigError
from intercode.core.types import Trajectory
from intercode.evaluation.programs.installation import Installation
from intercode.evaluation.rollout import rollout
from intercode.models.providers.function import FunctionModel
from support.answering_endpoint import AnsweringEndpoint
from support.sandboxes import eventually

pytest.importorskip("acp", reason="pip install 'intercode-gym[agents]'")
pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.heavy,
    pytest.mark.not_in_chroot("a loopback device of its own"),
]
AGENT = Path(__file__).parents[1] / "support" / "acp_agent"
TASK = "starter/bash/deploy-executable"
SCRIPT = "/srv/quaywheel/scripts/deploy.sh"
CHANGE = f"chmod u+x {SCRIPT}"


def call(number: int, **arguments: str) -> dict[str, Any]:
    """Return an answer that calls the tool ``run``, or ``copy`` for a path."""
    name = "copy" if "path" in arguments else "run"
    function = {"name": name, "arguments": json.dumps(arguments)}
    one = {"index": 0, "id": f"call_{number}x", "type": "function", "function": function}
    return {"content": f"turn {number}", "tool_calls": [one]}


def scripted(*answers: Any) -> Any:
    """Return a model that gives these answers by the turn of the conversation."""

    def answer(messages: list[dict[str, Any]]) -> Any:
        turn = sum(m["role"] == "assistant" for m in messages)
        return answers[min(turn, len(answers) - 1)]

    return answer


def evaluate(out: Path, mode: str, model: Any, **settings: Any) -> Trajectory:
    """Play one task with the agent of tests."""
    options = {"files": str(AGENT), "seconds": 60, **settings.pop("agent_options", {})}
    run = intercode.evaluate(
        "starter:bash",
        f"acp:python3 /opt/intercode/files/agent.py {mode}",
        model=model,
        tasks=[TASK],
        quiet=True,
        out=out,
        agent_options=options,
        **settings,
    )
    [episode] = run.episodes
    return episode


def marked_processes() -> list[str]:
    """Return the processes of this machine that an agent of these tests has left."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes()
        except OSError:  # it has ended
            continue
        if b"outlives-its-session" in line:
            found.append(str(entry))
    return found


def test_what_an_agent_asks_of_its_client_happens_in_the_sandbox_and_is_recorded(
    tmp_path: Path,
) -> None:
    """Its usage is the endpoint's count, and each tool call, permission, terminal and file is in
    the step of the answer that led to it."""
    failing = call(0, command="echo out; echo err >&2; exit 3")
    answers = [failing, call(1, path=SCRIPT), call(2, command=CHANGE), "DONE"]
    with AnsweringEndpoint(scripted(*answers), usage=(90, 10)) as endpoint:
        price = {"price": {"input": 1.0, "output": 2.0}}
        episode = evaluate(
            tmp_path / "run", "work", "m", base_url=endpoint.url, model_options=price
        )
        asked = len(endpoint.requests)
    assert (episode.end, asked) == ("submitted", 4), episode
    usage = episode.usage
    assert (usage.requests, usage.prompt_tokens, usage.completion_tokens) == (4, 360, 40)
    assert usage.cost == pytest.approx(4 * 110e-6)
    failed, copied, changed, said = episode.steps
    assert (failed.action, failed.observation, failed.exit_code) == (
        "echo out; echo err >&2; exit 3",
        "out\nerr\n",
        3,
    )
    tool = {"title": "run", "kind": "execute", "status": "failed"}
    assert failed.context["seen"] == [
        {"seen": "tool call", "tool": "run", "action": failed.action},
        {"seen": "tool call update", "action": failed.action, **tool},
        {"seen": "permission request", "action": failed.action, "answer": "allow_once"},
        {"seen": "terminal", "action": failed.action, "exit_code": 3},
    ]
    assert copied.observation == "#!/bin/sh\n"
    assert [entry["action"] for entry in copied.context["seen"][3:]] == [
        f"read {SCRIPT}",
        f"write {SCRIPT}.copy",
    ]
    assert copied.changes == (f"{SCRIPT}.copy",)
    assert (changed.exit_code, changed.changes) == (0, (SCRIPT, f"{SCRIPT}.copy"))
    assert said.action == "submit"
    about = said.context["program"]
    assert about["agent"] == {"name": "test-agent", "version": "1.0"}
    assert (about["session"], about["stop_reason"]) == ("the-session", "end_turn")


def test_a_file_that_an_agent_writes_keeps_its_mode(tmp_path: Path) -> None:
    model = scripted(
        call(0, command=f"{CHANGE}; touch {SCRIPT}.copy; chmod 700 {SCRIPT}.copy"),
        call(1, path=SCRIPT),
        call(2, command=f"stat -c %a {SCRIPT}.copy"),
        "done",
    )
    episode = evaluate(tmp_path / "run", "work", model)
    assert episode.steps[2].observation == "700\n"


@pytest.mark.parametrize("mode", ["work", pytest.param("deaf", marks=pytest.mark.slow)])
def test_at_a_limit_the_turn_is_cancelled_and_nothing_is_left(tmp_path: Path, mode: str) -> None:
    left = "setsid bash -c 'exec -a outlives-its-session sleep 1000' >/dev/null 2>&1 &"
    model = scripted(call(0, command=left), call(1, command="echo later"))
    episode = evaluate(tmp_path / "run", mode, model, max_turns=2)
    assert (episode.end, episode.turns) == ("turn_limit", 2), episode
    assert [step.exit_code for step in episode.steps] == [0, 0]
    about = episode.steps[-1].context["program"]
    assert about["stopped"] == "stopped at the turn limit"
    assert about.get("stop_reason") == (None if mode == "deaf" else "cancelled")
    eventually(lambda: not marked_processes(), "everything has ended")


def test_an_agent_is_stopped_after_its_time(tmp_path: Path) -> None:
    episode = evaluate(tmp_path / "run", "wait", lambda _: "", agent_options={"seconds": 1})
    assert episode.end == "budget"
    assert "1 s" in episode.steps[-1].context["program"]["stopped"]


def test_the_edges_of_files_and_terminals(tmp_path: Path) -> None:
    """Only a newline ends a line, a limit of 0 bytes is one, and a release answers who waits."""
    episode = evaluate(tmp_path / "run", "details", lambda _: "")
    said = episode.steps[-1].action.removeprefix("submit ")
    assert json.loads(said) == ["a\fb\n", "", True, "9"]


def test_an_agent_that_reads_nothing_is_stopped(tmp_path: Path) -> None:
    episode = evaluate(tmp_path / "run", "unread", lambda _: "", max_turns=1)
    assert (episode.end, episode.turns) == ("turn_limit", 1)


def test_an_agent_that_ends_or_refuses_or_babbles(tmp_path: Path) -> None:
    for mode in ("quit", "leave"):
        quits = evaluate(tmp_path / mode, mode, lambda _: "")
        assert (quits.end, quits.steps[-1].context["program"]["exit_code"]) == ("agent_stopped", 7)
    for mode in ("refuse", "refuse badly"):
        refuses = evaluate(tmp_path / mode, mode, lambda _: "")
        assert refuses.end == "agent_stopped"
        assert "no prompt suits me" in refuses.steps[-1].context["program"]["stopped"]
    babbles = evaluate(tmp_path / "babble", "babble enough", lambda _: "")
    assert (babbles.end, babbles.steps[-1].action) == ("submitted", "submit enough")


def test_the_policy_is_asked_for_permissions(tmp_path: Path) -> None:
    """Also for what no model has called."""
    policy = {"deny": ["command:chmod"]}
    episode = evaluate(tmp_path / "run", f"ask '{CHANGE}'", lambda _: "", policy=policy)
    asked, said = episode.steps
    [seen] = asked.context["seen"]
    assert (seen["action"], seen["answer"]) == (CHANGE, "reject_once")
    assert said.action.startswith("submit n: ")
    assert "chmod" in said.action
    assert not episode.success


def play(env: intercode.Env, text: str) -> Trajectory:
    """Play the first task with an agent that says a text."""
    command = f"acp:python3 /opt/intercode/files/agent.py say '{text}'"
    agent = ProgramAgent(command, model=FunctionModel(lambda _: "unused"), files=str(AGENT))
    return rollout(agent, env, 0, seed=3)


def test_the_last_message_is_the_answer() -> None:
    """As a flag, as the output that a task asks for, and as code in prose."""
    layers = Installation((), str(AGENT))
    with intercode.make("ctf", dataset="starter", extra_layers=layers) as env:
        env.reset(seed=3, options={"task": 0})
        right = play(env, env.task.flag)
        wrong = play(env, "flag{no}")
    assert (right.end, right.score, wrong.score) == ("submitted", 1.0, 0.0)
    with intercode.make("python", dataset="starter", extra_layers=layers) as env:
        code = env.dataset.tasks[0].solution
        solved = play(env, f"Here it is:\n```python\n{code}\n```")
        none = play(env, "I do not know.")
    assert (solved.end, solved.score) == ("submitted", 1.0), solved.steps
    assert (none.end, none.score) == ("submitted", 0.0)


def test_what_no_agent_has_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, options, words in (
        ("acp: ", {}, "acp: names no program"),
        ("acp:true", {"version": "1"}, "version is an option of"),
    ):
        with pytest.raises(ConfigError, match=words):
            intercode.evaluate(
                "starter:bash",
                name,
                model=lambda _: "",
                out=tmp_path / "run",
                agent_options=options,
            )
    monkeypatch.setitem(sys.modules, "acp", None)
    with pytest.raises(ConfigError, match="pip install"):
        intercode.evaluate("starter:bash", "acp:codex", model=lambda _: "", out=tmp_path / "run")


def test_the_page_has_the_agents_that_are_known() -> None:
    protocols = {"chat": "Chat Completions", "responses": "Responses", "messages": "Messages"}
    rows = [
        f"| `{a.name}` | `{a.package}` | {a.version} | {protocols[a.protocol]} |"
        for a in ACP_AGENTS.values()
    ]
    page = (Path(__file__).parents[2] / "docs/program-agents.md").read_text("utf-8")
    assert "\n".join(["|---|---|---|---|", *rows, "\n"]) in page


@pytest.mark.slow
@pytest.mark.parametrize("example", ["echo_agent.py", "agent.py"])
def test_the_examples_of_the_library_play(tmp_path: Path, example: str) -> None:
    """The agents in the source distribution of ``agent-client-protocol``, which repeat the
    prompt."""
    release = "agent-client-protocol==0.12.1"
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary"]
    subprocess.run([*download, ":all:", "--dest", str(tmp_path), release], check=True)
    [archive] = tmp_path.glob("*.tar.gz")
    subprocess.run(["tar", "-xzf", str(archive), "-C", str(tmp_path)], check=True)
    [files] = tmp_path.glob("*/examples")
    run = intercode.evaluate(
        "starter:bash",
        f"acp:PYTHONPATH=/opt/intercode/pypi python3 /opt/intercode/files/{example}",
        model=lambda _: "unused",
        limit=1,
        quiet=True,
        out=tmp_path / "run",
        agent_options={"files": str(files), "pypi": [release]},
    )
    [episode] = run.episodes
    assert (episode.end, episode.usage.requests) == ("submitted", 0)
    assert "How many regular files" in episode.steps[-1].action
    assert os.path.exists(tmp_path / "run" / "trajectories.jsonl")
    assert release in json.dumps(episode.run)
