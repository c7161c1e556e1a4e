"""Boxes for tests: the machine's own programs, with small layers of the test's own."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from intercode.core.errors import SandboxUnavailableError
from intercode.core.types import Layer, LayerSpec
from intercode.sandbox import SandboxSpec, images, open_sandbox
from intercode.sandbox.contract import Sandbox
from intercode.sandbox.namespace.launcher import Launcher
from support import back_end

SLEEPS = "until [ $(cat /proc/$!/comm) = sleep ]; do :; done"
"""Shell code that waits until the last job is `sleep`: before, it is a copy of the shell."""


def open_test_sandbox(**spec: Any) -> Sandbox:
    """A new box of the back end under test. Where this machine gives none the test is skipped, but
    with an engine that was asked for by name it fails."""
    try:
        return open_sandbox(SandboxSpec(images.resolve("host"), **spec), back_end.chosen())
    except SandboxUnavailableError as e:
        if back_end.is_container():
            raise
        pytest.skip(f"no namespace sandbox on this machine ({e}): see `intercode doctor`")


def running(mark: str) -> list[int]:
    """Processes of this machine with ``mark`` among their arguments, whatever namespace."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with suppress(OSError):
                if mark.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def a_duration() -> str:
    """A number of seconds to sleep that no other test uses."""
    return str(100_000 + uuid.uuid4().int % 10_000_000)


def end_waiting() -> None:
    """Where boxes are containers: end those that wait to serve again."""
    if back_end.is_container():
        from intercode.sandbox.container import container_pool

        container_pool.close_idle()


def our_sandboxes() -> int:
    """How many boxes this process has; of namespaces also those that wait for a request."""
    if back_end.is_container():
        end_waiting()
        return len(back_end.containers_of(os.getpid()))
    pid = Launcher.get().pid
    return len(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


def layer_of(root: Path) -> Layer:
    """A directory of the test's own as a layer."""
    return images.resolve_layer(LayerSpec("dir", root))


def eventually(condition: Callable[[], bool], what: str, seconds: float = 30.0) -> None:
    """Wait until a condition holds; fail with ``what`` when it does not in time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds:g} s: {what}"
        time.sleep(0.02)
