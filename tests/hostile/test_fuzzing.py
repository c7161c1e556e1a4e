"""Short runs of the fuzzers; ``python -m hostile fuzz`` has the long ones. A finding is noticed and
shrunk."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from hostile.fuzzing import campaign, messages, search

SECONDS = 300.0 if os.environ.get("INTERCODE_HOSTILE_LONG") else 5.0


def _needs(kind: str) -> list[Any]:
    return [pytest.mark.sandbox] if kind in ("actions", "messages") else []


@pytest.mark.slow("long")
@pytest.mark.namespace_only("the fuzzers open sandboxes of namespaces")
@pytest.mark.parametrize("kind", [pytest.param(k, marks=_needs(k)) for k in campaign.KINDS])
def test_a_fuzzer_finds_nothing(kind: str) -> None:
    if kind == "messages" and not (shutil.which("gcc") or shutil.which("clang")):
        pytest.skip("compiling with sanitizers needs gcc or clang")
    count, findings = campaign.run(kind, 17, SECONDS)  # other kinds than actions end their round
    assert not findings, "\n\n".join(f"seed {f.seed}: {f.what}\n{f.case}" for f in findings)
    assert count > (0 if kind == "actions" else 20)


def _raise(case: list[int]) -> None:
    if 5 in case:
        raise KeyError("five")


class _Clock:
    """Seconds that pass only when the clock is read, or when a target waits."""

    now = 0.0

    def __call__(self) -> float:
        self.now += 1e-4
        return self.now

    def wait(self, case: list[int]) -> None:
        if any(n > 900 for n in case):
            self.now += 0.5


_CLOCK = _Clock()


class _Work:
    """The processor time by that clock."""

    def __init__(self) -> None:
        self._began = _CLOCK()

    def seconds(self) -> float:
        return _CLOCK() - self._began


def _grow(case: list[int]) -> None:
    if len(case) > 7:
        bytearray(b"x" * (32 << 20))


@dataclass
class _Planted:
    """A target with a fault."""

    attack: Callable[[list[int]], None]
    limit = 0.09
    memory = 16 << 20

    def cases(self) -> st.SearchStrategy[list[int]]:
        return st.lists(st.integers(0, 1000), max_size=20)

    def close(self) -> None:
        pass


_ONE_ROUND = 1e-3  # seconds; a round is played to its end


def _first_findings(target: search.Target) -> list[search.Finding]:
    """Search with one seed after the other. Return what the first that finds something finds."""
    rounds = (search.search(target, seed, _ONE_ROUND)[1] for seed in range(1, 200))
    return next(found for found in rounds if found)


@pytest.mark.parametrize(
    ("fault", "smallest"), [(_raise, [5]), (_CLOCK.wait, [901]), (_grow, [0] * 8)]
)
def test_a_finding_is_shrunk_and_found_again_with_its_seed(
    fault: Callable[[list[int]], None], smallest: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "monotonic", _CLOCK)  # a busy machine finds the same
    monkeypatch.setattr(search, "ProcessorTime", _Work)
    findings = _first_findings(_Planted(fault))
    assert [f.case for f in findings] == [repr(smallest)], findings
    _, again = search.search(_Planted(fault), findings[0].seed, _ONE_ROUND)
    assert [f.case for f in again] == [repr(smallest)]


def test_a_seed_that_is_given_wins_over_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds: list[int] = []

    def run(_kind: str, seed: int, _seconds: float) -> tuple[int, list[search.Finding]]:
        seeds.append(seed)
        return 4, []

    monkeypatch.setattr(campaign, "run", run)
    for given in ([], [], ["--seed", "3"], []):
        assert campaign.main(["rows", "--out", str(tmp_path / "runs.jsonl"), *given]) == 0
    assert seeds == [1, 6, 3, 11]


def test_a_list_is_shrunk_to_the_parts_that_matter() -> None:
    assert search.shrink(range(100), lambda few: {3, 97} <= set(few), 10.0) == [3, 97]


@pytest.mark.slow("long")
@pytest.mark.sandbox
@pytest.mark.namespace_only("the supervisor of a namespace")
def test_a_sanitizer_reports_a_planted_fault(tmp_path: Path) -> None:
    if not (shutil.which("gcc") or shutil.which("clang")):
        pytest.skip("compiling with sanitizers needs gcc or clang")
    shutil.copytree(messages.SOURCES, tmp_path / "c")
    faulty = tmp_path / "c" / "common" / "processes.c"
    text = faulty.read_text()
    assert "int moved[MOST_FDS]" in text
    faulty.write_text(text.replace("int moved[MOST_FDS]", "int moved[3]"))
    target = messages.Messages(tmp_path / "c")
    try:
        findings = _first_findings(target)
    finally:
        target.close()
    assert all("processes.c" in found.what for found in findings)
