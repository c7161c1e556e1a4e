"""When re-executed SQL observations count as equal, and the causes of differences."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from intercode.cli import main
from intercode.core import logs
from intercode.core.types import Score, Step, Trajectory
from intercode.environments.base.replay.rules import replay_rules_for
from intercode.environments.sql import recorded_results
from intercode.evaluation.replay import log_replay
from intercode.evaluation.replay.log_replay import StepComparison
from intercode.evaluation.replay.recorded_environments import RecordedEnvironments, ReplayOptions
from intercode.paper.replay.sql import (
    LEAKED_TABLE_CAUSE,
    LEAKED_TABLES,
    LENIENT_CAUSE,
    LENIENT_TASKS,
    AuthorsSqlRules,
)

E = recorded_results.ERROR_PREFIX
RULES = AuthorsSqlRules()


@pytest.fixture
def data(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERCODE_DATA", str(data_dir))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("[('id', 'int', 'NO')]", "[('id', 'int(11)', 'NO')]"),
        ("[('x',)]", "[(b'x',)]"),
        ("""[("it's",)]""", """[(bytearray(b"it's"),)]"""),
        (E + "Unknown column 'a' in 'field list'", E + "Unknown column 'a' in 'SELECT'"),
        (E + "Unknown database 'w'", E + "Table 'w.t' doesn't exist"),
        (
            E + "Expression #2 of SELECT list is not in GROUP BY clause and contains",
            E + "'d.t.c' isn't in GROUP BY",
        ),
        (
            "[('at', 'timestamp', 'NO', '', 'CURRENT_TIMESTAMP', 'DEFAULT_GENERATED')]",
            "[('at', 'timestamp', 'NO', '', 'current_timestamp()', '')]",
        ),
    ],
)
def test_equal_observations_of_two_servers(a: str, b: str) -> None:
    assert recorded_results.same_observation(a, b) and recorded_results.same_observation(b, a)


@pytest.mark.parametrize(
    ("a", "b", "cause"),
    [
        ("[(1,), (2,)]", "[(2,), (1,)]", "order of rows that the statement leaves open"),
        ("(1,)(2,)", "(2,)(1,)", "order of rows that the statement leaves open"),
        ("[(1,)]", "[(2,)]", "other rows"),
        ("[(1,)]", "[(Decimal('1.00'),)]", "type or digits of a number"),
        ("[]", E + "Unknown column 'x'", "an error here alone: missing column"),
        (E + "Unknown column 'x'", "[]", "an error in the record alone: missing column"),
        (
            E + "You have an error in your SQL syntax; near 'GROUP BY x'",
            E + "Table 'd.t' doesn't exist",
            "another error: syntax in the record, missing table here",
        ),
        ("[(1,)]", "[(1,)]", "the gold's rows or their order differ"),
    ],
)
def test_each_difference_has_a_cause(a: str, b: str, cause: str) -> None:
    assert recorded_results.difference_cause("SELECT 1", a, b) == cause


def test_causes_that_the_action_shows() -> None:
    assert recorded_results.difference_cause(
        "SELECT a FROM t LIMIT 1", "[(1,)]", "[(2,)]"
    ).startswith("which of")
    assert "catalogue" in recorded_results.difference_cause("SHOW TABLE STATUS", "[(1,)]", "[(2,)]")
    assert "catalogue" not in recorded_results.difference_cause(
        "SELECT a ORDER BY a DESC", "[(1,)]", "[(2,)]"
    )


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("[]", []),
        ("[(1, 'a)(b', Decimal('2.5')), (None,)]", ["(1, 'a)(b', Decimal('2.5'))", "(None,)"]),
        ("""[("it's, [x]", 'a\\'b')]""", ["""("it's, [x]", 'a\\'b')"""]),
        ("(1,)(datetime.date(2020, 1, 2),)", ["(1,)", "(datetime.date(2020, 1, 2),)"]),
        ("[(1,), (2", None),
        ("None", None),
        (E + "x (y)", None),
    ],
)
def test_rows_in_an_observation(text: str, rows: list[str] | None) -> None:
    assert recorded_results.parse_rows(text) == rows


def _episode(agent: str, **more: Any) -> Trajectory:
    run = {"source": "authors", "agent": agent, "environment": "sql", "dataset": "spider"}
    return Trajectory("spider/16", 16, "q", (), run={**run, **more})


def test_a_react_action_is_the_content_of_execute() -> None:
    step = Step("execute[SELECT a[1]\nFROM t]\nObservation 5", "[]", score=Score(0.0))
    found = RULES.executed_step(_episode("react"), step)
    assert found.action == "SELECT a[1]\nFROM t" and found.score is None
    assert RULES.executed_step(_episode("try-again"), step) == step
    submit = Step("submit", "[]", score=Score(0.5))
    assert RULES.executed_step(_episode("react"), submit) == submit


def test_the_form_of_logged_observations() -> None:
    many = str([(n,) for n in range(40)])
    short = Step("x", str([(n,) for n in range(25)]))
    assert RULES.logged_observation(_episode("react"), short, many) == short.observation
    assert RULES.logged_observation(_episode("plan-solve"), short, many) == many
    assert (
        RULES.logged_observation(_episode("human"), Step("x", "(1,)(2,)"), "[(1,), (2,)]")
        == "(1,)(2,)"
    )
    assert len(RULES.logged_observation(_episode("react"), Step("x", "y"), E + "x" * 900)) == 350


def _check(paid: float, with_tau: float, without: float, **more: Any) -> StepComparison:
    texts = {"task": "spider/16", "turn": 0, "action": "S", "recorded": "[]", "replayed": "[]"}
    return StepComparison(
        **{**texts, **more},
        recorded_reward=paid,
        replayed_reward=with_tau,
        stable=None,
        parts={"iou": without},
    )


@pytest.mark.parametrize(
    ("agent", "steps", "rewards"),
    [
        ("try-again", [(-0.5, -0.5, 0.5), (0.5, -0.5, 0.5), (-1.0, -1.0, 1.0)], [-0.5, -0.5, -1.0]),
        ("try-again", [(0.5, -0.5, 0.5)], [0.5]),
        # neither scorer explains it: the log's own scorer is used
        ("try-again", [(0.0, -0.5, 0.5)], [0.5]),
        ("plan-solve", [(0.0, -0.5, 0.5)], [-0.5]),
    ],
)
def test_the_scorer_is_the_one_that_explains_more(
    data: None, agent: str, steps: list[tuple[float, float, float]], rewards: list[float]
) -> None:
    checks = RULES.review_checks(_episode(agent), [_check(*s) for s in steps])
    assert [c.replayed_reward for c in checks] == rewards


def test_steps_that_depend_on_a_leaked_table(data: None) -> None:
    shown, used = "[('citizens',), ('singer',)]", "SELECT * FROM citizens"
    missing = E + "Table 'singer.citizens' doesn't exist"
    checks = RULES.review_checks(
        _episode("react"),
        [
            _check(0, 0, 0, action="SHOW TABLES", recorded=shown),
            _check(0, 0, 0, action=used, recorded="[]", replayed=missing),
            _check(0, 0, 0, action="submit", recorded="[]", replayed=missing),
            _check(0, 0, 0, action=used, recorded=missing, replayed=missing),
            _check(0, 0, 0, action="SELECT 'x' FROM song"),
        ],
    )
    assert [c.stable for c in checks] == [False, False, False, True, True]
    assert checks[1].cause == LEAKED_TABLE_CAUSE and checks[4].cause == ""


def test_steps_that_depend_on_a_leaked_setting(data: None) -> None:
    grouped = E + "Expression #1 of SELECT list is not in GROUP BY clause and contains"
    lenient = _episode("react").replace(index=319)
    step = _check(0, 0, 0, action="SELECT MAX(a), b FROM t", recorded="[(1, 2)]", replayed=grouped)
    submit = _check(0, 0, 0, action="submit", recorded="[(1, 2)]", replayed=grouped)
    checks = RULES.review_checks(lenient, [step, submit])
    assert [(c.stable, c.cause) for c in checks] == [(False, LENIENT_CAUSE)] * 2
    for other in (_episode("react").replace(index=300), _episode("try-again").replace(index=319)):
        assert all(c.stable for c in RULES.review_checks(other, [step, submit]))


@pytest.mark.slow
def test_tasks_after_the_leaked_setting_are_listed(recorded_dir: Path) -> None:
    log = logs.load_log(recorded_dir / "sql" / "ic_sql_react_10_turns.json")
    order = [t.index for t in log]
    made = [t.index for t in log for s in t.steps if s.action == "execute[SET sql_mode = '']"]
    assert made == [153, 301]
    for index, tasks in zip(made, LENIENT_TASKS["react"], strict=True):
        at = order.index(index) + 1
        assert order[at : at + len(tasks)] == list(tasks)
        after = order[at + len(tasks) : at + len(tasks) + 1]
        assert after != [tasks.stop]  # after the setting, the log ends or another run begins


def test_leaked_tables_are_in_no_dump_and_in_the_logs(data: None, recorded_dir: Path) -> None:
    """The list is complete: the logs query no other table that the dump does not create."""
    from intercode.datasets import load

    schemas = {t.group: {n.lower() for n in t.data["schema"]} for t in load("spider").tasks}
    assert all(not names & schemas[name] for name, names in LEAKED_TABLES.items())
    tasks = load("spider").tasks
    seen: Counter[tuple[str, str]] = Counter()
    for file in (recorded_dir / "sql").glob("*.json"):
        for episode in logs.load_log(file):
            group = str(tasks[episode.index].group)
            for step in episode.steps:
                if re.search(r"show tables\W*$", step.action, re.IGNORECASE):
                    names = {n.lower() for n in re.findall(r"\('(\w+)',\)", step.observation)}
                    seen.update((group, name) for name in names - schemas[group])
    assert {g: {n for k, n in seen if k == g} for g, _ in seen} == LEAKED_TABLES


def _head(source: Path, target: Path, count: int) -> Path:
    """Return a log with the first episodes of another one."""
    whole = json.loads(source.read_text())
    target.write_text(json.dumps(dict(list(whole.items())[:count])))
    return target


def test_episodes_are_reproduced_on_the_embedded_engine(
    data: None, recorded_dir: Path, tmp_path: Path
) -> None:
    name = "ic_sql_multiturn_gpt-3.5_10_turns.json"
    log = _head(recorded_dir / "sql" / name, tmp_path / name, 40)
    (report,) = log_replay.replay_logs([log], log_replay.ReplayOptions(profile="original"))
    stable = report.shares(stable_only=True)
    assert report.episodes == 40 and stable["steps"] > 250
    assert stable["rewards"] >= 0.99 and stable["observations"] >= 0.92
    assert all(step.cause for step in report.mismatches)


def test_an_environment_is_used_again_unless_it_failed(data: None) -> None:
    episode = _episode("react", profile="original")
    with RecordedEnvironments(ReplayOptions()) as envs:
        with envs.borrow(episode) as first:
            first.reset(options={"task": 16})
            with envs.borrow(episode) as second:
                assert second is not first
        with envs.borrow(episode) as again:
            assert again in (first, second)
        with envs.borrow(episode.replace(run={**episode.run, "profile": "standard"})) as other:
            assert other.profile == "standard"
        with pytest.raises(RuntimeError, match="lost"), envs.borrow(episode) as broken:
            raise RuntimeError("lost")
        with envs.borrow(episode) as one, envs.borrow(episode) as two:
            assert broken not in (one, two)


@pytest.mark.mysql
def test_episodes_are_reproduced_on_a_server(
    data: None, recorded_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "ic_sql_multiturn_human_10_turns.json"
    log = _head(recorded_dir / "sql" / name, tmp_path / name, 15)
    out = tmp_path / "differences.jsonl"
    options = ["--profile", "original", "--set", "engine=mysql", "--json"]
    assert main(["replay", *options, "--out", str(out), str(log)]) == 0
    (results,) = json.loads(capsys.readouterr().out)
    assert results["episodes"] == 15 and results["stable"]["rewards"] == 1.0
    assert results["stable"]["observations"] >= 0.9 and results["recorded_success"] == 13
    assert sum(results["causes"].values()) == len(out.read_text().splitlines())


def test_rules_are_found_by_the_environment() -> None:
    assert isinstance(replay_rules_for(_episode("react")), AuthorsSqlRules)
    assert RULES.dataset("./data/spider/dev_spider.json") == "spider"
    assert RULES.dataset("spider:easy") == "spider:easy"
    assert RULES.settings(_episode("react")) == {"reward": "sql-original"}
    assert replace(_check(0, 0, 0), recorded="a").same_observation is False
