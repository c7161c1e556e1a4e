"""A Ray cluster on this machine: a head without processors, and nodes with their own caches."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from support import traces

_STORE = 80 << 20  # bytes of each node's object store, about the minimum of Ray
_GONE = 60.0  # seconds within which Ray has to notice a lost node


class Raylets:
    """A cluster on this machine. Each node is a raylet with its worker processes."""

    def __init__(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="raylets-"))
        self.home.chmod(0o755)
        (self.home / "ray").mkdir()
        os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_TMPDIR": str(self.home)}
        from ray.cluster_utils import Cluster

        self._temp = {"temp_dir": str(self.home / "ray"), "include_dashboard": False}
        with _slow_time():
            self.cluster: Any = Cluster(
                initialize_head=True,
                shutdown_at_exit=False,
                head_node_args={"num_cpus": 0, "object_store_memory": _STORE, **self._temp},
            )
        self.address = str(self.cluster.address)
        self.nodes: list[Any] = []
        head = self.cluster.head_node
        self._leashes = {head: _leash(head)}

    def add(self, cpus: int = 1) -> Any:
        """Start another node."""
        cache = self.home / f"cache-{len(self.nodes)}"
        with _slow_time():
            node = self.cluster.add_node(
                num_cpus=cpus,
                object_store_memory=_STORE,
                env_vars={"INTERCODE_CACHE": str(cache)},
                **self._temp,
            )
        self.nodes.append(node)
        self._leashes[node] = _leash(node)
        return node

    def cache(self, node: Any) -> Path:
        """Return the cache of a node."""
        return self.home / f"cache-{self.nodes.index(node)}"

    def workers(self, node: Any) -> list[int]:
        """Return the processes of a node that hold environments."""
        raylet = self._raylet(node)
        return [pid for pid in _children(raylet) if traces.family(pid).launchers]

    def sandboxes(self, node: Any) -> int:
        """Return the number of sandboxes of a node."""
        return sum(len(traces.family(pid).sandboxes) for pid in self.workers(node))

    def families(self) -> list[traces.Family]:
        """Return the processes of all nodes that own sandboxes."""
        live = [node for node in self.nodes if node in self.cluster.worker_nodes]
        return [traces.family(pid) for node in live for pid in self.workers(node)]

    def kill(self, node: Any) -> None:
        """End a node and all its processes by SIGKILL."""
        self._free(node)
        raylet = self._raylet(node)
        for pid in [raylet, *_children(raylet)]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.cluster.worker_nodes.discard(node)
        node.kill_all_processes(check_alive=False, allow_graceful=False, wait=True)

    def close(self) -> None:
        """End all nodes."""
        import ray

        ray.shutdown()
        for node in list(self._leashes):
            self._free(node)
        self.cluster.shutdown()
        shutil.rmtree(self.home, ignore_errors=True)

    def _free(self, node: Any) -> None:
        leash = self._leashes.pop(node)
        leash.kill()
        leash.communicate()

    @staticmethod
    def _raylet(node: Any) -> int:
        return int(node.all_processes["raylet"][0].process.pid)


def left_of(families: list[traces.Family], seconds: float = _GONE) -> list[traces.Alive]:
    """Return what still runs of these sandboxes after some time."""
    end = time.monotonic() + seconds
    while True:
        found = [p for family in families for p in traces.living(family.sandboxes)]
        if not found or time.monotonic() > end:
            return found
        time.sleep(0.05)


@contextmanager
def _slow_time() -> Iterator[None]:
    """Give a node that starts four minutes, of which Ray gives it an eighth."""
    slow = SimpleNamespace(**vars(time) | {"monotonic": lambda: time.monotonic() / 8})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ray._private.node.time", slow)
        yield


def _leash(node: Any) -> subprocess.Popen[bytes]:
    """Return a process that ends a node's processes when this process is killed."""
    pids = [str(info.process.pid) for infos in node.all_processes.values() for info in infos]
    command = ["sh", "-c", f"read -r _; kill -9 {' '.join(pids)}"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)


def _children(pid: int) -> list[int]:
    """Return the processes that the threads of a process have started and that are left."""
    found = list[int]()
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # the thread has ended
            found += map(int, children.read_text().split())
    return found
