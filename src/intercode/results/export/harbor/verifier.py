"""The verifier of a Python task in Harbor's form: its share of passed tests. Standard library only.

It lies beside ``tests.json`` and is run by ``test.sh``; it is never imported by this package.
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
told = json.loads(sys.stdin.readline())
space = runpy.run_path(sys.argv[1], run_name="solution")
exec(told["setup"] or "", space)
exec(told["test"], space)
print("passed: " + mark)
"""


def passes_assertion(test: str, setup: str, cwd: str) -> bool:
    """Whether a statement runs without an error after the solution and the set-up."""
    mark = secrets.token_hex(16)
    told = mark + "\n" + json.dumps({"setup": setup, "test": test}) + "\n"
    run = run_python(["-c", ASSERT_PROGRAM, SOLUTION], told, cwd)
    return run is not None and run.returncode == 0 and PASSED + mark in run.stdout.splitlines()


def prints_expected(test: dict[str, str], cwd: str) -> bool:
    """Whether the program prints what it should, but for blanks at the ends of lines."""
    run = run_python([SOLUTION], test["input"], cwd)
    if run is None or run.returncode != 0:
        return False
    return normalized_lines(run.stdout) == normalized_lines(test["output"])


def normalized_lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().split("\n")]


def run_python(words: list[str], told: str, cwd: str) -> subprocess.CompletedProcess[str] | None:
    try:
        return subprocess.run(
            [sys.executable, *words], input=told, capture_output=True, text=True, timeout=TIMEOUT,
            cwd=cwd,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None


def main() -> None:
    told: dict[str, Any] = json.loads((HERE / "tests.json").read_text("utf-8"))
    tests, cwd = told["tests"], told["cwd"]
    if told["mode"] == "stdin":
        right = sum(prints_expected(test, cwd) for test in tests)
    else:
        right = sum(passes_assertion(test, told["setup"], cwd) for test in tests)
    place = Path("/logs/verifier")
    place.mkdir(parents=True, exist_ok=True)
    (place / "reward.txt").write_text(f"{right / len(tests)}\n")
    print(f"{right} of {len(tests)} tests passed")


if __name__ == "__main__":
    main()
