"""The thread that looks after what is forgotten."""

from __future__ import annotations

import gc
import threading

import pytest

from intercode.integrations.trl.idle_timeout import IdleReaper
from support.boxes import eventually


class Watched:
    def __init__(self) -> None:
        self.looks = 0

    def _reap(self) -> None:
        self.looks += 1


def threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "intercode-idle"}


@pytest.mark.slow
def test_it_looks_as_often_as_the_most_hasty_needs_and_ends_with_the_last() -> None:
    others, reaper, watched = threads(), IdleReaper(), [Watched(), Watched()]
    reaper.watch(watched[0], 3600.0)
    eventually(lambda: watched[0].looks == 1, "a first look")
    reaper.watch(watched[1], 0.02)
    eventually(lambda: min(one.looks for one in watched) > 2, "many looks")
    assert len(threads() - others) == 1
    watched.clear()
    gc.collect()
    eventually(lambda: not threads() - others, "the thread has ended")
    again = Watched()
    reaper.watch(again, 0.02)
    eventually(lambda: again.looks > 1, "it begins again")
