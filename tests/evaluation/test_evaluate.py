"""Runs: parallel, extended, and with errors that do not count as zeros."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections import Counter
from pathlib import Path

import pytest

from intercode.cli import main
from intercode.core import trajectories
from intercode.core.config import EvalConfig
from intercode.core.errors import (
    ModelRefusedError,
    ModelUnavailableError,
    UnknownNameError,
    UsageError,
)
from intercode.core.types import Trajectory
from intercode.environments.base.env import InterCodeEnv
from intercode.evaluation.evaluate import episode_runner
from intercode.evaluation.evaluate.budgets import MAX_REFUSALS
from intercode.evaluation.evaluate.plan import make_plan
from intercode.evaluation.evaluate.run import evaluate, run_plan
from intercode.models import OpenAIModel, ScriptedModel
from support.fake_clock import FakeClock
from support.faulty_endpoint import FaultyEndpoint, ok, status

pytestmark = pytest.mark.sandbox


@pytest.fixture
def dataset(tmp_path: Path) -> str:
    """A file of eight small tasks."""
    path = tmp_path / "sums.jsonl"
    rows = [{"query": f"print {n} squared", "gold": f"echo $(({n}*{n}))"} for n in range(8)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def read(out: Path) -> list[Trajectory]:
    return list(trajectories.read_trajectories(out / trajectories.TRAJECTORIES_FILE))


def squares(messages: list) -> str:
    """A model that answers correctly for even numbers only."""
    task = next(m["content"] for m in messages if m["role"] == "user")
    number = next(n for n in range(8) if f"print {n} squared" in task)
    return f"```bash\necho {number * number if number % 2 == 0 else -1}\n```"


def test_every_task_is_recorded_once_with_metadata(dataset: str, tmp_path: Path) -> None:
    out = evaluate(EvalConfig(dataset, "gold", out=tmp_path / "run", parallel=3), quiet=True)
    found = read(out)
    assert sorted(t.index for t in found) == list(range(8))
    assert all(t.success and t.end == "submitted" for t in found)
    run = trajectories.read_run_metadata(out)
    assert {run["agent"], run["profile"], run["dataset"]} == {"gold", "standard", dataset}
    assert (
        run["tier"].startswith("namespace/") and run["scoring"] and len(run["dataset_hash"]) == 16
    )
    assert all(t.run["dataset_hash"] == run["dataset_hash"] for t in found)


def test_parallel_episodes_give_the_same_results(tmp_path: Path) -> None:
    model = ScriptedModel(["```bash\nls /srv\n```", "```bash\necho 3\n```"])
    results = []
    for parallel in (1, 8):
        config = EvalConfig(
            "starter",
            "try-again",
            model="m",
            max_turns=2,
            limit=12,
            parallel=parallel,
            out=tmp_path / str(parallel),
        )
        found = sorted(read(evaluate(config, model=model, quiet=True)), key=lambda t: t.index)
        results.append(
            [
                (t.task, t.end, [(s.action, s.observation, s.score_value) for s in t.steps])
                for t in found
            ]
        )
    assert len(results[0]) == 12
    assert results[0] == results[1]


def test_a_model_is_scored_by_what_it_did(dataset: str, tmp_path: Path) -> None:
    config = EvalConfig(dataset, "single-turn", model="squares", out=tmp_path / "run")
    found = read(evaluate(config, model=ScriptedModel(squares), quiet=True))
    assert {t.index for t in found if t.success} == {0, 2, 4, 6}


def test_errors_are_retried_then_recorded_then_played_at_the_next_run(
    dataset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(episode_runner, "RETRY_DELAYS", (0.01, 0.01))
    asked: Counter[str] = Counter()

    def flaky(messages: list) -> str:
        answer = squares(messages)
        asked[answer] += 1
        if "echo 4\n" in answer and asked[answer] < 3:  # fails twice, then succeeds
            raise ModelUnavailableError("a moment")
        if "echo 16\n" in answer and asked[answer] <= 3:  # fails in all attempts
            raise ModelUnavailableError("the endpoint is down")
        return answer

    config = EvalConfig(dataset, "single-turn", model="flaky", out=tmp_path / "run", parallel=2)
    out = evaluate(config, model=ScriptedModel(flaky), quiet=True)
    by_index = {t.index: t for t in read(out)}
    assert len(by_index) == 8
    assert by_index[2].success
    assert by_index[4].end == "error" and by_index[4].error is not None
    assert "the endpoint is down" in by_index[4].error
    assert by_index[4].run["attempts"] == 3 and by_index[4].steps == ()
    evaluate(config, model=ScriptedModel(flaky), quiet=True)
    assert [t.index for t in read(out)[8:]] == [4]
    assert read(out)[-1].success


def test_a_refusing_endpoint_ends_the_run(dataset: str, tmp_path: Path) -> None:
    def refuse(messages: list) -> str:
        raise ModelRefusedError("bad key")

    config = EvalConfig(dataset, "single-turn", model="m", out=tmp_path / "run")
    with pytest.raises(ModelRefusedError, match="bad key"):
        evaluate(config, model=ScriptedModel(refuse), quiet=True)
    assert not (tmp_path / "run" / trajectories.TRAJECTORIES_FILE).exists()


@pytest.mark.parametrize("code", [400, 422, 451])
def test_a_conversation_that_is_refused_is_one_lost_episode(
    dataset: str, tmp_path: Path, code: int
) -> None:
    answer, no = ok("```bash\necho 0\n```"), status(code, {"error": {"message": "filtered"}})
    with FaultyEndpoint(answer, no, answer, no, no, no) as server:
        config = EvalConfig(
            dataset,
            "single-turn",
            model="m",
            base_url=server.base_url,
            out=tmp_path / "run",
            parallel=1,
            limit=6,
        )
        found = read(evaluate(config, quiet=True))
    assert [t.end for t in found].count("error") == 4
    errors = [t for t in found if t.end == "error"]
    assert all("filtered" in (t.error or "") and t.run["attempts"] == 1 for t in errors)


def test_refusals_from_the_start_end_the_run(dataset: str, tmp_path: Path) -> None:
    with FaultyEndpoint(*[status(400, {"error": {"message": "no such option"}})] * 8) as server:
        config = EvalConfig(
            dataset,
            "single-turn",
            model="m",
            base_url=server.base_url,
            out=tmp_path / "run",
            parallel=1,
        )
        with pytest.raises(ModelRefusedError, match="no such option"):
            evaluate(config, quiet=True)
        assert len(server.requests) == MAX_REFUSALS
    assert [t.end for t in read(tmp_path / "run")] == ["error"] * (MAX_REFUSALS - 1)


def test_a_task_without_gold_is_an_error_and_no_zero(tmp_path: Path) -> None:
    path = tmp_path / "two.json"
    rows = [{"query": "a", "gold": None}, {"query": "b", "gold": "echo b"}]
    path.write_text(json.dumps(rows))
    out = evaluate(EvalConfig(str(path), "noop", out=tmp_path / "run"), quiet=True)
    first, second = sorted(read(out), key=lambda t: t.index)
    assert first.end == "error" and "GoldError" in (first.error or "")
    assert first.run["attempts"] == 1
    assert second.end == "submitted" and not second.success


def test_a_broken_gold_is_tried_once_and_its_task_is_never_asked_of_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "two.json"
    rows = [{"query": "print 1 squared", "gold": None}, {"query": "b", "gold": "echo b"}]
    path.write_text(json.dumps(rows))
    tried: Counter[str] = Counter()
    check_gold = InterCodeEnv.check_gold

    def counting_check(env: InterCodeEnv) -> None:
        tried[env.task.id] += 1
        check_gold(env)

    def answer(messages: list) -> str:
        assert "squared" not in str(messages)
        return "```bash\necho b\n```"

    monkeypatch.setattr(InterCodeEnv, "check_gold", counting_check)
    config = EvalConfig(
        str(path), "single-turn", model="m", out=tmp_path / "run", epochs=3, parallel=1
    )
    found = read(evaluate(config, model=ScriptedModel(answer)))
    assert [(t.task, t.end) for t in found if t.error] == [("two/0", "error")] * 3
    assert sum(t.success for t in found) == 3 and tried["two/0"] == 1
    printed = capsys.readouterr().err
    assert printed.count("first error: two/0: GoldError: two/0 has no gold") == 1
    evaluate(config, model=ScriptedModel(answer), quiet=True)
    assert tried["two/0"] == 2


@pytest.mark.paper
@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"gold": None}, "has no gold"),
        (
            {"gold": "twice = lambda n: 2 * n", "tests": ["assert twice(2) == 4"]},
            "finds no function's name in the gold",
        ),
    ],
)
def test_the_original_profile_tries_golds_before_it_asks_a_model(
    tmp_path: Path, row: dict[str, object], why: str
) -> None:
    path = tmp_path / "one.json"
    path.write_text(json.dumps([{"query": "double a number", **row}]))

    def answer(messages: list) -> str:
        raise AssertionError(messages)

    config = EvalConfig(
        str(path),
        "single-turn",
        model="m",
        out=tmp_path / "run",
        env_options={"profile": "original"},
    )
    (found,) = read(evaluate(config, model=ScriptedModel(answer), quiet=True))
    assert (found.end, found.usage.requests) == ("error", 0)
    assert "GoldError: " in (found.error or "") and why in (found.error or "")


def test_a_run_that_no_endpoint_answers_stops_with_the_cause(
    dataset: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    printed = ""

    class UntilPrinted(FakeClock):
        """Waits for the first error instead of the delay: it is printed during the first call."""

        async def wait(self, seconds: float) -> None:
            nonlocal printed
            while "first error" not in printed:
                printed += capsys.readouterr().err
                await asyncio.sleep(0)
            self.pass_time(seconds)

    with FaultyEndpoint(status(500, {"error": {"message": "no such host"}})) as server:
        config = EvalConfig(
            dataset,
            "single-turn",
            model="m",
            base_url=server.base_url,
            out=tmp_path / "run",
            parallel=1,
            model_options={"max_attempts": 4},
        )
        plan = make_plan(config)
        assert isinstance(plan.model, OpenAIModel)
        plan.model.retry.clock = UntilPrinted()
        with pytest.raises(ModelUnavailableError, match=r"none .* answered: .*no such host.*--out"):
            run_plan(plan)
        plan.close()
    assert len(server.requests) == 4
    assert printed.count("first error of the endpoint: no answer from 'm' at http") == 1
    assert "first error" not in capsys.readouterr().err
    assert not plan.trajectories_file.exists()


BROKEN_AGENT = """
from intercode.agents import Agent

class Broken(Agent):
    def act(self, feedback):
        return parse_price("3,50")

def parse_price(text):
    return float(text)
"""


def test_the_traceback_of_an_own_agent_is_recorded_and_shown(
    dataset: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "own.py"
    file.write_text(BROKEN_AGENT)
    config = EvalConfig(dataset, f"{file}:Broken", limit=1, out=tmp_path / "run")
    (episode,) = read(evaluate(config, quiet=True))
    assert episode.error == "ValueError: could not convert string to float: '3,50'"
    recorded = episode.run["traceback"]
    assert 'File "own.py", line 9, in parse_price' in recorded
    assert 'File "intercode/evaluation/rollout.py"' in recorded
    assert str(file.parent) not in recorded and "/src/" not in recorded
    assert main(["show", str(tmp_path / "run"), "0"]) == 0
    shown = capsys.readouterr().out
    assert "return float(text)" in shown and "--all prints them" in shown
    assert "rollout.py" not in shown
    assert main(["show", str(tmp_path / "run"), "0", "--all"]) == 0
    assert 'File "intercode/evaluation/rollout.py"' in capsys.readouterr().out


def test_an_endpoint_that_dies_after_an_answer_loses_its_episodes_only(
    dataset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(episode_runner, "RETRY_DELAYS", (0.01, 0.01))
    with FaultyEndpoint(ok("```bash\necho 0\n```"), status(500)) as server:
        config = EvalConfig(
            dataset,
            "single-turn",
            model="m",
            base_url=server.base_url,
            out=tmp_path / "run",
            parallel=1,
            limit=2,
            model_options={"max_attempts": 1},
        )
        found = read(evaluate(config, quiet=True))
    assert [t.end == "error" for t in found] == [False, True]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"env_options": {"timeout": 3.0}}, "timeout"),
        ({"agent": "noop"}, "agent"),
        ({"seed": 1}, "seed"),
    ],
)
def test_another_run_in_the_same_directory_is_refused(
    dataset: str, tmp_path: Path, change: dict, named: str
) -> None:
    settings = {"dataset": dataset, "agent": "gold", "out": tmp_path / "run", "limit": 1}
    evaluate(EvalConfig(**settings), quiet=True)
    with pytest.raises(UsageError, match=f"a run with {named} "):
        evaluate(EvalConfig(**{**settings, **change}), quiet=True)


def test_a_run_can_be_extended(dataset: str, tmp_path: Path) -> None:
    for limit in (2, 5):
        evaluate(EvalConfig(dataset, "gold", limit=limit, out=tmp_path / "run"), quiet=True)
    assert sorted(t.index for t in read(tmp_path / "run")) == [0, 1, 2, 3, 4]


def test_tasks_are_chosen_by_id_and_position(dataset: str, tmp_path: Path) -> None:
    config = EvalConfig(dataset, "gold", tasks=("sums/5", "1"), out=tmp_path / "run")
    assert make_plan(config).task_indices == (1, 5)
    with pytest.raises(UnknownNameError, match="it has 8, such as sums/5,"):
        make_plan(EvalConfig(dataset, "gold", tasks=("sum/5",), out=tmp_path / "run"))
    with pytest.raises(UsageError, match="has 8"):
        make_plan(EvalConfig(dataset, "gold", tasks=("8",), out=tmp_path / "run"))


def test_a_key_is_not_written(dataset: str, tmp_path: Path) -> None:
    config = EvalConfig(
        dataset,
        "single-turn",
        model="m",
        out=tmp_path / "run",
        limit=1,
        model_options={"api_key": "sk-secret", "temperature": 0.5},
    )
    out = evaluate(config, model=ScriptedModel(squares), quiet=True)
    assert "sk-secret" not in "".join(f.read_text() for f in out.iterdir())
    assert trajectories.read_run_metadata(out)["model_options"] == {"temperature": 0.5}


def test_recorded_actions_are_played_by_the_replay_agent(dataset: str, tmp_path: Path) -> None:
    first = evaluate(EvalConfig(dataset, "gold", out=tmp_path / "a", limit=3), quiet=True)
    config = EvalConfig(
        dataset, "replay", out=tmp_path / "b", limit=3, agent_options={"actions": str(first)}
    )
    found = read(evaluate(config, quiet=True))
    assert len(found) == 3 and all(t.success for t in found)


def test_connections_that_a_run_has_opened_are_closed_at_its_end(
    squares: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[str] = []
    close = OpenAIModel.close
    monkeypatch.setattr(OpenAIModel, "close", lambda m: (closed.append(m.name), close(m))[1])
    with FaultyEndpoint(ok("```bash\necho 4\n```")) as server:
        config = EvalConfig(
            squares,
            "single-turn",
            model="m",
            base_url=server.base_url,
            limit=1,
            out=tmp_path / "run",
        )
        evaluate(config, quiet=True)
        assert closed == ["m"]
        with OpenAIModel("own", server.base_url) as own:
            other = dataclasses.replace(config, out=tmp_path / "other")
            evaluate(other, model=own, quiet=True)
            assert closed == ["m"]
