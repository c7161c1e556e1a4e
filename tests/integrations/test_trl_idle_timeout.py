"""The thread that ends idle objects."""

from __future__ import annotations

import gc
import threading

import pytest

from intercode.integrations.trl.idle_timeout import IdleReaper
from support.sandboxes import eventually


class Watched:
    def __init__(self) -> None:
        self.checks = 0

    def _end_if_idle(self) -> None:
        self.checks += 1


def threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "intercode-idle"}


@pytest.mark.slow
def test_the_shortest_time_out_sets_the_interval_and_the_thread_ends_with_the_last_object() -> None:
    others, reaper, watched = threads(), IdleReaper(), [Watched(), Watched()]
    reaper.watch(watched[0], 3600.0)
    eventually(lambda: watched[0].checks == 1, "a first check")
    reaper.watch(watched[1], 0.02)
    eventually(lambda: min(one.checks for one in watched) > 2, "many checks")
    assert len(threads() - others) == 1
    watched.clear()
    gc.collect()
    eventually(lambda: not threads() - others, "the thread has ended")
    again = Watched()
    reaper.watch(again, 0.02)
    eventually(lambda: again.checks > 1, "it begins again")
