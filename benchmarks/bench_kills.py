"""Seconds until everything is gone after `kill -9`, in the middle of many live episodes.

    python benchmarks/bench_kills.py [--episodes 200]

Killed are in turn: the process that owns the boxes (a worker of a run), its launcher, PID 1 of one
box, a keeper. Gone are processes, control groups, mounts and temporary files. The exit status is 1
when something is not gone within 2 s, or the owner does not go on where it lives.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from intercode.report import render
from intercode.report.tables import Table
from support import traces
from support.live_owner import LiveOwner

_BOUND, _PATIENCE = 2.0, 30.0  # seconds


def killed(what: str, episodes: int) -> tuple[str, int, float | None, str]:
    """Kill it: what, how many processes were to go, seconds until they had, what the owner said."""
    with tempfile.TemporaryDirectory(prefix="intercode-kills-") as home:
        os.chmod(home, 0o755)
        with LiveOwner(episodes, Path(home)) as owner:
            family = owner.family
            one = {"owner": family.owner, "launcher": family.launchers[0],
                   "PID 1": family.inits[0], "keeper": family.keepers[0]}[what]  # fmt: skip
            alone = what in ("PID 1", "keeper")
            before = len(traces.living(family.boxes))
            os.kill(one[0], signal.SIGKILL)
            if alone:
                took = traces.eventually(lambda: not traces.living((one,)), _PATIENCE)
            else:
                took = traces.eventually(lambda: not owner.left(), _PATIENCE)
            said = "" if what == "owner" else owner.hear()
            count = before - len(traces.living(family.boxes))
    return what, count, took, said or "-"


def main() -> int:
    """Parse the command line, kill, and print. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=200)
    args = parser.parse_args()
    rows = [killed(what, args.episodes) for what in ("owner", "launcher", "PID 1", "keeper")]
    title = f"kill -9 with {args.episodes} live episodes"
    columns = ("killed", "processes gone", "seconds", "the owner says")
    print(render([Table("kills", title, columns, tuple(rows), digits=(("seconds", 2),))], "text"))
    on_time = all(row[2] is not None and row[2] <= _BOUND for row in rows)
    return 0 if on_time and all(row[3] == "lost one" for row in rows[1:]) else 1


if __name__ == "__main__":
    sys.exit(main())
