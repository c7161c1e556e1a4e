"""The thread that ends idle objects."""

from __future__ import annotations

import gc
import threading

from intercode.integrations.trl.episode import IdleReaper
from support.fake_clock import FakeClock
from support.sandboxes import eventually


class Watched:
    def __init__(self) -> None:
        self.checks = threading.Semaphore(0)

    def _end_if_idle(self) -> None:
        self.checks.release()

    def is_checked(self) -> bool:
        return self.checks.acquire(timeout=60)


def threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "intercode-idle"}


def test_the_shortest_time_out_sets_the_interval_and_the_thread_ends_with_the_last_object() -> None:
    clock = FakeClock()
    others, reaper, watched = threads(), IdleReaper(clock), [Watched(), Watched()]
    reaper.watch(watched[0], 3600.0)
    assert watched[0].is_checked(), "at once"
    clock.advance_threads(899.0)
    reaper.watch(watched[1], 20.0)  # wakes the thread
    assert all(one.is_checked() for one in watched)
    clock.advance_threads(4.9)
    assert not any(one.checks.acquire(blocking=False) for one in watched)
    for _ in range(3):
        clock.advance_threads(5.0)
        assert all(one.is_checked() for one in watched)
    assert len(threads() - others) == 1
    watched.clear()
    gc.collect()
    clock.advance_threads(5.0)
    eventually(lambda: not threads() - others, "the thread has ended")
    again = Watched()
    reaper.watch(again, 20.0)
    assert again.is_checked()
    clock.advance_threads(5.0)
    assert again.is_checked(), "it begins again"
