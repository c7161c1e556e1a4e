"""Finds the C programs of sandboxes, which are compiled when the package is installed (build.py).

The supervisor owns the processes of a sandbox. It takes a twentieth of the memory of an interpreter
and a fraction of the processor time (benchmarks/results/costs.md).
"""

from __future__ import annotations

import functools
from pathlib import Path

from intercode_sandbox.errors import SandboxUnavailableError
from intercode_sandbox.supervisor import build

INSTALL_HINT = (
    "in the source checkout, `pip install -e packages/sandbox` or `make test` compiles it"
)


@functools.cache
def find_program(name: str) -> Path:
    """Return the path of ``build.SUPERVISOR`` or ``build.CLOCK_LIBRARY``.

    Raises SandboxUnavailableError if it is missing, or was compiled from other sources than those
    in the source checkout.
    """
    path = build.DIRECTORY / name
    if not path.is_file():
        raise SandboxUnavailableError(f"{path} is missing: {INSTALL_HINT}")
    if build.is_stale():
        raise SandboxUnavailableError(f"{path} is older than its C sources: {INSTALL_HINT}")
    return path
