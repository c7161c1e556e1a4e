"""Statistics of small episodes with known results, and of the published logs."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from pathlib import Path

import pytest

import intercode
from intercode.agents import open_agent
from intercode.core.logs import load_log
from intercode.core.trajectories import TRAJECTORIES_FILE, append_trajectory
from intercode.core.types import Score, Step, Trajectory, Usage
from intercode.evaluation.rollout import rollout
from intercode.results import report
from intercode.results.report.result_sets import collect_result_sets
from intercode.results.report.statistics_tables import statistics_tables
from intercode.results.statistics import figures, metrics
from intercode.results.statistics.intervals import wilson_interval
from intercode.results.statistics.metrics import agent_turns
from intercode.results.statistics.samples import independent_episodes, solving_turn
from intercode.results.view.rows import index_episode, run_summary

GOOD = Step("ls", "x", score=Score(1.0))
MEH = Step("ls -l", "y", score=Score(0.4))
BAD = Step("lss", "no", valid=False, score=Score(0.0))
TALK = Step("", "retry", executed=False, valid=False, score=Score(0.0))


def episode(*steps: Step, task: str = "a", epoch: int = 0, **more: object) -> Trajectory:
    return Trajectory(task=task, index=0, query="", steps=steps, epoch=epoch).replace(**more)


def epochs(task: str, solved: str) -> list[Trajectory]:
    """Return one episode per character: ``+`` solved, ``-`` not."""
    return [episode(GOOD if c == "+" else BAD, task=task, epoch=n) for n, c in enumerate(solved)]


def value(found: object) -> float:
    assert found is not None
    return found.value  # type: ignore[attr-defined, no-any-return]


def test_samples_leave_out_errors_branches_and_repeats() -> None:
    recorded = [episode(GOOD), episode(BAD, task="b")]
    broken = episode(task="c", end="error", error="endpoint down")
    branch = episode(GOOD, task="b", epoch=1, parent="x")
    again = episode(GOOD, task="b")
    assert independent_episodes([*recorded, broken, branch]) == recorded
    assert independent_episodes([*recorded, again]) == [recorded[0], again]


def test_the_interval_of_a_mean_stays_where_means_can_lie() -> None:
    plays = [episode(GOOD, task="a"), episode(GOOD, task="b"), episode(MEH, task="c")]
    found = {f.name: f.estimate for f in figures.all_figures(plays)}[figures.BEST_REWARD]
    assert found is not None and (found.low, found.high) == (pytest.approx(0.0), 1.0)
    errors = figures.error_rate([*(episode(BAD, task=task) for task in "xyz"), plays[0]])
    assert errors is not None and (errors.value, errors.low, errors.high) == (75.0, 0.0, 100.0)
    low = episode(Step("x", "y", score=Score(1.5)), task="d")
    found = {f.name: f.estimate for f in figures.all_figures([*plays, low])}[figures.BEST_REWARD]
    assert found is not None and found.high is not None and found.high > 1.0


def test_success_equals_the_reports_and_names_its_interval() -> None:
    plays = [*epochs("a", "+"), *epochs("b", "-"), *epochs("c", "+")]
    found = figures.success(plays)
    assert value(found) == pytest.approx(metrics.success_rate(plays), rel=1e-12)
    assert found is not None and found.method == "Wilson"
    assert (found.low, found.high) == pytest.approx([100 * b for b in wilson_interval(2 / 3, 3)])
    several = [*epochs("a", "+-"), *epochs("b", "--"), *epochs("c", "++-")]
    found = figures.success(several)
    assert value(found) == pytest.approx(metrics.success_rate(several), rel=1e-12)
    assert value(found) == pytest.approx(300 / 7)
    assert found is not None and found.method == "Wilson, clustered by task"
    assert (found.samples, found.clusters) == (7, 3)


def test_an_infrastructure_error_is_not_solved_and_in_no_other_mean() -> None:
    plays = [*epochs("a", "+"), episode(GOOD, task="b", end="error", error="lost")]
    assert value(figures.success(plays)) == 50.0
    assert value(figures.success_upper_bound(plays)) == 100.0
    assert figures.success_upper_bound(plays[:1]) is None
    assert [e.value for e in figures.success_by_turn(plays)] == [50.0]
    assert value(figures.mean_figure(plays, lambda t: t.score)) == 1.0
    named = {f.name: f.estimate for f in figures.all_figures(plays)}
    assert value(named["best score"]) == 0.5


def test_errors_never_raise_a_figure_of_success() -> None:
    for solved in ("++--", "+-+-+", "++++", "----"):
        plays = epochs("a", solved) + epochs("b", solved)
        for n in range(len(plays)):
            killed = [
                t.replace(end="error", error="x") if k <= n else t for k, t in enumerate(plays)
            ]
            pairs = [(figures.success(killed), figures.success(plays))]
            for k in (1, 2, 4):
                pairs += [(figures.pass_at(killed, k), figures.pass_at(plays, k))]
                pairs += [(figures.pass_all(killed, k), figures.pass_all(plays, k))]
            assert all(value(a) <= value(b) for a, b in pairs)
            assert value(figures.success_upper_bound(killed)) >= value(figures.success(plays))


def _chosen(solved: str, k: int, wanted: object) -> Fraction:
    """Return the share of all choices of k epochs for which ``wanted`` (any or all) holds."""
    ways = list(combinations([c == "+" for c in solved], k))
    return Fraction(sum(wanted(way) for way in ways), len(ways))  # type: ignore[operator]


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_pass_at_k_counts_every_way_to_choose_k(k: int) -> None:
    tasks = {"a": "++--", "b": "----", "c": "+++++", "d": "+---", "e": "-+"}
    plays = [t for name, solved in tasks.items() for t in epochs(name, solved)]
    enough = [solved for solved in tasks.values() if len(solved) >= k]
    for of, wanted in ((figures.pass_at, any), (figures.pass_all, all)):
        expected = sum(_chosen(s, k, wanted) for s in enough) / len(enough)
        found = of(plays, k)
        assert value(found) == pytest.approx(100 * float(expected))
        assert found is not None and found.clusters == len(enough)
        assert found.low is not None and found.low <= found.value <= (found.high or 0)
    assert value(figures.pass_at(plays, 1)) == value(figures.pass_all(plays, 1))


def test_pass_at_more_than_there_are_is_none() -> None:
    assert figures.pass_at(epochs("a", "+-"), 3) is None
    assert (
        figures.pass_k_values(1) == []
        and figures.pass_k_values(2) == [2]
        and figures.pass_k_values(5) == [2, 4, 5]
    )
    assert figures.pass_k_values(8) == [2, 4, 8]


def test_success_by_turn() -> None:
    plays = [
        episode(GOOD),
        episode(BAD, MEH, GOOD, task="b"),
        episode(BAD, BAD, BAD, BAD, task="c"),
        episode(BAD, GOOD, task="d"),
    ]
    found = figures.success_by_turn(plays)
    assert [e.value for e in found] == [25.0, 50.0, 75.0, 75.0]
    assert [e.value for e in figures.success_by_turn(plays, turns=2)] == [25.0, 50.0]
    assert all(e.samples == 4 and e.low is not None and e.low < e.value for e in found)
    assert figures.success_by_turn([]) == []


def test_a_forced_submit_counts_with_the_turn_before() -> None:
    forced = episode(BAD, Step("submit", "", score=Score(1.0)), run={"turns_taken": 1})
    assert agent_turns(forced) == (BAD,)
    assert solving_turn(forced) == 1
    assert solving_turn(episode(BAD)) is None


def test_recovery() -> None:
    plays = [
        episode(GOOD),  # an episode without an error
        episode(BAD, GOOD, task="b"),
        episode(TALK, MEH, task="c"),
        episode(BAD, TALK, MEH, GOOD, task="d"),
    ]
    assert value(figures.recovery(plays)) == pytest.approx(200 / 3)
    # After errors: GOOD, MEH, TALK, MEH; after valid ones: GOOD.
    assert value(figures.next_action_valid(plays, after_error=True)) == 75.0
    assert value(figures.next_action_valid(plays, after_error=False)) == 100.0
    assert figures.recovery([episode(GOOD)]) is None


def test_a_turn_of_unknown_validity_is_neither() -> None:
    unknown = Step("x", "", valid=None)
    assert figures.next_action_valid([episode(BAD, unknown, GOOD)], after_error=True) is None
    assert figures.recovery([episode(unknown)]) is None


def test_unknown_costs_are_none_and_never_zero() -> None:
    def requested(cost: float | None) -> Step:
        return Step(
            "ls", "", score=Score(0.0), usage=Usage(10, 5, requests=1, cost=cost, seconds=2.0)
        )

    found = {f.name: f.estimate for f in figures.all_figures([episode(requested(None))])}
    assert found["cost"] is None and value(found["prompt tokens"]) == 10
    plays = [
        episode(requested(0.02)),
        episode(requested(None), task="b"),
        episode(requested(0.04), task="c"),
    ]
    found = {f.name: f.estimate for f in figures.all_figures(plays)}
    assert value(found["cost"]) == pytest.approx(0.03)  # US dollars
    assert found["cost"] is not None and found["cost"].samples == 2
    assert found["time"] is None and found["reasoning tokens"] is None
    assert figures.all_figures([episode(GOOD)])[-2].estimate is None


def test_splits_by_hardness_group_and_tag() -> None:
    plays = [
        episode(GOOD, hardness="hard", group="g2", tags=("join", "order")),
        episode(BAD, task="b", hardness="easy", group="g1", tags=("join",)),
    ]
    found = [(by, name, [t.task for t in some]) for by, name, some in figures.subsets(plays)]
    assert found == [
        ("hardness", "easy", ["b"]),
        ("hardness", "hard", ["a"]),
        ("group", "g1", ["b"]),
        ("group", "g2", ["a"]),
        ("tag", "join", ["a", "b"]),
        ("tag", "order", ["a"]),
    ]


# ------------------------------------------------------------- published logs
SQL = "ic_sql_multiturn_gpt-3.5_10_turns.json"


@pytest.mark.paper
def test_the_published_sql_log(recorded_dir: Path) -> None:
    plays = load_log(recorded_dir / "sql" / SQL)
    found = figures.success(plays)
    assert found is not None
    assert found.value == pytest.approx(47.29, abs=0.01)
    assert (found.low, found.high) == pytest.approx((44.26, 50.34), abs=0.01)
    by_turn = [e.value for e in figures.success_by_turn(plays)]
    assert len(by_turn) == 10 and by_turn == sorted(by_turn)
    assert by_turn[0] == pytest.approx(metrics.first_turn_rate(plays))
    assert by_turn[-1] == found.value
    # Counted another way: rewards per turn, straight from the rows.
    within4 = sum(any(s.score_value == 1.0 for s in t.steps[:4]) for t in plays)
    assert by_turn[3] == pytest.approx(100 * within4 / 1034)


@pytest.mark.paper
def test_figures_agree_with_the_reports(recorded_dir: Path) -> None:
    for name in (SQL, "ic_sql_react_10_turns.json", "ic_sql_plan_solve.json"):
        plays = load_log(recorded_dir / "sql" / name)
        found = {f.name: value(f.estimate) for f in figures.all_figures(plays) if f.estimate}
        assert found["success"] == pytest.approx(metrics.success_rate(plays))
        assert found["turns"] == pytest.approx(metrics.mean_turns(plays))
        assert found["error %"] == pytest.approx(metrics.error_rate(plays))
        true = metrics.error_rate(plays, metrics.true_error_share)
        assert found["error % true"] == pytest.approx(true)


@pytest.mark.paper
def test_tables_of_a_log(recorded_dir: Path) -> None:
    path = recorded_dir / "sql" / SQL
    tables = {t.name: t for t in statistics_tables(collect_result_sets([(path, load_log(path))]))}
    who = "spider/try-again/gpt-3.5"
    assert list(tables) == [
        f"{kind}/{who}" for kind in ("statistics", "splits", "by-turn", "behaviour", "errors")
    ]
    assert tables[f"statistics/{who}"].cell("low", figure="success") == pytest.approx(
        44.26, abs=0.01
    )
    assert tables[f"splits/{who}"].cell("value", by="easy") == pytest.approx(72.5, abs=0.1)
    assert tables[f"by-turn/{who}"].cell("value", turns=10) == pytest.approx(47.3, abs=0.1)
    errors = tables[f"errors/{who}"]
    assert errors.rows[0][0] == "no such column (1054)"
    for style in report.RENDERERS:
        assert "44.26" in report.render([tables[f"statistics/{who}"]], style)


@pytest.mark.paper
def test_build_adds_statistics_on_request(recorded_dir: Path) -> None:
    path = recorded_dir / "ctf"
    plain = {t.name for t in report.build([path])}
    more = {t.name for t in report.build([path], stats=True)}
    assert more - plain == {
        f"{kind}/ic-ctf/try-again/gpt-4"
        for kind in ("statistics", "by-turn", "behaviour", "errors")
    }


def test_uneven_epochs_and_branches_are_noted(tmp_path: Path) -> None:
    plays = [*epochs("a", "++"), *epochs("b", "-"), episode(GOOD, task="b", parent="z")]
    run = {"source": "run", "environment": "bash", "dataset": "mine"}
    entries = collect_result_sets([(tmp_path, [t.replace(run=run) for t in plays])])
    (table,) = [t for t in statistics_tables(entries) if t.name.startswith("statistics/")]
    notes = " ".join(table.notes)
    assert "1 to 2 episodes" in notes and "1 branches" in notes
    assert table.cell("tasks", figure="pass@2") == 1


def test_a_record_has_its_tasks_tags() -> None:
    with intercode.make("sql", dataset="starter") as env:
        task = next(task for task in env.dataset.tasks if task.tags)
        assert rollout(open_agent("noop", {}), env, task.id).tags == task.tags


def test_tags_are_recorded_in_a_run(tmp_path: Path) -> None:
    append_trajectory(tmp_path / TRAJECTORIES_FILE, episode(GOOD, tags=("join", "null")))
    append_trajectory(tmp_path / TRAJECTORIES_FILE, episode(GOOD, task="b"))
    plays = load_log(tmp_path)
    assert [t.tags for t in plays] == [("join", "null"), ()]
    assert [(name, len(some)) for by, name, some in figures.subsets(plays) if by == "tag"] == [
        ("join", 1),
        ("null", 1),
    ]


def test_answers_from_the_cache_are_no_figures() -> None:
    paid = Step("a", "", score=Score(0.0), usage=Usage(100, 10, requests=1, cost=0.5))
    cached = Step("a", "", score=Score(0.0), usage=Usage(0, 0, 0, 0, 0, 0.0))
    episodes = [
        Trajectory(f"t/{n}", n, "q", steps, end="turn_limit")
        for n, steps in enumerate([(paid, paid), (paid, cached), (cached, cached)])
    ]
    means = {f.name: f.estimate for f in figures.all_figures(episodes)}
    for name, value in (("prompt tokens", 200.0), ("completion tokens", 20.0), ("cost", 1.0)):
        estimate = means[name]
        assert estimate is not None and (estimate.value, estimate.clusters) == (value, 1)
    requests = means["requests"]
    assert requests is not None and requests.clusters == 2
    assert run_summary([index_episode(n, t) for n, t in enumerate(episodes[2:])])["cost"] is None
