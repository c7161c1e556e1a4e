"""The driver's side of the nodes: which there are, which can be used, and who has room."""

from __future__ import annotations

import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Self

from intercode.core.errors import (
    EnvironmentStateError,
    InfrastructureError,
    SandboxLostError,
    SandboxUnavailableError,
)
from intercode.evaluation.ray.env_host import Host, Ready
from intercode.evaluation.ray.environment_spec import Kit
from intercode.evaluation.ray.host_handle import Seat
from intercode.evaluation.ray.transfer import send

CORES = 4
"""Processors of a node for each process that holds environments: what one interpreter keeps busy
with the processes of its boxes."""
PATIENCE = 30.0
"""Seconds that an episode waits for a node to come while there is none."""
_LOOK = 1.0  # seconds between two looks at the cluster
_TRIES = 3  # processes that may be lost while they start on one node
_END = 5.0  # seconds for the processes to free what they have


class Hosts:
    """A host process for every few processors of each node, those of nodes that come later too.

    ``live``: the episodes that there may be at once. A node that differs in what results have to
    name (its image's digest, its architecture, how it isolates, this package's version) is left
    out, which ``say`` is told. Used by many threads; end it with ``close``.
    """

    def __init__(
        self, kit: Kit, ray: Any, live: int, say: Callable[[str], None] | None = None
    ) -> None:
        self.kit, self.refused = kit, dict[str, str]()
        self._ray, self._live, self._say = ray, live, say or _warn
        self._kit = ray.put(kit)
        self._actor = ray.remote(concurrency_groups={"control": 2, "pulse": 1})(Host)
        self._seats: list[Seat] = []
        self._opening: set[str] = set()
        self._starting: set[Seat] = set()
        self._lost: Counter[str] = Counter()
        self._nodes = 0
        self._change, self._closed = threading.Condition(), threading.Event()
        self._threads = [threading.Thread(target=self._look, name="ray-nodes", daemon=True)]
        self._threads[0].start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------- who has room
    def pick(self, before: Seat | None = None) -> Seat:
        """The host with the fewest episodes for its processors, which then has one more; ``before``
        where that is as good, with as many as it had. Waits while all are full.

        Raises SandboxUnavailableError where no node can be used, saying why.
        """
        end = time.monotonic() + PATIENCE
        with self._change:
            while True:
                if self._closed.is_set():
                    raise EnvironmentStateError("the nodes were given back: the run is over")
                seats = [s for s in self._seats if not s.gone]
                free = [s for s in seats if not s.full or s is before]
                if free:
                    return _taken(min(free, key=lambda s: _after(s, before)), before)
                if not seats and not self._opening and self._hopeless(end):
                    raise SandboxUnavailableError(self._why())
                self._change.wait(_LOOK)

    def take(self, seat: Seat) -> Seat:
        """A place on a certain host, though it may be full."""
        with self._change:
            seat.live += 1
        return seat

    def leave(self, seat: Seat) -> None:
        """Give a place back."""
        with self._change:
            seat.live -= 1
            self._change.notify_all()

    def spread(self) -> dict[str, int]:
        """Live episodes by node, of those that can be used."""
        with self._change:
            found: Counter[str] = Counter()
            for seat in self._seats:
                if not seat.gone:
                    found[seat.node] += seat.live
            return dict(found)

    def close(self) -> None:
        """End every environment and every process. May be called again."""
        if self._closed.is_set():
            return
        self._closed.set()
        with self._change:
            self._change.notify_all()
            seats = [s for s in self._seats if not s.gone]
            starting, self._starting = self._starting, set()
        ended = [s.actor.close.options(concurrency_group="control").remote() for s in seats]
        with suppress(Exception):  # they are ended in any case
            self._ray.wait(ended, num_returns=len(ended), timeout=_END)
        for seat in (*self._seats, *starting):
            seat.kill()
        for thread in self._threads:  # what asks Ray after the end would connect to it again
            thread.join(_END)

    # ------------------------------------------------------------- which there are
    def _look(self) -> None:
        """Follow nodes as they come and go."""
        while not self._closed.is_set():
            with suppress(Exception):  # the cluster's head does not answer now
                self._compare([n for n in self._ray.nodes() if n["Alive"]])
            self._closed.wait(_LOOK)

    def _compare(self, nodes: list[dict[str, Any]]) -> None:
        usable = {n["NodeID"]: n for n in nodes if n.get("Resources", {}).get("CPU")}
        with self._change:
            seats = [*self._seats, *self._starting]
        for seat in seats:
            seat.listen()
        with self._change:
            self._nodes = len(usable)
            for seat in self._seats:
                seat.gone = seat.gone or seat.node not in usable
            gone = [s for s in self._seats if s.gone]
            self._seats = [s for s in self._seats if not s.gone]
            there = Counter(s.node for s in self._seats)
            idle = usable.keys() - self._opening - self.refused.keys()
            new = [n for i, n in usable.items() if i in idle and there[i] < self._count(n)]
            self._opening |= {n["NodeID"] for n in new}
            self._change.notify_all()
        for seat in gone:
            seat.kill()  # it may only have been out of reach, or hang
        for node in new:
            work = (node, self._count(node) - there[node["NodeID"]])
            thread = threading.Thread(target=self._open, args=work, name="ray-node", daemon=True)
            self._threads = [t for t in self._threads if t.is_alive()] + [thread]
            thread.start()

    def _count(self, node: Mapping[str, Any]) -> int:
        """The processes that a node is to have."""
        return min(max(1, int(node["Resources"]["CPU"]) // CORES), self._live)

    def _open(self, node: dict[str, Any], missing: int) -> None:
        """Start processes on a node; what cannot be used is refused, what was lost is tried again
        at the next look."""
        try:
            for _ in range(missing):
                seat = self._start(node, node["Resources"]["CPU"] / self._count(node))
                with self._change:
                    self._seats.append(seat)
                    self._change.notify_all()
        except SandboxUnavailableError as e:
            self._refuse(node, str(e))
        except InfrastructureError as e:
            self._lost[node["NodeID"]] += 1
            if self._lost[node["NodeID"]] >= _TRIES:
                self._refuse(node, str(e))
        except Exception as e:  # what making an environment there raises: code of others, too
            self._refuse(node, f"{type(e).__name__}: {e}")
        finally:
            with self._change:
                self._opening.discard(node["NodeID"])
                self._change.notify_all()

    def _start(self, node: dict[str, Any], share: float) -> Seat:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        actor = self._actor.options(
            num_cpus=0, max_concurrency=max(2, self._live), max_restarts=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
        ).remote(self._kit)  # fmt: skip
        seat = Seat(self._ray, actor, node, share)
        with self._change:
            self._starting.add(seat)
        try:
            if self._closed.is_set():
                raise SandboxLostError("the run is over")
            self._furnish(seat)
            ready: Ready = seat.ask("ready")
            if differ := _differences(self.kit, ready):
                raise SandboxUnavailableError(differ)
        except BaseException:
            seat.kill()
            raise
        finally:
            with self._change:
                self._starting.discard(seat)
        seat.most = ready.most
        return seat

    def _furnish(self, seat: Seat) -> None:
        """Send what the node lacks, a piece at a time."""
        for number in seat.ask("lacks"):

            def give(piece: bytes, number: int = number) -> None:
                seat.ask("take", number, piece)

            told = send(self.kit.parcels[number], give)
            seat.ask("settle", number, *told)

    def _refuse(self, node: dict[str, Any], why: str) -> None:
        with self._change:
            if self._closed.is_set():
                return
            self.refused[node["NodeID"]] = f"{node['NodeManagerHostname']}: {why}"
        self._say(f"the node {node['NodeManagerHostname']} is left out: {why}")

    def _hopeless(self, end: float) -> bool:
        known = self._nodes > 0 and len(self.refused) >= self._nodes
        return known or time.monotonic() > end

    def _why(self) -> str:
        told = "; ".join(self.refused.values()) or "the cluster has none with processors"
        return f"no node can be used: {told}"


def _after(seat: Seat, before: Seat | None) -> tuple[float, bool]:
    """How loaded a host would be with the episode; of equals the one that has it already."""
    return (seat.live + (seat is not before)) / seat.share, seat is not before


def _taken(seat: Seat, before: Seat | None) -> Seat:
    seat.live += seat is not before
    return seat


def _differences(kit: Kit, ready: Ready) -> str:
    """In what a node differs from the driver, in words; empty where it does not."""
    here: dict[str, Any] = {**kit.facts, "version": kit.version}
    there: dict[str, Any] = {**ready.facts, "version": ready.version}
    names = [name for name in here if here[name] != there.get(name)]
    return "; ".join(f"its {n} is {there.get(n)!r}, here {here[n]!r}" for n in names)


def _warn(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=2)
