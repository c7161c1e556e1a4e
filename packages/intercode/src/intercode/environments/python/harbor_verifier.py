"""The verifier of a Python task in Harbor's form: it scores the share of passed tests.

It is copied beside ``tests.json`` and run by ``test.sh``. It uses the standard library only, and
this package never imports it.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SOLUTION = "/app/solution.py"
TIMEOUT = 10
PASSED = "passed: "
ASSERT_PROGRAM = """
import json, runpy, sys
mark = sys.stdin.readline().strip()
request = json.loads(sys.stdin.readline())
space = runpy.run_path(sys.argv[1], run_name="solution")
exec(request["setup"] or "", space)
exec(request["test"], space)
print("passed: " + mark)
"""


def passes_assertion(test: str, setup: str, cwd: str) -> bool:
    """Return whether a statement runs without an error after the solution and the set-up."""
    mark = secrets.token_hex(16)
    request = mark + "\n" + json.dumps({"setup": setup, "test": test}) + "\n"
    run = run_python(["-c", ASSERT_PROGRAM, SOLUTION], request, cwd)
    return run is not None and run.returncode == 0 and PASSED + mark in run.stdout.split("\n")


def prints_expected(test: dict[str, str], cwd: str) -> bool:
    """Return whether the program prints the expected text, ignoring blanks at the ends of lines."""
    run = run_python([SOLUTION], test["input"], cwd)
    if run is None or run.returncode != 0:
        return False
    return normalized_lines(run.stdout) == normalized_lines(test["output"])


def normalized_lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().split("\n")]


def run_python(words: list[str], stdin: str, cwd: str) -> subprocess.CompletedProcess[str] | None:
    try:
        return subprocess.run(
            [sys.executable, *words],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            cwd=cwd,
        )
    except subprocess.TimeoutExpired:
        return None


def main() -> None:
    values: dict[str, Any] = json.loads((HERE / "tests.json").read_text("utf-8"))
    tests, cwd = values["tests"], values["cwd"]
    if values["mode"] == "stdin":
        passed = sum(prints_expected(test, cwd) for test in tests)
    else:
        passed = sum(passes_assertion(test, values["setup"], cwd) for test in tests)
    directory = Path("/logs/verifier")
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "reward.txt").write_text(f"{passed / len(tests)}\n")
    print(f"{passed} of {len(tests)} tests passed")


if __name__ == "__main__":
    main()
