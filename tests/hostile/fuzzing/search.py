"""Searches for a case that a target cannot take, and shrinks it. A round has a seed of its own, so
that a finding can be found again."""

from __future__ import annotations

import re
import resource
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, Protocol, TypeVar

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis.errors import Flaky
from hypothesis.strategies import SearchStrategy

from hostile.processor_time import ProcessorTime

ROUND = 100  # cases of a round
_SHRINK_SECONDS = 60.0
_FLAKY = "not every time"
_PAGE = resource.getpagesize()
T = TypeVar("T")


class Target(Protocol):
    """A part of this package that takes what others wrote.

    ``limit`` and ``memory`` are the seconds and bytes that one case may take.
    """

    limit: float
    memory: int

    def cases(self) -> SearchStrategy[Any]:
        """Return the strategy that makes cases."""
        ...

    def attack(self, case: Any) -> None:
        """Give a case to the part. Any exception is a finding."""
        ...

    def close(self) -> None:
        """Remove what the target has made."""
        ...


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault, the smallest case that shows it, and the seed of its round."""

    what: str
    case: str
    seed: int


def search(target: Target, seed: int, seconds: float) -> tuple[int, list[Finding]]:
    """Attack a target for so many seconds, round by round with the seeds ``seed``, ``seed`` + 1 and
    so on, the last to its end. Return the number of cases, and one finding for each fault."""
    end, count, found = monotonic() + seconds, 0, dict[str, Finding]()
    while monotonic() < end:
        tried, fault = _round(target, seed)
        count += tried
        if fault is not None:
            error, case = fault
            found.setdefault(_origin(error), Finding(_text(error), repr(case), seed))
        seed += 1
    return count, list(found.values())


def _round(target: Target, seed: int) -> tuple[int, tuple[Exception, Any] | None]:
    """Return the number of cases, and the fault with the smallest case."""
    count, fault, end = 0, None, float("inf")
    error: Exception

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=ROUND,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
    )
    @hypothesis.given(target.cases())
    def attack(case: Any) -> None:
        nonlocal count, fault, end
        if monotonic() > end:
            return
        count += 1
        try:
            attempt(target, case)
        except Exception as e:
            if fault is None:
                end = monotonic() + _SHRINK_SECONDS
            fault = e, case
            raise

    try:
        attack()
    except (Exception, BaseExceptionGroup) as e:
        if fault is None:
            raise
        error, case = fault
        if isinstance(e, Flaky):
            error.add_note(_FLAKY)
        return count, (error, case)
    return count, None


def attempt(target: Target, case: Any) -> None:
    """Give a case to a target. Raise its exception, or AssertionError if it takes too much
    processor time or memory."""
    before = _reset_peak()
    work = ProcessorTime()
    target.attack(case)
    took, grown = work.seconds(), _peak() - before
    assert took <= target.limit, f"it took {took:.1f} s, over {target.limit:g} s"
    assert grown <= target.memory, f"it took {grown >> 20} MiB, over {target.memory >> 20} MiB"


def _reset_peak() -> int:
    """Return the resident bytes, from which ``_peak`` is counted from now on."""
    Path("/proc/self/clear_refs").write_text("5")
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


def _peak() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) << 10


def _origin(error: Exception) -> str:
    """Return where an error was raised, and its text without numbers."""
    frames = [
        f for f in traceback.extract_tb(error.__traceback__) if "/src/intercode" in f.filename
    ]
    where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return f"{where} {type(error).__name__}" + ("" if where else re.sub("[0-9]+", "", str(error)))


def _text(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    places = [f"  {f.filename}:{f.lineno}: {f.line}" for f in frames]
    notes = [note for note in getattr(error, "__notes__", ()) if note == _FLAKY]
    return "\n".join([f"{type(error).__name__}: {str(error)[:500]}", *notes, *places])


def shrink(parts: Sequence[T], fails: Callable[[Sequence[T]], bool], seconds: float) -> list[T]:
    """Return a shorter list that still fails, found by leaving out halves, quarters and so on."""
    end, left, size = monotonic() + seconds, list(parts), max(1, len(parts) // 2)
    while monotonic() < end:
        for start in range(0, len(left), size):
            fewer = left[:start] + left[start + size :]
            if fewer and monotonic() < end and fails(fewer):
                left = fewer
                break
        else:
            if size == 1:
                break
            size = max(1, size // 2)
    return left
