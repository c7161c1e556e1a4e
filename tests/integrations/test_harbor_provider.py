"""Harbor's own command line and interfaces use our sandboxes.

Harbor needs Python 3.12 and a virtual environment of its own: set INTERCODE_HARBOR to the directory
of its programs (``.ci/separate harbor DIRECTORY PYTHON`` makes it).
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support import requirements
from support.harbor import (
    IGNORING,
    LEFT_OUT,
    TEST,
    TOML,
    write_ignoring_task,
    write_service_task,
    write_task,
)
from support.sources import PYTHONPATH

pytestmark = [pytest.mark.sandbox, pytest.mark.namespace_only("Harbor is not told a back end")]
ENVIRONMENT = "intercode.integrations.harbor:InterCodeEnvironment"
HEALTH = """[environment.healthcheck]
command = "test -f /app/words.txt"
interval_sec = 1.0
timeout_sec = 5.0
"""
USERS = TOML.replace("[agent]", '[agent]\nuser = "nobody"').replace(
    "[verifier]", "[verifier]\nuser = 1"
)
SOLVE_AS_NOBODY = '#!/bin/bash\n[ "$(id -un)" = nobody ] && echo "$GREETING" > /app/out.txt\n'
TEST_AS_1 = f"{TEST}\n[ $(id -u) = 1 ] || echo 0 > /logs/verifier/reward.txt\n"
WRONG = "#!/bin/bash\necho wrong > /app/out.txt\n"


@pytest.fixture(scope="module")
def programs() -> Path:
    return requirements.framework_programs("harbor")


def _run(*command: str | Path) -> str:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=200,
        env={**os.environ, "PYTHONPATH": PYTHONPATH, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow("long")
def test_its_command_line_runs_trials(programs: Path, tmp_path: Path) -> None:
    """The command of docs/harbor.md."""
    tasks = tmp_path / "tasks"
    write_task(tasks / "solved", **{"task.toml": TOML + HEALTH})
    write_task(tasks / "wrong", **{"solution/solve.sh": WRONG})
    write_task(tasks / "unhealthy", **{"task.toml": TOML + HEALTH.replace("words", "no")})
    write_service_task(tasks / "serving")
    write_task(tasks / "compose", **{"environment/docker-compose.yml": "services: {}"})
    write_task(tasks / "containers", **{"environment/docker-compose.yaml": "services: {}"})
    write_task(tasks / "gpu", **{"task.toml": f"{TOML}gpus = 1\n"})
    files = {"task.toml": USERS, "solution/solve.sh": SOLVE_AS_NOBODY, "tests/test.sh": TEST_AS_1}
    write_task(tasks / "users", **files)
    _run(
        programs / "harbor",
        "run",
        "--path",
        tasks,
        "--agent",
        "oracle",
        "--environment-import-path",
        ENVIRONMENT,
        "--jobs-dir",
        tmp_path / "jobs",
        "--yes",
        "--quiet",
    )
    trials = {}
    for file in tmp_path.glob("jobs/*/*/result.json"):
        result = json.loads(file.read_text())
        reward = (result["verifier_result"] or {}).get("rewards")
        error = (result["exception_info"] or {}).get("exception_type")
        trials[result["task_name"].rpartition("/")[2]] = (reward, error)
    assert trials == {
        "solved": ({"reward": 1.0}, None),
        "wrong": ({"reward": 0.0}, None),
        "users": ({"reward": 1.0}, None),
        "serving": ({"reward": 1.0}, None),
        "unhealthy": (None, "HealthcheckError"),
        "compose": ({"reward": 1.0}, None),
        "containers": (None, "UsageError"),
        "gpu": (None, "RuntimeError"),
    }


@pytest.mark.slow
def test_its_methods(programs: Path, tmp_path: Path) -> None:
    write_task(tmp_path / "task")
    write_ignoring_task(tmp_path / "ignoring")
    write_service_task(tmp_path / "service")
    script = Path(__file__).with_name("harbor_methods.py")
    found: dict[str, Any] = json.loads(_run(programs / "python", script, tmp_path))
    assert found["commands"] == {
        "plain": ["out\n/work\n", "err\n", 3],
        "streamed": {"stdout": "out\n/work\n", "stderr": "err\n"},
        "env": "1 given task\n",
        "late": ["begun\n", "Command timed out after 3 seconds", 124],
        "killed": 137,
        "missing": 126,
        "network": "1\n",
        "bash": "yes\n",
        "users": [
            [["65534", "written"], 0],
            [["0", "written"], 0],
            [["0", "written"], 0],
            [["1"], 1],
            [["4242"], 1],
            [[], 126],
        ],
        "together": ["0\n", "1\n", "2\n", "3\n"],
    }
    assert found["service"] == "hi\n"
    assert found["left out"] == [sorted([*LEFT_OUT, *IGNORING])] * 2
    assert not (tmp_path / "after the end").exists()
    assert found["memory"] == 256 << 20
    assert found["files"] == {
        "uploaded": "ran\nempty\nlink\nrun.sh\nran\n",
        "downloaded": {"kept": "kept", "link": "new\n", "run.sh": "new\n"},
        "file": "new\n",
        "excluded": ["empty"],
        "filtered": ["run.sh"],
        "kinds": [True, False],
    }
    assert found["health"] == ["healthy", "HealthcheckError", "HealthcheckError"]
    expected = ["GPU", "network 'some'", "CPU", "mounted", "is a compose file", *["'docker'"] * 2]
    assert len(found["refused"]) == len(expected)
    for text, part in zip(found["refused"], expected, strict=True):
        assert part in text
