"""Places that are prepared: taken, given up, and never too many of them in one process."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest

from intercode.environments.base import workspaces
from intercode.environments.base.workspaces import Prewarmer, Workspace
from intercode.sessions.bash.persistent import BashSession
from support.boxes import open_box

pytestmark = pytest.mark.sandbox


class Workshop:
    """Makes real places, and remembers them."""

    def __init__(self) -> None:
        self.made: list[Workspace] = []
        self._lock = threading.Lock()

    def make(self) -> Workspace:
        box = open_box()
        place = Workspace(box, BashSession(box))
        with self._lock:
            self.made.append(place)
        return place


@pytest.fixture
def shop() -> Iterator[Workshop]:
    shop = Workshop()
    open_box().close()  # or the test is skipped
    yield shop
    for place in shop.made:
        place.close()


def test_what_was_prepared_for_the_same_is_taken(shop: Workshop) -> None:
    spare = Prewarmer()
    spare.prepare("a", shop.make)
    spare.prepare("a", shop.make)
    place = spare.take("a", shop.make)
    assert shop.made == [place]
    assert place.session.run("echo on", 10).output == "on\n"
    spare.close()


def test_at_most_so_many_wait_and_the_oldest_gives_way(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspaces, "_MAX_WAITING", 2)
    several = [Prewarmer() for _ in range(4)]
    for spare in several:
        spare.prepare("a", shop.make)
    waiting = [spare for spare in several if spare._prewarmed is not None]
    assert waiting == several[2:]
    for spare in several:  # those that gave way make one when they need it
        place = spare.take("a", shop.make)
        assert place.session.run("echo on", 10).output == "on\n"
        place.close()
        spare.close()
    assert not set(several) & set(workspaces._pools[os.getpid()].waiting)
