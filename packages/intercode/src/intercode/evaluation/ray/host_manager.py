"""Starts host processes on the nodes of a cluster and assigns episodes to them.

This module runs in the driver.
"""

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
from intercode.evaluation.ray.transfer import send_artifact

CORES_PER_HOST = 4
"""CPU cores of a node for each host process: one interpreter and its sandboxes keep them busy."""
NODE_TIMEOUT = 30.0
"""Seconds that an episode waits for a node while there is none."""
HEARTBEAT_TIMEOUT = 60.0
"""Seconds without an answer after which a host process counts as lost."""
START_TIMEOUT = 300.0
"""The same before its first answer, because starting takes longer."""
_POLL_INTERVAL = 1.0  # seconds between two polls of the cluster, or of a pending answer
_MAX_STARTS = 3  # host processes that may be lost at start on one node
_CLOSE_TIMEOUT = 5.0  # seconds for the host processes to close their environments


class HostHandle:
    """A host process, as the driver sees it.

    ``episodes`` counts its live episodes; ``max_episodes`` is how many it may have (None: any
    number). ``lost`` is set when the process or its node is lost.
    """

    def __init__(self, ray: Any, actor: Any, node: Mapping[str, Any], share: float) -> None:
        self.actor, self.node, self.name = actor, node["NodeID"], node["NodeManagerHostname"]
        self.cores, self.episodes, self.lost = share, 0, False
        self.max_episodes: int | None = None
        self._ray = ray
        self._heartbeat: Any = None
        self._last_answer, self._answered, self._reason = 0.0, False, ""

    @property
    def full(self) -> bool:
        """Whether it can take no more episodes."""
        return self.max_episodes is not None and self.episodes >= self.max_episodes

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the EnvHost and return its result.

        Raises what the method raises, and SandboxLostError if the node or the process is lost.
        """
        errors = self._ray.exceptions
        if self.lost:  # Ray may be shut down by now, and would start again
            raise self._lost_error()
        answer = getattr(self.actor, method).remote(*arguments)
        try:
            while True:
                try:
                    result = self._ray.get(answer, timeout=_POLL_INTERVAL)
                    self._answered, self._last_answer = True, time.monotonic()
                    return result
                except errors.GetTimeoutError:
                    if self.lost:
                        raise self._lost_error() from None
        except errors.RayTaskError as e:
            if isinstance(e.cause, Exception) and not isinstance(e.cause, errors.RayError):
                raise e.cause from e
            raise SandboxLostError(f"{method} failed on the node {self.name}: {e}") from e
        except errors.RayError as e:
            self.lost = True
            raise self._lost_error(str(e).strip().partition("\n")[0]) from e

    def send(self, method: str, *arguments: Any) -> None:
        """Call a method concurrently with others, without waiting for it."""
        if self.lost:
            return
        getattr(self.actor, method).options(concurrency_group="control").remote(*arguments)

    def check_heartbeat(self) -> None:
        """Send a heartbeat request or check its answer. Sets ``lost`` if the answer is overdue.

        One thread has to call this regularly.
        """
        now = time.monotonic()
        arrived = self._heartbeat is not None and bool(
            self._ray.wait([self._heartbeat], timeout=0)[0]
        )
        self._answered = self._answered or arrived
        timeout = HEARTBEAT_TIMEOUT if self._answered else START_TIMEOUT
        if arrived or self._heartbeat is None:
            self._heartbeat = self.actor.heartbeat.options(concurrency_group="heartbeat").remote()
            self._last_answer = now
        elif now - self._last_answer > timeout:
            self.lost, self._reason = True, f"no heartbeat for {timeout:g} s"

    def kill(self) -> None:
        """Kill the process and its sandboxes."""
        self.lost = True
        with suppress(Exception):  # Ray raises if it has ended already
            self._ray.kill(self.actor)

    def _lost_error(self, reason: str = "") -> SandboxLostError:
        reason = self._reason or reason
        message = f"the node {self.name} was lost with its sandboxes"
        return SandboxLostError(f"{message} ({reason})" if reason else message)


class HostManager:
    """Runs a host process for every few CPU cores of each node, also of nodes that join later.

    At most ``max_episodes`` episodes are live at once. A node is excluded if results on it would
    have other metadata (image digest, architecture, isolation tier, package version); ``log`` is
    called with the reason. May be used by many threads. End it with ``close``.
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

    # ------------------------------------------------------------- episodes
    def acquire(self, before: HostHandle | None = None) -> HostHandle:
        """Assign an episode to the host with the lowest load per core, and return the host.

        ``before`` is the host that the episode had: it is preferred at equal load, and its count
        does not change. Waits while all hosts are full. Raises SandboxUnavailableError with the
        reasons if no node can be used.
        """
        end = time.monotonic() + NODE_TIMEOUT
        with self._change:
            while True:
                if self._closed.is_set():
                    raise EnvironmentStateError("the run is over, and its nodes are released")
                hosts = [s for s in self._hosts if not s.lost]
                free = [s for s in hosts if not s.full or s is before]
                if free:
                    return _assign(min(free, key=lambda s: _load_after(s, before)), before)
                if not hosts and not self._opening_nodes and self._is_hopeless(end):
                    raise SandboxUnavailableError(self._exclusion_reasons())
                self._change.wait(_POLL_INTERVAL)

    def acquire_on(self, host: HostHandle) -> HostHandle:
        """Assign an episode to this host, even if it is full."""
        with self._change:
            host.episodes += 1
        return host

    def release(self, host: HostHandle) -> None:
        """Remove an episode from a host."""
        with self._change:
            host.episodes -= 1
            self._change.notify_all()

    def episodes_by_node(self) -> dict[str, int]:
        """Return the number of live episodes of each usable node."""
        with self._change:
            counts: Counter[str] = Counter()
            for host in self._hosts:
                if not host.lost:
                    counts[host.node] += host.episodes
            return dict(counts)

    def close(self) -> None:
        """Close every environment and end every process. May be called again."""
        if self._closed.is_set():
            return
        self._closed.set()
        with self._change:
            self._change.notify_all()
            hosts = [s for s in self._hosts if not s.lost]
            starting, self._starting_hosts = self._starting_hosts, set()
        ended = [s.actor.close.options(concurrency_group="control").remote() for s in hosts]
        with suppress(Exception):  # they are killed in any case
            self._ray.wait(ended, num_returns=len(ended), timeout=_CLOSE_TIMEOUT)
        for host in (*self._hosts, *starting):
            host.kill()
        for thread in self._threads:  # a call of Ray after its shutdown would connect again
            thread.join(_CLOSE_TIMEOUT)

    # ------------------------------------------------------------- nodes
    def _watch_nodes(self) -> None:
        """Poll the nodes of the cluster until ``close``."""
        while not self._closed.is_set():
            with suppress(Exception):  # the head of the cluster does not answer now
                self._update([n for n in self._ray.nodes() if n["Alive"]])
            self._closed.wait(_POLL_INTERVAL)

    def _update(self, nodes: list[dict[str, Any]]) -> None:
        """Drop lost hosts and start hosts on new nodes."""
        usable = {n["NodeID"]: n for n in nodes if n.get("Resources", {}).get("CPU")}
        with self._change:
            hosts = [*self._hosts, *self._starting_hosts]
        for host in hosts:
            host.check_heartbeat()
        with self._change:
            self._usable_nodes = len(usable)
            for host in self._hosts:
                host.lost = host.lost or host.node not in usable
            lost = [s for s in self._hosts if s.lost]
            self._hosts = [s for s in self._hosts if not s.lost]
            running = Counter(s.node for s in self._hosts)
            idle = usable.keys() - self._opening_nodes - self.excluded.keys()
            new = [n for i, n in usable.items() if i in idle and running[i] < self._hosts_wanted(n)]
            self._opening_nodes |= {n["NodeID"] for n in new}
            self._change.notify_all()
        for host in lost:
            host.kill()  # it may hang, or be unreachable for a while only
        for node in new:
            work = (node, self._hosts_wanted(node) - running[node["NodeID"]])
            thread = threading.Thread(
                target=self._start_hosts, args=work, name="ray-node", daemon=True
            )
            self._threads = [t for t in self._threads if t.is_alive()] + [thread]
            thread.start()

    def _hosts_wanted(self, node: Mapping[str, Any]) -> int:
        """Return how many host processes a node should have."""
        return min(max(1, int(node["Resources"]["CPU"]) // CORES_PER_HOST), self._max_episodes)

    def _start_hosts(self, node: dict[str, Any], missing: int) -> None:
        """Start host processes on a node. Excludes a node on which they fail or are lost often.

        A process that is lost at start is started again after the next poll.
        """
        try:
            for _ in range(missing):
                host = self._start_host(node, node["Resources"]["CPU"] / self._hosts_wanted(node))
                with self._change:
                    self._hosts.append(host)
                    self._change.notify_all()
        except SandboxUnavailableError as e:
            self._exclude(node, str(e))
        except InfrastructureError as e:
            self._lost_starts[node["NodeID"]] += 1
            if self._lost_starts[node["NodeID"]] >= _MAX_STARTS:
                self._exclude(node, str(e))
        except Exception as e:  # making an environment may run code of users
            self._exclude(node, f"{type(e).__name__}: {e}")
        finally:
            with self._change:
                self._opening_nodes.discard(node["NodeID"])
                self._change.notify_all()

    def _start_host(self, node: dict[str, Any], share: float) -> HostHandle:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        actor = self._actor_class.options(
            num_cpus=0,
            max_concurrency=max(2, self._max_episodes),
            max_restarts=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
        ).remote(self._spec_ref)
        host = HostHandle(self._ray, actor, node, share)
        with self._change:
            self._starting_hosts.add(host)
        try:
            if self._closed.is_set():
                raise SandboxLostError("the run is over")
            self._send_artifacts(host)
            info: HostInfo = host.call("prepare")
            if differences := _differences(self.spec, info):
                raise SandboxUnavailableError(differences)
        except BaseException:
            host.kill()
            raise
        finally:
            with self._change:
                self._starting_hosts.discard(host)
        host.max_episodes = info.max_episodes
        return host

    def _send_artifacts(self, host: HostHandle) -> None:
        """Send the artifacts that the node lacks, in chunks."""
        for number in host.call("missing_artifacts"):

            def send(chunk: bytes, number: int = number) -> None:
                host.call("receive", number, chunk)

            archive = send_artifact(self.spec.artifacts[number], send)
            host.call("unpack", number, *archive)

    def _exclude(self, node: dict[str, Any], reason: str) -> None:
        with self._change:
            if self._closed.is_set():
                return
            self.excluded[node["NodeID"]] = f"{node['NodeManagerHostname']}: {reason}"
        self._log(f"the node {node['NodeManagerHostname']} is excluded: {reason}")

    def _is_hopeless(self, end: float) -> bool:
        all_excluded = self._usable_nodes > 0 and len(self.excluded) >= self._usable_nodes
        return all_excluded or time.monotonic() > end

    def _exclusion_reasons(self) -> str:
        reasons = "; ".join(self.excluded.values()) or "the cluster has no node with CPU cores"
        return f"no node can be used: {reasons}"


def _load_after(host: HostHandle, before: HostHandle | None) -> tuple[float, bool]:
    """Return the load of a host with the episode; at equal load, ``before`` sorts first."""
    return (host.episodes + (host is not before)) / host.cores, host is not before


def _assign(host: HostHandle, before: HostHandle | None) -> HostHandle:
    host.episodes += host is not before
    return host


def _differences(spec: EnvironmentSpec, info: HostInfo) -> str:
    """Describe how the metadata of a node differs from the driver's. Empty if it does not."""
    driver: dict[str, Any] = {**spec.metadata, "version": spec.version}
    node: dict[str, Any] = {**info.metadata, "version": info.version}
    names = [name for name in driver if driver[name] != node.get(name)]
    return "; ".join(f"its {n} is {node.get(n)!r}, here {driver[n]!r}" for n in names)


def _warn(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=2)
