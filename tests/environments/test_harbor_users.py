"""Harbor tasks whose agent or verifier is another user than root."""

from __future__ import annotations

from pathlib import Path

import pytest

from intercode.core.errors import DataError, TaskSetupError
from intercode.datasets import load
from intercode.integrations.harbor.env import HarborEnv
from intercode_sandbox.backends import has_users
from support.harbor import DOCKERFILE, SOLVE, write_steps_task, write_task
from support.users import has_set_user_id

pytestmark = [pytest.mark.sandbox, pytest.mark.namespace_only("other back ends have one user")]
TOML = """\
[agent]
user = "nobody"
[verifier]
user = 1234
[[verifier.collect]]
command = "id -u > /app/collected"
[[verifier.collect]]
command = "id -u > /app/collected-by-nobody"
user = 65534
[environment.env]
GREETING = "hello"
"""
TEST = """\
#!/bin/sh
[ "$(id -u) $HOME $(stat -c %u /app/out.txt)" = "1234 / 65534" ] || exit 3
[ "$(cat /app/collected /app/collected-by-nobody)" = "$(printf '0\\n65534')" ] || exit 4
touch /app/x && exit 5
grep -q hello /app/out.txt && echo 1 > /logs/verifier/reward.txt
"""


@pytest.fixture(autouse=True)
def _need_users() -> None:
    if not has_users():
        pytest.skip("sandboxes of this user have one user: see `intercode doctor`")


def test_the_agent_and_the_verifier_are_the_users_of_the_task(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "t", **{"task.toml": TOML, "tests__test.sh": TEST})
    with HarborEnv(f"harbor:{folder}") as env:
        env.reset(options={"task": 0})
        assert env.step("id -u; echo $USER; pwd; touch /root/x /app/mine; stat -c %u /app")[0] == (
            "65534\nnobody\n/app\ntouch: cannot touch '/root/x': Permission denied\n65534\n"
        )
        assert env.score().value == 0.0
        env.step("WORD=kept")
        env.step("exit 3")  # the shell that follows is of the same user
        (fork,) = env.fork()
        with fork:
            assert fork.step("id -u; echo $WORD; test -O mine && echo own")[0] == (
                "65534\nkept\nown\n"
            )
        assert env.step(env.task.solution or "")[0] == ""
        assert env.step("submit")[1:3] == (1.0, True)


def test_an_agent_becomes_root_by_a_set_user_id_program(tmp_path: Path) -> None:
    """A copy of bash in the place of sudo, which the image does not have. The verifier gets the
    files of a user with their set-user-ID bits, and owners."""
    program = "RUN mkdir -p /opt && cp /bin/bash /opt/as-root && chmod 4755 /opt/as-root\n"
    test = """\
#!/bin/sh
test -e /root/made && [ "$(stat -c %a:%u /app/own)" = 4755:65534 ] &&
    echo 1 > /logs/verifier/reward.txt
"""
    files = {"environment__Dockerfile": f"{DOCKERFILE}{program}", "tests__test.sh": test}
    folder = write_task(tmp_path / "t", **{"task.toml": "[agent]\nuser = 'nobody'", **files})
    with HarborEnv(f"harbor:{folder}") as env:
        env.reset()
        assert env.sandbox is not None
        is_effective = has_set_user_id(env.sandbox.tier)
        env.step("cp /bin/bash own && chmod 4755 own")
        out = env.step("/opt/as-root -p -c 'touch /root/made; echo $EUID'")[0]
        assert out.splitlines()[-1] == ("0" if is_effective else "65534")
        assert env.step("submit")[1] == float(is_effective)


def test_set_up_and_verifiers_of_steps(tmp_path: Path) -> None:
    toml = """\
    agent.user = 1234
    verifier.user = 1234
    [[steps]]
    name = "one"
    [[steps]]
    name = "two"
    verifier.user = "root"
    """
    files = {
        f"steps__{name}__{path}": text
        for name, number in (("one", 1234), ("two", 0))
        for path, text in (
            ("workdir__setup.sh", f"id -u > /app/{name}; stat -c %u setup.sh >> /app/{name}"),
            (
                "tests__test.sh",
                f"#!/bin/sh\n[ $(id -u) = {number} ] && echo 1 > /logs/verifier/reward.txt",
            ),
            ("solution__solve.sh", SOLVE),
        )
    }
    folder = write_steps_task(tmp_path / "t", **{"task.toml": toml, **files})
    with HarborEnv(f"harbor:{folder}") as env:
        env.reset(options={"task": 0})
        assert env.step("cat one")[0] == "1234\n1234\n"
        env.step("submit")
        assert env.step("cat two")[0] == "1234\n1234\n"
        assert env.step("submit")[1] == 1.0


def test_what_cannot_be_played_costs_the_task(tmp_path: Path) -> None:
    toml = "[agent]\nuser = 'carol'"
    with HarborEnv(f"harbor:{write_task(tmp_path / 'a', **{'task.toml': toml})}") as env:
        with pytest.raises(TaskSetupError, match="no user 'carol'"):
            env.reset()
        vars(env._profile_impl)["_has_users"] = (
            False  # as on a machine whose sandboxes have one user
        )
        with pytest.raises(TaskSetupError, match="cannot run a command as 'carol'"):
            env.reset()
    toml = "[verifier]\nuser = 'carol'"
    with HarborEnv(f"harbor:{write_task(tmp_path / 'v', **{'task.toml': toml})}") as env:
        env.reset()
        assert "no user 'carol'" in env.score().details["said"]
    toml = "[[steps]]\nname = 'one'\nagent.user = 'ada'\n[[steps]]\nname = 'two'\n"
    with pytest.raises(DataError, match="give all steps the same, and not root and ada"):
        load(f"harbor:{write_steps_task(tmp_path / 's', **{'task.toml': toml})}")
