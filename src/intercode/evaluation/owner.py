"""Ends a process of this package when the one that started it is gone."""

from __future__ import annotations

import multiprocessing
import os
import threading


def end_with_owner() -> None:
    """Let this process of ``multiprocessing`` end when the one that started it is killed."""

    def wait() -> None:
        owner = multiprocessing.parent_process()
        assert owner is not None
        owner.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
