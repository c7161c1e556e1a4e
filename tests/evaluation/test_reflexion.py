"""Reflexion: an agent begins an unsolved task again. Its record, its report, and its replay."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import intercode
from intercode.agents import Agent, open_agent
from intercode.cli import main
from intercode.core import logs, trajectories
from intercode.core.config import EvalConfig
from intercode.core.errors import BudgetError, DataError, UsageError
from intercode.core.types import AgentOutput, Brief, Score, Step, Trajectory, Usage
from intercode.evaluation.evaluate.estimate import estimate
from intercode.evaluation.evaluate.plan import make_plan
from intercode.evaluation.replay.branching import BranchOptions, branch
from intercode.evaluation.replay.log_replay import ReplayOptions, replay_logs
from intercode.evaluation.replay.regrade import regrade
from intercode.evaluation.replay.verify import verify
from intercode.evaluation.rollout import rollout, rollout_branches
from intercode.models.base import Completion, Message
from intercode.models.providers.function import FunctionModel
from intercode.results.export import chat
from intercode.results.export.bundle.bundle import write_bundle
from intercode.results.report.result_sets import load_result_sets
from intercode.results.report.statistics_tables import statistics_tables
from intercode.results.statistics.figures import success_by_restart

pytestmark = pytest.mark.sandbox
GOLD = "find /srv/quaywheel -type f -name '*.csv' | wc -l"
REFLECTION = "I guessed the number. I will count the files."


def turn(number: int, action: str) -> str:
    return f"Thought {number}: so.\nAction {number}: {action}"


def answer(messages: Sequence[Message], solves: bool) -> str:
    """Answer as a model that guesses, and that counts after a reflection."""
    text = messages[-1]["content"]
    if "what went wrong and why" in text:
        return REFLECTION
    turns = sum(m["role"] == "assistant" for m in messages)
    reflected = any(REFLECTION in m["content"] for m in messages[:2])
    if turns:
        return turn(turns + 1, "submit")
    return turn(1, f"execute[{GOLD}]" if reflected and solves else "execute[touch /srv/x; echo 41]")


def model(solves: bool = True) -> FunctionModel:
    return FunctionModel(lambda messages: Completion(answer(messages, solves), Usage(10, 5, 1)))


def play(out: Path, *, solves: bool = True, **settings: Any) -> Trajectory:
    settings = {"limit": 1, "parallel": 1, **settings}
    intercode.evaluate("starter", agent="reflexion", model=model(solves), out=out, **settings)
    return logs.load_log(out)[-1]


def test_an_attempt_follows_the_reflection_in_a_new_environment(tmp_path: Path) -> None:
    episode = play(tmp_path / "run")
    assert (episode.end, episode.score, episode.restarts) == ("submitted", 1.0, (2,))
    assert [s.action for s in episode.steps] == ["touch /srv/x; echo 41", "submit", GOLD, "submit"]
    assert [s.score_value for s in episode.steps] == [None, 0.0, None, 1.0]
    assert episode.steps[2].changes == ()  # what the first attempt created is gone
    assert episode.usage == Usage(50, 25, 5)  # four turns and a reflection
    assert episode.steps[2].usage.requests == 2


def test_the_model_is_sent_the_reward_between_attempts_and_nothing_else(tmp_path: Path) -> None:
    episode = play(tmp_path / "run")
    messages = [m for s in episode.steps for m in s.messages]
    reward = f"{episode.steps[1].score.value:.4g}"
    asked = next(m["content"] for m in messages if "what went wrong and why" in m["content"])
    assert f"reward of what you have reached is {reward}," in asked
    assert [m["role"] for m in episode.steps[2].messages] == [
        "user",
        "assistant",
        "system",
        "user",
        "assistant",
    ]
    new = [m["content"] for m in episode.steps[2].messages[2:4]]
    assert REFLECTION in new[1] and "touch" not in "".join(new)
    before = "".join(m["content"] for s in episode.steps[:2] for m in s.messages)
    assert "reward" not in before.lower() and GOLD not in before


class Watching(Agent):
    """Plays three attempts and keeps the feedback between them."""

    max_restarts = 2

    def __init__(self) -> None:
        self.received: list[Step] = []

    def act(self, feedback: Step | None) -> AgentOutput | None:
        return AgentOutput("pwd; false" if feedback is None else "submit")

    def restart(self, feedback: Step) -> bool:
        self.received.append(feedback)
        return True


def test_an_agent_of_its_own_gets_the_last_turn_and_the_reward() -> None:
    agent = Watching()
    with intercode.make("bash") as env:
        episode = rollout(agent, env, 0)
    assert (episode.restarts, episode.turns) == ((2, 4), 6)
    assert [f.score is not None and (f.score.parts, f.score.details) for f in agent.received] == [
        ({}, {})
    ] * 2
    assert [f.observation for f in agent.received] == [episode.steps[n].observation for n in (1, 3)]
    assert [(f.reward, f.exit_code, f.changes) for f in agent.received] == [(None, None, ())] * 2


def test_each_attempt_has_all_turns(tmp_path: Path) -> None:
    episode = play(tmp_path / "run", max_turns=1)
    assert (episode.restarts, episode.end, episode.turns) == ((1,), "turn_limit", 2)
    assert episode.success


def test_the_attempts_are_limited_by_the_agent_and_by_its_option(tmp_path: Path) -> None:
    never = play(tmp_path / "a", solves=False)
    assert (never.restarts, never.turns, never.success) == ((2, 4), 6, False)
    assert trajectories.read_run_metadata(tmp_path / "a")["agent_metadata"]["max_restarts"] == 2
    none = play(tmp_path / "b", solves=False, agent_options={"max_restarts": 0})
    assert (none.restarts, none.turns) == ((), 2)
    assert "restarts" not in json.loads((tmp_path / "b" / "trajectories.jsonl").read_text())


class Spent(Watching):
    """Reaches a limit when it would begin again."""

    def __init__(self, run_limit: bool) -> None:
        super().__init__()
        self.run_limit = run_limit

    def restart(self, feedback: Step) -> bool:
        raise BudgetError("all is spent", run_limit=self.run_limit)


def test_a_limit_ends_the_episode_or_the_run_before_a_reflection() -> None:
    with intercode.make("bash") as env:
        episode = rollout(Spent(run_limit=False), env, 0)
        assert (episode.end, episode.restarts, episode.turns) == ("budget", (), 2)
        assert episode.steps[-1].score is not None
        with pytest.raises(BudgetError):
            rollout(Spent(run_limit=True), env, 0)


def test_a_replay_verifies_each_attempt(tmp_path: Path) -> None:
    out = tmp_path / "run"
    episode = play(out, hashes=True)
    (report,) = replay_logs([out], ReplayOptions())
    assert (len(report.steps), report.mismatches, report.replayed_success) == (4, [], 1)
    bundle = write_bundle(out, tmp_path / "run.tar.gz")
    assert verify(bundle.path, ReplayOptions()).equal
    forged = episode.replace(
        steps=(*episode.steps[:2], replace(episode.steps[2], observation="41\n"), episode.steps[3])
    )
    rewrite(out, forged)
    (report,) = replay_logs([out], ReplayOptions())
    assert [s.turn for s in report.native_mismatches] == [2]


def test_a_reward_of_a_turn_without_code_is_compared(tmp_path: Path) -> None:
    out = tmp_path / "run"
    episode = play(out, solves=False)
    assert episode.score < 1
    restarts = tuple(n + 1 for n in episode.restarts)
    honest = Step.without_code(AgentOutput(None))
    rewrite(out, episode.replace(steps=(honest, *episode.steps), restarts=restarts))
    assert replay_logs([out], ReplayOptions())[0].native_mismatches == []
    claimed = replace(honest, score=Score(1.0))
    rewrite(out, episode.replace(steps=(claimed, *episode.steps), restarts=restarts))
    (report,) = replay_logs([out], ReplayOptions())
    assert [s.turn for s in report.native_mismatches] == [0]
    assert not verify(write_bundle(out, tmp_path / "run.tar.gz").path, ReplayOptions()).equal


def rewrite(out: Path, episode: Trajectory) -> None:
    (out / trajectories.TRAJECTORIES_FILE).unlink()
    trajectories.append_trajectory(out / trajectories.TRAJECTORIES_FILE, episode)


def test_a_record_that_hides_a_restart_is_not_equal(tmp_path: Path) -> None:
    out = tmp_path / "run"
    rewrite(out, play(out, max_turns=1).replace(restarts=()))
    (report,) = replay_logs([out], ReplayOptions())
    assert [s.turn for s in report.native_mismatches] == [1]  # what the first left counts now


def test_a_run_with_restarts_is_resumed_played_again_and_regraded(tmp_path: Path) -> None:
    out = tmp_path / "run"
    episode = play(out)
    assert play(out, limit=2).index == 1
    assert logs.load_log(out)[0] == episode and len(logs.load_log(out)) == 2
    rewrite(out, episode)
    again = tmp_path / "again"
    intercode.evaluate(
        "starter", agent="replay", agent_options={"actions": str(out)}, out=again, limit=1
    )
    (played,) = logs.load_log(again)
    assert (played.restarts, played.end, played.turns) == ((2,), "solved", 3)
    result = regrade(out, ReplayOptions(), tmp_path / "graded")
    assert (result.differences, result.after[0].restarts) == ((), (2,))
    assert [s.score_value for s in result.after[0].steps] == [s.score_value for s in episode.steps]


def test_regrade_plays_the_attempts_after_one_that_ends_early(tmp_path: Path) -> None:
    out = tmp_path / "run"
    episode = play(out)
    submitted = replace(episode.steps[1], action="submit")
    steps = (submitted, episode.steps[0], *episode.steps[2:])
    rewrite(out, episode.replace(steps=steps))
    (after,) = regrade(out, ReplayOptions(), tmp_path / "graded").after
    assert ([s.action for s in after.steps], after.restarts) == (["submit", GOLD, "submit"], (1,))
    assert after.score == 1


def test_the_notes_of_a_branch_begin_at_the_restart() -> None:
    notes: list[str] = []

    class Reads(Watching):
        def start(self, brief: Brief) -> None:
            notes.append(brief.notes)

    with intercode.make("bash") as env:
        env.reset(options={"task": 0})
        steps = (Step("echo first", "first\n"), Step("echo second", "second\n"))
        parent = Trajectory(env.task.id, 0, env.task.query, steps, restarts=(1,), id="parent")
        list(rollout_branches(env, parent, [Reads()], max_turns=3))
    assert "echo second" in notes[0] and "echo first" not in notes[0]


@pytest.mark.parametrize(
    ("options", "actions", "restarts"),
    [
        (BranchOptions(after=2, agent="noop"), ["touch /srv/x; echo 41", "submit", "submit"], (2,)),
        (BranchOptions(edits={3: "echo 7"}), [None, None, "echo 7", "submit"], (2,)),
        (BranchOptions(edits={1: "echo 7"}), ["echo 7", "submit"], ()),
    ],
)
def test_an_episode_branches_in_each_attempt(
    options: BranchOptions, actions: list[str | None], restarts: tuple[int, ...], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    play(out)
    branched = branch([out], options, ReplayOptions(), tmp_path / "branch").trajectory
    pairs = zip(branched.steps, actions, strict=True)
    assert all(action in (None, step.action) for step, action in pairs)
    assert branched.restarts == restarts


def test_a_branch_does_not_edit_across_a_restart(tmp_path: Path) -> None:
    play(tmp_path / "run")
    options = BranchOptions(edits={1: "ls", 3: "ls"})
    with pytest.raises(UsageError, match="after the restart that followed step 2"):
        branch([tmp_path / "run"], options, ReplayOptions(), tmp_path / "branch")


def test_the_command_plays_it(tmp_path: Path) -> None:
    script, out = tmp_path / "replies.json", tmp_path / "run"
    script.write_text(json.dumps([turn(1, "execute[ls]"), turn(2, "submit"), REFLECTION]))
    command = ["eval", "starter", "--agent", "reflexion", "--set", "agent_options.max_restarts=1"]
    assert main([*command, "--model", f"scripted:{script}", "--limit", "1", "--out", str(out)]) == 0
    (episode,) = logs.load_log(out)
    assert (episode.restarts, [s.action for s in episode.steps]) == ((2,), ["ls", "submit"] * 2)


def test_the_report_counts_restarts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    episode = play(out)
    assert [e.value for e in success_by_restart([episode])] == [0.0, 100.0]
    assert success_by_restart([episode.replace(restarts=())]) == []
    tables = {t.name.partition("/")[0]: t for t in statistics_tables(load_result_sets([out]))}
    assert [row[:2] for row in tables["by-restart"].rows] == [(0, 0.0), (1, 100.0)]
    assert ("restarts", "restarts", 1.0) in [row[:3] for row in tables["statistics"].rows]
    main(["report", str(out)])
    assert "restarts" in capsys.readouterr().out
    main(["show", str(out), "starter/bash/count-csv"])
    assert "the agent began the task again" in capsys.readouterr().out


def test_each_conversation_is_exported_by_itself(tmp_path: Path) -> None:
    episode = play(tmp_path / "run")
    chat.export([episode], tmp_path / "all.jsonl", which="all")
    rows = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    assert [len(row["messages"]) for row in rows] == [5, 5]
    assert [row["messages"][0]["role"] for row in rows] == ["system", "system"]
    assert [row["metadata"]["turns"] for row in rows] == [2, 2]
    chat.export([episode], tmp_path / "success.jsonl")
    (row,) = [json.loads(line) for line in (tmp_path / "success.jsonl").read_text().splitlines()]
    assert REFLECTION in row["messages"][1]["content"]


def test_an_estimate_counts_the_attempts(tmp_path: Path) -> None:
    def requests(agent: str, **options: Any) -> int | None:
        config = EvalConfig(
            "starter", agent, limit=1, out=tmp_path / "run", max_turns=4, agent_options=options
        )
        return estimate(make_plan(config, model=model())).requests

    assert requests("react") == 4 * 2
    assert requests("reflexion", max_restarts=2) == 3 * (4 + 1) * 2


def test_restarts_are_read_as_written() -> None:
    agent = open_agent("reflexion", {"max_restarts": 1}, model=model())
    assert agent.metadata()["max_restarts"] == 1
    steps = (Step("ls", ""), Step("ls", ""))
    row = trajectories.trajectory_to_row(Trajectory("t", 0, "q", steps, restarts=(1,)))
    assert trajectories.trajectory_from_row(row).restarts == (1,)
    for wrong in (5, ["a"], [1.0], [True], [[1]], [0], [-1], [3], [2, 1], [1, 1]):
        with pytest.raises(DataError, match="'restarts"):
            trajectories.trajectory_from_row({**row, "restarts": wrong})
