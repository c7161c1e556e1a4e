"""Invalid answers, tool calls, turns by a human, and what is recorded."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from intercode.agents import open_agent
from intercode.agents.model_agent import ModelAgent
from intercode.agents.tool_calling import sanitize_calls, tool_set_of
from intercode.core.errors import ConfigError, EnvironmentStateError, UnknownNameError
from intercode.core.types import AgentOutput, Brief, Score, Step, Usage
from intercode.models import ScriptedModel
from intercode.models.base import Completion, Message, Model, Tool
from support.descriptions import brief as make_brief
from support.descriptions import describe

BRIEF = make_brief("t/1", "Count the files.", "bash")
LS = "```bash\nls\n```"


class Answers(Model):
    """A model that returns completions one after another."""

    name = "answers"

    def __init__(self, *completions: Completion) -> None:
        self.left = list(completions)
        self.requests: list[list[Message]] = []
        self.tools: Sequence[Tool] = ()

    def complete(self, messages: Sequence[Message], *, tools: Sequence[Tool] = ()) -> Completion:
        self.requests.append(list(messages))
        self.tools = tools
        return self.left.pop(0)


def begun(name: str, model: Any, brief: Brief = BRIEF, **options: Any) -> ModelAgent:
    agent = open_agent(name, options, model=model)
    assert isinstance(agent, ModelAgent)
    agent.start(brief)
    return agent


def acted(agent: ModelAgent, feedback: Step | None = None) -> AgentOutput:
    move = agent.act(feedback)
    assert move is not None
    return move


def calling(*calls: tuple[str, str], text: str = "", finish: str = "tool_calls") -> Completion:
    made: Any = [
        {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for n, (name, arguments) in enumerate(calls)
    ]
    return Completion(text, Usage(1, 1, 1), finish, calls=tuple(made))


# ------------------------------------------------------------- answers
@pytest.mark.parametrize(
    ("finish", "words"),
    [
        *((name, "limit of tokens") for name in ("length", "max_tokens", "MAX_TOKENS")),
        ("model_length", "limit of tokens"),
        ("model_context_window_exceeded", "limit of tokens"),
        ("content_filter", r"broken off (content_filter)"),
        ("RECITATION", "broken off (RECITATION)"),
        ("abort", "broken off (abort)"),
    ],
)
def test_an_answer_that_was_cut_off_is_not_run(finish: str, words: str) -> None:
    cut = LS.removesuffix("\n```")
    model = Answers(Completion(cut, Usage(), finish), Completion(LS, Usage(), "stop"))
    agent = begun("try-again", model)
    move = acted(agent)
    assert move.action is None
    assert words in move.reply
    assert acted(agent, Step("", move.reply)).action == "ls"


@pytest.mark.parametrize("name", ["try-again", "react", "single-turn"])
@pytest.mark.parametrize(
    ("text", "action"),
    [
        (LS, "ls"),
        (f"{LS}\n", "ls"),
        (f"I look.\n{LS}\nThis lists the fi", "ls"),
        (f"{LS}\nNext:\n```bash\nrm -r", "ls"),
        (f"{LS}\n```bash\nrm x\n```\nand", "ls"),
        ("~~~sh\nls\n~~~\nand", "ls"),
        ("```bash\nls -", None),
        ("```bash\nls -l\n", None),
        ("```bash\ncat <<E\n``", None),
        ("```bash\ncat <<E\n```", None),
        ("```bash\ncat <<E\na\nE\n```", "cat <<E\na\nE"),
        ('```bash\ncat <<E\n"""a\nE\n```\nand', 'cat <<E\n"""a\nE'),
        ("```bash\necho $((1<<2))\n```\nThis", "echo $((1<<2))"),
        ("```bash\ncat <<< a | grep '<<E'\n```\nThis", "cat <<< a | grep '<<E'"),
        ("ls -l", None),
        ("ls -l\n", None),
        ("I will look at", None),
        ("", None),
    ],
)
def test_code_that_ended_before_the_cut_is_run(name: str, text: str, action: str | None) -> None:
    agent = begun(name, Answers(*[Completion(text, Usage(), "length")] * 2))
    assert acted(agent).action == action


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("Thought 1: a\nAction 1: execute[ls]\nObservation 1: b", "ls"),
        ("Action: execute[ls]", "ls"),
        ("Action: execute[ls", None),
        ("Action: execute[if [ -f a ]; then ls; fi", None),
        ("Action: execute[if [ -f a ]; then ls; fi]\nThis", "if [ -f a ]; then ls; fi"),
        ("Action: ls -", None),
    ],
)
def test_an_action_of_react_that_ended_before_the_cut_is_run(text: str, action: str | None) -> None:
    agent = begun("react", Answers(*[Completion(text, Usage(), "length")] * 2))
    assert acted(agent).action == action


@pytest.mark.parametrize(
    "code",
    [
        "print(1 << 3)",
        'x = \'a\'  # not """',
        "print(\"'''\")",
        "x = '''\"\"\"'''",
        '"""\n```\n"""',
    ],
)
def test_python_that_ended_before_the_cut_is_run(code: str) -> None:
    model = Answers(Completion(f"```python\n{code}\n```\nThis", Usage(), "length"))
    agent = begun("try-again", model, make_brief("t/1", "Count.", "python"))
    assert acted(agent).action == code


@pytest.mark.parametrize("text", ["", "I will look at", "<think>I will", "```text\na\n```\nand"])
def test_the_reason_for_a_cut_answer_without_code_is_the_cut(text: str) -> None:
    move = acted(begun("try-again", Answers(Completion(text, Usage(), "length"))))
    assert (move.action, "limit of tokens" in move.reply) == (None, True)


def test_a_call_before_another_one_was_complete_at_the_cut() -> None:
    one, two = ("run_command", '{"command": "ls"}'), ("run_command", '{"command": "rm')
    model = Answers(calling(one, two, finish="length"), calling(one, finish="length"))
    agent = begun("tool-calling", model)
    assert acted(agent).action == "ls"
    assert acted(agent, Step("", "a")).action is None


@pytest.mark.parametrize("name", ["single-turn", "try-again", "react", "tool-calling"])
def test_an_empty_answer_is_a_turn(name: str) -> None:
    agent = begun(name, Answers(Completion("")))
    move = acted(agent)
    assert move.action is None
    assert "empty" in move.reply or "no action" in move.reply
    assert move.messages[-1]["content"]


def test_thoughts_of_every_kind_are_recorded() -> None:
    model = Answers(
        Completion(f"<think>in tags</think>{LS}", reasoning="told apart", tokens={"ids": [1]})
    )
    move = acted(begun("try-again", model))
    assert move.thought == "told apart\n\nin tags"
    assert move.context == {"answer": {"characters": len(LS) + 22, "shown": len(LS)}}
    assert move.messages[-1] == {
        "role": "assistant",
        "content": LS,
        "reasoning": "told apart",
        "tokens": {"ids": [1], "edited": True},
    }


def test_react_asks_for_an_action_that_is_missing() -> None:
    model = Answers(
        Completion("Thought 1: I wonder.", Usage(5, 1, 1)),
        Completion("execute[ls]", Usage(7, 1, 1)),
    )
    agent = begun("react", model)
    move = acted(agent)
    assert (move.action, move.thought) == ("ls", "I wonder.")
    assert move.usage == Usage(12, 2, 2)
    assert [m["role"] for m in move.messages] == [
        "system",
        "user",
        "assistant",
        "user",
        "assistant",
    ]
    assert move.messages[3]["content"] == "Action 1:"


def test_plan_and_solve_refines_until_it_is_solved() -> None:
    agent = begun("plan-solve", ScriptedModel(["1. look\n2. count", *[LS] * 5]), refine=2)
    assert acted(agent).thought == "look"
    assert agent.ends_when_solved is False
    solved = Step("", "a", score=Score(1.0))
    assert acted(agent, solved).thought == "count"
    assert agent.ends_when_solved is True
    move = acted(agent, Step("", "b", score=Score(0.5)))
    assert "is not solved" in move.messages[0]["content"]
    assert move.messages[0]["content"].startswith("Output:\nb\n")
    acted(agent, Step("", "c", score=Score(0.5)))
    assert agent.act(Step("", "d", score=Score(0.5))) is None
    agent.start(BRIEF)
    acted(agent)
    acted(agent, Step("", "a"))
    assert agent.act(solved) is None


def test_plans_without_steps() -> None:
    agent = begun("plan-solve", ScriptedModel(["", LS]))
    assert BRIEF.query in acted(agent).messages[3]["content"]
    with pytest.raises(ConfigError, match="refine is -1"):
        open_agent("plan-solve", {"refine": -1}, model=ScriptedModel([]))


def test_the_plan_is_never_left_out() -> None:
    agent = begun("plan-solve", ScriptedModel(["1. a\n2. b\n3. c", LS, LS, LS]), history="last:1")
    acted(agent)
    acted(agent, Step("", "one"))
    move = acted(agent, Step("", "two"))
    assert move.context["history"]["turns_left_out"] == 2
    assert agent.conversation.messages[2]["content"] == "1. a\n2. b\n3. c"


# --------------------------------------------------------------- tools
def test_of_several_calls_the_first_is_run() -> None:
    model = Answers(
        calling(("run_command", '{"command": "ls"}'), ("run_command", '{"command": "pwd"}')),
        calling(("submit", "{}")),
    )
    agent = begun("tool-calling", model)
    assert [t.name for t in model.tools] == []
    assert acted(agent).action == "ls"
    assert [t.name for t in model.tools] == ["run_command", "submit"]
    move = acted(agent, Step("", "a\n"))
    assert move.action == "submit"
    first, second = move.messages[:2]
    assert (first["role"], first["tool_call_id"], first["content"]) == ("tool", "c0", "a")
    assert second["tool_call_id"] == "c1"
    assert second["content"].startswith("Not run")


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (("run_command", '{"command": "ls'), "no JSON"),
        (("run_command", '["ls"]'), "no JSON object"),
        (("run_command", '{"command": 3}'), "has to be text"),
        (("run_command", "{}"), "needs command"),
        (("rm_all", "{}"), "there is no tool 'rm_all'"),
    ],
)
def test_a_malformed_call_is_a_turn(call: tuple[str, str], why: str) -> None:
    agent = begun("tool-calling", Answers(calling(call), calling(("submit", "{}"))))
    move = acted(agent)
    assert move.action is None
    assert why in move.reply
    recorded = move.messages[-1]["tool_calls"][0]["function"]["arguments"]
    assert recorded == (call[1] if why not in ("no JSON", "no JSON object") else "{}")
    assert move.context.get("arguments_replaced") == (1 if recorded != call[1] else None)
    sent = acted(agent, Step("", move.reply)).messages[0]
    assert (sent["role"], sent["content"]) == ("tool", move.reply)


def test_text_without_a_call_is_a_turn() -> None:
    agent = begun("tool-calling", Answers(Completion(LS), calling(("submit", "{}"))))
    move = acted(agent)
    assert move.action is None and "calls no tool" in move.reply
    assert acted(agent, Step("", move.reply)).messages[0]["role"] == "user"


def test_tool_calls_of_each_environment() -> None:
    def read(environment: str, name: str, arguments: str) -> tuple[str | None, str]:
        return tool_set_of(describe(environment)).parse_call(calling((name, arguments)).calls[0])

    assert read("sql", "run_query", '{"statement": "SELECT\n1"}') == ("SELECT\n1", "")
    assert read("ctf", "submit", '{"flag": " flag{a} "}') == ("submit flag{a}", "")
    assert read("ctf", "submit", "{}") == (None, "submit needs flag")
    assert read("python", "submit", '{"name": "f"}') == ("submit f", "")
    assert read("python", "submit", "") == ("submit", "")
    assert read("cobol", "run", '{"code": "STOP RUN."}') == ("STOP RUN.", "")
    run, submit = tool_set_of(describe("ctf")).tools("Runs.", "Submits.")
    assert run.parameters["required"] == ["command"]
    assert (submit.parameters["required"], submit.description) == (["flag"], "Submits.")


def test_calls_are_made_fit_to_be_sent_back() -> None:
    a, b = calling(("run", "{}"), ("run", "{")).calls
    one, two, three = sanitize_calls([{**a, "id": ""}, b, {**b}], turn=4)
    assert (one["id"], two["id"], three["id"]) == ("call_4_0", "c1", "call_4_2")
    assert two["function"]["arguments"] == "{}"


# ----------------------------------------------------- others, and records
def test_a_human_plays_a_turn() -> None:
    model = Answers(Completion(LS), Completion(LS))
    agent = begun("try-again", model)
    acted(agent)
    agent.record_intervention("pwd", Step("", "/srv\n"), before=Step("", "a b", score=Score(0.5)))
    agent.record_intervention("cd /", Step("", ""))
    move = acted(agent)
    assert len(move.messages) == 2
    sent = move.messages[0]["content"]
    assert sent.index("a b") < sent.index("Reward: 0.5") < sent.index("pwd") < sent.index("/srv")
    assert sent.endswith("cd /\n\nIt printed:\n(no output)")
    assert acted(begun("react", Answers(Completion("Action 1: execute[ls]")))).action == "ls"


def test_a_human_acts_first_and_between_calls() -> None:
    agent = begun("tool-calling", Answers(calling(("submit", "{}"))))
    agent.record_intervention("pwd", Step("", "/srv"))
    assert [m["role"] for m in acted(agent).messages] == ["system", "user", "assistant"]
    model = Answers(calling(("run_command", '{"command": "ls"}')), calling(("submit", "{}")))
    agent = begun("tool-calling", model)
    acted(agent)
    agent.record_intervention("pwd", Step("", "/srv"))
    sent = acted(agent).messages
    assert [m["role"] for m in sent] == ["tool", "user", "assistant"]
    assert "somebody else" in sent[0]["content"]


@pytest.mark.parametrize("name", ["single-turn", "try-again", "plan-solve", "tool-calling"])
def test_before_start_the_conversation_is_empty_and_there_is_no_turn(name: str) -> None:
    agent = open_agent(name, {}, model=ScriptedModel([LS, LS]))
    assert (agent.messages, agent.tools) == ((), ())
    with pytest.raises(EnvironmentStateError, match=r"call start\(\) first"):
        agent.act(None)
    agent.start(BRIEF)
    assert agent.messages and agent.act(None) is not None


def test_the_turns_messages_make_up_the_whole_conversation() -> None:
    agent = begun("react", ScriptedModel(["Thought 1: x", "execute[ls]", "Action 2: submit"]))
    moves = [acted(agent), acted(agent, Step("", "a"))]
    assert [m for move in moves for m in move.messages] == list(agent.messages)


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("single-turn", {"max_turns": 1}),
        ("try-again", {"reward_in_feedback": False}),
        ("react", {"feedback": "standard", "observation_limit": 7}),
        ("plan-solve", {"refine": 3, "max_turns": 4}),
        ("tool-calling", {"history": "last:2", "history_tokens": 900}),
    ],
)
def test_metadata_holds_the_prompt_and_every_option(name: str, own: dict[str, Any]) -> None:
    metadata = begun(name, ScriptedModel([]), **own).metadata()
    assert own.items() <= metadata.items()
    text = metadata["prompt"]["text"]
    assert metadata["prompt"]["file"] == f"{name.replace('-', '_')}.txt"
    assert metadata["prompt"]["sha256"] == hashlib.sha256(text.encode()).hexdigest()
    assert "== system ==" in text


def test_a_prompt_of_ones_own_is_completed_and_recorded(tmp_path: Path) -> None:
    file = tmp_path / "mine.txt"
    file.write_text("== system ==\nS\n== task ==\n$query!\n== retry ==\nR\n")
    agent = begun("single-turn", ScriptedModel([LS]), prompt=str(file))
    prompt = agent.metadata()["prompt"]
    assert prompt["file"] == str(file)
    assert prompt["text"].startswith(file.read_text())
    assert "== watched ==" in prompt["text"]


def test_options_that_are_wrong() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'standard'"):
        open_agent("react", {"feedback": "standrad"}, model=ScriptedModel([]))
    with pytest.raises(ConfigError, match=r"no option 'refine'.*history"):
        open_agent("react", {"refine": 3}, model=ScriptedModel([]))


@pytest.mark.parametrize(
    ("name", "options", "limit"),
    [
        ("try-again", {}, 4000),
        ("react", {}, 4000),
        ("react", {"observation_limit": 70}, 70),
        ("try-again", {"observation_limit": 7}, 7),
    ],
)
def test_the_limit_that_applies_to_observations_is_recorded(
    name: str, options: dict[str, Any], limit: int
) -> None:
    agent = begun(name, ScriptedModel([]), **options)
    assert agent.metadata()["observation_limit"] == limit
    assert len(agent.visible_observation(Step("", "x" * 9000))) < limit + 100
