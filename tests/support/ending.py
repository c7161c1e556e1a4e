"""Work that runs in one thread and is ended from another."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


def ended(work: Callable[[], object], end: Callable[[], None], lost: type[Exception]) -> Exception:
    """Return the exception, a ``lost``, that ``work`` raises after ``end`` has ended it."""
    outcome: list[BaseException | object] = []

    def go() -> None:
        try:
            outcome.append(work())
        except lost as e:
            outcome.append(e)

    thread = threading.Thread(target=go)
    thread.start()
    time.sleep(0.5)
    assert thread.is_alive(), outcome
    end()
    thread.join(60)
    error = outcome[0]
    assert not thread.is_alive() and isinstance(error, lost)
    return error
