"""The worker of the soak: plays cheap episodes whose reward is known."""

from __future__ import annotations

import random
import signal
from multiprocessing.sharedctypes import SynchronizedArray
from typing import Any

import intercode
from intercode.core.errors import InfrastructureError
from intercode.core.types import Dataset, Task
from intercode.environments.base.env import InterCodeEnv

COUNTED = ("episodes", "rewards checked", "forks", "restores", "time-outs", "sandboxes lost")
_RIGHT, _WRONG = 1.0, 0.288
"""A wrong answer has a file of the right name, in which only the end of the line is right."""
"""By the formula: a wrong action changes the same file, but with other content and output."""
_EMPTY = "/dev/shm:\n\n/tmp:\n\n/var/tmp:\n\n"
_SHORT, _USUAL = 0.05, 10.0  # seconds per action
_KINDS = ("right",) * 46 + ("wrong",) * 46 + ("fork",) * 3 + ("restore",) * 3 + ("late",) * 2
_TASKS = 20


def tasks() -> Dataset:
    """Return tasks that differ in their answer only."""
    rows = [
        Task(f"soak/{n}", f"Write {n} to /tmp/answer and print it.", gold=_answer(n))
        for n in range(_TASKS)
    ]
    return Dataset("soak", "bash", tuple(rows), comparable=False)


def _answer(n: int) -> str:
    return f"echo {n} | tee /tmp/answer"


def play(
    episodes: int,
    seed: int,
    image: str | None,
    recycle: bool,
    done: SynchronizedArray[int],
    over: Any,
    faults: Any,
) -> None:
    """Play this many episodes, or until ``over`` is set."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles it
    rng = random.Random(seed)
    player = Player(image, recycle, done, faults)
    try:
        for number in range(episodes):
            if over.is_set():
                break
            player.episode(rng.choice(_KINDS), number)
    finally:
        player.env.close()


class Player:
    """An environment that is used for many episodes, and what was observed."""

    def __init__(
        self, image: str | None, recycle: bool, done: SynchronizedArray[int], faults: Any
    ) -> None:
        self._image, self._recycle, self._done, self._faults = image, recycle, done, faults
        self.env = self._make()

    def _make(self) -> InterCodeEnv:
        return intercode.make("bash", dataset=tasks(), image=self._image, recycle=self._recycle)

    def episode(self, kind: str, number: int) -> None:
        """Play one episode of a kind, and report everything that is wrong."""
        task = number % _TASKS
        try:
            self.env.reset(options={"task": task})
            seen = self.env.step("ls -A /tmp /var/tmp /dev/shm; echo $left; left=over")[0]
            self._expect(seen, _EMPTY, f"{kind}: the sandbox at its beginning")
            getattr(self, f"_{kind}")(task)
        except InfrastructureError as e:
            self._count("sandboxes lost")
            self._faults.put(f"{kind}: {type(e).__name__}: {e}")
            self.env.close()
            self.env = self._make()
        self._count("episodes")

    def _right(self, task: int) -> None:
        self.env.step(_answer(task))
        self._reward(self.env, _RIGHT, "right")

    def _wrong(self, task: int) -> None:
        self.env.step(_answer(task + 100))
        self._reward(self.env, _WRONG, "wrong")

    def _fork(self, task: int) -> None:
        self.env.step("kept=yes")
        with self.env.fork(1)[0] as copy:
            self.env.step(_answer(task + 100))
            self._expect(copy.step("echo $kept")[0], "yes\n", "fork: a variable")
            copy.step(_answer(task))
            self._reward(copy, _RIGHT, "fork: the copy")
        self._reward(self.env, _WRONG, "fork: the parent")
        self._count("forks")

    def _restore(self, task: int) -> None:
        self.env.step(_answer(task))
        with self.env.snapshot() as snapshot:
            self.env.step("rm /tmp/answer; echo gone")
            self.env.restore(snapshot)
        self._reward(self.env, _RIGHT, "restore")
        self._count("restores")

    def _late(self, task: int) -> None:
        self.env.timeout = _SHORT
        late = self.env.step("echo 1 > /tmp/answer; sleep 600 & sleep 600; echo 2 > /tmp/answer")
        self.env.timeout = _USUAL
        self._expect(late[4]["timed_out"], True, "late: timed_out")
        self._right(task)
        self._count("time-outs")

    def _reward(self, env: InterCodeEnv, right: float, what: str) -> None:
        self._expect(env.submit()[1], right, f"{what}: the reward")
        self._count("rewards checked")

    def _expect(self, seen: object, right: object, what: str) -> None:
        if seen != right:
            self._faults.put(f"{what} is {seen!r} and not {right!r}")

    def _count(self, name: str) -> None:
        self._done[COUNTED.index(name)] += 1
