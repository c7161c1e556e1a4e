"""Removes a container of which an engine's client or owner was killed while the engine started it.

While an engine starts a container, the owner runs this file in a bare interpreter, in a session of
its own. The process waits for the end of the owner, removes what the engine has made by then, and
ends. The owner ends it when the container has started, which then ends with its supervisor.
The file uses only the standard library:

    python -I -S removal.py OWNER ENGINE DIRECTORY
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

CREATION_SECONDS = 5.0
"""How long a daemon may still create the container that a killed client requested."""
_CLIENT_SECONDS = 60.0  # time for the engine's client to end by itself
_MONITOR_SECONDS = 10.0  # time for Podman's monitor to end after its process
_COMMAND_SECONDS = 60.0
_POLL_SECONDS, _RETRY_SECONDS = 0.05, 0.5


def start_watcher(program: str, directory: Path) -> subprocess.Popen[bytes]:
    """Start a process that removes a container when this process ends. ``program``: the engine.
    ``directory``: the container's own, which has its name."""
    return subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, str(os.getpid()), program, str(directory)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    )


def remove_container(program: str, container: str, seconds: float = 0.0) -> None:
    """Remove a container by its name or full id, if it exists. ``seconds``: how long it may take
    until it exists."""
    deadline = time.monotonic() + seconds
    while True:
        _end_monitored_process(container)
        # prints what it has removed
        if _run(program, "rm", "--force", container) or time.monotonic() >= deadline:
            return
        time.sleep(_RETRY_SECONDS)


def _end_monitored_process(container: str) -> None:
    """End the process that Podman's monitor (conmon) waits for, and wait until the monitor ends.

    If Podman was killed between creating and starting a container, `podman rm` forgets the
    container, but its monitor and its first process (`runc init`) wait for a start."""
    deadline = time.monotonic() + _MONITOR_SECONDS
    while monitors := [p for p in _processes_of(container) if Path(p[1][0]).name == "conmon"]:
        for monitor, words in monitors:
            with suppress(ValueError, IndexError):
                runtime, identity = (words[words.index(option) + 1] for option in ("-r", "-c"))
                # does nothing while the runtime is still creating the container
                _run(runtime, "delete", "--force", identity)
            if time.monotonic() > deadline:
                with suppress(OSError):
                    os.kill(monitor, signal.SIGKILL)
        time.sleep(_POLL_SECONDS)


def _run(*command: str) -> bytes:
    """Return a command's output, whether or not it succeeds. It is empty if the command does not
    end in time."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_COMMAND_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return b""
    return done.stdout


def _processes_of(container: str) -> Iterator[tuple[int, list[str]]]:
    """Return numbers and command lines of the engine's processes that name a container."""
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            words = Path(f"/proc/{entry}/cmdline").read_bytes().decode(errors="replace").split("\0")
            if container in words or f"--name={container}" in words:
                yield int(entry), words


def _wait_for_clients(container: str) -> None:
    """Wait until the engine's client has ended, and its copies that have not executed another
    program yet. Kills those that do not end."""
    deadline = time.monotonic() + _CLIENT_SECONDS
    while clients := [p for p, words in _processes_of(container) if f"--name={container}" in words]:
        if time.monotonic() > deadline:
            for client in clients:
                with suppress(OSError):
                    os.kill(client, signal.SIGKILL)
        time.sleep(_POLL_SECONDS)


def main(owner: int, program: str, directory: Path) -> None:
    """Wait for the end of the owner, which started this process. Then remove its container."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    with suppress(ProcessLookupError):
        ended = os.pidfd_open(owner)
        if os.getppid() == owner:  # otherwise the number may belong to another process already
            select.select([ended], [], [])
    _wait_for_clients(directory.name)
    remove_container(program, directory.name, CREATION_SECONDS)
    shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
