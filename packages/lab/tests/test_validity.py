"""Comparing a grader with labels: files of labels, grading, rates and agreement."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from intercode.cli import main
from intercode.core.errors import DataError, UsageError
from intercode.datasets import load
from intercode_lab.labels.agreement import cohen_kappa, pair_labels
from intercode_lab.labels.records import Label, read_labels, write_labels
from intercode_lab.validity.grading import GradedLabel, GradingOptions, grade_labels
from intercode_lab.validity.pair_order import MORE_ABOVE_LESS, RIGHT_ABOVE_WRONG, order_rates
from intercode_lab.validity.rates import estimate_weighted_share, group_rates

GOOD = {"task": "starter/bash/1", "query": "q", "actions": ["ls"], "label": "correct"}


def _write(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_labels_are_written_as_they_were_read(tmp_path: Path) -> None:
    row = {**GOOD, "reason": "r", "output": "", "weight": 2.5, "dataset": "starter", "turn": 3}
    labels = read_labels([_write(tmp_path / "a.jsonl", GOOD, row)])
    assert [label.line for label in labels] == [1, 2]
    write_labels(tmp_path / "b.jsonl", labels)
    rows = [json.loads(line) for line in (tmp_path / "b.jsonl").read_text().splitlines()]
    assert rows == [{**GOOD, "reason": ""}, row]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2, column 2: broken JSON"),
        ("[]", "line 2: a label is a JSON object"),
        (json.dumps({k: v for k, v in GOOD.items() if k != "query"}), "line 2: .*'query'"),
        (
            json.dumps({**GOOD, "label": "right"}),
            "line 2: 'label' must be one of correct, incorrect, .* not 'right'",
        ),
        (
            json.dumps({**GOOD, "actions": "ls"}),
            "line 2: 'actions' must be a list of texts, not 'ls'",
        ),
        (json.dumps({**GOOD, "actions": []}), "line 2: 'actions' is empty"),
        (json.dumps({**GOOD, "weight": -1}), "line 2: 'weight' must be at least 0 .*, not -1"),
        (json.dumps({**GOOD, "output": 3}), "line 2: 'output' must be a text, not 3"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text(f"{json.dumps(GOOD)}\n{line}\n")
    with pytest.raises(DataError, match=rf"labels\.jsonl, {message}"):
        read_labels([path])


def test_a_file_without_labels_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(UsageError, match="has no labels"):
        read_labels([tmp_path / "empty.jsonl"])
    with pytest.raises(UsageError, match="cannot read the labels"):
        read_labels([tmp_path / "absent.jsonl"])


def test_kappa_of_the_usual_example() -> None:
    pairs = [("yes", "yes")] * 20 + [("yes", "no")] * 5 + [("no", "yes")] * 10 + [("no", "no")] * 15
    kappa = cohen_kappa(pairs)
    assert (kappa.agreement, kappa.expected) == pytest.approx((0.7, 0.5))
    assert kappa.value == pytest.approx(0.4)
    assert (kappa.low, kappa.high) == pytest.approx((0.146, 0.654), abs=0.001)
    assert cohen_kappa([("yes", "yes")] * 3).value is None


def test_labels_are_paired_by_task_and_actions() -> None:
    first = [Label("a", "q", ("x",), "correct"), Label("a", "q", ("y",), "incorrect")]
    second = [Label("a", "q", ("y",), "ambiguous"), Label("b", "q", ("x",), "correct")]
    assert pair_labels(first, second) == [(first[1], second[0])]
    with pytest.raises(UsageError, match="no trajectory in common"):
        pair_labels(first[:1], second)


def _graded(value: str, reward: float, weight: float = 1.0, task: str = "") -> GradedLabel:
    label = Label(task or f"t{id(object())}", "q", ("x",), value, weight=weight)
    return GradedLabel(label, "d", True, reward)


def test_rates_count_errors_in_both_directions() -> None:
    graded = [
        *(_graded("correct", 1.0, task=f"a{n}") for n in range(6)),
        *(_graded("incorrect", 1.0, task=f"b{n}") for n in range(2)),
        *(_graded("correct", 0.5, 10.0, task=f"c{n}") for n in range(1)),
        *(_graded("incorrect", 0.5, task=f"d{n}") for n in range(3)),
        _graded("ambiguous", 0.5),
    ]
    (group,) = group_rates(graded)
    counts = {rate.name: (rate.hits, rate.of) for rate in group.rates}
    assert group.name == "verified"
    assert counts == {
        "accuracy": (9, 12),
        "incorrect, of those graded 1": (2, 8),
        "correct, of those graded below 1": (1, 4),
        "graded 1, of those incorrect": (2, 5),
        "graded below 1, of those correct": (1, 7),
    }
    accuracy = group.rate("accuracy")
    assert accuracy.share is not None and accuracy.share.value == pytest.approx(0.75)
    assert accuracy.weighted is not None and accuracy.weighted.value == pytest.approx(9 / 21)


def test_weights_of_one_give_the_unweighted_share_and_great_weights_more_uncertainty() -> None:
    samples = [(f"t{n}", n % 4 > 0, 1.0) for n in range(40)]
    plain = estimate_weighted_share(samples)
    assert plain is not None and plain.value == 0.75 and plain.low and plain.high
    assert (plain.low, plain.high) == pytest.approx((0.597, 0.858), abs=0.01)
    heavy = estimate_weighted_share([*samples, ("t0", True, 20.0), ("t1", False, 20.0)])
    assert heavy is not None and heavy.low and heavy.high
    assert heavy.high - heavy.low > 1.5 * (plain.high - plain.low)
    assert estimate_weighted_share([("t", True, 0.0)]) is None


@pytest.mark.sandbox
def test_labels_are_graded_by_the_reward_of_the_environment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = load("starter", "bash").tasks[:2]
    assert tasks[0].gold is not None
    ours, other = [{"task": t.id, "query": t.query, "label": "correct"} for t in tasks]
    rows: list[dict[str, Any]] = [
        {**ours, "actions": [tasks[0].gold]},
        {**other, "actions": ["true"], "output": "something"},
        {**other, "actions": ["true"], "query": "asks another thing"},
    ]
    path = _write(tmp_path / "labels.jsonl", *({**row, "dataset": "starter:bash"} for row in rows))
    right, wrong, void = grade_labels(read_labels([path]), GradingOptions())
    assert right.paid and right.agrees and not right.output_differs
    assert wrong.counted and not wrong.agrees and wrong.output_differs
    assert void.reward is None and "the label is void" in void.fault
    out = tmp_path / "graded.jsonl"
    assert main(["check", "--labels", str(path), "--out", str(out)]) == 1
    captured = capsys.readouterr()
    assert f"{tasks[1].id}" in captured.out.partition("Disagreements")[2]
    assert "3 labels: 2 in the rates, 1 could not be graded" in captured.err
    assert [json.loads(line)["reward"] == 1 for line in out.read_text().splitlines()] == [
        True,
        False,
        False,
    ]


def judged(task: str, value: str, reward: float, progress: object = None) -> GradedLabel:
    extra = {} if progress is None else {"progress": progress}
    return GradedLabel(Label(task, "q", ("x",), value, extra=extra), "d", None, reward)


def test_rewards_are_compared_with_the_order_of_the_labels() -> None:
    graded = [
        judged("a", "correct", 1.0),
        judged("a", "correct", 0.6),
        judged("a", "incorrect", 0.6, 0.5),
        judged("a", "incorrect", 0.2, 0.7),
        judged("a", "ambiguous", 0.9),
        judged("b", "incorrect", 0.0, 0),
        judged("b", "incorrect", 0.0, 0),
        judged("b", "incorrect", 0.1, 0.2),
        judged("b", "incorrect", 0.5, "much"),
    ]
    rates = {rate.name: (rate.hits, rate.of) for rate in order_rates(graded)}
    assert rates == {RIGHT_ABOVE_WRONG: (3, 4), MORE_ABOVE_LESS: (2, 3), "all": (5, 7)}
    assert order_rates(graded[:1]) == []


@pytest.mark.sandbox
@pytest.mark.slow
@pytest.mark.parametrize("file", ["bash_mutants.jsonl", "sql_mutants.jsonl"])
def test_mutants_of_golds_are_in_the_order_of_a_persons_judgement(file: str) -> None:
    path = Path(__file__).with_name(file)
    graded = grade_labels(read_labels([path]), GradingOptions())
    assert all(g.agrees for g in graded)
    rate = order_rates(graded)[-1]
    assert rate.of > 70 and rate.hits >= 0.95 * rate.of


@pytest.mark.sandbox
def test_the_id_of_a_family_s_task_names_its_dataset() -> None:
    task = load("families:bash/count-files[difficulty=2]@seed=7..7").tasks[0]
    label = Label(task.id, task.query, (task.golds[0],), "correct")
    (graded,) = grade_labels([label], GradingOptions())
    assert graded.paid and graded.dataset == "families:bash/count-files[difficulty=2]@seed=7..7"


def test_a_task_of_no_dataset_is_an_error_that_names_the_line(tmp_path: Path) -> None:
    path = _write(tmp_path / "labels.jsonl", {**GOOD, "task": "unknown-set/1"})
    with pytest.raises(UsageError, match=r"labels\.jsonl, line 1: .*--dataset"):
        grade_labels(read_labels([path]), GradingOptions())


def test_two_files_are_compared_without_execution(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = _write(tmp_path / "one.jsonl", GOOD, {**GOOD, "actions": ["pwd"], "label": "incorrect"})
    two = _write(tmp_path / "two.jsonl", GOOD, {**GOOD, "actions": ["pwd"], "reason": "reads it"})
    assert main(["check", "--labels", str(one), "--second", str(two)]) == 0
    printed = capsys.readouterr().out
    assert "50.0" in printed and "reads it" in printed
    assert main(["check", "--labels", str(one), "--second", str(two), "--set", "timeout=5"]) == 2
