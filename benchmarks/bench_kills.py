"""Measures the seconds until everything is gone after `kill -9`, during many live episodes.

    python benchmarks/bench_kills.py [--episodes 200] [--init own|machine]

It kills in turn the owner of the sandboxes (a worker of a run), its launcher, PID 1 of one sandbox,
and a supervisor. Processes, control groups, mounts and temporary files have to disappear. A control
group disappears when its last process is reaped; orphans are reaped by the machine's init, at once
or every few seconds. With ``--init own`` (the default) this program reaps them, as an init should.
The exit status is 1 if something is left after 2 s, or if an owner that lives cannot continue.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from intercode.results.report import render
from intercode.results.tables import Table
from support import traces
from support.live_owner import LiveOwner

_BOUND, _PATIENCE = 2.0, 30.0  # seconds
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
            one = {
                "owner": family.owner,
                "launcher": family.launchers[0],
                "PID 1": family.inits[0],
                "supervisor": family.supervisors[0],
            }[what]
            alone = what in ("PID 1", "supervisor")
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


def measure(episodes: int, init: str) -> int:
    """Kill each kind of process, and print the table. Returns the exit status."""
    rows = [killed(what, episodes) for what in ("owner", "launcher", "PID 1", "supervisor")]
    title = f"kill -9 with {episodes} live episodes, orphans collected by {init} init"
    columns = ("killed", "processes gone", "seconds", "the owner says")
    print(render([Table("kills", title, columns, tuple(rows), digits=(("seconds", 2),))], "text"))
    on_time = all(row[2] is not None and row[2] <= _BOUND for row in rows)
    return 0 if on_time and all(row[3] == "lost one" for row in rows[1:]) else 1


def main() -> int:
    """Parse the command line and measure. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--init", choices=("own", "machine"), default="own")
    args = parser.parse_args()
    if args.init == "machine":
        return measure(args.episodes, "the machine's")
    return run_under_init(lambda: measure(args.episodes, "our own"))


if __name__ == "__main__":
    sys.exit(main())
