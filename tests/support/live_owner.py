"""A process with many live episodes, for tests that kill one of its processes.

    python -m support.live_owner NUMBER

Steps its environments in turn until it is killed. It reports lost environments on stdout and
replaces them. ``tests`` and the packages have to be on PYTHONPATH.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType

from support import traces
from support.sources import PYTHONPATH

_ROOT = Path(__file__).resolve().parents[2]
_START_SECONDS = 120.0


class LiveOwner:
    """Start such a process with its files below ``home``; leaving the context kills it."""

    def __init__(self, number: int, home: Path) -> None:
        self.number, self.temporary = number, home / "tmp"
        self.temporary.mkdir()
        self.cache = home / "cache"
        paths = f"{PYTHONPATH}:{_ROOT / 'tests'}"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "support.live_owner", str(number)],
            env={
                **os.environ,
                "PYTHONPATH": paths,
                "TMPDIR": str(self.temporary),
                "INTERCODE_CACHE": str(self.cache),
            },
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> LiveOwner:
        assert self.hear() == "ready", "it did not start"
        self.family = traces.family(self.process.pid)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def hear(self) -> str:
        """Return its next report; empty if it has ended."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def left(self) -> list[str]:
        """Return what is left of the sandboxes that it had when it was ready."""
        found = [f"process {pid}" for pid, _ in traces.living(self.family.sandboxes)]
        found += [str(group) for group in traces.groups_of(self.family.launchers)]
        stage = self.cache / "stage"
        files = [*self.temporary.iterdir(), *(stage.iterdir() if stage.is_dir() else ())]
        found += [str(path) for path in files]
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
        return found + [mount for mount in mounts if str(self.cache) in mount]


def main(number: int) -> None:
    """Run the process."""
    import intercode
    from intercode import datasets
    from intercode_sandbox.errors import InfrastructureError

    starter = datasets.load("starter")
    environments = [intercode.make("bash", dataset=starter) for _ in range(number)]
    for env in environments:
        env.reset(options={"task": 0})
        env.step("sleep 600 &")
    print("ready", flush=True)
    while True:
        for env in environments:
            try:
                lost = env.execute("echo x >> /tmp/f").sandbox_lost
            except InfrastructureError:
                lost = True
            if lost:
                env.reset(options={"task": 0})
                print("lost one", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
