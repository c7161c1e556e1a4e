"""Harbor's tasks whose image has an ENTRYPOINT: it runs before the health check and the tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

import intercode
from intercode.core.errors import TaskSetupError
from intercode.evaluation.check.dataset import check
from intercode.integrations.harbor import verifier
from intercode.integrations.harbor.env import HarborEnv
from intercode_sandbox import Sandbox
from intercode_sandbox.contract import BaseSandbox
from support.harbor import DOCKERFILE, SERVICE, SERVICE_CHECK, TOML, write_service_task, write_task

pytestmark = pytest.mark.sandbox
PORT = "/dev/tcp/127.0.0.1/8765"
ASK = f"exec 3<>{PORT}; cat <&3"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_service_task(tmp_path / "serve")


@pytest.mark.parametrize("settings", [{}, {"recycle": True}, {"deterministic": True}])
def test_the_service_answers_the_agent_and_the_tests(
    folder: Path, settings: dict[str, Any]
) -> None:
    with HarborEnv(f"harbor:{folder}", **settings) as env:
        for _ in range(3):
            env.reset(options={"task": 0})
            assert env.step("echo hi > out.txt; " + ASK)[0] == "hi\n"
            assert env.score().value == 0.0
            assert env.step("echo hello > out.txt")[4]["changes"] == ["/app/out.txt"]
            assert env.score().value == 1.0
            (other,) = env.fork()
            with other:
                assert other.step(ASK)[0] == "hello\n"
            assert env.step("submit")[1:3] == (1.0, True)


def test_a_separate_verifier_has_a_service_of_its_own(tmp_path: Path) -> None:
    toml = TOML.replace("[verifier]", '[verifier]\nenvironment_mode = "separate"')
    toml = 'artifacts = ["/app/out.txt"]\n' + toml + SERVICE_CHECK
    test = "#!/bin/bash\nuntil exec 3<>/dev/tcp/127.0.0.1/8765; do sleep 0.1; done\n"
    test += '[ "$(cat <&3)" = hello ] && echo 1 > /logs/verifier/reward.txt\n'
    folder = write_service_task(tmp_path / "t", **{"task.toml": toml, "tests/test.sh": test})
    with HarborEnv(f"harbor:{folder}") as env:
        env.reset()
        env.step("echo hello > out.txt")
        score = env.score()
        assert score.value == 1.0, score.details


def test_what_the_tests_leave_is_still_seen(tmp_path: Path) -> None:
    # Popen returns once `sleep` is executed; a job of a shell is a copy of the shell before
    leave = "python3 -c \"import subprocess; subprocess.Popen(['sleep', '60'])\""
    test = f"#!/bin/bash\n{leave}\necho 1 > /logs/verifier/reward.txt\n"
    folder = write_service_task(tmp_path / "t", **{"tests/test.sh": test})
    with HarborEnv(f"harbor:{folder}") as env:
        env.reset()
        score = env.score()
        assert score.value == 0.0
        assert score.details["said"].startswith("the verifier left processes: sleep (")


def test_a_check_that_times_out_does_not_end_what_is_starting(tmp_path: Path) -> None:
    check = SERVICE_CHECK.replace(
        '"exec', '"test -e /tmp/first || { >/tmp/first; sleep 60; }; exec'
    )
    toml = TOML + check + "timeout_sec = 0.5\n"
    with HarborEnv(f"harbor:{write_service_task(tmp_path / 't', **{'task.toml': toml})}") as env:
        env.reset()
        assert env.step("echo hi > out.txt; " + ASK)[0] == "hi\n"


@pytest.mark.namespace_only("programs need namespaces")
def test_a_program_as_agent_reaches_it(tmp_path: Path) -> None:
    serve = SERVICE.replace("shift", "shift; while :; do sleep 0.02; done &")
    test = "#!/bin/bash\n[ -e /app/done ] && echo 1 > /logs/verifier/reward.txt\n"
    files = {"environment/serve.sh": serve, "tests/test.sh": test}
    wait = f"until exec 3<>{PORT}; do sleep 0.1; done"  # the service is never idle
    ask = f"bash -c 'echo up > /app/out.txt; {wait}; cat <&3 | grep up && touch /app/done'"
    run = intercode.evaluate(
        f"harbor:{write_service_task(tmp_path / 't', **files)}",
        f"program:{ask}",
        model=lambda _: "x",
        quiet=True,
        out=tmp_path / "run",
    )
    assert [(e.error, e.success) for e in run.episodes] == [(None, True)]


def test_a_process_that_ends_between_two_listings_is_not_left() -> None:
    """The sandbox is a stand-in, because in a real one only a slow machine shows this."""

    class Busy:
        capabilities = frozenset({"processes"})
        number = 10

        def processes(self) -> list[str]:
            self.number += 1
            return ["serve.sh (7)", f"sleep ({self.number})"]

        def descendants(self, pid: int) -> list[int]:
            self.number += 1
            return [self.number]

    verifier._check_processes(cast(BaseSandbox, Busy()), [7])


@pytest.mark.slow
def test_check_proves_it(folder: Path) -> None:
    assert check(f"harbor:{folder}").faults == ()


def test_an_entry_point_that_fails(tmp_path: Path) -> None:
    begun = "until [ -s /tmp/entry ]; do sleep 0.05; done"
    ended = "while kill -0 $(cat /tmp/entry) 2> /dev/null; do sleep 0.05; done; sleep 0.2"
    check = f"[environment.healthcheck]\ncommand = '{begun}; {ended}; exit 5'\nretries = 1\n"
    for name, entry, toml, message in (
        ("absent", '["/absent"]', TOML, r"ENTRYPOINT \['/absent'\] cannot be started"),
        (
            "unhealthy",
            "echo $$ > /tmp/entry; exit 4",
            TOML + check,
            r"ended with 5 \(the image's ENTRYPOINT has ended.* 4",
        ),
    ):
        text = f"{DOCKERFILE}ENTRYPOINT {entry}\n"
        folder = write_task(tmp_path / name, environment__Dockerfile=text, **{"task.toml": toml})
        with (
            HarborEnv(f"harbor:{folder}") as env,
            pytest.raises(TaskSetupError, match=message),
        ):
            env.reset()
    text = f"{DOCKERFILE}ENTRYPOINT exit 4\n"
    with HarborEnv(f"harbor:{write_task(tmp_path / 't', environment__Dockerfile=text)}") as env:
        env.reset()  # nothing waits for it
        env.step("echo hello > out.txt")
        assert env.score().value == 1.0


def test_a_plain_sandbox_runs_no_entry_point(folder: Path) -> None:
    with Sandbox(f"dockerfile:{folder}/environment") as sandbox:
        assert sandbox.base.spec.image.entrypoint == ("serve.sh", "--slow")
        assert sandbox.base.processes() == ()
        assert not sandbox.run(["bash", "-c", ASK]).ok
