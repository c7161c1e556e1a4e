"""``intercode show``: an episode in the terminal."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from intercode.cli import main
from intercode.cli.show import Style, episode_lines, episode_table
from intercode.core import trajectories
from intercode.core.types import Score, Step, Trajectory, Usage
from intercode_sandbox.command.output import escape_control

STEPS = (
    Step(
        "cd /srv\nls",
        "a\nb\x1b[31m\n",
        score=Score(0.67, {"output": 0.33, "files": 0.34}),
        changes=("/srv/a",),
        thought="Look first.",
        usage=Usage(100, 20, 1, cost=0.01),
        messages=(
            {"role": "system", "content": "You act."},
            {"role": "user", "content": "Count."},
            {
                "role": "assistant",
                "content": "Look first.",
                "reasoning": "hm",
                "tool_calls": [{"function": {"name": "bash", "arguments": "{}"}}],
            },
        ),
        context={"observation": {"characters": 9000, "shown": 4000}},
    ),
    Step("rm -rf /", "Not allowed.", refused=True, valid=False, actor="human"),
    Step("", "no code", executed=False, valid=False),
)
FULL = Trajectory(
    "starter/files/1",
    3,
    "Count the files.",
    STEPS,
    end="turn_limit",
    seconds=1.5,
    id="aa11",
    run={"agent": "react", "model": "m", "dataset": "starter:bash"},
)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    log = tmp_path / trajectories.TRAJECTORIES_FILE
    others = (
        FULL.replace(epoch=1, id="bb22", steps=(Step("ls", "", score=Score(1.0)),), end="solved"),
        FULL.replace(id="cc33", parent="aa11", branched_at=1),
        FULL.replace(task="starter/text/1", index=4, id="dd44", end="error", error="sandbox lost"),
    )
    for t in (FULL, *others):
        trajectories.append_trajectory(log, t)
    return tmp_path


def test_every_turn_is_shown_with_all_that_is_known(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", str(run), "starter/files/1"]) == 0
    out = capsys.readouterr().out
    for said in (
        "starter/files/1, epoch 0",
        "not solved, score 0.67, 3 turns, turn limit, 1.5 s",
        "(react with m)",
        "Count the files.",
        "score 0.67 (output 0.33, files 0.34)",
        "Look first.",
        "  $ cd /srv\n  > ls\n  a\n  b\\x1b[31m\n",
        "changed: /srv/a",
        'not shown to the model: observation {"characters": 9000, "shown": 4000}',
        "turn 2 (human, refused by a policy, error)",
        "turn 3 (no code)",
        "other samples:\n  3  starter/files/1 epoch 1  solved",
        "branches:\n  3  starter/files/1 branch of aa11 after turn 1",
    ):
        assert said in out, said
    assert "\x1b" not in out and "You act." not in out
    assert main(["show", str(run), "3", "--messages"]) == 0
    out = capsys.readouterr().out
    assert "  [system]\n  | You act.\n" in out and "  ~ hm\n" in out
    assert "  | calls bash({})" in out


def test_tasks_are_found_by_end_position_epoch_and_id(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, said in (
        (["files/1", "--epoch", "1"], "starter/files/1, epoch 1  bb22"),
        (["cc33"], "branch of aa11: the first 1 turns"),
        (["4"], "error: sandbox lost"),
    ):
        assert main(["show", str(run), *words]) == 0
        assert said in capsys.readouterr().out
    assert main(["show", str(run)]) == 0
    assert [line.replace("  starter/", "") for line in capsys.readouterr().out.splitlines()] == [
        "3files/1                              not solved  score 0.67  3 turns  turn limit    aa11",
        "3files/1 branch of aa11 after turn 1  not solved  score 0.67  3 turns  turn limit    cc33",
        "3files/1 epoch 1                      solved         score 1  1 turn                 bb22",
        "4text/1                               error                            sandbox lost  dd44",
    ]
    assert main(["show", str(run), "--failed"]) == 0
    failed = capsys.readouterr().out
    assert "bb22" not in failed and len(failed.splitlines()) == 3
    played, other = tmp_path / "runs/played", tmp_path / "runs/not-played"
    played.mkdir(parents=True)
    shutil.copy(run / "trajectories.jsonl", played)
    trajectories.write_run_metadata(other, {})
    (other / "trajectories.jsonl").touch()
    assert main(["show", str(tmp_path / "runs"), "--failed"]) == 0
    assert f"{other}: there is no episode yet" in capsys.readouterr().out
    for words, said in (
        (["files/2"], "did you mean 'starter/files/1'"),
        (["1"], "no task at position 1 of starter:bash; the run has 3, 4"),
        (["files/1", "--epoch", "7"], "has no epoch 7; it has: 0, 1"),
    ):
        assert main(["show", str(run), *words]) == 2
        assert said in capsys.readouterr().err


def test_long_observations_are_shortened_with_a_note() -> None:
    long = FULL.replace(steps=(Step("seq 100", "\n".join(map(str, range(100)))),))
    text = "\n".join(episode_lines(long, Style(), 9, False))
    assert "  4\n  [... 91 lines left out ...]\n  96\n" in text


def test_colours_only_where_they_are_wanted() -> None:
    assert "\x1b[31m" in episode_table([FULL], Style(True))[0]
    assert "\x1b" not in episode_table([FULL], Style(False))[0]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\tb\nc", "a\tb\nc"),
        ("\x1b]0;x\x07", "\\x1b]0;x\\x07"),
        ("\x9b1m", "\\x9b1m"),
        ("a\r\nb\r", "a\nb\\r"),
        ("\u202egpj", "\\u202egpj"),
        ("\udc80", "\\udc80"),
    ],
)
def test_output_of_an_episode_does_not_affect_the_terminal(text: str, shown: str) -> None:
    assert escape_control(text) == shown


def test_diffs_are_printed_and_coloured_on_request() -> None:
    diff = "mode 644, now 600\n@@ -1 +1 @@\n-a\x1b[31m\n+b"
    t = FULL.replace(steps=(Step("x", "", changes=("/f",), diffs={"/f\n": diff}),))
    told = episode_lines(t, Style(), 40, False)
    assert told[told.index("  changed: /f") :] == [
        "  changed: /f",
        "  /f\\n",
        "    mode 644, now 600",
        "    @@ -1 +1 @@",
        "    -a\\x1b[31m",
        "    +b",
    ]
    coloured = episode_lines(t, Style(colours=True), 40, False)
    assert coloured[-2:] == ["    \x1b[31m-a\\x1b[31m\x1b[0m", "    \x1b[32m+b\x1b[0m"]
    assert "[... 2 lines left out ...]" in "\n".join(episode_lines(t, Style(), 2, False))


def test_an_agents_thought_is_not_the_persons(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    step = Step("pwd", "/", thought="I look around.", actor="human")
    trajectories.append_trajectory(
        tmp_path / trajectories.TRAJECTORIES_FILE, FULL.replace(steps=(step,))
    )
    assert main(["show", str(tmp_path), "3"]) == 0
    assert "(human)\n  (the agent thought)\n  I look around.\n" in capsys.readouterr().out


def test_a_wrong_answer_is_no_refusal_of_a_policy() -> None:
    wrong = Step("submit picoCTF{no}", "Wrong flag.", refused=True, valid=True)
    text = "\n".join(episode_lines(FULL.replace(steps=(wrong,)), Style(), 9, False))
    assert "turn 1 (wrong answer)" in text and "policy" not in text


def test_answers_from_the_cache_have_no_figures() -> None:
    cached = Step("ls", "", message="ls", usage=Usage(0, 0, 0, 0, 0, 0.0))
    line = episode_lines(FULL.replace(steps=(cached, cached)), Style(), 9, False)[1]
    assert "2 of 2 turns answered from the cache" in line
    assert "tokens" not in line and "$" not in line


def test_what_a_program_did_is_no_omission() -> None:
    context = {
        "seen": [["ls", "tool call"]],
        "program": {"status": 0},
        "messages": "no room",
        "conversation": {"continued_after": 2},
        "answer": {"characters": 9},
        "mine": 1,
    }
    shown = episode_lines(
        FULL.replace(steps=(Step("ls", "", context=context),)), Style(), 40, False
    )
    assert [line.partition(":")[0] for line in shown[-6:]] == [
        "  how its actions were seen",
        "  how the program ended",
        "  messages left out",
        "  continues an earlier conversation",
        "  not shown to the model",
        "  mine",
    ]


@pytest.mark.parametrize(
    "step",
    [
        Step("", "Call a tool.", executed=False, valid=False, message="I think\x1b[1m\nit is 3."),
        Step(
            "",
            "Call a tool.",
            executed=False,
            valid=False,
            thought="hm",
            messages=({"role": "assistant", "content": "I think\x1b[1m\nit is 3."},),
        ),
    ],
)
def test_what_the_model_wrote_without_an_action_is_shown(step: Step) -> None:
    shown = episode_lines(FULL.replace(steps=(step,)), Style(), 40, False)
    at = shown.index("  | I think\\x1b[1m")
    assert shown[at + 1 : at + 3] == ["  | it is 3.", "  Call a tool."]
    whole = episode_lines(FULL.replace(steps=(step,)), Style(), 40, True)
    assert whole.count("  | it is 3.") == 1


def test_a_thought_is_shown_once() -> None:
    step = Step("", "no code", executed=False, valid=False, thought="it is 3", message="it is 3")
    assert (
        sum(
            "it is 3" in line
            for line in episode_lines(FULL.replace(steps=(step,)), Style(), 40, False)
        )
        == 1
    )


def test_a_task_is_found_by_a_part_of_its_id(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for part in ("text", "er/te", "dd44"):
        assert main(["show", str(run), part]) == 0, part
        assert "starter/text/1, epoch 0" in capsys.readouterr().out
    assert main(["show", str(run), "starter"]) == 2
    said = capsys.readouterr().err
    assert "matches 2 tasks, give one of: starter/files/1, starter/text/1" in said


def test_digits_are_a_position_and_never_the_beginning_of_an_id(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / trajectories.TRAJECTORIES_FILE
    for t in (FULL.replace(id="410d888afd86a716"), FULL.replace(task="b/4", index=4, id="35")):
        trajectories.append_trajectory(log, t)
    for name, task in (("410d88", "starter/files/1"), ("4", "b/4"), ("35", "b/4")):
        assert main(["show", str(tmp_path), name]) == 0
        assert f"{task}, epoch 0" in capsys.readouterr().out
    for name in ("41", "410", "410888", "410d8"):
        assert main(["show", str(tmp_path), name]) == 2, name
    assert "position 410888" in capsys.readouterr().err
