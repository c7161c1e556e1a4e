"""Starts host processes on the nodes of a cluster and assigns episodes to them.

This module runs in the driver. A host process that is lost is replaced by the driver, not by Ray's
restarts: to calls of a node that is gone, Ray answers for a while that the actor is starting again,
and the next episodes would be assigned to it and be lost, too.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from intercode.core.errors import (
    EnvironmentStateError,
    InfrastructureError,
    SandboxLostError,
    SandboxUnavailableError,
)
from intercode.environments.ray.env_host import EnvHost, HostInfo
from intercode.environments.ray.node_files import EnvironmentSpec, pack

_LOG = logging.getLogger(__name__)

CORES_PER_HOST = 4
"""CPU cores of a node for each host process: one interpreter and its sandboxes keep them busy."""
NODE_TIMEOUT = 30.0
"""Seconds that an episode waits for a node while there is none."""
HEARTBEAT_TIMEOUT = 60.0
"""Seconds without a heartbeat after which a host process whose answer is due counts as lost."""
START_TIMEOUT = 300.0
"""The same before its first answer, because starting takes longer."""
_POLL_INTERVAL = 1.0  # seconds between two polls of the cluster, or two heartbeats
_MAX_STARTS = 3  # rounds of starts on one node of which a host process may be lost
_CLOSE_TIMEOUT = 5.0  # seconds for the host processes to close their environments, and to end


class HostHandle:
    """A host process, as the driver sees it.

    ``episodes`` counts its live episodes; ``max_episodes`` is how many it may have. ``started`` is
    set when it is ready, and ``lost`` when the process or its node is lost. ``starts``: the
    number of its round of starts on the node, of those in which a process was lost.
    """

    def __init__(
        self, ray: Any, actor: Any, node: Mapping[str, Any], cores: float, starts: int
    ) -> None:
        self.actor, self.node, self.name = actor, node["NodeID"], node["NodeManagerHostname"]
        self.cores, self.episodes, self.started, self.lost = cores, 0, False, False
        self.max_episodes, self.starts, self._ray = math.inf, starts, ray

    def call(self, method: str, *arguments: Any, **named: Any) -> Any:
        """Call a method of the EnvHost and return its result.

        Raises what the method raises, and SandboxLostError if the node or the process is lost.
        """
        errors = self._ray.exceptions
        if self.lost:  # Ray may be shut down by now, and would start again
            raise self._lost_error()
        try:
            answer = getattr(self.actor, method).remote(*arguments, **named)
            self._wait_for(answer)
            return self._ray.get(answer)
        except errors.RayTaskError as e:
            if isinstance(e.cause, Exception) and not isinstance(e.cause, errors.RayError):
                raise e.cause from e
            raise SandboxLostError(f"{method} failed on the node {self.name}: {e}") from e
        except errors.RayError as e:
            self.kill()  # it may be unreachable for a while only
            raise self._lost_error(str(e).strip().partition("\n")[0]) from e

    def send(self, method: str, *arguments: Any) -> Any:
        """Call a method concurrently with others, without waiting for it."""
        if self.lost:
            return None
        group = "heartbeat" if method == "heartbeat" else "control"  # no call may delay it
        return getattr(self.actor, method).options(concurrency_group=group).remote(*arguments)

    def kill(self) -> None:
        """End the process and its sandboxes."""
        self.lost = True
        with suppress(Exception):  # Ray raises if it has ended already
            self._ray.kill(self.actor)

    def end(self) -> Any:
        """Like ``kill``. Returns a reference that is ready once Ray knows of the end."""
        self.kill()
        return self.actor.heartbeat.remote()

    def _wait_for(self, answer: Any) -> None:
        """Wait for an answer. Raises SandboxLostError if a heartbeat is overdue."""
        heartbeat, last = None, time.monotonic()
        while not self._ray.wait([answer], timeout=_POLL_INTERVAL)[0]:
            timeout = HEARTBEAT_TIMEOUT if self.started else START_TIMEOUT
            if heartbeat is None or self._ray.wait([heartbeat], timeout=0)[0]:
                heartbeat, last = self.send("heartbeat"), time.monotonic()
            elif time.monotonic() - last > timeout:
                self.kill()
                raise self._lost_error(f"no heartbeat for {timeout:g} s")

    def _lost_error(self, reason: str = "") -> SandboxLostError:
        message = f"the node {self.name} was lost with its sandboxes"
        return SandboxLostError(f"{message} ({reason})" if reason else message)


class HostManager:
    """Runs a host process for every few CPU cores of each node, also of nodes that join later.

    At most ``max_episodes`` episodes are live at once. A node is excluded if results on it would
    have other metadata (image digest, architecture, isolation tier, package version), and the
    reason is logged. May be used by many threads. End it with ``close``.
    """

    def __init__(self, spec: EnvironmentSpec, ray: Any, max_episodes: int) -> None:
        self.spec, self.excluded = spec, dict[str, str]()
        self._ray, self._max_episodes = ray, max_episodes
        self._spec_ref = ray.put(spec)
        self._actor_class = ray.remote(
            num_cpus=0,
            max_restarts=0,
            max_concurrency=max(2, max_episodes),
            concurrency_groups={"control": 2, "heartbeat": 1},
        )(EnvHost)
        self._nodes: dict[str, dict[str, Any]] = {}
        self._next_poll = -math.inf
        self._hosts: list[HostHandle] = []  # those that start, too
        self._lost: list[HostHandle] = []
        self._threads: list[threading.Thread] = []  # each has started a process
        self._lost_starts: Counter[str] = Counter()
        self._archives: dict[int, tuple[Any, ...]] = {}
        self._change, self._packing, self._closed = threading.Condition(), threading.Lock(), False
        with self._change:
            self._find_nodes()

    # ------------------------------------------------------------- episodes
    def acquire(self, host: HostHandle | None = None) -> HostHandle:
        """Assign an episode to a host, and return it: this one even if it is full, else the one
        with the lowest load per core.

        Waits while all hosts are full. Raises SandboxUnavailableError with the reasons if no node
        can be used.
        """
        end = time.monotonic() + NODE_TIMEOUT
        with self._change:
            while host is None:
                if self._closed:
                    raise EnvironmentStateError("the run is over, and its nodes are released")
                self._find_nodes()
                started = [h for h in self._hosts if h.started and not h.lost]
                free = [h for h in started if h.episodes < h.max_episodes]
                host = min(free, key=lambda h: (h.episodes + 1) / h.cores, default=None)
                if host is None:
                    excluded = self._nodes and self._nodes.keys() <= self.excluded.keys()
                    if not self._hosts and (excluded or time.monotonic() > end):
                        reasons = "; ".join(self.excluded.values())
                        reasons = reasons or "the cluster has no node with CPU cores"
                        raise SandboxUnavailableError(f"no node can be used: {reasons}")
                    self._change.wait(_POLL_INTERVAL)
            host.episodes += 1
        return host

    def release(self, host: HostHandle) -> None:
        """Remove an episode from a host."""
        with self._change:
            host.episodes -= 1
            self._change.notify_all()

    def close(self) -> None:
        """Close every environment and end every process. May be called again."""
        with self._change:
            if self._closed:
                return
            self._closed = True
            self._change.notify_all()
            hosts = [*self._lost, *self._hosts]
        if not self._ray.is_initialized():  # a call after its shutdown would connect again
            return
        self._wait_for(host.send("close") for host in hosts if host.started and not host.lost)
        # At its shutdown, Ray frees what its threads use while they are told of an end.
        self._wait_for(host.end() for host in hosts)
        end = time.monotonic() + _CLOSE_TIMEOUT
        for thread in self._threads:
            thread.join(max(0, end - time.monotonic()))

    def _wait_for(self, answers: Iterable[Any]) -> None:
        with suppress(Exception):  # what does not answer is lost
            due = [answer for answer in answers if answer is not None]
            self._ray.wait(due, num_returns=len(due), timeout=_CLOSE_TIMEOUT)

    # ------------------------------------------------------------- nodes
    def _find_nodes(self) -> None:
        """Drop the hosts of lost nodes, and start hosts on new ones. The caller has the lock."""
        if time.monotonic() < self._next_poll:
            return
        self._next_poll = time.monotonic() + _POLL_INTERVAL
        with suppress(Exception):  # the head of the cluster does not answer now
            nodes = [n for n in self._ray.nodes() if n["Alive"] and n["Resources"].get("CPU")]
            self._nodes = {n["NodeID"]: n for n in nodes}
        for host in self._hosts:
            if host.node not in self._nodes:
                host.kill()  # it may be unreachable for a while only
        self._drop_lost()
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        if all(h.started for h in self._hosts):
            self._archives.clear()  # Ray removes from its store what nothing refers to
        running = Counter(h.node for h in self._hosts)
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        for key in self._nodes.keys() - self.excluded.keys():
            cores = self._nodes[key]["Resources"]["CPU"]
            wanted = min(max(1, int(cores) // CORES_PER_HOST), self._max_episodes)
            starts = self._lost_starts[key] + 1
            place = NodeAffinitySchedulingStrategy(key, soft=False)
            for _ in range(running[key], wanted):
                actor = self._actor_class.options(scheduling_strategy=place).remote(self._spec_ref)
                host = HostHandle(self._ray, actor, self._nodes[key], cores / wanted, starts)
                self._hosts.append(host)
                thread = threading.Thread(
                    target=self._start, args=(host,), name="ray-host", daemon=True
                )
                self._threads.append(thread)
                thread.start()

    def _drop_lost(self) -> None:
        """Set lost hosts apart: they get no more episodes, and ``close`` waits until Ray knows of
        their end. The caller has the lock."""
        self._lost += [host for host in self._hosts if host.lost]
        self._hosts = [host for host in self._hosts if not host.lost]

    def _start(self, host: HostHandle) -> None:
        """Send a host what its node lacks, and let it make an environment. Excludes the node if
        that fails, or if its hosts are lost often."""
        reason, lost = "", False
        try:
            if missing := host.call("missing_artifacts"):
                host.call("receive", {n: self._archive(n) for n in missing})
            info: HostInfo = host.call("prepare")
            if differences := _differences(self.spec, info):
                raise SandboxUnavailableError(differences)
            host.max_episodes, host.started = info.max_episodes or math.inf, True
        except Exception as e:  # making an environment may run code of users
            host.kill()
            known = isinstance(e, InfrastructureError)
            reason = str(e) if known else f"{type(e).__name__}: {e}"
            lost = known and not isinstance(e, SandboxUnavailableError)
        with self._change:
            if lost:  # a cause that ends many processes of a round counts once
                self._lost_starts[host.node] = max(self._lost_starts[host.node], host.starts)
                reason *= host.starts >= _MAX_STARTS
            self._drop_lost()
            if reason and not self._closed and host.node not in self.excluded:
                self.excluded[host.node] = f"{host.name}: {reason}"
                _LOG.warning("the node %s is excluded: %s", host.name, reason)
            self._change.notify_all()

    def _archive(self, number: int) -> tuple[Any, ...]:
        """Put an artifact into Ray's object store, once for all nodes, and return what
        ``EnvHost.receive`` takes."""
        with self._packing:
            archive = self._archives.get(number)  # once: _find_nodes may clear them meanwhile
            if archive is None:
                archive = pack(self.spec.artifacts[number], self._ray.put)
                self._archives[number] = archive
            return archive


def _differences(spec: EnvironmentSpec, info: HostInfo) -> str:
    """Describe how the metadata of a node differs from the driver's. Empty if it does not."""
    driver: dict[str, Any] = {**spec.metadata, "version": spec.version}
    node: dict[str, Any] = {**info.metadata, "version": info.version}
    names = [name for name in driver if driver[name] != node.get(name)]
    return "; ".join(f"its {n} is {node.get(n)!r}, here {driver[n]!r}" for n in names)
