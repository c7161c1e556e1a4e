"""Playing Harbor's tasks: the image from the Dockerfile, the verifier inaccessible to the agent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import intercode
from intercode.cli import main
from intercode.core.errors import DataError, UsageError
from intercode.core.trajectories import TRAJECTORIES_FILE, read_trajectories
from intercode.datasets import load
from intercode.evaluation import check_env
from intercode.evaluation.check.dataset import check
from intercode.integrations.harbor.env import HarborEnv
from intercode.integrations.harbor.verifier import parse_rewards
from support.harbor import DOCKERFILE, SOLVE, TEST, write_task

pytestmark = pytest.mark.sandbox


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_task(tmp_path_factory.mktemp("harbor") / "greet")


@pytest.fixture(scope="module")
def env(folder: Path) -> Iterator[HarborEnv]:
    with HarborEnv(f"harbor:{folder}") as opened:
        yield opened


def test_an_episode(env: HarborEnv) -> None:
    query, info = env.reset(options={"task": "greet"})
    assert query.startswith("# Greet")
    assert info["task"] == "greet"
    shown, *_ = env.step("pwd; ls; echo $PLACE $GREETING; ls -d /tests /solution /logs/*")
    assert shown.startswith("/app\nwords.txt\n/app hello\n")
    assert "'/tests': No such file" in shown and "'/solution': No such file" in shown
    assert shown.endswith("/logs/agent\n/logs/artifacts\n/logs/verifier\n")
    assert env.score().value == 0.0
    _, reward, terminated, _, info = env.step("echo hello > out.txt")
    assert (reward, terminated, info["changes"]) == (0.0, False, ["/app/out.txt"])
    assert env.score().value == 1.0
    assert env.step("ls /tests")[4]["exit_code"] == 2  # scoring leaves nothing behind
    _, reward, terminated, _, info = env.step("submit")
    assert (reward, terminated, info["parts"]) == (1.0, True, {"reward": 1.0})


def test_the_solution_is_an_action(env: HarborEnv) -> None:
    env.reset(options={"task": 0})
    shown, _, _, _, info = env.step(env.task.solution or "")
    assert (shown, info["exit_code"], info["changes"]) == ("", 0, ["/app/out.txt"])
    assert env.score().value == 1.0


@pytest.mark.parametrize(
    "attack",
    [
        "mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt",
        """echo '{"reward": 1}' > /logs/verifier/reward.json; chmod 000 /logs/verifier""",
        "mkdir -p /tests; echo 'echo 1 > /logs/verifier/reward.txt' > /tests/test.sh; "
        "chmod 555 /tests/test.sh /tests",
        "rm -rf /logs/verifier; ln -s /app /logs/verifier; echo 1 > /app/reward.txt",
        "mkdir /tmp/l; mv /logs/* /tmp/l; rm -rf /logs; ln -s /tmp/l /logs; "
        "echo 1 > /tmp/l/verifier/reward.txt",
        "(while sleep 0.05; do echo 1 > /logs/verifier/reward.txt; done) &",
        "ln -s /logs/verifier /tests",
        "rm -rf /logs; echo no > /logs",
    ],
)
def test_planted_verdicts_do_not_count(env: HarborEnv, attack: str) -> None:
    env.reset(options={"task": 0})
    env.step(attack)
    assert env.score().value == 0.0


@pytest.mark.rootfs
def test_a_remover_that_does_nothing_is_seen(folder: Path) -> None:
    """The agent can change the programs of its sandbox, so the supervisor reports what is there."""
    with HarborEnv(f"harbor:{folder}", image="recipe:nl2bash") as env:
        env.reset(options={"task": 0})
        env.step("echo 1 > /logs/verifier/reward.txt; printf '#!/bin/sh\\n' > /tmp/rm")
        env.step("chmod 755 /tmp/rm; mv /tmp/rm /bin/rm")
        score = env.score()
        assert (score.value, score.details["verifier"]) == (0.0, None)
        assert "cannot be removed" in score.details["said"]
        assert not score.details["protected"] and score.details["trusted"] == ["/"]


@pytest.mark.slow
def test_verifiers_that_fail_or_hang_score_0(tmp_path: Path) -> None:
    toml = "[verifier]\ntimeout_sec = 1.0\n"
    for name, script in {"none": "exit 0", "slow": "sleep 60", "odd": "echo nan > $R"}.items():
        text = f"#!/bin/sh\nR=/logs/verifier/reward.txt\n{script}\n"
        write_task(tmp_path / "set" / name, **{"tests__test.sh": text, "task.toml": toml})
    with HarborEnv(f"harbor:{tmp_path}/set") as env:
        for index in range(3):
            env.reset(options={"task": index})
            score = env.score()
            assert (score.value, dict(score.parts)) == (0.0, {"reward": 0.0})


def test_each_task_has_an_image_of_its_own(tmp_path: Path) -> None:
    for path in ("/one", "/two"):
        write_task(
            tmp_path / "set" / path[1:],
            environment__Dockerfile=DOCKERFILE.replace("WORKDIR /app", f"WORKDIR {path}"),
        )
    with intercode.make("harbor", f"harbor:{tmp_path}/set") as env:
        for index, path in enumerate(("/one", "/two", "/one")):
            env.reset(options={"task": index % 2})
            assert env.step("pwd")[0] == f"{path}\n"
        assert env.result_metadata()["image"] == ""
        assert env.result_metadata()["image_digest"].startswith("sha256:")


def test_a_task_that_cannot_be_built_costs_only_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first of three, so that the checks before the run meet it as well."""
    files = {"a": "FROM host\nRUN exit 7\n", "b": DOCKERFILE, "c": "FROM tar:/absent.tar\n"}
    for name, text in files.items():
        write_task(tmp_path / "set" / name, environment__Dockerfile=text)
    out = tmp_path / "run"
    command = ["eval", f"harbor:{tmp_path}/set", "--agent", "gold", "--out", str(out)]
    main([*command, "--epochs", "2", "--parallel", "1"])
    said = capsys.readouterr()
    episodes = {t.task: t for t in read_trajectories(out / TRAJECTORIES_FILE)}
    assert episodes["set/b"].success and episodes["set/b"].error is None
    assert episodes["set/a"].end == episodes["set/c"].end == "error"
    assert "Dockerfile:2: RUN exit 7 failed (7)" in (episodes["set/a"].error or "")
    assert "FROM tar:/absent.tar" in (episodes["set/c"].error or "")
    assert "first error: set/a: TaskImageError: " in said.err
    assert "4 errors" in said.err
    main(["report", str(out)])
    assert (
        "errors (episodes that ended in one, counted as not solved): 4" in capsys.readouterr().out
    )


def test_check_reports_a_task_that_cannot_begin_and_checks_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first task cannot be built, the second never becomes healthy."""
    sick = "[environment.healthcheck]\ncommand = 'exit 4'\nretries = 1\n"
    for name, files in {
        "a": {"environment__Dockerfile": "FROM host\nRUN exit 7\n"},
        "b": {"task.toml": sick},
        "c": {"solution__word.sh": "WORD=bye"},
        "d": {"instruction.md": "Greet.\n", "solution__word.sh": "WORD=hello"},
    }.items():
        write_task(tmp_path / "set" / name, **files)
    assert main(["check", f"harbor:{tmp_path}/set", "--json"]) == 1
    said = capsys.readouterr()
    faults = json.loads(said.out)["faults"]
    found = {(fault["task"], fault["kind"]): fault["detail"] for fault in faults}
    assert "RUN exit 7 failed (7)" in found["set/a", "fails"]
    assert "'exit 4' failed 1 times in a row and ended with 4" in found["set/b", "fails"]
    assert ("set/c", "gold-below-1") in found
    assert not [kind for task, kind in found if task == "set/d"]
    assert said.err.rstrip().endswith("number of tasks: agent.timeout_sec (3)")


def test_the_image_of_a_task_is_resolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toml = '[environment]\ndocker_image = "someone/greet:1"\n'
    folder = write_task(tmp_path / "t", **{"task.toml": toml})
    names = tmp_path / "images.toml"
    names.write_text(f'[from]\n"someone/greet:1" = "dockerfile:{folder}/environment"\n')
    with HarborEnv(f"harbor:{folder}") as env, monkeypatch.context() as here:
        here.setenv("INTERCODE_CONFIG", str(tmp_path))
        env.reset()
        assert env.step("pwd")[0] == "/app\n"
    with HarborEnv(f"harbor:{folder}", build=True) as env:
        env.reset()
        assert env.result_metadata()["env_options"] == {"build": True}


def test_several_numbers(tmp_path: Path) -> None:
    script = """#!/bin/sh
    echo '{"style": 0.5, "speed": 1, "note": "x"}' > /logs/verifier/reward.json"""
    folder = write_task(tmp_path / "t", **{"tests__test.sh": script})
    with HarborEnv(f"harbor:{folder}") as env:
        env.reset()
        score = env.score()
        assert (score.value, dict(score.parts)) == (0.75, {"style": 0.5, "speed": 1.0})


def test_rewards_as_they_are_written() -> None:
    assert parse_rewards(b" 0.5\n", b'{"reward": 1}') == {"reward": 0.5}
    assert parse_rewards(b"\n", b'{"reward": 1, "x": 0}') == {"reward": 1.0, "x": 0.0}
    for text, table in ((b"yes", b'{"a": 1}'), (None, b"[1]"), (None, b"{"), (None, None)):
        assert parse_rewards(text, table) == {}
    assert parse_rewards(b"inf", None) == parse_rewards(b"1e999", None) == {}
    assert parse_rewards(None, b"[" * 100_000) == {}
    assert parse_rewards(None, b'{"a": true, "b": NaN, "c": [1], "d": "2"}') == {"a": 1.0}


def test_snapshots_and_forks(env: HarborEnv) -> None:
    env.reset(options={"task": 0})
    env.step("echo hello > out.txt")
    (other,) = env.fork()
    with other:
        other.step("rm out.txt")
        assert (env.score().value, other.score().value) == (1.0, 0.0)


@pytest.mark.slow
def test_it_has_the_interface_of_environments(folder: Path) -> None:
    check_env(HarborEnv(f"harbor:{folder}"))


@pytest.mark.slow
def test_check_proves_it(folder: Path, tmp_path: Path) -> None:
    report = check(f"harbor:{folder}")
    assert report.faults == ()
    leaky = DOCKERFILE + "COPY hidden.txt /app/\n"
    bad = write_task(
        tmp_path / "bad",
        environment__Dockerfile=leaky,
        **{"environment__hidden.txt": TEST, "solution__word.sh": "WORD=bye"},
    )
    kinds = {finding.kind for finding in check(f"harbor:{bad}").faults}
    assert {"gold-below-1"} <= kinds
    assert any("readable" in kind or "inside" in kind or "leak" in kind for kind in kinds), kinds


@pytest.mark.slow
def test_check_does_not_compare_what_a_verifier_or_a_solution_prints(tmp_path: Path) -> None:
    """Test runners print how long they took."""
    clock = "date +%s.%N\n"
    folder = write_task(
        tmp_path / "t",
        **{"tests__test.sh": TEST.replace("bash\n", f"bash\n{clock}", 1)},
        **{"solution__solve.sh": SOLVE + clock},
    )
    text = (folder / "solution/solve.sh").read_text().replace("exit 0\n", "") + "exit 0\n"
    (folder / "solution/solve.sh").write_text(text)
    report = check(f"harbor:{folder}")
    assert report.faults == ()
    (folder / "solution/solve.sh").write_text("date +%s.%N > /app/$(date +%N); " + SOLVE)
    assert {f.kind for f in check(f"harbor:{folder}").faults} == {"volatile"}


@pytest.mark.paper
def test_unsupported_settings_are_errors(folder: Path) -> None:
    with pytest.raises(UsageError, match="no profile 'original': leave out"):
        HarborEnv(f"harbor:{folder}", profile="original")
    with pytest.raises(DataError, match="load its directory as harbor:"):
        HarborEnv(intercode.datasets.load("starter"))
    assert load(f"harbor:{folder}").hash == load(f"harbor:{folder}").hash
