"""Runs tests on a busy machine, and then also on a disk that is nearly full (`make test-stress`).

    python tests/stress.py [ARGUMENT ...]

Two busy loops per processor run beside the tests of the sandbox, the sessions, the environments and
the hostile suite. The tests of the sessions and the environments run once more with the temporary
directory and the cache on a file system that has little space left; this part needs root, which
mounts it. Arguments are those of pytest; paths among them replace the tests named above. The exit
status is 1 if a test fails.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

_BUSY = ("packages/sandbox/tests", "tests/sessions", "tests/environments", "tests/hostile")
_FULL = ("tests/sessions", "tests/environments")
_LOOPS = 2  # per processor
_WORKERS = 2  # of pytest, per processor: with the loops, each test has a quarter of a processor
_SIZE, _LEFT = 512, 272  # MiB of the file system, and those that are left
"""Databases of the tests take 180 MiB, and whoever unpacks an image leaves 64 MiB free."""
_MOUNT = 'mount -t tmpfs -o size="$1"m,mode=1777 tmpfs "$2" && shift 2 && exec "$@"'


def _pytest(tests: tuple[str, ...], arguments: list[str]) -> list[str]:
    chosen = () if any(Path(a.partition("::")[0]).exists() for a in arguments) else tests
    workers = ["-n", str(_WORKERS * (os.cpu_count() or 1)), "--dist", "worksteal"]
    return [sys.executable, "-m", "pytest", "-q", *workers, *chosen, *arguments]


def _on_full_disk(command: list[str]) -> int:
    """Run a command with a file system of its own that is nearly full. Return its exit status."""
    with tempfile.TemporaryDirectory(prefix="stress-") as folder:
        os.chmod(folder, 0o755)
        mount = ["unshare", "--mount", "sh", "-c", _MOUNT, "sh", str(_SIZE), folder]
        fill = f'head -c {_SIZE - _LEFT}M /dev/zero > {folder}/filler && exec "$@"'
        environment = {**os.environ, "TMPDIR": folder, "INTERCODE_CACHE": f"{folder}/cache"}
        return subprocess.run(
            [*mount, "sh", "-c", fill, "sh", *command], env=environment
        ).returncode


def main(arguments: list[str]) -> int:
    """Run both parts. Return the exit status."""
    count = _LOOPS * (os.cpu_count() or 1)
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        failed = [subprocess.run(_pytest(_BUSY, arguments)).returncode]
        if os.geteuid() == 0:
            failed.append(_on_full_disk(_pytest(_FULL, arguments)))
        else:
            print("the part on a full disk was left out: only root can mount its file system")
    finally:
        for loop in loops:
            loop.kill()
    return int(any(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
