"""What was expected beside what an agent left: on request, and stored nowhere."""

from __future__ import annotations

import base64
import gzip
import json
import re
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from intercode.agents.base import Agent, Step
from intercode.cli import main
from intercode.cli.show import Style, gold_lines
from intercode.core import trajectories
from intercode.core.config import EvalConfig
from intercode.core.errors import UsageError
from intercode.core.types import AgentOutput, Trajectory
from intercode.evaluation.evaluate.run import evaluate
from intercode.evaluation.replay.explain import explain
from intercode.results.explanation import Explanation, TextComparison
from support.shop import shop_in

pytestmark = pytest.mark.sandbox


class Fixed(Agent):
    """Takes the actions that a test has set."""

    actions: tuple[str, ...] = ()

    def act(self, feedback: Step | None) -> AgentOutput | None:
        self.turn = 0 if feedback is None else self.turn + 1
        return AgentOutput(self.actions[self.turn]) if self.turn < len(self.actions) else None


Play = Callable[..., tuple[Path, Explanation]]


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Play:
    """A function that plays actions in the first task of a dataset and explains the episode."""

    def run(dataset: str, *actions: str) -> tuple[Path, Explanation]:
        out = tmp_path / "run"
        monkeypatch.setattr(Fixed, "actions", actions)
        config = EvalConfig(dataset, f"{__name__}:Fixed", out=out, parallel=1, limit=1)
        evaluate(config, quiet=True)
        (episode,) = trajectories.read_trajectories(out / trajectories.TRAJECTORIES_FILE)
        return out, explain(episode)

    return run


def _dataset(tmp_path: Path, gold: str) -> str:
    file = tmp_path / "own.jsonl"
    file.write_text(json.dumps({"query": "q", "gold": gold}) + "\n")
    return str(file)


def test_the_output_and_the_files_of_a_shell(play: Play, tmp_path: Path) -> None:
    gold = "echo a; echo b; echo yes > /tmp/f; touch /tmp/g; touch /tmp/h"
    actions = "echo no > /tmp/f; touch /tmp/h; echo a; echo c", "submit"
    _, found = play(_dataset(tmp_path, gold), *actions)
    files, output, *contents = found.comparisons
    assert (output.given, output.expected) == ("a\nc", "a\nb") and found.golds == (gold,)
    assert files.what == "files that differ, of 3 that changed"
    assert files.given.startswith("644, 3 bytes, ") and "not changed  /tmp/g" in files.given
    assert "644, 0 bytes, e3b0c442  /tmp/g" in files.expected and "/tmp/h" not in files.expected
    assert found.notes == () and found.reward < 1
    assert found.cause == "1 path not changed, 1 path changed in another way, output differs"
    assert contents == [
        TextComparison("content of /tmp/f", "no", "yes"),
        TextComparison("content of /tmp/g", "(no file)", ""),
    ]


def test_an_output_beside_right_changes_is_the_cause_of_a_lower_score(
    play: Play, tmp_path: Path
) -> None:
    dataset = _dataset(tmp_path, "touch /tmp/f")
    _, found = play(dataset, "touch /tmp/f; echo done", "submit")
    said = "something was printed although nothing should be"
    assert found.reward == 0.9
    assert found.cause == f"right, but in another form (0.9): {said}"
    assert found.cause in list(gold_lines(found, Style(), None, 80))
    assert [c.what for c in found.comparisons if not c.is_equal] == [
        "output (nothing should be printed)"
    ]
    shutil.rmtree(tmp_path / "run")
    _, found = play(dataset, "touch /tmp/g; echo done", "submit")
    assert found.cause == f"1 path not changed, 1 path changed in addition, {said}"


def test_an_output_that_is_not_compared_is_not_judged(play: Play, tmp_path: Path) -> None:
    row = {"query": "q", "gold": "touch /tmp/f", "compare": "changes"}
    (tmp_path / "own.jsonl").write_text(json.dumps(row) + "\n")
    _, found = play(str(tmp_path / "own.jsonl"), "echo done", "submit")
    assert found.comparisons[1].what == "output (not judged)"
    assert found.cause == "1 path not changed"


def test_the_tasks_of_several_runs_are_listed_with_the_cause(
    play: Play, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    play(_dataset(tmp_path, "echo a"), "echo b", "submit")
    lost = Trajectory("lost", 1, "q", (), end="error", error="sandbox lost\nby chance")
    trajectories.append_trajectory(tmp_path / "run" / trajectories.TRAJECTORIES_FILE, lost)
    shutil.copytree(tmp_path / "run", tmp_path / "runs" / "a")
    shutil.copytree(tmp_path / "run", tmp_path / "runs" / "b")
    assert main(["show", str(tmp_path / "runs"), "--failed", "--with-gold"]) == 0
    causes = ["own/0  output differs", "lost   sandbox lost"]
    runs = (str(tmp_path / "runs" / name) for name in "ab")
    assert capsys.readouterr().out.splitlines() == [line for r in runs for line in (r, *causes)]
    assert main(["show", str(tmp_path / "run"), "--failed"]) == 0
    assert f"why: intercode show {tmp_path}/run --failed --with-gold" in capsys.readouterr().err


def test_contents_that_cannot_be_compared_are_described(play: Play, tmp_path: Path) -> None:
    gold = "date +%N > /tmp/now; head -c 70000 /dev/zero > /tmp/large; chmod 600 /etc/passwd"
    actions = "printf 'a\\xff' > /tmp/now; echo a > /tmp/large; true", "submit"
    _, found = play(_dataset(tmp_path, gold), *actions)
    shown = {c.what: (c.given, c.expected) for c in found.comparisons}
    assert shown["content of /tmp/now"] == ("(no text: 2 bytes)", "(another content each time)")
    assert shown["content of /tmp/large"][0] == "a" and "content of /etc/passwd" not in shown
    assert shown["content of /tmp/large"][1].startswith("(not shown: ")


def test_columns_in_another_order_are_shown_in_the_golds(play: Play, tmp_path: Path) -> None:
    shop = shop_in(tmp_path)
    made = {"kind": shop.kind, "path": shop.path.name, "name": shop.name}
    row = {"query": "q", "gold": "SELECT 'x', 1", "database": made}
    (tmp_path / "own.jsonl").write_text(json.dumps(row) + "\n")
    _, found = play(str(tmp_path / "own.jsonl"), "SELECT 1, 'x'", "submit")
    (rows,) = found.comparisons
    assert found.reward == 1 and rows.is_equal and rows.given == "('x', 1)"
    assert found.notes == ("the answer's columns are compared in the order 2, 1",)


def test_the_rows_of_a_database(play: Play) -> None:
    _, found = play("starter:sql", "SELECT 1, 'x'", "submit")
    (rows,) = found.comparisons
    assert rows.what == "rows that only one side has (0 are in both)"
    assert found.cause.startswith("1 wrong row, ")
    assert rows.given == "(1, 'x')" and rows.expected.startswith("(") and found.reward == 0


def test_the_tests_of_a_function(play: Play) -> None:
    _, found = play("starter:python", "class Turnstile: pass", "submit Turnstile")
    (tests,) = found.comparisons
    assert tests.what.startswith("tests that fail, of ") and tests.given and tests.expected


def test_the_flag(play: Play) -> None:
    _, found = play("starter:ctf", "submit flag{no}")
    (answer,) = found.comparisons
    assert answer.what == "answer" and answer.given == "flag{no}" != answer.expected


def test_texts_are_printed_side_by_side() -> None:
    both = TextComparison("output", "a\nb\nc\nsame", "a\nB\nsame\n" + "d" * 90)
    assert list(both.lines(47)) == [
        "a                        a",
        "b                      | B",
        "c                      <",
        "same                     same",
        f"{'':22} > {'d' * 19}...",
    ]


def test_what_differs_at_the_end_of_long_lines_is_shown() -> None:
    (line,) = TextComparison("output", "a" * 90 + "mine", "a" * 90 + "theirs").lines(47)
    assert "amine " in line and line.endswith("atheirs") and len(line) <= 47


def test_a_difference_after_many_equal_lines_is_shown() -> None:
    lines = [str(n) for n in range(1000)]
    both = TextComparison("output", "\n".join([*lines, "mine"]), "\n".join([*lines, "theirs"]))
    found = Explanation((), 0.0, (both,))
    assert not both.is_equal and not found.to_json()["comparisons"][0]["is_equal"]
    shown = list(both.lines(60))
    assert shown[-1].split() == ["mine", "|", "theirs"] and len(shown) < 250
    assert shown[0].startswith("... 900 lines before that") and len(str(found.to_json())) < 5000
    printed = "\n".join(gold_lines(found, Style(False), 9, 80))
    assert "as expected" not in printed


@pytest.mark.slow
def test_the_gold_is_shown_on_request_and_stored_nowhere(
    play: Play, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = "known-to-the-gold-only"
    watch = "(sleep 0.2; env; cat /proc/*/cmdline; grep -rs known-to /tmp /srv) & wait"
    out, _ = play(_dataset(tmp_path, f"echo {secret}"), watch, "submit")
    capsys.readouterr()
    assert main(["show", str(out), "0", "--with-gold"]) == 0
    assert secret in capsys.readouterr().out
    assert main(["report", str(out), "--with-gold", "--failed"]) == 0
    report = capsys.readouterr().out
    assert "own/0: not solved by" in report and f"    echo {secret}" in report
    assert main(["report", str(out), "--with-gold", "--format", "markdown"]) == 0
    assert secret in capsys.readouterr().out.partition("```text\n")[2]
    made = tmp_path / "made"
    made.mkdir()
    for command in (
        ["show", str(out), "0", "--messages"],
        ["report", str(out)],
        ["export", str(out), "--to", "bundle", "--out", str(made / "bundle.tar.gz")],
        ["view", str(out), "--html", str(made / "page.html")],
        ["export", str(out), "--to", "atif", "--out", str(made / "atif")],
        ["export", str(out), "--to", "inspect", "--out", str(made / "log.eval")],
        ["export", str(out), "--to", "chat", "--out", str(made / "chat"), "--which", "all"],
    ):
        assert main(command) == 0, command
    assert main(["view", str(out), "--html", str(made / "no.html"), "--with-gold"]) == 2
    said = capsys.readouterr()
    assert secret not in said.out + said.err
    files = [path for top in (out, made) for path in top.rglob("*") if path.is_file()]
    assert len(files) > 5 and sum(len(list(_contents(path))) > 1 for path in files) == 3
    for path in files:
        assert all(secret.encode() not in part for part in _contents(path)), path


def _contents(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a file, and of what is compressed in it."""
    data = path.read_bytes()
    yield data
    if data.startswith(b"\x1f\x8b"):
        yield gzip.decompress(data)
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            yield from map(archive.read, archive.namelist())
    for packed in re.findall(rb'id="(?:index|chunk-\d+)">([^<]+)<', data):
        yield gzip.decompress(base64.b64decode(packed))


def test_an_episode_without_an_answer_is_refused() -> None:
    with pytest.raises(UsageError, match="ended in an error"):
        explain(Trajectory("t", 0, "q", (), end="error", error="lost"))
