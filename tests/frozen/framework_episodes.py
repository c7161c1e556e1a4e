"""Plays episodes through a framework of others and prints what came of them, as ``Item`` has it.

``frameworks.py`` runs this file with the version under test. Argument: ``inspect`` or ``trl``.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from intercode import datasets

ACTIONS = {
    "bash": ["ls /srv", "nosuchcommand", "echo 7"],
    "sql": ["SHOW TABLES", "SELECT * FROM nowhere", "SELECT 7"],
    "python": ["x = 7", "1/0", "def f(n):\n    return n"],
    "ctf": ["ls -a", "cat nowhere", "submit flag{wrong}"],
    "code": ["int main(void) { return 0; }", "nothing", "x"],
}
FENCES = {"ctf": "bash", "code": "c"}


def play_in_inspect(exact: dict[str, Any]) -> None:
    """Play tasks of Inspect with our agents, and with its own agent in our sandbox."""
    from inspect_ai import eval as inspect_eval
    from inspect_ai.agent import AgentSubmit, react
    from inspect_ai.model import ChatMessageAssistant, ModelOutput, ModelUsage, get_model
    from inspect_ai.tool import ToolCall
    from inspect_ai.tool import bash as shell_tool

    from intercode.integrations import inspect as ours

    def answer(text: str, call: dict[str, str] | None = None) -> ModelOutput:
        output = ModelOutput.from_content("mock", text)
        calls = [ToolCall(id="1", function="bash", arguments=call)] if call else None
        output.choices[0].message = ChatMessageAssistant(content=text, tool_calls=calls)
        output.usage = ModelUsage(input_tokens=1, output_tokens=1)  # else tokens are counted
        return output

    def play(label: str, task: Any, answers: Sequence[ModelOutput], **settings: Any) -> None:
        model = get_model("mockllm/model", custom_outputs=list(answers), memoize=False)
        with tempfile.TemporaryDirectory() as logs:
            [log] = inspect_eval(
                task, model=model, log_dir=logs, display="none", max_samples=1, limit=2, **settings
            )
            exact[label] = [log.status, str(log.error.message) if log.error else ""]
            for sample in log.samples or ():
                exact[f"{label} {sample.id}"] = {
                    "input": str(sample.input),
                    "messages": [[m.role, m.text] for m in sample.messages],
                    "scores": {k: v.value for k, v in (sample.scores or {}).items()},
                    "answers": {k: v.answer for k, v in (sample.scores or {}).items()},
                    "limit": str(sample.limit.type) if sample.limit else None,
                }

    for name, codes in ACTIONS.items():
        make: Callable[..., Any] = getattr(ours, name)
        play(f"{name} gold", make(agent="gold"), [])
        fence = FENCES.get(name, name)
        texts = [answer(f"```{fence}\n{code}\n```") for code in [*codes, "submit"] * 2]
        play(f"{name} try-again", make(agent="try-again", max_turns=4), texts)
    commands = [answer("", {"command": code}) for code in ACTIONS["bash"]]
    agent = react(tools=[shell_tool()], submit=AgentSubmit(answer_only=True))
    own = [*commands, answer("done")]
    play("own agent", ours.bash(), own * 2, solver=agent, message_limit=8)


def play_in_trl(exact: dict[str, Any]) -> None:
    """Play tasks as TRL's trainer does: reset with a row, call the tool, ask for the reward."""
    from intercode.integrations import trl

    for name, kind in trl.ENVIRONMENTS.items():
        tool = "bash" if name == "ctf" else name
        rows = trl.rows(name)
        exact[f"{name} rows"] = [len(rows), rows[0]]
        player = kind(max_turns=4, **({} if name == "sql" else {"deterministic": True}))
        exact[f"{name} tool"] = getattr(player, tool).__doc__
        tasks = datasets.load("starter", name).tasks
        for number in (0, 3):
            actions = [*ACTIONS[name], tasks[number].solution or "submit flag{no}"]
            seen: list[Any] = [player.reset(**{**rows[number], "seed": 5})]
            for action in actions:
                try:
                    seen.append(getattr(player, tool)(action))
                except Exception as e:
                    seen.append([type(e).__name__, str(e)])
            exact[f"{name} {number}"] = [*seen, player.get_reward()]


if __name__ == "__main__":
    found: dict[str, Any] = {}
    {"inspect": play_in_inspect, "trl": play_in_trl}[sys.argv[1]](found)
    print(json.dumps({"exact": found, "wording": {}}))
