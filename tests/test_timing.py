"""Tests depend on real time only in ``tests/realtime``; checked from their source."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TIMING = runpy.run_path(str(ROOT / "tools" / "timing.py"))
WAITING = {"tests/support/sandboxes.py", "tests/support/traces.py"}
"""Their functions ``eventually`` wait for a condition; other files call them."""
MAX_SLEEPS = 21
"""Sleeps of other files. Lower the number when one goes; a new test waits for what it needs."""
MAX_REALTIME_TESTS = 25


def found_in(source: str, tmp_path: Path) -> list[tuple[str, int]]:
    path = tmp_path / "test_it.py"
    path.write_text(source)
    return [(place.kind, place.line) for place in TIMING["places"](path)]


@pytest.mark.parametrize(
    "body",
    [
        "began = time.monotonic()\n    assert time.monotonic() - began < 5",
        "deadline = time.time() + 5\n    while work():\n        assert deadline > time.time()",
        "x, start = 1, perf_counter()\n    took = round(perf_counter() - start)\n    assert took",
        "if (took := time.monotonic() - BEGAN) > 2:\n        assert took < work(), took",
        "assert measured() < 2",
    ],
)
def test_assertions_on_elapsed_time_are_found(body: str, tmp_path: Path) -> None:
    measured = (
        "def measured():\n    began = time.monotonic()\n    return time.monotonic() - began\n"
    )
    kinds = [kind for kind, _ in found_in(f"{measured}def test():\n    {body}\n", tmp_path)]
    assert kinds.count("elapsed") == 1


def test_other_values_are_no_elapsed_time(tmp_path: Path) -> None:
    body = (
        "now = time.time()\n    result = work(now)\n    assert result == 5\n"
        "    used = time.process_time()\n    assert time.process_time() - used < 5\n"
        "    await asyncio.sleep(0)\n    work('time.sleep(9)', timeout=limit)\n"
    )
    assert found_in(f"async def test():\n    {body}", tmp_path) == [("clock", 2)]


def test_sleeps_and_literal_time_outs_are_found(tmp_path: Path) -> None:
    source = "time.sleep(x)\nawait asyncio.sleep(0.1)\nwork(timeout=5)\nevent.wait(3)\n"
    assert sorted(found_in(source, tmp_path)) == [
        ("sleep", 1),
        ("sleep", 2),
        ("time-out", 3),
        ("time-out", 4),
    ]


def test_time_is_real_in_one_folder_only() -> None:
    places = TIMING["groups"](ROOT)["tests"]
    elapsed = [p for p in places if p.kind == "elapsed"]
    assert not elapsed, "assert on order and outcome, or move the test to tests/realtime"
    sleeps = [p for p in places if p.kind == "sleep"]
    sleeps = [p for p in sleeps if p.path.relative_to(ROOT).as_posix() not in WAITING]
    assert len(sleeps) <= MAX_SLEEPS, (
        f"{len(sleeps)} sleeps, not {MAX_SLEEPS}: wait with support.sandboxes.eventually or for an "
        "event, give the component support.fake_clock.FakeClock, or move the test to tests/realtime"
    )


def test_few_tests_need_real_time() -> None:
    listed = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "tests/realtime"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    ).stdout
    tests = [line for line in listed.splitlines() if "::" in line]
    assert 0 < len(tests) <= MAX_REALTIME_TESTS, listed
