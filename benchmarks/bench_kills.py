"""Measures the seconds until everything is gone after `kill -9`, during many live episodes.

    python benchmarks/bench_kills.py [--episodes 200] [--kills 4] [--init own|machine]
        [--out runs/kills.jsonl]

It kills in turn, at random moments, the owner of the sandboxes (a worker of a run), its launcher,
PID 1 of one sandbox, and a supervisor. Processes, control groups, mounts and temporary files have
to disappear. ``--kills`` new kills are recorded in --out, and the table has all that were recorded
there with the same commit, number of episodes and init. A control group disappears when its last
process is reaped; orphans are reaped by the machine's init, at once or every few seconds. With
``--init own`` (the default) this program reaps them, as an init should. The exit status is 1 if
something is left after 2 s, or if an owner that lives cannot continue.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from measuring import Record

from intercode.results.report import render
from intercode.results.tables import Table
from support import traces
from support.live_owner import LiveOwner

_BOUND, _PATIENCE = 2.0, 30.0  # seconds
_LATEST = 1.0  # seconds after the start of all episodes
_TARGETS = ("owner", "launcher", "PID 1", "supervisor")
_PR_SET_CHILD_SUBREAPER = 36


def killed(what: str, episodes: int) -> tuple[str, int, float | None, str]:
    """Kill one process.

    Returns its kind, the number of processes to end, the seconds until they ended, and the reply of
    the owner.
    """
    with tempfile.TemporaryDirectory(prefix="intercode-kills-") as home:
        os.chmod(home, 0o755)
        with LiveOwner(episodes, Path(home)) as owner:
            family = owner.family
            init, supervisor = traces.sandbox_of(random.choice(traces.sleeping(family))[0])
            one = {
                "owner": family.owner,
                "launcher": family.launchers[0],
                "PID 1": next(process for process in family.inits if process[0] == init),
                "supervisor": next(p for p in family.supervisors if p[0] == supervisor),
            }[what]
            alone = what in ("PID 1", "supervisor")
            time.sleep(_LATEST * random.random())
            before = len(traces.living(family.sandboxes))
            os.kill(one[0], signal.SIGKILL)
            if alone:
                took = traces.eventually(lambda: not traces.living((one,)), _PATIENCE)
            else:
                took = traces.eventually(lambda: not owner.left(), _PATIENCE)
            reply = "" if what == "owner" else owner.hear()
            count = before - len(traces.living(family.sandboxes))
    return what, count, took, reply or "-"


def run_under_init(work: Callable[[], int]) -> int:
    """Do the work in a child process and reap every process that it orphans at once. Returns its
    exit status."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "this system has no child subreapers")
    worker = os.fork()
    if worker == 0:
        status = 1
        try:
            status = work()
            sys.stdout.flush()
        finally:
            os._exit(status)
    while True:
        ended, status = os.wait()
        if ended == worker:
            return os.waitstatus_to_exitcode(status)


def measure(episodes: int, kills: int, init: str, path: Path) -> int:
    """Kill so many times, and print the table of what is recorded of equal kills. Returns the exit
    status."""
    record = Record(path, episodes, init)
    for number in range(len(record.results), len(record.results) + kills):
        record.add(*killed(_TARGETS[number % len(_TARGETS)], episodes))
    found = record.results
    title = (
        f"{record.commit}: kill -9 with {episodes} live episodes, orphans collected by {init} init"
    )
    rows = []
    for what in _TARGETS:
        mine = [row for row in found if row[0] == what]
        late = [row for row in mine if row[2] is None or row[2] > _BOUND]
        silent = [row for row in mine if what != "owner" and row[3] != "lost one"]
        times = [_PATIENCE if row[2] is None else row[2] for row in mine]
        ended = max((row[1] for row in mine), default=0)
        rows.append((what, len(mine), ended, max(times, default=0.0), len(late), len(silent)))
    columns = ("killed", "kills", "processes gone", "seconds", "late", "owners that stopped")
    print(render([Table("kills", title, columns, tuple(rows), digits=(("seconds", 2),))], "text"))
    return 1 if any(row[4] or row[5] for row in rows) else 0


def main() -> int:
    """Parse the command line and measure. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--kills", type=int, default=len(_TARGETS))
    parser.add_argument("--init", choices=("own", "machine"), default="own")
    parser.add_argument("--out", type=Path, default=Path("runs/kills.jsonl"))
    args = parser.parse_args()
    if args.init == "machine":
        return measure(args.episodes, args.kills, "the machine's", args.out)
    return run_under_init(lambda: measure(args.episodes, args.kills, "our own", args.out))


if __name__ == "__main__":
    sys.exit(main())
