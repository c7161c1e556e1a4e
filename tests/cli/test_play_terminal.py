"""``intercode play`` at a pseudo-terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from intercode.core import trajectories
from intercode.core.types import Trajectory
from support.terminal import Terminal

pytestmark = pytest.mark.sandbox


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def dataset(tmp_path: Path) -> str:
    path = tmp_path / "mine.json"
    rows = [{"query": "say hi", "gold": "echo hi"}, {"query": "make a file", "gold": "touch /f"}]
    path.write_text(json.dumps(rows))
    return str(path)


def play(state: Path, *words: str) -> Terminal:
    return Terminal("play", *words, XDG_STATE_HOME=str(state), NO_COLOR="1")


def episodes(out: Path) -> list[Trajectory]:
    return list(trajectories.read_trajectories(out / trajectories.TRAJECTORIES_FILE))


@pytest.mark.slow
def test_a_session_with_undo_score_and_an_action_that_is_stopped(
    dataset: str, state: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with play(state, dataset, "--tasks", "0", "--out", str(out)) as terminal:
        terminal.expect("say hi")
        terminal.expect("turn 1")
        terminal.ask("cd /tmp", "/tmp$", "turn 2")
        terminal.ask("score", "reward 0 (output 0, changes 0", "score 0")
        terminal.ask("echo a > b", "turn 3")
        terminal.ask("undo", "(taken back: echo a > b)", "turn 2")
        terminal.ask("ls b", "No such file", "turn 3")
        terminal.send("touch b; sleep 9\r")
        terminal.insist("\x03", "(stopped; its effects are undone)")
        terminal.expect("turn 3")
        terminal.send("half a li\x03")
        terminal.ask("ls b", "No such file", "turn 4")
        terminal.ask("undo", "(taken back", "turn 3")
        terminal.ask("for i in 1 2; do \\\recho $i; done", "1\n2\n", "turn 4")
        shown = terminal.ask("show", "[3]", "turn 4")
        assert "ls: cannot access 'b'" in shown and "echo a > b" not in shown
        terminal.ask("help", "undo [N]", "turn 4")
        terminal.ask("echo hi", "turn 5")
        terminal.ask("submit", "solved: reward 1 (output 1, changes 0", "1 of 1 solved")
        assert terminal.wait() == 0
    (made,) = episodes(out)
    assert [s.action for s in made.steps] == [
        "cd /tmp",
        "ls b",
        "for i in 1 2; do \\\necho $i; done",
        "echo hi",
        "submit",
    ]
    assert {s.actor for s in made.steps} == {"human"} and made.run["scores_seen"] == 1
    assert [u["action"] for u in made.run["undone"]] == ["echo a > b", "ls b"]
    kept = (state / "intercode" / "history" / "bash").read_text()
    assert "+ls b\n" in kept and "score" not in kept


@pytest.mark.slow
def test_a_session_that_was_left_is_resumed(dataset: str, state: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with play(state, dataset, "--out", str(out)) as terminal:
        terminal.expect("turn 1")
        terminal.ask("x=7; cd /tmp", "/tmp$", "turn 2")
        terminal.send("\x04")
        terminal.expect("`intercode play --resume` resumes this session.")
        assert terminal.wait() == 0
    assert not out.exists()
    with play(state, "--resume") as terminal:
        terminal.expect("say hi")
        terminal.expect("turn 2")
        terminal.ask("echo $x $PWD", "7 /tmp\n", "turn 3")
        terminal.ask("undo", "(taken back", "turn 2")
        terminal.ask("echo hi", "turn 3")
        terminal.ask("submit", "solved", "make a file", "turn 1")
        terminal.send("\x04")
        assert terminal.wait() == 0
    with play(state, "--resume", dataset) as terminal:
        assert "say hi" not in terminal.expect("make a file")
        terminal.expect("turn 1")
        terminal.ask("touch /f", "turn 2")
        terminal.ask("submit", "1 of 1 solved")
        assert terminal.wait() == 0
    first, second = episodes(out)
    assert [s.action for s in first.steps] == ["x=7; cd /tmp", "echo hi", "submit"]
    assert (
        first.success
        and second.success
        and not list((state / "intercode" / "unfinished").iterdir())
    )
    with play(state, "--resume") as terminal:
        terminal.expect("there is no unfinished session")
        assert terminal.wait() == 2


@pytest.mark.slow
def test_python_is_typed_in_blocks(state: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    words = ("starter:python", "--tasks", "starter/python/fair-split", "--out", out)
    with play(state, *words) as terminal:
        terminal.expect("turn 1")
        terminal.send("def split(total, parts):\rif parts < 1:\rraise ValueError(parts)\r")
        terminal.send("\x7f" * 4 + "each, more = divmod(total, parts)\r")
        terminal.send("return [each + 1] * more + [each] * (parts - more)\r\r")
        terminal.expect("turn 2")
        terminal.ask("split(10, 3)", "[4, 3, 3]", "turn 3")
        terminal.ask("split = None", "turn 4")
        terminal.ask("undo", "(taken back: split = None)", "turn 3")
        terminal.ask("submit", "solved: reward 1 (tests 1)")
        assert terminal.wait() == 0
    (made,) = episodes(tmp_path / "out")
    assert made.steps[0].action == (
        "def split(total, parts):\n    if parts < 1:\n        raise ValueError(parts)\n"
        "    each, more = divmod(total, parts)\n"
        "    return [each + 1] * more + [each] * (parts - more)\n"
    )


@pytest.mark.slow
def test_sql_continues_until_its_brackets_are_closed(state: Path, tmp_path: Path) -> None:
    words = ("starter:sql", "--tasks", "starter/sql/how-many-plots", "--out", str(tmp_path / "o"))
    with play(state, *words) as terminal:
        terminal.expect("turn 1")
        terminal.ask("CREATE TABLE plots AS SELECT 1", "turn 2")
        terminal.ask("SELECT COUNT(\r*) FROM plots", "[(1,)]", "turn 3")
        terminal.ask("undo 2", "(taken back: CREATE TABLE", "turn 1")
        terminal.ask("SELECT 1 FROM plots", "doesn't exist", "turn 2")
        terminal.ask("SELECT COUNT(\r*) FROM plot", "turn 3")
        terminal.ask("submit", "solved: reward 1")
        assert terminal.wait() == 0
    (made,) = episodes(tmp_path / "o")
    assert made.steps[1].action == "SELECT COUNT(\n*) FROM plot"


@pytest.mark.slow
def test_a_flag_that_is_wrong_costs_a_turn_which_can_be_taken_back(
    state: Path, tmp_path: Path
) -> None:
    words = ("starter:ctf", "--tasks", "starter/ctf/morse", "--out", str(tmp_path / "o"))
    with play(state, *words) as terminal:
        terminal.expect("turn 1")
        terminal.ask("submit flag{no}", "That is not the flag", "turn 2")
        terminal.ask("undo", "(taken back: submit flag{no})", "turn 1")
        terminal.ask("ls", "table.tsv", "turn 2")
        terminal.ask("skip", "not solved")
        assert terminal.wait() == 0
    (made,) = episodes(tmp_path / "o")
    assert [s.action for s in made.steps] == ["ls"] and made.end == "agent_stopped"
    assert [u["action"] for u in made.run["undone"]] == ["submit flag{no}"]


@pytest.mark.slow
def test_a_human_supervises_an_agent(dataset: str, state: Path, tmp_path: Path) -> None:
    script, out = tmp_path / "replies.json", tmp_path / "out"
    fenced = [f"```bash\n{a}\n```" for a in ("echo one", "echo two", "echo three", "echo hi")]
    script.write_text(json.dumps(fenced))
    words = ("--agent", "try-again", "--model", f"scripted:{script}", "--out", str(out))
    with play(state, dataset, "--tasks", "0", *words) as terminal:
        terminal.expect("try-again proposes:\n  echo one\n")
        terminal.expect("turn 1 of 10")
        terminal.send("\r")
        terminal.expect("one\ntry-again proposes:\n  echo two\n")
        terminal.expect("turn 2 of 10")
        terminal.ask("edit", "echo two")
        terminal.expect("turn 2")
        terminal.send("\x7f\x7f\x7fmine\r")
        terminal.expect("mine\ntry-again proposes:\n  echo three\n")
        terminal.expect("turn 3 of 10")
        terminal.ask("undo", "(taken back: echo mine)", "proposes:\n  echo two", "turn 2 of 10")
        terminal.ask("take", "turn 2 of 10")
        terminal.ask("echo own", "own\n", "turn 3 of 10")
        terminal.ask("back", "proposes:\n  echo three", "turn 3 of 10")
        terminal.ask("run", "three\n", "hi\n", "solved: reward 1", "1 of 1 solved")
        assert terminal.wait() == 0
    (made,) = episodes(out)
    assert [(s.actor, s.action) for s in made.steps] == [
        ("agent", "echo one"),
        ("human", "echo own"),
        ("agent", "echo three"),
        ("agent", "echo hi"),
    ]
    assert made.end == "solved" and made.run["agent"] == "try-again+human"
    assert trajectories.read_run_metadata(out)["agent"] == "try-again+human"
    assert "echo own" in str(made.steps[2].messages)
