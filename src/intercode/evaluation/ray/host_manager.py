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
from intercode.evaluation.ray.env_host import EnvHost, HostInfo
from intercode.evaluation.ray.environment_spec import EnvironmentSpec
from intercode.evaluation.ray.host_handle import HostHandle
from intercode.evaluation.ray.transfer import send_artifact

CORES_PER_HOST = 4
"""Processors of a node for each process that holds environments: what one interpreter keeps busy
with the processes of its boxes."""
NODE_TIMEOUT = 30.0
"""Seconds that an episode waits for a node to come while there is none."""
_POLL_INTERVAL = 1.0  # seconds between two looks at the cluster
_MAX_STARTS = 3  # processes that may be lost while they start on one node
_CLOSE_TIMEOUT = 5.0  # seconds for the processes to free what they have


class HostManager:
    """A host process for every few processors of each node, those of nodes that come later too.

    ``live``: the episodes that there may be at once. A node that differs in what results have to
    name (its image's digest, its architecture, how it isolates, this package's version) is left
    out, which ``say`` is told. Used by many threads; end it with ``close``.
    """

    def __init__(
        self,
        spec: EnvironmentSpec,
        ray: Any,
        max_episodes: int,
        log: Callable[[str], None] | None = None,
    ) -> None:
        self.spec, self.excluded = spec, dict[str, str]()
        self._ray, self._max_episodes, self._log = ray, max_episodes, log or _warn
        self._spec_ref = ray.put(spec)
        self._actor_class = ray.remote(concurrency_groups={"control": 2, "heartbeat": 1})(EnvHost)
        self._hosts: list[HostHandle] = []
        self._opening_nodes: set[str] = set()
        self._starting_hosts: set[HostHandle] = set()
        self._lost_starts: Counter[str] = Counter()
        self._usable_nodes = 0
        self._change, self._closed = threading.Condition(), threading.Event()
        self._threads = [threading.Thread(target=self._watch_nodes, name="ray-nodes", daemon=True)]
        self._threads[0].start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------- who has room
    def acquire(self, before: HostHandle | None = None) -> HostHandle:
        """The host with the fewest episodes for its processors, which then has one more; ``before``
        where that is as good, with as many as it had. Waits while all are full.

        Raises SandboxUnavailableError where no node can be used, saying why.
        """
        end = time.monotonic() + NODE_TIMEOUT
        with self._change:
            while True:
                if self._closed.is_set():
                    raise EnvironmentStateError("the nodes were given back: the run is over")
                seats = [s for s in self._hosts if not s.lost]
                free = [s for s in seats if not s.full or s is before]
                if free:
                    return _assign(min(free, key=lambda s: _load_after(s, before)), before)
                if not seats and not self._opening_nodes and self._is_hopeless(end):
                    raise SandboxUnavailableError(self._exclusion_reasons())
                self._change.wait(_POLL_INTERVAL)

    def acquire_on(self, seat: HostHandle) -> HostHandle:
        """A place on a certain host, though it may be full."""
        with self._change:
            seat.episodes += 1
        return seat

    def release(self, seat: HostHandle) -> None:
        """Give a place back."""
        with self._change:
            seat.episodes -= 1
            self._change.notify_all()

    def episodes_by_node(self) -> dict[str, int]:
        """Live episodes by node, of those that can be used."""
        with self._change:
            found: Counter[str] = Counter()
            for seat in self._hosts:
                if not seat.lost:
                    found[seat.node] += seat.episodes
            return dict(found)

    def close(self) -> None:
        """End every environment and every process. May be called again."""
        if self._closed.is_set():
            return
        self._closed.set()
        with self._change:
            self._change.notify_all()
            seats = [s for s in self._hosts if not s.lost]
            starting, self._starting_hosts = self._starting_hosts, set()
        ended = [s.actor.close.options(concurrency_group="control").remote() for s in seats]
        with suppress(Exception):  # they are ended in any case
            self._ray.wait(ended, num_returns=len(ended), timeout=_CLOSE_TIMEOUT)
        for seat in (*self._hosts, *starting):
            seat.kill()
        for thread in self._threads:  # what asks Ray after the end would connect to it again
            thread.join(_CLOSE_TIMEOUT)

    # ------------------------------------------------------------- which there are
    def _watch_nodes(self) -> None:
        """Follow nodes as they come and go."""
        while not self._closed.is_set():
            with suppress(Exception):  # the cluster's head does not answer now
                self._update([n for n in self._ray.nodes() if n["Alive"]])
            self._closed.wait(_POLL_INTERVAL)

    def _update(self, nodes: list[dict[str, Any]]) -> None:
        usable = {n["NodeID"]: n for n in nodes if n.get("Resources", {}).get("CPU")}
        with self._change:
            seats = [*self._hosts, *self._starting_hosts]
        for seat in seats:
            seat.check_heartbeat()
        with self._change:
            self._usable_nodes = len(usable)
            for seat in self._hosts:
                seat.lost = seat.lost or seat.node not in usable
            gone = [s for s in self._hosts if s.lost]
            self._hosts = [s for s in self._hosts if not s.lost]
            there = Counter(s.node for s in self._hosts)
            idle = usable.keys() - self._opening_nodes - self.excluded.keys()
            new = [n for i, n in usable.items() if i in idle and there[i] < self._hosts_wanted(n)]
            self._opening_nodes |= {n["NodeID"] for n in new}
            self._change.notify_all()
        for seat in gone:
            seat.kill()  # it may only have been out of reach, or hang
        for node in new:
            work = (node, self._hosts_wanted(node) - there[node["NodeID"]])
            thread = threading.Thread(
                target=self._start_hosts, args=work, name="ray-node", daemon=True
            )
            self._threads = [t for t in self._threads if t.is_alive()] + [thread]
            thread.start()

    def _hosts_wanted(self, node: Mapping[str, Any]) -> int:
        """The processes that a node is to have."""
        return min(max(1, int(node["Resources"]["CPU"]) // CORES_PER_HOST), self._max_episodes)

    def _start_hosts(self, node: dict[str, Any], missing: int) -> None:
        """Start processes on a node; what cannot be used is refused, what was lost is tried again
        at the next look."""
        try:
            for _ in range(missing):
                seat = self._start_host(node, node["Resources"]["CPU"] / self._hosts_wanted(node))
                with self._change:
                    self._hosts.append(seat)
                    self._change.notify_all()
        except SandboxUnavailableError as e:
            self._exclude(node, str(e))
        except InfrastructureError as e:
            self._lost_starts[node["NodeID"]] += 1
            if self._lost_starts[node["NodeID"]] >= _MAX_STARTS:
                self._exclude(node, str(e))
        except Exception as e:  # what making an environment there raises: code of others, too
            self._exclude(node, f"{type(e).__name__}: {e}")
        finally:
            with self._change:
                self._opening_nodes.discard(node["NodeID"])
                self._change.notify_all()

    def _start_host(self, node: dict[str, Any], share: float) -> HostHandle:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        actor = self._actor_class.options(
            num_cpus=0, max_concurrency=max(2, self._max_episodes), max_restarts=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
        ).remote(self._spec_ref)  # fmt: skip
        seat = HostHandle(self._ray, actor, node, share)
        with self._change:
            self._starting_hosts.add(seat)
        try:
            if self._closed.is_set():
                raise SandboxLostError("the run is over")
            self._send_artifacts(seat)
            ready: HostInfo = seat.call("prepare")
            if differ := _differences(self.spec, ready):
                raise SandboxUnavailableError(differ)
        except BaseException:
            seat.kill()
            raise
        finally:
            with self._change:
                self._starting_hosts.discard(seat)
        seat.max_episodes = ready.max_episodes
        return seat

    def _send_artifacts(self, seat: HostHandle) -> None:
        """Send what the node lacks, a piece at a time."""
        for number in seat.call("missing_artifacts"):

            def give(piece: bytes, number: int = number) -> None:
                seat.call("receive", number, piece)

            told = send_artifact(self.spec.artifacts[number], give)
            seat.call("unpack", number, *told)

    def _exclude(self, node: dict[str, Any], why: str) -> None:
        with self._change:
            if self._closed.is_set():
                return
            self.excluded[node["NodeID"]] = f"{node['NodeManagerHostname']}: {why}"
        self._log(f"the node {node['NodeManagerHostname']} is left out: {why}")

    def _is_hopeless(self, end: float) -> bool:
        known = self._usable_nodes > 0 and len(self.excluded) >= self._usable_nodes
        return known or time.monotonic() > end

    def _exclusion_reasons(self) -> str:
        told = "; ".join(self.excluded.values()) or "the cluster has none with processors"
        return f"no node can be used: {told}"


def _load_after(seat: HostHandle, before: HostHandle | None) -> tuple[float, bool]:
    """How loaded a host would be with the episode; of equals the one that has it already."""
    return (seat.episodes + (seat is not before)) / seat.cores, seat is not before


def _assign(seat: HostHandle, before: HostHandle | None) -> HostHandle:
    seat.episodes += seat is not before
    return seat


def _differences(kit: EnvironmentSpec, ready: HostInfo) -> str:
    """In what a node differs from the driver, in words; empty where it does not."""
    here: dict[str, Any] = {**kit.metadata, "version": kit.version}
    there: dict[str, Any] = {**ready.metadata, "version": ready.version}
    names = [name for name in here if here[name] != there.get(name)]
    return "; ".join(f"its {n} is {there.get(n)!r}, here {here[n]!r}" for n in names)


def _warn(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=2)
