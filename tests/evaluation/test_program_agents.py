"""Programs as agents: equal to the built-in agent, stopped at limits, harmless when hostile."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import intercode
from intercode import datasets
from intercode.agents.programs import ProgramAgent
from intercode.agents.programs.agent import make_program
from intercode.core.errors import ConfigError, UsageError
from intercode.core.types import Step, Trajectory
from intercode.evaluation.programs.actions import ShellHistory
from intercode.evaluation.programs.turns import ProgramTurns
from intercode.evaluation.rollout import rollout
from intercode.evaluation.tracking.base import EpisodeTracker
from intercode.models.bridge import BridgeRequest
from intercode.models.providers.function import FunctionModel
from support.answering_endpoint import AnsweringEndpoint
from support.harbor import write_steps_task, write_task
from support.pages import write_files
from support.sandboxes import eventually

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.not_in_chroot("a loopback device of its own"),
]
TASKS = 20
HOSTILE = Path(__file__).parents[1] / "support" / "hostile_program"
PRICE = {"price": {"input": 1.0, "output": 2.0}}
SECRET = "sk-secret-of-the-endpoint"
EpisodesOf = Callable[[Path], list[Trajectory]]


@pytest.fixture
def program(tmp_path: Path) -> dict[str, Any]:
    """The program of the guide, as settings of a run."""
    write_files("run-any-program.md", tmp_path)
    files = str(tmp_path / "my_agent")
    return {
        "agent": "program:python3 /opt/intercode/files/agent.py",
        "agent_options": {"files": files},
    }


def call(number: int, name: str, **arguments: str) -> dict[str, Any]:
    """Return an answer that calls a tool."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"index": 0, "id": f"call_{number}x", "type": "function", "function": function}
    return {"content": f"turn {number}", "tool_calls": [call]}


def scripted(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Answer for a task of the starter suite: look, run the gold, submit.

    Of each four tasks, one gets a wrong command, and one is never submitted.
    """
    said = "\n".join(str(m["content"]) for m in messages if m["role"] == "user")
    number, task = next(
        (n, t) for n, t in enumerate(datasets.load("starter:bash").tasks) if t.query in said
    )
    turn = sum(m["role"] == "assistant" for m in messages)
    command = "echo wrong; false" if number % 4 == 1 else str(task.gold)
    if turn == 0:
        return call(turn, "run_command", command="ls / | head -n 3")
    if turn == 1 or number % 4 == 2:
        return call(turn, "run_command", command=command)
    return call(turn, "submit")


def comparable(step: Step) -> Step:
    """Return a step without its messages, which hold the prompts, without times, and without how
    the actions of a program were seen."""
    usage = replace(step.usage, seconds=0.0)
    return replace(step, usage=usage, messages=(), context={}, message=step.message.strip())


@pytest.mark.slow
@pytest.mark.parametrize(
    "limits",
    [{"max_turns": 5}, {"max_turns": 2}, {"max_turns": 9, "max_tokens_per_episode": 25_000}],
    ids=["turns", "few-turns", "tokens"],
)
def test_a_program_is_recorded_and_stopped_as_the_built_in_agent(
    tmp_path: Path, program: dict[str, Any], limits: Mapping[str, Any]
) -> None:
    """With the same replies: success, cost, ends and steps of 20 starter tasks."""
    runs = {}
    with AnsweringEndpoint(scripted, usage=(9_000, 1_000)) as endpoint:
        for name, agent in (("built-in", {"agent": "tool-calling"}), ("program", program)):
            runs[name] = intercode.evaluate(
                "starter:bash",
                model="m",
                base_url=endpoint.url,
                limit=TASKS,
                quiet=True,
                model_options=PRICE,
                parallel=2,
                out=tmp_path / name,
                **agent,
                **limits,
            )
    built_in, played = runs["built-in"].episodes, runs["program"].episodes
    by_task = {t.task: t for t in played}
    assert len(by_task) == len(built_in) == TASKS
    for expected in built_in:
        found = by_task[expected.task]
        assert (found.end, found.success) == (expected.end, expected.success), found
        assert list(map(comparable, found.steps)) == list(map(comparable, expected.steps))
        assert found.usage.cost == expected.usage.cost
    assert 10 < sum(t.success for t in built_in) < TASKS
    if limits["max_turns"] == 5:
        assert {t.end for t in built_in} == {"submitted", "turn_limit"}
    # the first step holds the query, every step its tool calls and how they were seen
    step = by_task["starter/bash/count-csv"].steps[0]
    assert step.context["seen"][0] == {
        "seen": "tool call",
        "tool": "run_command",
        "action": "ls / | head -n 3",
    }
    assert [m["role"] for m in step.messages] == ["user", "assistant"]


def marked_processes() -> list[str]:
    """Return the processes of this machine that a hostile program has left."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes()
        except OSError:
            continue
        if b"outlives-its-episode" in line:
            found.append(str(entry))
    return found


@pytest.mark.slow
def test_hostile_programs_reach_nothing_and_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, episodes_of: EpisodesOf
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    tasks = tmp_path / "attacks.jsonl"
    with AnsweringEndpoint(lambda _: "Hello.", usage=(70, 7)) as endpoint:
        port = endpoint.url.split(":")[-1].split("/")[0]
        attacks = [
            "search",
            f"network {port}",
            "outlive leave",
            "outlive stay",
            "flood",
            "forge",
            "honest",
        ]
        rows = [{"query": attack, "gold": "echo done"} for attack in attacks]
        tasks.write_text("".join(json.dumps(row) + "\n" for row in rows))
        out = tmp_path / "run"
        intercode.evaluate(
            str(tasks),
            "program:python3 /opt/intercode/files/agent.py",
            model="m",
            base_url=endpoint.url,
            model_options=PRICE,
            parallel=2,
            quiet=True,
            out=out,
            agent_options={"files": str(HOSTILE), "seconds": 10},
        )
        asked = len(endpoint.requests)
    eventually(lambda: not marked_processes(), "all programs have ended")
    played = {t.query: t for t in episodes_of(out)}
    assert {t.end for t in played.values()} <= {"submitted", "agent_stopped", "budget"}, played
    assert asked == 2  # by `search` and `forge`: whatever else was sent did not leave the bridge

    def last(attack: str) -> Step:
        return played[attack].steps[-1]

    assert SECRET not in (out / "trajectories.jsonl").read_text()
    searched = last("search").context["program"]
    assert searched["exit_code"] == 0
    assert "authentication_error" in searched["output"]
    assert last("search").action == "submit searched"
    network = played[attacks[1]]
    assert network.end == "submitted"
    assert "reached []" in network.steps[-1].action
    assert played["outlive leave"].end == "submitted"
    assert played["outlive stay"].end == "budget"
    assert "10 s" in last("outlive stay").context["program"]["stopped"]
    assert played["flood"].end == "agent_stopped"
    assert "100 requests" in last("flood").context["program"]["stopped"]
    assert played["flood"].usage.requests == 0
    forged = played["forge"]
    assert "200 1" in forged.steps[-1].action
    assert (forged.usage.prompt_tokens, forged.usage.completion_tokens) == (70, 7)
    assert forged.usage.cost == pytest.approx(84e-6)
    assert played["honest"].success


def play(env: intercode.Env, command: str, task: int, **options: Any) -> Trajectory:
    """Play a task with a command, whose model is never asked."""
    model = FunctionModel(lambda _: "unused")
    return rollout(ProgramAgent(command, model=model, **options), env, task, seed=3)


def test_answers_are_flags_and_code(tmp_path: Path) -> None:
    """What is in the answer file is submitted as the environment takes it."""
    write = ": {{query}}; test -s {{query_file}} && cat > $INTERCODE_ANSWER_FILE <<'END'\n{}\nEND\n"
    with intercode.make("ctf", dataset="starter") as env:
        env.reset(seed=3, options={"task": 0})
        right = play(env, write.format(env.task.flag), 0)
        wrong = play(env, write.format("flag{no}"), 0)
    assert (right.end, right.score) == ("submitted", 1.0)
    assert (wrong.end, wrong.score) == ("agent_stopped", 0.0)
    with intercode.make("python", dataset="starter") as env:
        solved = play(env, write.format(env.dataset.tasks[0].solution), 0)
        failed = play(env, ": {query}; exit 3", 0)
    assert (solved.end, solved.score) == ("submitted", 1.0), solved.steps
    assert (failed.end, failed.score) == ("agent_stopped", 0.0)
    assert failed.steps[-1].context["program"]["exit_code"] == 3


def test_a_program_that_fills_the_memory_loses_its_sandbox_or_is_killed() -> None:
    hog = "python3 -c 'b = [bytearray(1 << 20) for _ in range(4000)]'"
    with intercode.make("bash", dataset="starter") as env:
        episode = play(env, f": {{query}}; {hog}", 0)
        again = play(env, "true", 1)
    assert episode.end in ("agent_stopped", "sandbox_lost")
    assert again.end == "submitted"


def test_a_policy_refuses_before_the_program_sees_the_action(
    tmp_path: Path, program: dict[str, Any]
) -> None:
    asked: list[Any] = []

    def answer(messages: list[Any]) -> dict[str, Any]:
        asked.append(messages)
        turn = sum(m["role"] == "assistant" for m in messages)
        return (
            call(turn, "run_command", command="rm -r /srv") if turn == 0 else call(turn, "submit")
        )

    run = intercode.evaluate(
        "starter:bash",
        model=answer,
        limit=1,
        quiet=True,
        out=tmp_path / "run",
        policy={"deny": ["command:rm"]},
        **program,
    )
    [episode] = run.episodes
    refused, submitted = episode.steps
    assert refused.refused
    assert "rm" in refused.observation
    assert (submitted.action, submitted.refused) == ("submit", False)
    assert asked[1][-1]["role"] == "tool"
    assert not any(path.startswith("/srv") for path in submitted.changes)


ASIDE = """
def run(command):
    process = subprocess.Popen(["bash", "-c", command], stdin=-1, stdout=-1, text=True)
    begin = process.stdout.readline()
    ask([{"role": "user", "content": "Write the title."}])
    output = begin + process.communicate("on\\n")[0]
    return json.dumps({"output": output, "returncode": process.returncode})


messages = ["""


def test_a_request_beside_a_running_command_leaves_its_results_in_its_step(
    tmp_path: Path, program: dict[str, Any]
) -> None:
    """What the command does after that request is in its step, too."""
    path = tmp_path / "my_agent" / "agent.py"
    path.write_text(path.read_text().replace("\nmessages = [", ASIDE, 1))
    command = "echo begin; read word; bash -c 'touch /srv/later'; echo $word; exit 3"

    def answer(messages: list[dict[str, Any]]) -> Any:
        if messages[-1]["content"] == "Write the title.":
            return "The title"
        turn = sum(m["role"] == "assistant" for m in messages)
        return call(turn, "submit") if turn else call(turn, "run_command", command=command)

    run = intercode.evaluate(
        "starter:bash", model=answer, limit=1, quiet=True, out=tmp_path / "run", **program
    )
    ran, title, submitted = run.episodes[0].steps
    assert (ran.action, ran.observation, ran.exit_code) == (command, "begin\non\n", 3)
    assert (ran.valid, ran.changes) == (False, ("/srv/later",))
    seen = [(entry["seen"], entry["action"]) for entry in ran.context["seen"]]
    assert seen == [("tool call", command), ("shell history", "touch /srv/later")]
    assert (title.message, title.action, title.observation) == ("The title", "", "")
    assert (title.executed, title.changes, title.context.get("seen")) == (False, (), None)
    assert submitted.action == "submit"


def program_turns(env: Any, model: Callable[[list[Any]], Any]) -> ProgramTurns:
    """Return the turns of a program in a running episode."""
    history = ShellHistory(env.sandbox, "/dev/shm/intercode")
    program = make_program("true {query}")
    tracker = EpisodeTracker()
    return ProgramTurns(env, FunctionModel(model), program, history, "/tmp/none", None, tracker)


def test_results_are_those_of_their_calls_wherever_they_come() -> None:
    """A conversation with calls of its own beside a call that still runs."""
    with intercode.make("bash", dataset="starter") as env:
        env.reset(seed=0, options={"task": 0})
        turns = program_turns(env, lambda _: call(0, "run", command="work"))

        def result(name: str, text: str) -> Any:
            return {"role": "tool", "content": text, "tool_call_id": name}

        def ask(*results: Any) -> str:
            begin: Any = {"role": "user", "content": "begin"}
            return turns.answer(BridgeRequest((begin, *results))).calls[0]["id"]

        first, second = ask(), ask()
        third = ask(result(second, "of the second"))
        turns.finish([result(third, "of the third")])
        assert [step.observation for step in turns.steps] == ["", "of the second", "of the third"]
        turns.finish([result(first, "of the first")])
        assert turns.steps[0].observation == "of the first"
        assert env.episode.last_result is not None
        assert env.episode.last_result.output == "of the first"


def test_what_cannot_play_is_said_before_anything_is_played(tmp_path: Path) -> None:
    def evaluate(dataset: str, agent: str, **options: Any) -> None:
        intercode.evaluate(
            dataset,
            agent,
            model=lambda _: "x",
            limit=1,
            quiet=True,
            out=tmp_path / "run",
            agent_options=options,
        )

    with pytest.raises(UsageError, match="sql has none"):
        evaluate("starter:sql", "program:true")
    with pytest.raises(ConfigError, match="names no program"):
        evaluate("starter:bash", "program: ")
    with pytest.raises(ConfigError, match="version is an option"):
        evaluate("starter:bash", "program:true", version="1")
    with pytest.raises(ConfigError, match="pypi"):
        evaluate("starter:bash", "program:codex", pypi=["x"])
    with pytest.raises(ConfigError, match="no option 'colour'"):
        evaluate("starter:bash", "program:codex", colour="red")
    with pytest.raises(ConfigError, match="seconds"):
        evaluate("starter:bash", "program:true", seconds=0)
    with pytest.raises(UsageError, match="no directory"):
        evaluate("starter:bash", "program:true", files=str(tmp_path / "none"))
    with pytest.raises(UsageError, match="steps has several steps: leave this task out"):
        evaluate(f"harbor:{write_steps_task(tmp_path / 'steps')}", "program:true")
    toml = {"task.toml": "[agent]\nuser = 'nobody'"}
    with pytest.raises(UsageError, match="user has the user 'nobody'"):
        evaluate(f"harbor:{write_task(tmp_path / 'user', **toml)}", "program:true")
    assert not os.path.exists(tmp_path / "run" / "trajectories.jsonl")


def test_what_a_program_reports_is_read_within_limits() -> None:
    with intercode.make("bash", dataset="starter") as env:
        env.reset(seed=0, options={"task": 0})
        history = ShellHistory(env.sandbox, "/dev/shm/intercode")
        env.sandbox.write("/dev/shm/intercode/history", b"".join(b"%d\0" % n for n in range(5000)))
        assert history.new_commands() == [str(n) for n in range(4000, 5000)]
        assert history.new_commands() == []
        limit = env.sandbox.spec.limits.output
        turns = program_turns(env, lambda _: call(0, "run", command="cat x"))
        turns.answer(BridgeRequest(({"role": "user", "content": "begin"},)))
        turns.finish([{"role": "tool", "content": "x" * 10 * limit, "tool_call_id": "call_0x"}])
        [step] = turns.steps
        assert len(step.observation) < limit + 100 and "bytes left out" in step.observation
