"""The agents of the guide, the options of docs/agents.md, and what reaches their prompts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import intercode
from intercode import datasets
from intercode.agents import open_agent
from intercode.agents.model_agent import ModelAgent
from intercode.agents.prompt import PLACEHOLDERS
from intercode.evaluation.rollout import rollout
from intercode.models import ScriptedModel
from support.descriptions import brief as make_brief

PAGE = Path(__file__).parents[2] / "docs" / "agents.md"
GUIDE = PAGE.parent / "guides" / "add-an-agent.md"
LS = "```bash\nls /\n```"


def defined_on_page(name: str, page: Path = PAGE) -> Any:
    """Return what the code on a page defines under a name."""
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    (block,) = [b for b in blocks if f"class {name}" in b or f"def {name}" in b]
    assert len(block.splitlines()) <= 30
    namespace: dict[str, Any] = {"__name__": "page"}
    exec(block, namespace)
    return namespace[name]


@pytest.mark.sandbox
def test_the_agents_of_the_guide_play() -> None:
    review = defined_on_page("ReviewAgent", GUIDE)(model=ScriptedModel(["Draft.", LS]), max_turns=1)
    with intercode.make("bash") as env:
        t = rollout(review, env, 0)
        assert [s.action for s in t.steps] == ["ls /"]
        assert t.usage.requests == 2
        assert "mistakes" in t.steps[0].messages[3]["content"]
        t = rollout(defined_on_page("ListThenSubmit", GUIDE)(), env, 0)
        assert (t.end, t.turns) == ("submitted", 2)


def test_the_pages_function_shortens_old_outputs() -> None:
    rule = defined_on_page("without_old_outputs")
    messages = [{"role": "user", "content": "a\nb"} for _ in range(6)]
    assert [m["content"] for m in rule(messages, len)] == ["a", "a", "a", "a\nb", "a\nb", "a\nb"]


def test_the_page_names_every_option_and_every_name() -> None:
    page = PAGE.read_text()
    for name in ("react", "reflexion", "try-again", "plan-solve", "tool-calling", "single-turn"):
        agent = open_agent(name, model=ScriptedModel([]))
        assert isinstance(agent, ModelAgent)
        assert all(f"`{key}`" in page for key in agent.metadata() if key not in ("max_turns",))
        assert f"`{name}`" in page
        assert all(f"`${key}`" in page for key in PLACEHOLDERS | agent.placeholders)


def test_a_prompt_beside_the_agent(tmp_path: Path) -> None:
    file = tmp_path / "own.txt"
    sections = ("system", "task", "observation", "retry", "watched")
    file.write_text("".join(f"== {name} ==\nmy {name}\n" for name in sections))

    class Own(ModelAgent):
        name = "own"
        prompt_file = str(file)

    agent = Own(model=ScriptedModel([LS]))
    agent.start(make_brief("t", "q", "bash"))
    assert [m["content"] for m in agent.messages] == ["my system", "my task"]


@pytest.mark.parametrize("name", ["try-again", "react", "plan-solve", "tool-calling"])
def test_the_schema_reaches_the_prompt(
    name: str, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERCODE_DATA", str(data_dir))
    task = datasets.load("spider:schema").tasks[0]
    agent = open_agent(name, model=ScriptedModel([]))
    assert isinstance(agent, ModelAgent)
    agent.start(make_brief(task.id, task.query, "sql", notes=str(task.data["notes"])))
    table, columns = next(iter(task.data["schema"].items()))
    assert f"- {table}: {', '.join(columns)}" in agent.messages[1]["content"]
