"""Sandboxes for tests: the machine's programs, with small layers of the test's own."""

from __future__ import annotations

import asyncio
import gc
import os
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from intercode_sandbox import Sandbox, SandboxSpec, images, open_sandbox
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.errors import SandboxUnavailableError
from intercode_sandbox.namespace.launcher import Launcher
from intercode_sandbox.types import Layer, LayerSpec
from support import backend

PATIENCE = 120.0
"""Seconds after which a test fails that waits for what must happen."""

SLEEPS = "until [ $(cat /proc/$!/comm) = sleep ]; do :; done"
"""Shell code that waits until the last job is `sleep`; until then it is a copy of the shell."""


def number_on_machine(process: Any) -> int:
    """Return the number of a sandbox's process on this machine, with which its supervisor is asked
    to signal it. ``process.pid`` is its number in the sandbox."""
    number: int = process._send_signal.keywords["child"]
    return number


def open_test_sandbox(**spec: Any) -> BaseSandbox:
    """Return a new sandbox of the tested back end. If this machine cannot provide one, the test is
    skipped; it fails if an engine was requested by name."""
    try:
        return open_sandbox(SandboxSpec(images.resolve("host"), **spec), backend.chosen())
    except SandboxUnavailableError as e:
        if backend.is_container():
            raise
        import pytest  # not at the top: hostile cases also run where it is not installed

        pytest.skip(f"no namespace sandbox on this machine ({e}): see `intercode doctor`")


def open_one(**spec: Any) -> Sandbox:
    """Return a new sandbox of the tested back end, as programs use it."""
    return Sandbox.from_base(open_test_sandbox(**spec))


def running(mark: str) -> list[int]:
    """Return the processes of this machine, in any namespace, with ``mark`` among their
    arguments."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with suppress(OSError):
                if mark.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def a_duration() -> str:
    """Return a number of seconds to sleep that no other test uses."""
    return str(100_000 + uuid.uuid4().int % 10_000_000)


def end_waiting() -> None:
    """End the containers that wait for reuse, if sandboxes are containers."""
    if backend.is_chroot() or backend.is_container():
        from intercode_sandbox.supervisor.recycling import recycler

        recycler().clear()


def our_sandboxes() -> int:
    """Return the number of sandboxes of this process, with those of the namespace back end that
    wait for a request."""
    if backend.is_chroot():
        end_waiting()
        return len(backend.guards_of(os.getpid()))
    if backend.is_container():
        end_waiting()
        gc.collect()  # a sandbox without references ends once it is collected
        return len(backend.containers_of(os.getpid()))
    pid = Launcher.get().pid
    return len(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


def layer_of(root: Path) -> Layer:
    """Return a directory of the test as a layer."""
    return images.resolve_layer(LayerSpec("dir", root))


def eventually(
    condition: Callable[[], object],
    what: str,
    seconds: float = PATIENCE,
    details: Callable[[], str] = str,
) -> None:
    """Wait until a condition holds; fail with ``what`` and the details if it does not in time.

    The time is only a bound for a test that fails: what a machine can take is less.
    """
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds:g} s: {what} {details()}")
        time.sleep(0.02)


def process_runs(command: str) -> bool:
    """Return whether a process of this machine has a command line."""
    wanted = command.replace(" ", "\0").encode() + b"\0"
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if path.read_bytes() == wanted:
                return True
    return False


async def eventually_async(
    condition: Callable[[], object], what: str, seconds: float = PATIENCE
) -> None:
    """Wait as ``eventually`` does while other asyncio tasks go on."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds:g} s: {what}")
        await asyncio.sleep(0.02)
