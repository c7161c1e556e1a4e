"""Comparisons: small ones with known results, the published logs against SciPy, and refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from intercode.core.errors import UnknownNameError, UsageError
from intercode.core.logs import load_log
from intercode.core.trajectories import (
    HISTORY_FILE,
    TRAJECTORIES_FILE,
    append_trajectory,
    write_run_metadata,
)
from intercode.core.types import Score, Step, Trajectory, Usage
from intercode.results.compare.comparison import (
    CONDITIONS,
    Comparison,
    Side,
    compare,
    compare_all,
    open_side,
    open_sides,
)
from intercode.results.compare.comparison_tables import (
    comparison_tables,
    comparisons_json,
    significance_notes,
    verdict,
)
from intercode.results.report.result_sets import load_result_sets
from intercode.results.short_text import shorten_distinct

METADATA = {
    "environment": "bash",
    "dataset": "mine",
    "dataset_hash": "h1",
    "profile": "standard",
    "scoring": "bash-1",
    "reward": "bash-standard",
    "image": "recipe:x",
    "image_digest": "sha256:1",
    "arch": "x86_64",
    "tier": "namespace",
    "network": "none",
    "policy": None,
    "determinism": None,
    "agent": "react",
    "model": "m",
    "max_turns": 10,
}


def run(
    home: Path,
    name: str,
    solved: dict[str, str],
    extra: tuple[Trajectory, ...] = (),
    **metadata: Any,
) -> Path:
    """Write a run directory: for each task one character per epoch, ``+`` solved, ``-`` not, ``!``
    an error of the infrastructure."""
    directory = home / name
    write_run_metadata(directory, {**METADATA, **metadata})
    for task, outcome in solved.items():
        for epoch, char in enumerate(outcome):
            usage = Usage(100, 10, requests=1, cost=0.01)
            step = Step("ls", "seen", score=Score(float(char == "+")), usage=usage)
            play = Trajectory(task, 0, f"do {task}", (step,), epoch=epoch, end="submitted")
            if char == "!":
                play = play.replace(end="error", error="endpoint down", steps=())
            append_trajectory(directory / TRAJECTORIES_FILE, play)
    for play in extra:
        append_trajectory(directory / TRAJECTORIES_FILE, play)
    return directory


def sides(*paths: Path) -> list[Side]:
    return [open_side(letter, path) for letter, path in zip("ABC", paths, strict=False)]


def compared(*paths: Path, allow_mismatch: tuple[str, ...] = ()) -> Comparison:
    return compare(*sides(*paths), allow_mismatch)


def test_paired_by_task(tmp_path: Path) -> None:
    a = run(tmp_path, "a", {"t1": "+", "t2": "-", "t3": "-", "t4": "+", "t5": "-"})
    b = run(tmp_path, "b", {"t5": "-", "t4": "-", "t3": "+", "t2": "+", "t1": "+"}, agent="noop")
    found = compared(a, b)
    assert found.test.method == "exact McNemar test"
    assert found.test.p == pytest.approx(stats.binomtest(1, 3).pvalue)
    success = found.figures[0]
    assert (success.first, success.second) == (40.0, 60.0)
    assert success.difference.value == pytest.approx(20.0)
    assert success.difference.low is not None and success.difference.low < 0
    assert [(f.task, f.first, f.second, f.flaky) for f in found.flips] == [
        ("t2", 0.0, 1.0, None),
        ("t3", 0.0, 1.0, None),
        ("t4", 1.0, 0.0, None),
    ]
    # five tasks cannot show a smaller difference
    assert found.detectable is None or found.detectable > 60
    assert [d.name for d in found.other_differences] == ["agent"]
    measured = {m.name: (m.first, m.second) for m in found.figures}
    assert measured["cost"] == (0.01, 0.01) and measured["prompt tokens"] == (100, 100)
    assert "time" not in measured  # unknown, not zero


@pytest.mark.parametrize(
    ("first", "second", "sentence"),
    [
        ("-" * 9, "+" * 9, "B is better than A: B - A is 100.0 points of success ["),
        ("+" * 9, "-" * 9, "A is better than B: B - A is -100.0 points of success [-100.0, "),
        ("-" * 9, "+" + "-" * 8, "A and B cannot be told apart: B - A is 11.1 points of success"),
        ("+-" * 9, "+-" * 9, "A and B cannot be told apart: B - A is 0.0 points of success"),
        (
            "+",
            "+",
            "A and B cannot be told apart: B - A is 0.0 points of success [-92.4,",
        ),
    ],
)
def test_one_sentence_says_which_side_is_better(
    first: str, second: str, sentence: str, tmp_path: Path
) -> None:
    """With the sign of the table's difference."""
    a, b = (
        run(tmp_path, name, {f"t{n}": char for n, char in enumerate(outcomes)})
        for name, outcomes in (("a", first), ("b", second))
    )
    found = compared(a, b)
    assert verdict(found).startswith(sentence)
    assert comparisons_json([found])["comparisons"][0]["verdict"] == verdict(found)


def test_runs_of_one_agent_on_different_datasets_are_one_side(tmp_path: Path) -> None:
    for name, outcome in (("a", "+"), ("b", "-")):
        run(tmp_path / name, "bash", {"bash/1": outcome, "bash/2": "+"}, agent=name)
        more = {"environment": "sql", "dataset": "other", "image": None, "image_digest": None}
        run(tmp_path / name, "sql", {"sql/1": outcome}, agent=name, **more)
    found = compared(tmp_path / "a", tmp_path / "b")
    assert found.tasks == ("bash/1", "bash/2", "sql/1")
    assert found.figures[0].difference.value == pytest.approx(-200 / 3)
    assert list(map(str, found.other_differences)) == ["agent: a | b"]
    run(tmp_path / "b", "again", {"sql/1": "+"}, agent="b")
    with pytest.raises(UsageError, match="holds 3 runs"):
        open_side("B", tmp_path / "b")
    run(tmp_path / "c", "sql", {"sql/1": "+"}, environment="sql", tier="other")
    run(tmp_path / "c", "bash", {"bash/1": "+"})
    message = r"they differ in image: .*; tier: namespace \| bash: namespace \+ sql: other"
    with pytest.raises(UsageError, match=message):
        compared(tmp_path / "a", tmp_path / "c")


def test_sides_of_several_environments_are_compared_by_their_common_tasks(tmp_path: Path) -> None:
    """Whatever the names of their runs; of what only one side has, no condition counts."""
    sql = {"environment": "sql", "dataset": "other", "image": None, "image_digest": None}
    run(tmp_path / "a", "1", {"bash/1": "+", "x": "+"})
    run(tmp_path / "a", "2", {"sql/1": "+"}, **sql)
    run(tmp_path / "b", "1", {"sql/1": "-", "x": "+"}, **sql)
    run(tmp_path / "b", "2", {"bash/1": "+"})
    found = compared(tmp_path / "a", tmp_path / "b")
    assert found.tasks == ("bash/1", "sql/1") and found.other_differences == ()
    assert [(left.task, left.reason) for left in found.excluded] == [
        ("x", "missing in B"),  # its "x" is a task of another environment
        ("x", "missing in A"),
    ]
    for found in (
        compared(tmp_path / "a", tmp_path / "b" / "2"),
        compared(tmp_path / "b" / "2", tmp_path / "a"),
    ):
        assert found.tasks == ("bash/1",) and found.allowed_mismatches == ()
    with pytest.raises(UsageError, match=r"is bash and .* is sql: they have no task in common"):
        compared(tmp_path / "a" / "1", tmp_path / "b" / "1")
    third = run(tmp_path, "c", {"bash/1": "+"}, tier="docker")
    with pytest.raises(UsageError, match=r"they differ in tier: namespace \| docker\. "):
        compared(tmp_path / "a", third)


def test_epochs_show_which_flips_are_flaky(tmp_path: Path) -> None:
    a = run(tmp_path, "a", {"steady": "+++", "luck": "+--", "same": "+-+", "none": "---"})
    b = run(tmp_path, "b", {"steady": "---", "luck": "+++", "same": "-++", "none": "---"})
    found = compared(a, b)
    assert [(f.task, round(f.second - f.first, 2), f.flaky) for f in found.flips] == [
        ("luck", 0.67, True),
        ("steady", -1.0, False),
    ]
    assert found.test.method == "exact sign-flip test"
    assert found.test.p == 1.0  # both signs of 2/3 and 1 give |sum| 1/3 or 5/3; 1/3 was observed
    assert found.figures[0].difference.method == "paired, t over tasks"


def test_missing_tasks_are_left_out_and_errors_count_as_not_solved(tmp_path: Path) -> None:
    a = run(tmp_path, "a", {"t1": "+", "only-a": "+", "t2": "-", "broken": "+", "bad": "!"})
    b = run(tmp_path, "b", {"t1": "+", "only-b": "-", "t2": "+", "broken": "!", "bad": "!"})
    found = compared(a, b)
    assert found.tasks == ("t1", "t2", "broken", "bad")
    assert (found.figures[0].first, found.figures[0].second) == (50.0, 50.0)
    assert [(left.task, left.reason) for left in found.excluded] == [
        ("only-a", "missing in B"),
        ("only-b", "missing in A"),
    ]
    figures = {f.name: f for f in found.figures}
    assert (figures["turns"].first, figures["turns"].difference.clusters) == (1.0, 2)
    assert figures["best score"].second == 0.5


def test_three_killed_episodes_of_six_lose_against_four_solved(tmp_path: Path) -> None:
    names = "abcdef"
    killer = run(tmp_path, "a", dict(zip(names, "+++!!!", strict=True)))
    honest = run(tmp_path, "b", dict(zip(names, "++++--", strict=True)))
    found = compared(killer, honest)
    assert found.figures[0].difference.value == pytest.approx(100 / 6)
    said = " ".join(significance_notes(found))
    assert "A: 3 of 6 episodes ended in an error and count as not solved" in said
    assert "success 50.0 %, at most 100.0 %" in said
    first, second = comparisons_json([found])["sides"]
    assert (first["success"], first["upper_bound"], first["failed"]) == (50.0, 100.0, 3)
    assert "upper_bound" not in second


def test_an_epoch_that_failed_is_not_solved(tmp_path: Path) -> None:
    a = run(tmp_path, "a", {"t": "+!+", "u": "--"})
    b = run(tmp_path, "b", {"t": "+++", "u": "--"})
    found = compared(a, b)
    assert found.figures[0].first == pytest.approx(100 / 3)
    assert found.figures[0].second == 50.0
    assert [flip.task for flip in found.flips] == ["t"] and found.excluded == ()


def test_uneven_epochs_are_reported(tmp_path: Path) -> None:
    a = run(tmp_path, "a", {"t": "+-+", "u": "--"})
    b = run(tmp_path, "b", {"t": "+", "u": "-+"})
    assert "1 tasks have more episodes on one side" in " ".join(significance_notes(compared(a, b)))


def test_a_branch_is_not_a_second_sample(tmp_path: Path) -> None:
    win = Step("ls", "", score=Score(1.0))
    branch = Trajectory("t", 0, "do t", (win,), parent="x", branched_at=0, end="submitted")
    a = run(tmp_path, "a", {"t": "-"}, (branch,))
    b = run(tmp_path, "b", {"t": "-"})
    assert compared(a, b).figures[0].first == 0.0


OTHERS = {
    "subset": ("dataset", "mine:other"),
    "hash": ("dataset_hash", "h2"),
    "profile": ("profile", "original"),
    "scoring": ("scoring", "bash-2"),
    "reward": ("reward", "my.module:f"),
    "image": ("image_digest", "sha256:2"),
    "arch": ("arch", "aarch64"),
    "tier": ("tier", "docker"),
    "network": ("network", "host"),
    "limits": ("limits", {"memory": 1 << 29}),
    "policy": ("policy", {"deny": ["rm"]}),
    "determinism": ("determinism", {"epoch": 1}),
}


def test_every_condition_has_a_case() -> None:
    assert OTHERS.keys() == CONDITIONS.keys()


@pytest.mark.parametrize("name", OTHERS)
def test_other_conditions_are_refused_unless_named(tmp_path: Path, name: str) -> None:
    fact, other = OTHERS[name]
    shared = {"dataset_hash": None} if name == "subset" else {}  # equal hashes are one dataset
    a = run(tmp_path, "a", {"t": "+"}, **shared)
    b = run(tmp_path, "b", {"t": "+"}, **shared, **{fact: other})
    with pytest.raises(UsageError, match=f"they differ in {name}: .*--allow-mismatch {name}$"):
        compared(a, b)
    wrong = next(n for n in OTHERS if n != name)
    with pytest.raises(UsageError, match=f"differ in {name}: "):
        compared(a, b, allow_mismatch=(wrong,))
    found = compared(a, b, allow_mismatch=(name, wrong))
    assert [d.name for d in found.allowed_mismatches] == [name]
    assert any(
        line.startswith(f"differs, but was allowed to: {name}")
        for line in significance_notes(found)
    )


def test_all_differences_are_named_at_once(tmp_path: Path) -> None:
    a = run(tmp_path, "a", {"t": "+"})
    b = run(tmp_path, "b", {"t": "+"}, profile="original", arch="aarch64", network="host")
    with pytest.raises(UsageError, match=r"--allow-mismatch profile,arch,network$"):
        compared(a, b)
    with pytest.raises(UsageError, match=r"differ in arch: x86_64 . aarch64"):
        compared(a, b, allow_mismatch=("profile", "network"))


def test_an_image_is_its_digest_whatever_its_name(tmp_path: Path) -> None:
    a = run(tmp_path, "a", {"t": "+"})
    b = run(tmp_path, "b", {"t": "+"}, image="tar:/elsewhere/x.tar")
    assert compared(a, b).allowed_mismatches == ()


def test_a_dataset_is_its_hash_whatever_its_name(tmp_path: Path) -> None:
    a = run(tmp_path, "a", {"t": "+"}, dataset="starter")
    b = run(tmp_path, "b", {"t": "+"}, dataset="starter:bash")
    assert compared(a, b).allowed_mismatches == ()


def test_what_one_side_does_not_record_is_a_difference(tmp_path: Path) -> None:
    a = run(tmp_path, "a", {"t": "+"})
    b = run(tmp_path, "b", {"t": "+"}, image_digest=None, image=None)
    with pytest.raises(UsageError, match=r"image: sha256:1 \| not recorded"):
        compared(a, b)


def test_one_directory_compares_its_agents_over_all_datasets(tmp_path: Path) -> None:
    for agent, outcome in (("gold", "+"), ("noop", "-")):
        run(tmp_path, f"bash-{agent}", {"bash/1": outcome}, agent=agent, prompts=[agent])
        sql = {"environment": "sql", "dataset": "other", "image": None, "image_digest": None}
        run(tmp_path, f"sql-{agent}", {"sql/1": outcome}, agent=agent, prompts=[agent], **sql)
    first, second = open_sides([tmp_path])
    assert (first.result_set.agent, second.result_set.agent) == ("gold", "noop")
    found = compare(first, second)
    assert found.tasks == ("bash/1", "sql/1")
    assert list(map(str, found.other_differences)) == ["agent: gold | noop", "prompts"]
    for paths in ([tmp_path / "bash-gold"], []):
        with pytest.raises(UsageError, match=r"only one run: .*`intercode compare DIR`"):
            open_sides(paths)
    with pytest.raises(UsageError, match="no task in common; `intercode compare DIR`"):
        compared(tmp_path / "bash-gold", tmp_path / "sql-noop")


def test_agents_of_a_directory_are_in_the_order_in_which_they_were_played(tmp_path: Path) -> None:
    for hour, agent in enumerate(("try-again", "react")):
        play = Trajectory("t", 0, "do t", (), end="submitted", started=f"2026-01-01T0{hour}:00:00Z")
        run(tmp_path, agent, {}, (play,), agent=agent)
    assert [s.result_set.agent for s in open_sides([tmp_path])] == ["try-again", "react"]


def test_an_endpoint_is_a_difference_unless_one_side_has_no_model(tmp_path: Path) -> None:
    """The same name of a model may stand for another model there."""
    a, b = (
        run(tmp_path, str(port), {"t": "+"}, model="m", endpoint=f"http://localhost:{port}/v1")
        for port in (1, 2)
    )
    (note,) = (n for n in comparison_tables([compared(a, b)])[1].notes if "also differs" in n)
    assert note == "also differs: endpoint: http://localhost:1/v1 | http://localhost:2/v1."
    c = run(tmp_path, "c", {"t": "+"}, model=None)
    assert [d.name for d in compared(a, c).other_differences] == ["model"]


def test_sides_that_solve_the_same_tasks_are_said_to(tmp_path: Path) -> None:
    a, b = (run(tmp_path, name, {"t": "+"}) for name in "ab")
    assert significance_notes(compared(a, b))[0] == "no task is solved more often on one side."


def test_an_unknown_condition_gives_the_near_one(tmp_path: Path) -> None:
    a, b = (run(tmp_path, name, {"t": "+"}) for name in "ab")
    with pytest.raises(UnknownNameError, match="did you mean 'profile'"):
        compared(a, b, allow_mismatch=("profil",))


def test_nothing_in_common(tmp_path: Path) -> None:
    a, b = run(tmp_path, "a", {"t": "+"}), run(tmp_path, "b", {"u": "+"})
    with pytest.raises(UsageError, match="no task in common"):
        compared(a, b)
    c = run(tmp_path, "c", {"t": "+"}, environment="sql")
    with pytest.raises(UsageError, match=r"is bash and .* is sql"):
        compared(a, c, allow_mismatch=tuple(CONDITIONS))
    with pytest.raises(UsageError, match="holds 3 runs"):
        open_side("A", tmp_path)


def test_p_values_of_several_comparisons_are_adjusted(tmp_path: Path) -> None:
    tasks = [f"t{n}" for n in range(12)]
    a = run(tmp_path, "a", dict.fromkeys(tasks, "-"))
    b = run(tmp_path, "b", {t: "+" if n < 7 else "-" for n, t in enumerate(tasks)})
    c = run(tmp_path, "c", {t: "+" if n < 8 else "-" for n, t in enumerate(tasks)})
    found = compare_all(sides(a, b, c))
    p = [stats.binomtest(0, n).pvalue for n in (7, 8)]
    assert [f.test.p for f in found] == pytest.approx(p)
    assert [f.adjusted_p for f in found] == pytest.approx([p[0], 2 * p[1]])
    assert compare_all(sides(a, b))[0].adjusted_p is None


def test_the_tables_and_json_hold_the_same(tmp_path: Path) -> None:
    tasks = {f"t{n:02}": "-" for n in range(50)}
    a = run(tmp_path, "a", {**tasks, "x": "+"})
    b = run(tmp_path, "b", dict.fromkeys(tasks, "+"))
    found = [compared(a, b)]
    tables = {t.name: t for t in comparison_tables(found)}
    assert list(tables) == ["sides", "compare-A-B", "flips-A-B", "left-out-A-B"]
    assert len(tables["flips-A-B"].rows) == 20
    assert tables["flips-A-B"].notes == ("and 30 more: --all shows them.",)
    assert len(comparison_tables(found, full=True)[2].rows) == 50
    document = json.loads(json.dumps(comparisons_json(found)))
    (one,) = document["comparisons"]
    assert len(one["flips"]) == 50 and one["p"] == found[0].test.p
    assert one["left_out"] == [{"task": "x", "reason": "missing in B"}]
    success = next(f for f in one["figures"] if f["figure"] == "success")
    assert success["difference"] == 100.0
    assert tables["compare-A-B"].cell("B - A", figure="success") == 100.0
    assert one["detectable"] == found[0].detectable


def test_both_directions_are_among_the_flips_that_are_shown(tmp_path: Path) -> None:
    a = run(tmp_path, "a", {f"t{n:02}": "-" if n < 60 else "+" for n in range(62)})
    b = run(tmp_path, "b", {f"t{n:02}": "+" if n < 60 else "-" for n in range(62)})
    table = next(t for t in comparison_tables([compared(a, b)]) if t.name.startswith("flips"))
    assert [row[3] for row in table.rows] == ["B"] * 18 + ["A"] * 2


def test_runs_that_are_not_finished_and_equal_runs_are_noted(tmp_path: Path) -> None:
    a = run(tmp_path, "a", {"t0": "+", "t1": "-"})
    b = run(tmp_path, "b", {"t0": "+", "t1": "-"})
    assert comparison_tables([compared(a, b)])[0].notes == ()
    (b / HISTORY_FILE).write_text('{"began": "now", "tasks": 6}\n')
    (note,) = comparison_tables([compared(a, b)])[0].notes
    assert note.startswith(f"{b} is not finished: 2 of 6 episodes are played")
    assert comparison_tables([compared(a, a)])[0].notes == ("A and B are the same run.",)
    (tmp_path / "c").mkdir()
    a.rename(tmp_path / "c" / "a")
    (tmp_path / "c" / "train.jsonl").write_text('{"messages": []}\n')
    (_, ignored) = comparison_tables([compared(tmp_path / "c", b)])[0].notes[::-1]
    assert ignored == f"left out: {tmp_path}/c/train.jsonl: no log of episodes."


def test_the_difference_of_scores_is_cut_at_1(tmp_path: Path) -> None:
    a = run(tmp_path, "a", {f"t{n}": "-" for n in range(9)} | {"t9": "+"})
    b = run(tmp_path, "b", {f"t{n}": "+" for n in range(10)})
    figures = {f.name: f.difference for f in compared(a, b).figures}
    assert figures["best score"].high == 1.0


# ------------------------------------------------------------- published logs
TRY, REACT = "ic_sql_multiturn_gpt-3.5_10_turns.json", "ic_sql_react_10_turns.json"


@pytest.mark.paper
def test_published_react_against_try_again(recorded_dir: Path) -> None:
    paths = [recorded_dir / "sql" / name for name in (TRY, REACT)]
    found = compared(*paths)
    first, second = ({t.task: t.success for t in load_log(path)} for path in paths)
    gained = sum(second[t] and not first[t] for t in first)
    lost = sum(first[t] and not second[t] for t in first)
    assert (gained, lost) == (234, 116)
    assert found.test.p == pytest.approx(stats.binomtest(lost, gained + lost).pvalue, rel=1e-9)
    success = found.figures[0]
    assert (success.first, success.second) == pytest.approx((47.29, 58.70), abs=0.01)
    d = success.difference
    assert (d.value, d.low, d.high) == pytest.approx((11.41, 7.91, 14.87), abs=0.01)
    assert found.detectable == pytest.approx(4.98, abs=0.01)
    assert len(found.flips) == gained + lost and found.excluded == ()


@pytest.mark.paper
def test_published_plan_solve_does_not_differ_significantly_from_try_again(
    recorded_dir: Path,
) -> None:
    found = compared(*(recorded_dir / "sql" / n for n in (TRY, "ic_sql_plan_solve.json")))
    d = found.figures[0].difference
    assert found.test.p > 0.3 and d.low is not None and d.high is not None
    assert d.low < 0 < d.high and found.detectable is not None and abs(d.value) < found.detectable


@pytest.mark.paper
def test_people_played_fifteen_of_the_tasks(recorded_dir: Path) -> None:
    human = recorded_dir / "sql" / "ic_sql_multiturn_human_10_turns.json"
    found = compared(recorded_dir / "sql" / TRY, human)
    assert len(found.tasks) == 15 and len(found.excluded) == 1019
    assert {left.reason for left in found.excluded} == {"missing in B"}


@pytest.mark.paper
def test_published_bash_strategies_on_different_file_systems(recorded_dir: Path) -> None:
    bash = recorded_dir / "bash"
    paths = [bash / f"ic_bash_{n}.json" for n in ("react_10_turns_fs_3", "plan_solve_fs_3")]
    assert len(compared(*paths).tasks) == 60
    with pytest.raises(UsageError, match=r"subset: nl2bash:fs_3 \| nl2bash:fs_1"):
        compared(paths[0], bash / "ic_bash_react_10_turns_fs_1.json")


@pytest.mark.paper
def test_published_logs_of_several_file_systems_make_one_side(
    recorded_dir: Path, tmp_path: Path
) -> None:
    for model, agent in (("gpt-3.5", "multiturn_gpt-3.5"), ("text", "react")):
        (tmp_path / model).mkdir()
        for fs in (1, 3):
            name = f"ic_bash_{agent}_10_turns_fs_{fs}.json"
            (tmp_path / model / name).symlink_to(recorded_dir / "bash" / name)
    found = compared(tmp_path / "gpt-3.5", tmp_path / "text")
    assert len(found.tasks) == 120 and found.allowed_mismatches == ()
    assert found.figures[0].first == pytest.approx(45.0)


def test_what_differs_is_shown_and_not_cut_off(tmp_path: Path) -> None:
    """Long values that begin alike, tables with one other entry, and names in a report."""
    options = {"prompt": "prompts/of/the/whole/group/for/long/experiments/version-1.txt", "k": "v"}
    other = {**options, "prompt": options["prompt"].replace("-1", "-2")}
    generation = {"temperature": 0.0, "extra": {"a": "x" * 80}, "stop": None}
    a = run(tmp_path, "a", {"t": "+"}, agent_options=options, generation=generation)
    b = run(
        tmp_path, "b", {"t": "+"}, agent_options=other, generation={**generation, "stop": ["y"]}
    )
    found = {d.name: str(d) for d in compare(*sides(a, b)).other_differences}
    assert found["generation"] == 'generation: {"stop": null} | {"stop": ["y"]}'
    assert "version-1.txt" in found["agent_options"] and "version-2.txt" in found["agent_options"]
    (label_a, label_b) = (s.variant for s in load_result_sets([tmp_path]))
    assert "version-1.txt" in label_a and "version-2.txt" in label_b


def test_shortened_texts_stay_different() -> None:
    texts = [f"{'a' * 50}{n}{'b' * 100}{n}" for n in range(3)]
    assert len(set(shorten_distinct(texts, 40))) == 3
    early_and_late = ["a" * 200, "a" * 199 + "b", "c" + "a" * 199]
    assert len(set(shorten_distinct(early_and_late, 40))) == 3
    assert all(len(text) <= 48 for text in shorten_distinct(early_and_late, 40))
    assert shorten_distinct(["a" * 90] * 2, 40) == ["a" * 37 + "..."] * 2
    assert shorten_distinct([], 40) == []
