"""Harbor's verifiers with a sandbox of their own, which receives the declared artifacts only."""

from __future__ import annotations

from pathlib import Path

import pytest

from intercode.cli import main
from intercode.core.config import EvalConfig
from intercode.core.errors import TaskImageError
from intercode.evaluation.evaluate.run import evaluate
from intercode.integrations.harbor.artifacts import is_excluded
from intercode.integrations.harbor.env import HarborEnv
from support.harbor import STEPS_TOML, write_steps_task, write_task

pytestmark = pytest.mark.sandbox
TOML = """\
artifacts = ["/app/out.txt", { source = "/app/tree", exclude = ["*.log", "cache"] }, "/app/absent"]
[environment.env]
GREETING = "hello"
[verifier]
environment_mode = "separate"
[[verifier.collect]]
command = "cp out.txt tree/collected; (sleep 60; true) &"
[[verifier.collect]]
command = "exit 9"
"""
TEST = """\
#!/bin/bash
ls -A /app /app/tree /logs/artifacts; stat -c %a /app/out.txt; cat /app/words.txt
both=$(cat /app/out.txt /app/tree/collected)
[ "$both" = $'hello\nhello' ] && echo 1 > /logs/verifier/reward.txt
"""
ACTION = (
    "echo hello > out.txt; chmod 755 out.txt; mkdir -p tree/cache tree/deep; touch tree/a.log "
    "tree/cache/x tree/deep/kept elsewhere /logs/artifacts/published; ln -s /etc/passwd tree/link; "
    "echo planted > words.txt; printf '#!/bin/sh\\nexit 0\\n' > /usr/local/bin/cat; "
    "chmod 755 /usr/local/bin/cat"
)


def test_a_separate_verifier_receives_only_artifacts(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "t", **{"task.toml": TOML, "tests/test.sh": TEST})
    with HarborEnv(f"harbor:{folder}") as env:
        env.reset()
        env.step(env.task.solution or "")
        assert env.score().value == 0.0  # no tree to collect into
        env.step(ACTION)
        score = env.score()
        assert score.value == 1.0, score.details
        app, tree, logs = score.details["said"].split("\n\n")
        assert app.split() == ["/app:", "out.txt", "tree", "words.txt"]
        assert tree.split() == ["/app/tree:", "collected", "deep"]
        assert logs.split() == ["/logs/artifacts:", "published", "755", "some", "words"]
        assert score.details["protected"]  # its programs are those of the image
        assert score.details["trusted"] == []
        assert env.result_metadata()["unprotected_verifiers"] == 0
        assert env.step("ls tree/collected")[4]["exit_code"] == 2  # it is as before


def test_an_image_of_the_verifier_has_the_tests(tmp_path: Path) -> None:
    test = TEST.replace("ls -A", "pwd; [ -z $GREETING ] || exit; ls -A")
    folder = write_task(
        tmp_path / "t",
        **{
            "task.toml": TOML + "[verifier.environment]\nmemory_mb = 256\n",
            "tests/test.sh": test,
            "tests/words.txt": "of the verifier\n",
            "tests/Dockerfile": "FROM host\nWORKDIR /srv\nCOPY words.txt /app/\nCOPY . /tests/\n",
        },
    )
    with HarborEnv(f"harbor:{folder}") as env:
        env.reset()
        env.step(ACTION)
        score = env.score()
        assert score.value == 1.0, score.details
        assert score.details["said"].startswith("/srv\n")
        assert "of the verifier" in score.details["said"]
    (folder / "tests/Dockerfile").write_text("FROM host\nRUN exit 7\n")
    with HarborEnv(f"harbor:{folder}") as env, pytest.raises(TaskImageError, match="exit 7"):
        env.reset()


def test_a_step_may_have_a_separate_verifier(tmp_path: Path) -> None:
    """That of step two receives nothing, so it cannot see the word."""
    toml = STEPS_TOML.replace('"two"', '"two"\nverifier.environment_mode = "separate"')
    with HarborEnv(f"harbor:{write_steps_task(tmp_path / 't', **{'task.toml': toml})}") as env:
        env.reset()
        for action in env.task.solution_actions:
            env.step(action)
        env.step("submit")
        rewards = {name: r["reward"] for name, r in env.score().details["steps"].items()}
        assert rewards == {"one": 1.0, "two": 0.0, "three": 1.0}


def test_a_report_says_whose_verifiers_ran_among_the_agents_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    separate = "[verifier]\nenvironment_mode = 'separate'\n"
    for name, toml in (("shared", ""), ("own", separate)):
        folder = write_task(tmp_path / name, **{"task.toml": toml or "version = '1.0'\n"})
        out = tmp_path / f"run-{name}"
        evaluate(EvalConfig(f"harbor:{folder}", "noop", out=out), quiet=True)
        assert main(["report", str(out)]) == 0
        noted = "the verifiers of 1 tasks ran among" in " ".join(capsys.readouterr().out.split())
        assert noted == (name == "shared")


def test_collect_commands_precede_a_shared_verifier(tmp_path: Path) -> None:
    toml = "[environment.env]\nGREETING = 'hello'\n[verifier.env]\nEXPECTED = 'hello'\n"
    toml += "FALLBACK = 'back'\n[[verifier.collect]]\ncommand = 'mv draft.txt out.txt'\n"
    folder = write_task(tmp_path / "t", **{"task.toml": toml})
    with HarborEnv(f"harbor:{folder}") as env:
        env.reset()
        env.step("echo hello > draft.txt")
        assert env.score().value == env.score().value == 1.0


def test_patterns_of_tar() -> None:
    assert is_excluded("a/b/c.log", ["*.log"]) and is_excluded("a/cache/x", ["cache/"])
    assert is_excluded("a/b/c", ["b/c"]) and is_excluded("a/b", ["./a"])
    assert not is_excluded("a/b/c", ["a/c", "lo*", "B"])
