"""Released programs play by the commands of docs/program-agents.md: each is installed from its
registry and answered by a script, which stands in for the model. With ``-v`` this prints which of
the agents of the Agent Client Protocol play and are stopped."""

from __future__ import annotations

import json
import os
import shlex
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import intercode
from intercode.agents.programs.acp import ACP_AGENTS
from intercode.cli import main
from intercode.evaluation.evaluate import plan
from intercode.models.prices import Price
from intercode.models.providers.function import FunctionModel
from support import traces
from support.sandboxes import eventually
from support.snippets import commands, read_snippets

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.network,
    pytest.mark.slow,
    pytest.mark.not_in_chroot("a loopback device of its own"),
]
PAGE = Path(__file__).parents[2] / "docs/program-agents.md"
TASK = "starter/bash/deploy-executable"
SCRIPT = "/srv/quaywheel/scripts/deploy.sh"
LOOK, CHANGE = f"ls {SCRIPT}", f"chmod u+x {SCRIPT}"
FINISH = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
PROGRAMS = {
    "mini-swe-agent": ("bash", "command", FINISH),
    "codex": ("exec_command", "cmd", None),
    "claude-code": ("Bash", "command", None),
}
"""The tool of each program that runs commands, its argument, and the command that ends it."""

ACP = {
    "claude-code": ("Bash", "command"),
    "codex": ("exec_command", "cmd"),
    "opencode": ("bash", "command"),
    "qwen-code": ("run_shell_command", "command"),
    "cline": ("run_commands", "commands"),
}
"""The same of each agent of the Agent Client Protocol. The argument of the last is a list."""


def marked_processes() -> list[str]:
    """Return the command lines in this process's sandboxes that run an installed program. Another
    test may run one at the same time, in sandboxes of another process."""
    lines = []
    for pid, _ in traces.family(os.getpid()).others:
        with suppress(OSError):  # it has ended
            lines.append(Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace"))
    return [line for line in lines if "/opt/intercode/" in line]


def shown(name: str) -> list[str]:
    """Return the arguments of the page's command that plays with a program."""
    snippets = [s for s in read_snippets(PAGE.read_text("utf-8")) if s.language == "console"]
    lines = [line for snippet in snippets for line, _ in commands(snippet.body)]
    [line] = [line for line in lines if f" --agent program:{name} " in line]
    return shlex.split(line)[1:]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_released_program_plays_is_scored_and_leaves_nothing(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool, argument, finish = PROGRAMS[name]
    commands = [LOOK, CHANGE, *([finish] if finish else [])]

    def answer(messages: list[Any]) -> dict[str, Any]:
        turn = sum(m["role"] == "assistant" for m in messages)
        assert marked_processes()
        if turn >= len(commands):
            return {"content": "It is done."}
        arguments = json.dumps({argument: commands[turn]})
        function = {"name": tool, "arguments": arguments}
        call = {"id": f"call_{'abc'[turn]}", "type": "function", "function": function}
        return {"content": f"I run {commands[turn]}.", "tool_calls": [call]}

    def open_model(model: str, *_: Any, **__: Any) -> FunctionModel:
        stand_in = FunctionModel(answer, model)
        stand_in.price = Price(1.0, 2.0)
        return stand_in

    monkeypatch.setattr(plan, "open_model", open_model)

    def play(out: str, *limits: str) -> intercode.Run:
        assert main([*shown(name), "--tasks", TASK, "--out", str(tmp_path / out), *limits]) == 0
        return intercode.load_run(tmp_path / out)

    [episode] = play("whole").episodes
    assert (episode.end, episode.success) == ("submitted", True), episode
    looked, changed = episode.steps[:2]
    assert (looked.action, looked.observation.strip()) == (LOOK, SCRIPT)
    assert (changed.action, changed.exit_code, changed.changes) == (CHANGE, 0, (SCRIPT,))
    assert episode.steps[-1].context["program"]["exit_code"] == 0
    [stopped] = play("stopped", "--max-turns", "1").episodes
    assert (stopped.end, stopped.turns, stopped.success) == ("turn_limit", 1, False)
    eventually(lambda: not marked_processes(), "the program has ended")


class Script:
    """A model that looks at the script, changes it, and says that it is done."""

    def __init__(self, tool: str, argument: str) -> None:
        self.tool, self.argument, self.asked = tool, argument, 0

    def __call__(self, messages: list[Any]) -> dict[str, Any]:
        self.asked += 1
        assert marked_processes()
        commands = [LOOK, CHANGE]
        turn = sum(m["role"] == "assistant" for m in messages)
        is_aside = "write the title" in str(messages[-1]["content"]).lower()  # by Claude Code
        if turn >= len(commands) or is_aside:
            return {"content": "DONE"}
        command: Any = [commands[turn]] if self.argument == "commands" else commands[turn]
        arguments = {self.argument: command, "description": "works"}
        if self.tool == "run_shell_command":
            arguments["is_background"] = False
        function = {"name": self.tool, "arguments": json.dumps(arguments)}
        call = {"id": f"call_{'ab'[turn]}", "type": "function", "function": function}
        return {"content": f"I run {commands[turn]}.", "tool_calls": [call]}


@pytest.mark.parametrize("limit", ["plays", "is-stopped"])
@pytest.mark.parametrize("name", ACP)
def test_a_released_agent_of_the_protocol(tmp_path: Path, name: str, limit: str) -> None:
    """Whole, its usage is what the model has counted; at a limit of turns, it leaves nothing."""
    assert ACP.keys() == ACP_AGENTS.keys()
    script = Script(*ACP[name])
    run = intercode.evaluate(
        "starter:bash",
        f"acp:{name}",
        model=script,
        tasks=[TASK],
        quiet=True,
        out=tmp_path / "run",
        max_turns=20 if limit == "plays" else 1,
        agent_options={"seconds": 200},
    )
    [episode] = run.episodes
    eventually(lambda: not marked_processes(), "the agent has ended")
    assert episode.usage.requests == script.asked == episode.turns
    if limit == "is-stopped":
        assert (episode.end, episode.success) == ("turn_limit", False)
        return
    assert (episode.end, episode.success) == ("submitted", True), episode
    assert any(LOOK in step.action for step in episode.steps)
    assert episode.steps[-1].context["program"]["stop_reason"] == "end_turn"
    seen = [entry for step in episode.steps for entry in step.context.get("seen", ())]
    updates = [entry for entry in seen if entry["seen"] == "tool call update"]
    assert [entry["status"] for entry in updates] == ["completed"] * 2
    assert f"@{ACP_AGENTS[name].version}" in json.dumps(episode.run)
