"""Agents in the languages of the table: their prompts, and how answers are parsed."""

from __future__ import annotations

from pathlib import Path

import pytest

from intercode.agents import open_agent
from intercode.agents.tool_calling import tool_set_of
from intercode.core.languages import load_language
from intercode.environments.code.env import CodeEnv
from intercode.environments.recorded_descriptions import describe_environment
from intercode.evaluation.rollout import rollout
from intercode.models import ScriptedModel
from support.descriptions import describe, language_of
from support.languages import ADD, PERL_SUM, needs, only


def test_a_language_is_known_by_its_name() -> None:
    spoken = language_of("code:javascript")
    assert (spoken.title, spoken.tags[:2]) == ("JavaScript", ("javascript", "js"))
    assert not spoken.recognises("const x = 1")  # code outside of a fence is not recognised
    assert not load_language("support.languages:AWK").tags
    assert language_of("code:support.languages:AWK").tags == ("awk",)
    assert language_of("code").title == "code"
    assert tool_set_of(describe("code:java")).run_tool == "run_code"


def test_an_unknown_language_runs_no_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records and servers may name any language."""
    (tmp_path / "evil.py").write_text("open('ran', 'w').close()\nX = 1\n")
    monkeypatch.chdir(tmp_path)
    for name in ("evil.py:X", "evil:X"):
        named = {"language": {"name": name, "title": "Evil", "tags": ["evil"]}}
        assert describe_environment("code", named).language.title == "Evil"
        assert describe_environment(name, named).judged == "The state that you reach is judged."
    assert not (tmp_path / "ran").exists()


@pytest.mark.sandbox
@pytest.mark.parametrize("fence", ["javascript", "js", "node"])
def test_prompt_and_parsing_know_the_language(fence: str) -> None:
    needs("node")
    model = ScriptedModel([f"Here it is.\n```{fence}\n{ADD.gold}\n```"])
    with CodeEnv(only(ADD)) as env:
        played = rollout(open_agent("try-again", model=model), env, 0)
    assert [step.action for step in played.steps] == [ADD.gold]
    assert played.score == 1.0
    task_message = "".join(str(m["content"]) for m in played.steps[0].messages)
    assert (
        "JavaScript" in task_message
        and "Define add." in task_message
        and "code:javascript" not in task_message
    )


@pytest.mark.sandbox
def test_a_tool_takes_a_program() -> None:
    needs("perl")
    calls = [
        {"calls": [{"name": "run_code", "arguments": {"code": PERL_SUM.gold}}]},
        {"calls": [{"name": "submit", "arguments": {}}]},
    ]
    with CodeEnv(only(PERL_SUM)) as env:
        played = rollout(open_agent("tool-calling", model=ScriptedModel(calls)), env, 0)
    assert played.score == 1.0
