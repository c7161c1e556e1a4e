"""A sandbox of a given tier with a shell in it, and with limits of the test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from intercode.sessions.bash.persistent import BashSession
from intercode_sandbox import Limits, SandboxSpec, images, open_sandbox
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.errors import SandboxUnavailableError
from support import backend


@contextmanager
def shell(tier: str, **limits: float) -> Iterator[tuple[BaseSandbox, BashSession]]:
    """``tier``: one of ``backend.tiers()``, or ``auto``."""
    spec = SandboxSpec(images.resolve("host"), limits=Limits(**limits))  # type: ignore[arg-type]
    try:
        sandbox = open_sandbox(spec, tier)
    except SandboxUnavailableError as e:
        if backend.is_container():
            raise
        pytest.skip(f"{e}")
    with sandbox, closing(BashSession(sandbox)) as session:
        yield sandbox, session
