"""Limits: an episode at its own limit is scored; a run at its limit stops, and resumes with a
higher one."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from intercode.agents.baselines import GoldAgent
from intercode.core.config import EvalConfig, max_failed_episodes
from intercode.core.errors import (
    BudgetError,
    ConfigError,
    ModelUnavailableError,
    TooManyErrorsError,
    UsageError,
)
from intercode.core.types import Trajectory, Usage
from intercode.environments.base.contract import BranchingEnvironment
from intercode.environments.base.pool.lending import EnvironmentPool
from intercode.environments.base.pool.open_files import check_open_file_limit
from intercode.evaluation.evaluate import episode_runner
from intercode.evaluation.evaluate.budgets import RunBudget
from intercode.evaluation.evaluate.history import HISTORY_FILE, RunHistory
from intercode.evaluation.evaluate.plan import Plan, make_plan
from intercode.evaluation.evaluate.run import evaluate, run_plan
from intercode.evaluation.evaluate.run_state import Sample
from intercode.models import ScriptedModel
from intercode_sandbox.clock import Clock
from support.fake_clock import FakeClock
from support.faulty_endpoint import FaultyEndpoint, ok, status

pytestmark = pytest.mark.sandbox
Read = Callable[[Path], list[Trajectory]]
ANSWER = ok("```bash\necho 1\n```", usage={"prompt_tokens": 100, "completion_tokens": 20})


def requests(dataset: str, server: FaultyEndpoint, out: Path, **more: Any) -> EvalConfig:
    """Return settings for Try Again that succeeds only at 1 squared, with two turns per episode."""
    options = {"max_tokens": 100, "price": {"input": 10.0, "output": 100.0}}
    return EvalConfig(
        dataset,
        "try-again",
        model="m",
        base_url=server.base_url,
        max_turns=2,
        out=out,
        model_options=options,
        tasks=("0", "2", "3", "4"),
        parallel=1,
        **more,
    )


def test_an_episode_at_its_own_limit_is_scored(
    squares: str, tmp_path: Path, episodes_of: Read
) -> None:
    dear = ok("```bash\necho 1\n```", usage={"prompt_tokens": 400, "completion_tokens": 20})
    with FaultyEndpoint(dear) as server:
        config = requests(squares, server, tmp_path / "run", max_tokens_per_episode=600)
        found = episodes_of(evaluate(config, quiet=True))
        assert len(server.requests) == 4
    assert [(t.end, t.turns, t.usage.prompt_tokens) for t in found] == [("budget", 1, 400)] * 4
    assert [t.steps[-1].score_value for t in found] == [0.0] * 4  # the state was scored
    assert [t.usage.cost for t in found] == pytest.approx([0.006] * 4)


@pytest.mark.parametrize("limits", [{"max_tokens": 800}, {"max_cost": 0.021}])
def test_a_run_at_its_limit_stops_and_resumes_with_a_higher_one(
    squares: str, tmp_path: Path, episodes_of: Read, limits: dict[str, Any]
) -> None:
    out = tmp_path / "run"
    with FaultyEndpoint(ANSWER) as server:
        config = requests(squares, server, out)
        with pytest.raises(BudgetError, match="run's limit") as stopped:
            evaluate(replace(config, **limits), quiet=True)
        assert stopped.value.run_limit
        sent = len(server.requests)
        assert sent * 120 <= 800 and sent * 0.003 <= 0.021
        first = episodes_of(out)
        assert 0 < len(first) < 4 and {t.end for t in first} == {"turn_limit"}
        told = [json.loads(line) for line in (out / HISTORY_FILE).open()]
        assert told[1]["how"] == "limit of the run"
        assert told[1]["spent"]["requests"] == sent
        with pytest.raises(BudgetError, match="limit"):  # the earlier usage still counts
            evaluate(replace(config, **limits), quiet=True)
        assert len(server.requests) <= sent + 1
        evaluate(config, quiet=True)
        found = episodes_of(out)
        assert [t.task for t in found[: len(first)]] == [t.task for t in first]
        assert sorted(t.index for t in found) == [0, 2, 3, 4]
        assert RunHistory(out).earlier_usage.requests == len(server.requests)


def test_a_killed_run_has_the_usage_of_its_episodes(squares: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with FaultyEndpoint(ANSWER) as server:
        evaluate(replace(requests(squares, server, out), tasks=("2", "3")), quiet=True)
        log = out / HISTORY_FILE
        began, _ = log.read_text().splitlines(keepends=True)
        log.write_text(began + '{"ended": "2026')  # an incomplete line, as after kill -9
        before = RunHistory(out).earlier_usage
        assert (before.requests, before.prompt_tokens) == (4, 400)
        assert before.cost == pytest.approx(0.012)
        with pytest.raises(BudgetError, match="max_tokens = 480 is reached: 480 are used"):
            evaluate(replace(requests(squares, server, out), max_tokens=480), quiet=True)
        evaluate(requests(squares, server, out), quiet=True)
        assert RunHistory(out).earlier_usage.requests == 8 == len(server.requests)
    rows = [line for line in log.read_text().splitlines() if line.startswith('{"ended"')]
    assert json.loads(rows[1])["how"] == "killed"


def test_the_usage_of_lost_attempts_is_on_disk(
    squares: str, tmp_path: Path, episodes_of: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(episode_runner, "RETRY_DELAYS", (0.01, 0.01))
    with FaultyEndpoint(ANSWER, status(500)) as server:
        config = requests(squares, server, tmp_path / "run")
        config = replace(
            config, tasks=("2",), model_options={**config.model_options, "max_attempts": 1}
        )
        (found,) = episodes_of(evaluate(config, quiet=True))
    assert found.end == "error" and found.run["attempts"] == 3
    assert found.run["lost"]["prompt_tokens"] == 100
    assert RunHistory(tmp_path / "run").earlier_usage.prompt_tokens == 100


def test_lost_answers_of_an_earlier_process_count_towards_the_limit(
    squares: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(episode_runner, "RETRY_DELAYS", (0.01, 0.01))
    lost = status(200, b"{")
    with FaultyEndpoint(lost, lost, ANSWER) as server:
        config = requests(squares, server, tmp_path / "run", max_cost=0.05)
        config = replace(
            config, tasks=("2",), model_options={**config.model_options, "max_attempts": 1}
        )
        evaluate(config, quiet=True)
        assert len(server.requests) == 4  # two of them were lost, and cost up to $0.01 and more
        history = RunHistory(tmp_path / "run")
        assert (history.earlier_usage.cost, history.earlier_lost.requests) == (0.006, 2)
        assert history.earlier_lost.cost is not None and history.earlier_lost.cost > 0.02
        limited = replace(config, tasks=("2", "3"), max_cost=0.026)
        with pytest.raises(BudgetError, match=r"max_cost = 0\.026 is reached: 0\.0[23]"):
            evaluate(limited, quiet=True)
        assert len(server.requests) == 4


class Slow(GoldAgent):
    """Answers after a minute."""

    clock = FakeClock()

    def act(self, feedback: Any) -> Any:
        self.clock.sleep(60.0)
        return super().act(feedback)


def test_time_is_bounded_for_agents_that_ask_no_model(
    squares: str, tmp_path: Path, episodes_of: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = EvalConfig(squares, "gold", limit=3, out=tmp_path / "a", max_seconds_per_episode=1e-6)
    found = episodes_of(evaluate(config, quiet=True))
    assert [(t.end, t.steps[0].action) for t in found] == [("budget", "")] * 3
    monkeypatch.setattr(Clock, "now", lambda _: Slow.clock.now())
    name = f"{__name__}:Slow"
    config = EvalConfig(squares, name, out=tmp_path / "b", parallel=1, max_seconds=100)
    with pytest.raises(BudgetError, match="run's limit"):
        evaluate(config, quiet=True)
    with pytest.raises(BudgetError, match="max_seconds = 100 is reached: 120 are used"):
        evaluate(config, quiet=True)
    evaluate(replace(config, max_seconds=None), quiet=True)
    assert sorted(t.index for t in episodes_of(tmp_path / "b")) == list(range(8))


def test_unknown_spending_refuses_a_limit_on_it(squares: str, tmp_path: Path) -> None:
    config = EvalConfig(squares, "single-turn", model="m", limit=1, out=tmp_path / "run")
    model = ScriptedModel(lambda _: "```bash\necho 0\n```")  # reports no tokens
    evaluate(config, model=model, quiet=True)
    with pytest.raises(UsageError, match="max_tokens = 9999 cannot be enforced"):
        evaluate(replace(config, limit=2, max_tokens=9999), model=model, quiet=True)
    with pytest.raises(ConfigError, match="no price is known"):
        make_plan(replace(config, max_cost=1.0), model=model)


def test_too_many_errors_stop_the_run_with_its_finished_episodes(
    squares: str, tmp_path: Path, episodes_of: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(episode_runner, "RETRY_DELAYS", (0.01, 0.01))

    def flaky(messages: list) -> str:
        if "print 0" not in messages[1]["content"]:
            raise ModelUnavailableError("the endpoint is down")
        return "```bash\necho 0\n```"

    config = EvalConfig(
        squares, "single-turn", model="m", out=tmp_path / "run", parallel=1, fail_on_error="25%"
    )
    with pytest.raises(TooManyErrorsError, match=r"3 of 8 .* 25% allows 2; .*endpoint is down"):
        evaluate(config, model=ScriptedModel(flaky), quiet=True)
    ends = [t.end == "error" for t in episodes_of(tmp_path / "run")]
    assert ends[:4] == [False, True, True, True] and len(ends) <= 5
    sound = ScriptedModel(lambda _: "```bash\necho 0\n```")
    evaluate(config, model=sound, quiet=True)
    assert len(make_plan(config, model=sound).read_state().finished) == 8


def test_a_run_that_is_over_asks_nothing_more(squares: str, tmp_path: Path) -> None:
    with FaultyEndpoint(ANSWER) as server:
        plan = make_plan(requests(squares, server, tmp_path / "run"))
        spending = RunBudget(plan.config, Usage())
        with EnvironmentPool[BranchingEnvironment]() as envs:
            player = episode_runner.EpisodeRunner(
                plan, spending, lambda _: True, plan.make_env, envs
            )
            assert player.run(Sample(2, 0)) is not None
            sent = len(server.requests)
            spending.stop()
            with pytest.raises(BudgetError, match="has been stopped"):
                player.run(Sample(3, 0))
        assert len(server.requests) == sent


@pytest.mark.parametrize(
    ("setting", "allowed"), [(None, None), (0, 0), (3, 3), ("4", 4), ("10%", 20), ("0.4%", 0)]
)
def test_errors_that_are_allowed(setting: Any, allowed: int | None) -> None:
    assert max_failed_episodes(setting, 200) == allowed


@pytest.mark.parametrize("setting", ["ten", "-1", "101%", "nan%", "%", -1])
def test_a_share_that_is_none_is_refused(setting: Any) -> None:
    with pytest.raises(ConfigError, match="fail_on_error"):
        max_failed_episodes(setting, 200)


def test_too_low_a_limit_on_open_files_is_refused(
    squares: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import resource

    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    check_open_file_limit(64)
    with pytest.raises(UsageError, match=r"200 episodes at once .* open 4096: give --parallel 116"):
        run_plan(make_plan(EvalConfig(squares, "gold", parallel=200, out=tmp_path / "run")))
    assert not (tmp_path / "run").exists()


def test_the_error_of_a_limit_names_the_directory(
    squares: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    closed: list[Path] = []
    monkeypatch.setattr(Plan, "close", lambda plan: closed.append(plan.out))
    with FaultyEndpoint(ANSWER) as server:
        config = replace(requests(squares, server, tmp_path), out=None, max_tokens=300)
        with pytest.raises(BudgetError) as stopped:
            evaluate(config, quiet=True)
    (out,) = Path("runs").iterdir()
    assert stopped.value.out == out and f"are in {out}:" in str(stopped.value)
    assert closed == [out]
