"""Which part of a long conversation is sent, and what happens if it is too long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from intercode.agents import open_agent
from intercode.agents.base import Step
from intercode.core.errors import BudgetError, ConfigError, ModelRefusedError
from intercode.core.types import Usage
from intercode.models.base import Completion, Message, Model, Tool
from intercode.models.conversation import (
    EMPTY_ANSWER,
    Conversation,
    History,
    is_context_overflow,
    split_turns,
)
from support.descriptions import brief as make_brief

LS = "```bash\nls\n```"


def user(text: str) -> Message:
    return Message(role="user", content=text)


def message(text: str) -> Message:
    return Message(role="assistant", content=text)


def call(name: str) -> list[Message]:
    made: Any = {"id": name, "type": "function", "function": {"name": "run", "arguments": "{}"}}
    return [
        {"role": "assistant", "content": "", "tool_calls": [made]},
        {"role": "tool", "content": f"result of {name}", "tool_call_id": name},
    ]


HEAD: list[Message] = [Message(role="system", content="system"), user("task")]
TALK = [*HEAD, message("a"), user("A"), message("b"), user("B"), message("c"), user("C")]


def words(messages: Sequence[Message]) -> int:
    return sum(len(m["content"].split()) for m in messages)


def contents(messages: Sequence[Message]) -> list[str]:
    return [m["content"] for m in messages]


def first_and_last(messages: list[Message], count: Any) -> list[Message]:
    assert count(messages) == words(messages)
    return [messages[2], messages[3], *messages[-1:]]


def torn(messages: list[Message], count: Any) -> list[Message]:
    return [m for m in messages if m["role"] != "system" and m.get("tool_call_id") != "x"]


def failing(messages: list[Message], count: Any) -> list[Message]:
    raise KeyError("lost")


def test_everything_is_sent_by_default() -> None:
    assert History().select(TALK, 2, words) == (TALK, {})


def test_the_last_turns() -> None:
    shown, about = History("last:2").select(TALK, 2, words)
    assert contents(shown)[2:] == ["b", "B", "c", "C"]
    assert shown[0] == HEAD[0]
    assert shown[1]["content"] == "task\n\n[1 earlier turn left out of this conversation]"
    assert about == {"turns_left_out": 1, "turns": 3, "policy": "last:2"}
    assert History("last:3").select(TALK, 2, words) == (TALK, {})
    assert TALK[1]["content"] == "task"


def test_a_bound_in_tokens_leaves_the_oldest_out_first() -> None:
    shown, about = History(tokens=6).select(TALK, 2, words)
    assert contents(shown)[2:] == ["b", "B", "c", "C"]
    assert about["turns_left_out"] == 1
    long = [*TALK[:-1], user("word " * 1000)]
    shown, about = History(tokens=150).select(long, 2, words)
    assert shown[2]["content"] == "c"
    assert "bytes left out" in shown[3]["content"]
    assert words(shown) <= 150 + 5  # 5 words for the note about the omission
    assert about["newest_turn"]["shown"] < about["newest_turn"]["characters"] == 5000
    shown, about = History(tokens=1).select(TALK, 2, words)
    assert contents(shown)[2:] == ["c", "C"]


def test_calls_and_their_results_stay_together() -> None:
    talk = [*HEAD, *call("x"), *call("y"), *call("z")]
    assert [len(t) for t in split_turns(talk[2:])] == [2, 2, 2]
    shown, _ = History("last:2").select(talk, 2, words)
    assert [m["role"] for m in shown[2:]] == ["assistant", "tool"] * 2
    shown, about = History(torn).select(talk, 2, words)
    assert shown[0] == HEAD[0]
    assert [m.get("tool_call_id") for m in shown[2:]] == [None, "y", None, "z"]
    assert about["policy"] == "torn"


def test_ones_own_function() -> None:
    shown, about = History(first_and_last).select(TALK, 2, words)
    assert contents(shown)[2:] == ["a", "A", "C"]
    assert about == {"turns_left_out": 2, "turns": 3, "policy": "first_and_last"}
    named = History(f"{__name__}:failing")
    assert named.select(TALK, 2, words) == (
        TALK,
        {"failed": "KeyError: 'lost'", "policy": f"{__name__}:failing"},
    )


@pytest.mark.parametrize("policy", ["last", "last:0", "none", "no.such:thing", f"{__name__}:LS"])
def test_an_invalid_policy(policy: str) -> None:
    with pytest.raises(ConfigError, match="history"):
        History(policy)
    with pytest.raises(ConfigError, match="history_tokens is 0"):
        History("full", 0)


@pytest.mark.parametrize(
    ("message", "is_so"),
    [
        ("This model's maximum context length is 8192 tokens. However, you requested 9000", True),
        ("HTTP 400: context_length_exceeded", True),
        ("Your input exceeds the context window of this model", True),
        ("prompt is too long: 205000 tokens > 200000 maximum", True),
        ("input length and `max_tokens` exceed context limit: 199000 + 8000 > 200000", True),
        ("The input token count (1200000) exceeds the maximum number of tokens allowed", True),
        ("The decoder prompt (length 5000) is longer than the maximum model length of 4096", True),
        ("the request exceeds the available context size, try increasing it", True),
        ("The input (5000 tokens) is longer than the model's context length (4096 tokens).", True),
        ("`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens", True),
        ("Prompt contains 40000 tokens, too large for model with 32768 maximum context", True),
        ("Input is too long for requested model.", True),
        ("too many tokens: total number of tokens in the prompt cannot exceed 4081", True),
        ("HTTP 413: Payload Too Large", True),
        ("max_tokens is too large: 100000. This model supports at most 16384", False),
        ("HTTP 401: no such key", False),
        ("the model does not exist", False),
        ("Rate limit reached for requests", False),
    ],
)
def test_messages_of_endpoints_that_refuse_long_conversations(message: str, is_so: bool) -> None:
    assert is_context_overflow(ModelRefusedError(message)) is is_so


class SmallContextModel(Model):
    """A model whose context holds a number of words."""

    name = "narrow"

    def __init__(self, most: int) -> None:
        self.most, self.sizes = most, list[int]()

    def count_tokens(self, content: Any) -> int:
        return words(content)

    def complete(self, messages: Sequence[Message], *, tools: Sequence[Tool] = ()) -> Completion:
        self.sizes.append(words(messages))
        if self.sizes[-1] > self.most:
            raise ModelRefusedError("HTTP 400: the prompt is too long")
        return Completion(LS, Usage(10, 5, 1), "stop")


@pytest.mark.parametrize(
    ("written", "text", "sent", "is_edited"),
    [
        ("ls\n", "ls", "ls\n", False),
        ("ls", "ls", "ls", False),
        ("ls", "Action 2: ls", "Action 2: ls", True),
        ("ls\nObservation: a", "ls", "ls", True),
        ("", "", EMPTY_ANSWER, True),
    ],
)
def test_an_answer_with_ids_goes_back_as_it_was_sampled(
    written: str, text: str, sent: str, is_edited: bool
) -> None:
    talk = Conversation(SmallContextModel(60), History())
    talk.add_answer(Completion(written, tokens={"ids": [7]}), text)
    talk.add_answer(Completion(written, tokens={"texts": ["ls"]}), text)
    with_ids, without = talk.messages
    assert (with_ids["content"], without["content"]) == (sent, text or EMPTY_ANSWER)
    assert with_ids["tokens"].get("edited", False) is is_edited
    assert "edited" not in without["tokens"]


def test_a_refused_conversation_is_cut_and_sent_again() -> None:
    model = SmallContextModel(60)
    talk = Conversation(model, History())
    talk.add_system("s")
    talk.add_user("t")
    talk.pin()
    for _ in range(10):
        talk.add_answer(Completion(LS), "an answer of five words")
        talk.add_user("ten words " * 5)
    talk.add_user("now")
    assert talk.request_answer().text == LS
    turn = talk.finish_turn()
    assert model.sizes[0] > 60 >= model.sizes[-1]
    assert turn["context"]["history"]["turns_left_out"] > 5
    assert len(turn["context"]["history"]["refusals"]) == len(model.sizes) - 1
    assert turn["usage"].requests == len(model.sizes)
    assert turn["usage"].prompt_tokens == 10
    assert len(turn["messages"]) == len(talk.messages) == 22
    before = len(model.sizes)
    talk.add_answer(Completion(LS), "an answer")
    talk.add_user("more words")
    talk.request_answer()
    assert len(model.sizes) == before + 1  # the size that fits is known now


def test_an_enormous_observation_is_cut_and_a_task_that_does_not_fit_is_an_error() -> None:
    agent = open_agent("try-again", {"observation_limit": 10**6}, model=SmallContextModel(300))
    agent.start(make_brief("t", "q", "bash"))
    first = agent.act(None)
    assert first is not None and first.action == "ls"
    move = agent.act(Step("", "word " * 2000))
    assert move is not None and move.action == "ls"
    assert move.context["history"]["newest_turn"]["characters"] > 9000
    agent = open_agent("try-again", model=SmallContextModel(20))
    agent.start(make_brief("t", "q", "bash"))
    with pytest.raises(ModelRefusedError, match="too long"):
        agent.act(None)  # without an answer of the model the episode has no result
    agent = open_agent(
        "try-again", {"observation_limit": 10**6}, model=(model := SmallContextModel(300))
    )
    agent.start(make_brief("t", "q", "bash"))
    agent.act(None)
    model.most = 20
    move = agent.act(Step("", "word " * 2000))
    assert move is not None and move.action is None and move.usage.requests > 0
    assert "No room" in move.reply
    assert agent.act(Step("", move.reply)) is None


class LimitedRequestsModel(SmallContextModel):
    """A model that allows a number of requests."""

    def complete(self, messages: Sequence[Message], *, tools: Sequence[Tool] = ()) -> Completion:
        if len(self.sizes) == self.most:
            raise BudgetError("no tokens are left")
        self.sizes.append(0)
        return Completion("1. look", Usage(10, 5, 1), "stop")


def test_the_usage_of_a_turn_before_a_limit_is_recorded() -> None:
    agent = open_agent("plan-solve", model=LimitedRequestsModel(1))
    agent.start(make_brief("t", "q", "bash"))
    move = agent.act(None)
    assert move is not None
    assert (move.action, move.usage.prompt_tokens, move.reply) == (None, 10, "no tokens are left")
    with pytest.raises(BudgetError):
        agent.act(Step("", move.reply))


def test_other_refusals_are_raised() -> None:
    class Closed(SmallContextModel):
        def complete(self, messages: Any, *, tools: Any = ()) -> Completion:
            raise ModelRefusedError("HTTP 401: no such key")

    agent = open_agent("react", model=Closed(1))
    agent.start(make_brief("t", "q", "bash"))
    with pytest.raises(ModelRefusedError, match="401"):
        agent.act(None)
