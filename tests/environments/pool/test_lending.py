"""The rules by which environments are lent, used again and closed."""

from __future__ import annotations

import pytest

from intercode.core.errors import SandboxLostError
from intercode.environments.base.pool.lending import EnvironmentPool


class Room:
    """Counts how often its episode was ended and it was closed."""

    def __init__(self, lost: bool = False) -> None:
        self.lost, self.ends, self.closes = lost, 0, 0

    def end_episode(self) -> None:
        self.ends += 1
        if self.lost:
            raise SandboxLostError("the machine ended it")

    def close(self) -> None:
        self.closes += 1


def test_an_environment_is_used_again_for_its_key_and_closed_at_the_end() -> None:
    with EnvironmentPool[Room]() as pool:
        with pool.borrow(Room, "a") as first, pool.borrow(Room, "a") as second:
            assert first is not second
        with pool.borrow(Room, "a") as again, pool.borrow(Room, "b") as other:
            assert again in (first, second) and other not in (first, second)
        assert [first.ends, second.ends, other.ends] in ([2, 1, 1], [1, 2, 1])
        assert first.closes == second.closes == other.closes == 0
    assert first.closes == second.closes == other.closes == 1


def test_a_failed_environment_is_closed_and_replaced() -> None:
    with EnvironmentPool[Room]() as pool:
        with pytest.raises(ValueError, match="a fault"), pool.borrow(Room) as failed:
            raise ValueError("a fault")
        assert (failed.ends, failed.closes) == (0, 1)
        with pool.borrow(lambda: Room(lost=True)) as lost:
            assert lost is not failed
        assert (lost.ends, lost.closes) == (1, 1)
        with pool.borrow(Room) as new:
            assert new not in (failed, lost)


def test_what_comes_back_after_the_end_is_closed() -> None:
    pool = EnvironmentPool[Room]()
    late = pool.take(Room)
    pool.close()
    pool.give_back(late)
    assert (late.ends, late.closes) == (1, 1)
    pool.close()


class FaultyRoom(Room):
    """An environment with faults of its own code."""

    def end_episode(self) -> None:
        super().end_episode()
        raise RuntimeError("a fault at the end")

    def close(self) -> None:
        super().close()
        if not self.ends:
            raise RuntimeError("a fault of close")


def test_a_fault_at_the_end_of_an_episode_is_raised_and_the_environment_closed() -> None:
    pool = EnvironmentPool[Room]()
    with pytest.raises(RuntimeError, match="a fault at the end"), pool.borrow(FaultyRoom) as faulty:
        pass
    assert faulty.closes == 1
    with pool.borrow(Room) as new:
        assert new is not faulty


def test_a_fault_of_close_does_not_replace_the_one_of_the_use() -> None:
    pool = EnvironmentPool[Room]()
    with pytest.raises(ValueError, match="a fault of the use"), pool.borrow(FaultyRoom) as faulty:
        raise ValueError("a fault of the use")
    assert faulty.closes == 1
