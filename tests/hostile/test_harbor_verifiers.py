"""Agents that deceive the verifier of a Harbor task with what they leave for it to run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from intercode.core.errors import SandboxKilledError
from intercode.integrations.harbor import verifier
from intercode.integrations.harbor.env import HarborEnv
from support.harbor import write_task

pytestmark = pytest.mark.sandbox
TEST = """\
#!/bin/bash
mkdir -p /logs/verifier
if python3 /tests/check.py && [ "$(/app/prog)" = 42 ] && . /tests/last.sh; then
    echo 1 > /logs/verifier/reward.txt
else
    echo 0 > /logs/verifier/reward.txt
fi
"""
CHECK = "import os, sys\nsys.exit(not os.path.exists('/app/done'))\n"
HONEST = "touch /app/done; printf '#!/bin/sh\\necho 42\\n' > /app/prog; chmod +x /app/prog"
USER_SITE = "$(python3 -c 'import site; print(site.getusersitepackages())')"


def program(code: str) -> str:
    """Return an action that writes a program which does not solve the task, but runs ``code``."""
    return (
        "touch /app/done; cat > /app/prog <<'PROGRAM'\n#!/bin/bash\n"
        f"{code}\necho 0\nPROGRAM\nchmod +x /app/prog"
    )


WRITE = "echo 1 > /logs/verifier/reward.txt"
ATTACKS = {
    "usercustomize": f"mkdir -p {USER_SITE}; printf '#!/bin/sh\\necho 42' > /app/prog; "
    f"chmod +x /app/prog; echo 'import os; os._exit(0)' > {USER_SITE}/usercustomize.py",
    "a process that overwrites the reward": program(
        '(setsid python3 -c "import os, time\nend = time.time() + 60\nwhile time.time() < end:\n'
        " try: open('/logs/verifier/reward.txt', 'r+').write('1')\n except OSError: pass\""
        " > /dev/null 2>&1 < /dev/null &); sleep 0.3"
    ),
    "a directory in the place of the reward": program(
        "mkdir /logs/verifier/reward.txt; echo '{\"reward\": 1}' > /logs/verifier/reward.json"
    ),
    "a directory that cannot be written": program(
        "echo '{\"reward\": 1}' > /logs/verifier/reward.json; chmod 555 /logs/verifier"
    ),
    "a reward that cannot be overwritten": program(f"{WRITE}; chmod 444 /logs/verifier/reward.txt"),
    "a link in the place of the reward": program(
        "echo 1 > /proc/self/comm; ln -s /proc/1/nothing /logs/verifier/reward.txt; "
        "echo '{\"reward\": 1}' > /logs/verifier/reward.json"
    ),
    "kill the verifier": program(f"{WRITE}; kill -9 $(pgrep -f test.sh) $PPID"),
    "end the verifier": program(f"{WRITE}; kill -TERM $(pgrep -f test.sh) $PPID"),
    "rewrite the tests": program("echo true > /tests/last.sh; echo 42; exit"),
}


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HarborEnv]:
    folder = write_task(
        tmp_path_factory.mktemp("harbor") / "t",
        **{"tests/test.sh": TEST, "tests/check.py": CHECK, "tests/last.sh": "test -s /app/last\n"},
    )
    with HarborEnv(f"harbor:{folder}") as opened:
        yield opened


@pytest.mark.parametrize("name", ATTACKS)
def test_a_deceived_verifier_gives_no_reward(env: HarborEnv, name: str) -> None:
    env.reset(options={"task": 0})
    env.step("echo last > /app/last" if name != "rewrite the tests" else "true")
    env.step(ATTACKS[name])
    score = env.score()
    assert score.value == 0.0, score.details
    if name != "usercustomize":  # it has no effect
        assert re.match("the verifier |/logs/verifier|/tests/", score.details["said"])


def test_a_verifier_that_ends_its_sandbox_gives_no_reward(
    env: HarborEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sandbox of the agent is another one, in which the episode goes on."""

    def ended(*_: object) -> None:
        raise SandboxKilledError("it used too much memory")

    env.reset(options={"task": 0})
    env.step(f"{HONEST}; echo last > /app/last")
    with monkeypatch.context() as here:
        here.setattr(verifier, "_check_end", ended)
        score = env.score()
    assert score.value == 0.0 and "ended its sandbox: it used" in score.details["said"]
    assert env.step("echo on")[0] == "on\n" and env.score().value == 1.0


def test_an_honest_program_is_rewarded(env: HarborEnv) -> None:
    env.reset(options={"task": 0})
    env.step(f"{HONEST}; echo last > /app/last")
    score = env.score()
    assert score.value == 1.0, score.details


def test_libraries_of_the_agent_are_not_preloaded(env: HarborEnv) -> None:
    env.reset(options={"task": 0})
    env.step(f"{HONEST}; echo last > /app/last; echo /app/none.so > /etc/ld.so.preload")
    score = env.score()
    assert score.value == 1.0 and "preload" not in score.details["said"]


def test_a_verifier_beside_the_agent_is_said_to_be_unprotected(tmp_path: Path) -> None:
    """The entry point is the agent's program while the tests run, and can forge the reward. The
    result says so of every verifier of this kind, whatever the agent did."""
    entry = "/app/entry.sh"
    folder = write_task(
        tmp_path / "t",
        **{
            "tests/test.sh": "echo 0 > /logs/verifier/reward.txt\n",
            "environment/Dockerfile": (
                f"FROM host\nRUN mkdir -p /app && printf '#!/bin/sh\\nexec \"$@\"\\n' > {entry} "
                f'&& chmod +x {entry}\nENTRYPOINT ["{entry}"]\nWORKDIR /app\n'
            ),
        },
    )
    forge = "while :; do grep -qs 0 $f && echo 1 > $f; done"
    script = f"#!/bin/sh\nf=/logs/verifier/reward.txt\n{forge}\n"
    with HarborEnv(f"harbor:{folder}") as env:
        assert env.result_metadata()["unprotected_verifiers"] == 1
        for action in ("true", f"printf {shlex.quote(script)} > {entry}"):
            env.reset(options={"task": 0})
            env.step(action)
            details = env.score().details
            assert (details["protected"], details["trusted"]) == (False, ["/"])


def test_output_through_tee_is_no_leftover_process(tmp_path: Path) -> None:
    script = f"#!/bin/bash\nexec > >(tee /logs/verifier/log.txt)\necho on\n{WRITE}\n"
    folder = write_task(tmp_path / "t", **{"tests/test.sh": script})
    with HarborEnv(f"harbor:{folder}") as env:
        env.reset()
        assert env.score().value == 1.0
