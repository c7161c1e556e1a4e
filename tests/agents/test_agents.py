"""Every agent, driven step by step; Try Again also against a recorded log over HTTP."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from intercode.agents import AGENTS, Agent, accepts_parameter, open_agent
from intercode.agents.baselines import NoopAgent
from intercode.agents.model_agent import ModelAgent
from intercode.agents.prompt import PLACEHOLDERS
from intercode.agents.single_turn import SingleTurnAgent
from intercode.agents.try_again import TryAgainAgent
from intercode.core.errors import (
    ConfigError,
    GoldError,
    ModelRefusedError,
    UnknownNameError,
    UsageError,
)
from intercode.core.types import AgentOutput, Brief, Score, Step
from intercode.models import Message, ScriptedModel, open_model
from support.descriptions import brief as make_brief
from support.recorded_endpoint import PROSE, RecordedEndpoint, RecordedLog

BRIEF = make_brief(task="t/1", query="Count the $files.", environment="bash", notes="Be quick.")
LS = "```bash\nls\n```"


def started(agent: Agent, brief: Brief = BRIEF) -> Agent:
    agent.start(brief)
    return agent


def action(agent: Agent, feedback: Step | None = None) -> str | None:
    move = agent.act(feedback)
    assert move is not None
    return move.action


def test_gold_plays_all_actions_and_submits() -> None:
    agent = open_agent("gold", golds={"t/1": ["cd /", "ls"]})
    for _ in range(2):
        started(agent)
        assert [action(agent) for _ in range(3)] == ["cd /", "ls", "submit"]
        assert agent.act(None) is None
    with pytest.raises(GoldError, match="t/2"):
        agent.start(make_brief("t/2", "q", "bash"))


def test_noop_submits_at_once() -> None:
    agent = started(open_agent("noop"))
    assert action(agent) == "submit"
    assert agent.act(Step("", "")) is None


def test_replay_plays_what_was_recorded_and_stops() -> None:
    agent = started(open_agent("replay", actions={"t/1": ["a", None, "b"]}))
    moves = [agent.act(None) for _ in range(4)]
    assert [m and m.action for m in moves] == ["a", None, "b", None]
    assert moves[1] is not None
    assert moves[1].reply
    assert moves[3] is None
    with pytest.raises(UsageError, match="t/9"):
        agent.start(make_brief("t/9", "q", "bash"))
    assert open_agent("replay", {"wants_score": False}, actions={}).wants_score is False


def test_single_turn_acts_once() -> None:
    seen: list[list[Message]] = []
    agent = started(SingleTurnAgent(model=ScriptedModel(lambda m: seen.append(m) or LS)))  # type: ignore[func-returns-value]
    assert agent.max_turns == 1
    assert action(agent) == "ls"
    assert agent.act(Step("", "a b")) is None
    assert len(seen) == 1
    system, task = seen[0]
    assert (system["role"], task["role"]) == ("system", "user")
    assert "Bash" in system["content"]
    assert "```bash" in system["content"]
    assert BRIEF.query in task["content"]
    assert BRIEF.notes in task["content"]


def test_try_again_sends_output_and_reward_and_keeps_the_whole_conversation() -> None:
    agent = TryAgainAgent(model=ScriptedModel([LS, "```sh\nls | wc -l\n```", LS]), max_turns=3)
    started(agent)
    assert action(agent) == "ls"
    assert action(agent, Step("", "a\nb\n", score=Score(0.69))) == "ls | wc -l"
    assert action(agent, Step("", "", score=Score(0.01))) == "ls"
    assert agent.act(Step("", "x", score=Score(0.5))) is None
    roles = [m["role"] for m in agent.messages]
    assert roles == ["system", "user"] + ["assistant", "user"] * 2 + ["assistant"]
    assert agent.messages[3]["content"] == "Output:\na\nb\nReward: 0.69"
    assert agent.messages[5]["content"] == "Output:\n(no output)\nReward: 0.01"
    assert "3 turns" in agent.messages[0]["content"]


def test_try_again_stops_at_success_and_can_omit_the_reward() -> None:
    agent = TryAgainAgent(model=ScriptedModel([LS, LS]), reward_in_feedback=False)
    started(agent)
    agent.act(None)
    agent.act(Step("", "x", score=Score(0.5)))
    assert agent.messages[-2]["content"] == "Output:\nx"
    assert agent.act(Step("", "y", score=Score(1.0))) is None


def test_an_answer_without_code_gets_the_retry_message() -> None:
    agent = TryAgainAgent(model=ScriptedModel(["I would rather not.", "", LS]))
    started(agent)
    first = agent.act(None)
    assert first is not None
    assert first.action is None
    assert "```bash" in first.reply
    second = agent.act(Step("", first.reply, valid=None, score=Score(0.0)))
    assert agent.messages[-2]["content"] == first.reply
    assert second is not None
    assert second.action is None
    assert agent.messages[-1]["content"]  # some endpoints refuse empty messages
    assert action(agent, Step("", second.reply, valid=None)) == "ls"


def test_thoughts_are_recorded_but_not_sent_back() -> None:
    agent = TryAgainAgent(model=ScriptedModel(["<think>hm</think>\n" + LS]))
    started(agent)
    move = agent.act(None)
    assert move is not None
    assert (move.thought, move.action, move.usage.requests) == ("hm", "ls", 1)
    assert move.message.startswith("<think>")
    assert agent.messages[-1]["content"] == LS


def test_long_observations_are_clipped_for_the_model() -> None:
    agent = TryAgainAgent(model=ScriptedModel([LS, LS]), observation_limit=10)
    started(agent)
    agent.act(None)
    second = agent.act(Step("", "0123456789" * 5))
    assert agent.messages[-2]["content"] == ("Output:\n01234\n[... 40 bytes left out ...]\n56789")
    assert second is not None
    assert second.context == {"observation": {"characters": 50, "shown": 10}}


def test_a_time_out_is_in_the_feedback() -> None:
    agent = TryAgainAgent(model=ScriptedModel([LS, LS]))
    started(agent)
    agent.act(None)
    agent.act(Step("", "so far", timed_out=True))
    assert agent.messages[-2]["content"] == "Output:\nso far\n(It was stopped at the time limit.)"


def test_an_episode_forgets_the_last_one() -> None:
    agent = TryAgainAgent(model=ScriptedModel([LS]), max_turns=1)
    for _ in range(2):
        started(agent)
        assert action(agent) == "ls"
        assert agent.act(Step("", "x")) is None
        assert len(agent.messages) == 3


def test_the_lower_turn_limit_is_in_the_prompt() -> None:
    agent = TryAgainAgent(model=ScriptedModel([]), max_turns=10)
    agent.start(make_brief("t", "q", "bash", max_turns=4))
    assert "You have 4 turns." in agent.messages[0]["content"]
    with pytest.raises(ModelRefusedError):
        agent.act(None)


def test_ones_own_prompt(tmp_path: Path) -> None:
    file = tmp_path / "mine.txt"
    file.write_text("== system ==\nS\n== task ==\n$query!\n== retry ==\nR\n")
    agent = open_agent("single-turn", {"prompt": str(file)}, model=ScriptedModel([LS]))
    assert isinstance(started(agent), SingleTurnAgent)
    assert [m["content"] for m in agent.messages] == ["S", "Count the $files.!"]


def test_open_agent_passes_known_parameters_and_names_missing_ones(tmp_path: Path) -> None:
    model = ScriptedModel([LS])
    assert isinstance(open_agent("noop", model=model, golds={}, max_turns=3), NoopAgent)
    assert open_agent("try-again", model=model, golds={}, max_turns=3).max_turns == 3
    assert accepts_parameter("try-again", "model")
    assert not accepts_parameter("gold", "model")
    with pytest.raises(ConfigError, match=r"needs model.*--model"):
        open_agent("try-again", model=None)
    with pytest.raises(ConfigError, match=r"no option 'tmperature'.*observation_limit"):
        open_agent("try-again", {"tmperature": 1}, model=model)
    with pytest.raises(ConfigError, match="max_turns is 0"):
        open_agent("try-again", model=model, max_turns=0)
    with pytest.raises(UnknownNameError, match="try-again"):
        open_agent("tryagain")


def test_ones_own_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_agents.py").write_text(
        "from intercode.agents.baselines import NoopAgent\n"
        "class Mine(NoopAgent):\n"
        "    def __init__(self, *, mood='calm'):\n"
        "        super().__init__()\n"
        "        self.mood = mood\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    agent: Any = open_agent("my_agents:Mine", {"mood": "bold"}, model=None, max_turns=2)
    assert agent.mood == "bold"


STRATEGIES = {name for name in AGENTS if accepts_parameter(name, "model")}


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_packaged_prompts_have_only_known_placeholders(name: str) -> None:
    agent = open_agent(name, model=ScriptedModel([]))
    assert isinstance(agent, ModelAgent)
    prompt, known = agent.prompt, PLACEHOLDERS | agent.placeholders
    assert prompt.source == f"{name.replace('-', '_')}.txt"
    for section, template in prompt.sections.items():
        assert set(template.get_identifiers()) <= known
        assert "$" not in prompt.fill(section, {n: f"<{n}>" for n in known})
    assert "<query>" in prompt.fill("task", {"query": "<query>"})
    assert "<action>" in prompt.fill("watched", {"action": "<action>"})
    assert {"react", "tool-calling"} < STRATEGIES < set(AGENTS)


LOG = "ic_bash_multiturn_gpt-3.5_10_turns_fs_3.json"


def test_a_recorded_endpoint_plays_the_log_action_by_action(recorded_dir: Path) -> None:
    path = recorded_dir / "bash" / LOG
    rows = list(json.loads(path.read_text()).values())
    with RecordedEndpoint(path) as server:
        agent = TryAgainAgent(model=open_model("recorded", server.base_url), max_turns=10)
        for row in rows:
            history = row["turn_history"]
            agent.start(make_brief(str(row["task_id"]), row["query"], "bash"))
            played = []
            feedback = None
            while (move := agent.act(feedback)) is not None:
                score = Score(history["rewards"][len(played)])
                feedback = Step("", history["observations"][len(played)], score=score)
                played.append(move.action)
            assert played == history["actions"]
        assert sum(server.asked.values()) == sum(len(r["turn_history"]["actions"]) for r in rows)
        assert max(server.asked.values()) == 1


def test_a_recorded_log_with_lookalike_queries(tmp_path: Path) -> None:
    def row(query: str, *acts: str, seen: str = "x") -> dict[str, Any]:
        return {
            "query": query,
            "turn_history": {"actions": acts, "observations": [seen] * len(acts)},
        }

    file = tmp_path / "log.json"
    rows = {"0": row("list files", "ls"), "1": row("list files twice", "ls; ls", "ls")}
    rows["2"] = row("talk", "hello", seen="No Bash code was found in what you wrote")
    file.write_text(json.dumps(rows))
    log = RecordedLog(file)
    ask = {"role": "user", "content": "Task: list files twice\n"}
    replies = {"role": "assistant", "content": "list files"}
    assert log.answer([ask])[0] == "list files twice"
    assert "ls; ls" in log.answer([ask])[2]
    assert log.answer([ask, replies, ask, replies])[1:] == (2, PROSE)
    assert log.answer([{"role": "user", "content": "talk"}])[2] == PROSE
    assert log.answer([{"role": "user", "content": "else"}])[0] is None
    rows["3"] = row("list files", "dir")
    file.write_text(json.dumps(rows))
    with pytest.raises(ValueError, match="list files"):
        RecordedLog(file)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("try-again", {"history": 3}),
        ("try-again", {"history_tokens": "many"}),
        ("try-again", {"observation_limit": 2.5}),
        ("try-again", {"observation_limit": 0}),
        ("try-again", {"prompt": 5}),
        ("try-again", {"reward_in_feedback": "no"}),
        ("plan-solve", {"refine": "some"}),
    ],
)
def test_an_option_of_the_wrong_type_is_an_error(name: str, options: dict[str, Any]) -> None:
    (option,) = options
    with pytest.raises(ConfigError, match=option):
        open_agent(name, options, model=ScriptedModel([]))


def test_an_object_that_is_not_an_agent_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"'os:getcwd' is not an agent: str does not inherit"):
        open_agent("os:getcwd")
    with pytest.raises(ConfigError, match=r"'intercode.agents:Agent' has no method act"):
        open_agent("intercode.agents:Agent")


def test_act_is_enough_for_an_agent() -> None:
    class Lister(Agent):
        def act(self, feedback: Step | None) -> AgentOutput | None:
            return AgentOutput("ls" if feedback is None else "submit")

    agent = started(Lister())
    assert [action(agent), action(agent, Step("", "a"))] == ["ls", "submit"]
    assert (agent.wants_score, agent.max_turns, agent.ends_when_solved) == (False, None, True)
    assert (agent.messages, agent.tools, agent.metadata()) == ((), (), {})
    assert agent.record_intervention("pwd", Step("", "/")) is False
