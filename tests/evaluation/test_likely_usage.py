"""The likely cost that ``--dry-run`` and ``--pilot`` print is near what a run then costs."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import intercode
from intercode.cli import main
from intercode.core.config import EvalConfig
from intercode.evaluation.evaluate.estimate import estimate
from intercode.evaluation.evaluate.likely_usage import play_pilot
from intercode.evaluation.evaluate.plan import make_plan
from intercode.evaluation.evaluate.run import evaluate
from support.faulty_endpoint import FaultyEndpoint, Handler, completion, status

pytestmark = pytest.mark.sandbox
OPTIONS = {"price": {"input": 10.0, "output": 100.0}, "max_tokens": 400}


def answer(handler: Handler) -> None:
    """Answers some tasks at length."""
    length = 100 if "squared" in str(handler.body) and "print 3" in str(handler.body) else 20
    usage = {"prompt_tokens": 200, "completion_tokens": length}
    status(200, completion("```bash\necho 0\n```", usage=usage))(handler)


def test_a_pilot_and_earlier_runs_give_the_likely_cost(squares: str, tmp_path: Path) -> None:
    with FaultyEndpoint(answer) as server:
        asked = EvalConfig(
            squares,
            "single-turn",
            model="m",
            base_url=server.base_url,
            out=tmp_path / "first",
            model_options=OPTIONS,
            parallel=1,
        )
        plan = make_plan(asked)
        assert estimate(plan).likely is None
        play_pilot(plan, 3)
        assert len(server.requests) == 3 and len(intercode.load_run(plan.out).episodes) == 3
        after = estimate(plan)
        likely = after.likely
        assert after.episodes == 5 and likely is not None and likely.cost is not None
        assert likely.source == f"3 episodes of {plan.out}" and likely.requests is not None
        assert likely.requests.value == 5 and after.cost is not None
        run = intercode.load_run(evaluate(asked, quiet=True))
        assert len(run.episodes) == len(server.requests) == 8
        rest = sum(t.usage.cost or 0 for t in run.episodes[3:])
        assert likely.cost.value == pytest.approx(rest, rel=0.5) and rest < after.cost / 2
        other = make_plan(replace(asked, out=tmp_path / "second", epochs=2))
        again = estimate(other).likely
        assert again is not None and again.cost is not None
        assert again.source == f"8 episodes of {tmp_path / 'first'}"
        assert again.cost.value == pytest.approx(2 * sum(t.usage.cost or 0 for t in run.episodes))
        assert again.cost.low is not None and again.cost.high is not None
        assert again.cost.low < again.cost.value < again.cost.high
        warm = replace(other.config, model_options={**OPTIONS, "temperature": 0.7})
        assert estimate(make_plan(warm)).likely is None, "another run"


def test_the_command_line_prints_both(
    squares: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with FaultyEndpoint(answer) as server:
        words = [
            "eval",
            squares,
            "--agent",
            "single-turn",
            "--model",
            "m",
            "--base-url",
            server.base_url,
            "--out",
            str(tmp_path / "run"),
            "--set",
            'model_options.price={"input": 10.0, "output": 100.0}',
            "--set",
            "model_options.max_tokens=400",
        ]
        assert main([*words, "--pilot", "2"]) == 0
        printed = capsys.readouterr().out
        assert (
            "episodes  6 to play, 2 finished" in printed
            and "requests  likely 6; at most 6" in printed
        )
        assert "cost      likely $0.0" in printed and "; at most $0." in printed
        assert f"by the mean of 2 episodes of {tmp_path / 'run'}" in printed
        assert "at least" not in printed
        assert main([*words, "--pilot", "2", "--dry-run"]) == 2
        assert len(server.requests) == 2


def test_a_damaged_run_beside_it_does_not_stop_an_estimate(squares: str, tmp_path: Path) -> None:
    with FaultyEndpoint(answer) as server:
        asked = EvalConfig(
            squares,
            "single-turn",
            model="m",
            base_url=server.base_url,
            out=tmp_path / "a",
            model_options=OPTIONS,
            limit=1,
        )
        evaluate(asked, quiet=True)
        shutil.copytree(tmp_path / "a", tmp_path / "b")
        (tmp_path / "b" / "trajectories.jsonl").write_text("{}\n[]\n")
        likely = estimate(make_plan(replace(asked, out=tmp_path / "new"))).likely
        assert likely is not None and likely.source == f"1 episodes of {tmp_path / 'a'}"


def test_a_pilot_has_the_exit_statuses_of_a_run(
    squares: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    with FaultyEndpoint(status(200, completion("```bash\nls\n```")), status(400)) as server:
        words = [
            "eval",
            squares,
            "--agent",
            "single-turn",
            "--model",
            "m",
            "--base-url",
            server.base_url,
            "--parallel",
            "1",
            "--pilot",
            "3",
            "--out",
            str(out),
        ]
        assert main(words) == 3, "episodes with errors are left"
        printed, said = capsys.readouterr()
        assert "7 to play, 1 finished" in printed and "errors in 2 of the episodes" in said
        assert main([*words, "--fail-on-error", "0"]) == 4
        assert f"--out {out} and the cause fixed resumes it" in capsys.readouterr().err
    assert main(["eval", squares, "--agent", "gold", "--pilot", "2"]) == 0
    assert "pilot: nothing is played: the agent gold uses no model" in capsys.readouterr().err


def test_a_pilot_that_stops_does_not_stop_those_of_the_other_runs(
    squares: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with FaultyEndpoint(status(400)) as server:
        file = tmp_path / "grid.toml"
        file.write_text(
            f'dataset = "{squares}"\nmodel = "m"\nbase_url = "{server.base_url}"\n'
            f'out = "{tmp_path / "runs"}"\nfail_on_error = 0\nparallel = 1\nmax_turns = 1\n'
            '[grid]\nagent = ["single-turn", "try-again"]\n'
        )
        assert main(["eval", "--config", str(file), "--pilot", "1"]) == 4
    printed, said = capsys.readouterr()
    assert said.count("stopped: 1 of 1 episodes ended in an error") == 2
    assert "all 2 runs" in printed and "16 to play" in printed
