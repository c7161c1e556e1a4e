"""Times of a sandbox, which tell processes that it started before from those after."""

from __future__ import annotations

import time

from intercode_sandbox.contract import BaseSandbox


def mark_after(sandbox: BaseSandbox, earlier: int | None) -> int:
    """Return the time of a sandbox, as ``BaseSandbox.mark`` does, once it differs from ``earlier``.

    The start time of a process is only accurate to a clock tick. So what the sandbox had started by
    the time ``earlier`` is older than the result.
    """
    while (mark := sandbox.mark()) == earlier:
        time.sleep(0.001)
    return mark
