"""Runs the tests several times on a disturbed machine, and lists those that failed.

    python tools/steady.py [--rounds 10] [-- COMMAND ...]

COMMAND runs the tests, by default ``make fast``. Beside it, busy loops take processor time, and
random processes below it are stopped (SIGSTOP) for 0.1 to 3 s and then continued, as on a machine
that stands still. Each round prints how it ended and which tests failed, and keeps its output in a
file if one did. The exit status is 1 if a round failed. A process that is already stopped is left
alone, because a test may have stopped it.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_SUMMARY = re.compile(r"^(?:=+ )?(\d+ (?:passed|failed|error|skipped)\b.*?)(?: =+)?$", re.M)
_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.M)
_SECONDS_BETWEEN_STOPS = 0.5  # at most; the next stop follows after a random part of it


@contextlib.contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """Keep ``count`` processes busy while the block runs."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def _parents_and_states() -> dict[int, tuple[int, str]]:
    """Return the parent and the state of every process (proc_pid_stat(5))."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            text = Path(f"/proc/{name}/stat").read_text(errors="replace")  # it names its program
            state, parent = text.rpartition(")")[2].split()[:2]
            found[int(name)] = (int(parent), state)
    return found


def running_below(root: int) -> list[int]:
    """Return the processes below ``root`` that are neither stopped nor dead."""
    processes = _parents_and_states()
    children = collections.defaultdict(list)
    for pid, (parent, _) in processes.items():
        children[parent].append(pid)
    found, left = list[int](), [root]
    while left:
        below = children[left.pop()]
        left += below
        found += [pid for pid in below if processes[pid][1] not in "TtZX"]
    return sorted(found)


def stop_for(pid: int, seconds: float) -> bool:
    """Stop a process for some seconds. Return whether it was still there."""
    try:
        handle = os.pidfd_open(pid)  # the number may belong to another process by the end
    except ProcessLookupError:
        return False
    try:
        signal.pidfd_send_signal(handle, signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            signal.pidfd_send_signal(handle, signal.SIGCONT)
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    return True


def disturb(tests: subprocess.Popen[bytes], rng: random.Random, longest: float) -> int:
    """Stop random processes of the tests until these end. Return how often."""
    count = 0
    while tests.poll() is None:
        time.sleep(rng.uniform(0.0, _SECONDS_BETWEEN_STOPS))
        if processes := running_below(tests.pid):
            count += stop_for(rng.choice(processes), rng.uniform(0.1, longest))
    return count


def play_round(
    number: int, command: Sequence[str], rng: random.Random, longest: float
) -> list[str] | None:
    """Run the tests once. Return those that failed, or None if all passed."""
    descriptor, name = tempfile.mkstemp(prefix=f"steady-{number}-", suffix=".log")
    began = time.monotonic()
    with open(descriptor, "wb") as output:
        tests = subprocess.Popen(
            command, cwd=_ROOT, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            stops = disturb(tests, rng, longest)
        except BaseException:
            os.killpg(tests.pid, signal.SIGINT)
            tests.wait()
            raise
    text = Path(name).read_text("utf-8", "replace")
    summary = (_SUMMARY.findall(text) or ["no tests ran"])[-1]
    minutes = (time.monotonic() - began) / 60
    print(f"round {number}: {summary}; {minutes:.1f} min, {stops} stops", flush=True)
    if tests.returncode == 0:
        os.unlink(name)
        return None
    failed = _FAILED.findall(text)
    print(*(f"  {test}" for test in failed), f"  output: {name}", sep="\n", flush=True)
    return failed


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the rounds. Return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0, help="of the stops (default: 0)")
    parser.add_argument("--loops", type=int, default=os.cpu_count(), help="number of busy loops")
    parser.add_argument("--longest", type=float, default=3.0, help="seconds of the longest stop")
    parser.add_argument("command", nargs="*", default=["make", "fast"])
    options = parser.parse_args(arguments)
    rng = random.Random(options.seed)
    failures = collections.Counter[str]()
    rounds = 0
    with busy_loops(options.loops):
        for number in range(1, options.rounds + 1):
            failed = play_round(number, options.command, rng, options.longest)
            rounds += failed is not None
            failures.update(failed or ())
    print(f"{options.rounds - rounds} of {options.rounds} rounds passed")
    for test, count in failures.most_common():
        print(f"  {count} of {options.rounds}: {test}")
    return int(rounds > 0)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
