"""Runs over real nodes, as docs/ray.md starts them: raylets of this machine, one of which is killed
in the middle."""

from __future__ import annotations

import errno
import math
import os
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import intercode
from intercode.core import trajectories
from intercode.core.config import EvalConfig
from intercode.core.errors import (
    BudgetError,
    EnvironmentStateError,
    SandboxLostError,
    SandboxUnavailableError,
    UsageError,
)
from intercode.core.types import Trajectory, to_jsonable
from intercode.environments.ray import host_manager
from intercode.environments.ray.cluster import connect
from intercode.environments.ray.host_manager import HostManager
from intercode.environments.ray.node_env import NodeEnv
from intercode.environments.ray.node_files import EnvironmentSpec, make_environment_spec
from intercode.evaluation.evaluate.plan import make_plan
from intercode.evaluation.evaluate.run import evaluate
from support import traces
from support.faulty_endpoint import FaultyEndpoint, ok
from support.raylets import Raylets, left_of
from support.sandboxes import eventually

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]
Reader = Callable[[Path], list[Trajectory]]


def reported(episodes: list[Trajectory]) -> dict[tuple[str, int], Any]:
    """Return episodes by their keys, without values that differ between any two runs."""
    found = {}
    for t in episodes:
        run = {k: v for k, v in t.run.items() if k != "attempts"}
        steps = tuple(replace(step, seconds=None) for step in t.steps)
        plain = t.replace(id="", seconds=None, started=None, run=run, steps=steps)
        found[t.task, t.epoch] = to_jsonable(plain)
    return found


def lines(out: Path) -> int:
    file = out / trajectories.TRAJECTORIES_FILE
    return file.read_bytes().count(b"\n") if file.exists() else 0


def test_a_node_is_killed_in_the_middle_and_every_episode_counts_once(
    raylets: Raylets, tmp_path: Path, episodes_of: Reader
) -> None:
    config = EvalConfig("starter", "gold", epochs=3, seed=7, parallel=8)
    alone = evaluate(replace(config, out=tmp_path / "alone", parallel=4), quiet=True)
    second, out, failed = raylets.add(cpus=2), tmp_path / "over", list[BaseException]()
    far = replace(config, out=out, runner=f"ray:{raylets.address}")

    def play() -> None:
        try:
            evaluate(far, quiet=True)
        except BaseException as e:
            failed.append(e)

    thread = threading.Thread(target=play)
    thread.start()

    def until(what: str, true: Callable[[], bool]) -> None:
        eventually(lambda: true() or not thread.is_alive(), what, 240)

    try:
        until("both nodes have sandboxes", lambda: raylets.sandboxes(second) > 0)
        seen = lines(out)
        until("both nodes play", lambda: lines(out) > seen + 40)
        families = raylets.families()
        assert len(families) >= 2 and any(family.sandboxes for family in families)
        raylets.kill(second)
        at = lines(out)
    finally:  # later tests need an idle cluster
        thread.join(240)
    assert not thread.is_alive() and failed == []
    episodes = episodes_of(out)
    assert at < len(episodes) == len({(t.task, t.epoch) for t in episodes}) == 3 * 70
    assert reported(episodes) == reported(episodes_of(alone))
    again = Counter(t.run.get("attempts", 1) for t in episodes)
    # the episodes of the killed node
    assert sum(n for attempts, n in again.items() if attempts > 1) > 0
    assert left_of(families) == []


def test_a_process_that_hangs_is_killed_with_its_sandboxes(
    raylets: Raylets, monkeypatch: pytest.MonkeyPatch
) -> None:
    with intercode.make("bash") as env:
        kit = make_environment_spec(env, "bash", {}, [0])
    with connect(raylets.address) as ray, closing(HostManager(kit, ray, 1)) as hosts:
        far = NodeEnv(hosts)
        far.reset(options={"task": 0})
        assert far.execute("echo here").observation == "here\n"
        families = raylets.families()
        hung = [f.owner[0] for f in families if f.sandboxes]
        for pid in hung:
            os.kill(pid, signal.SIGSTOP)
        with monkeypatch.context() as impatient:
            impatient.setattr(host_manager, "HEARTBEAT_TIMEOUT", 3.0)
            with pytest.raises(SandboxLostError, match=r"no heartbeat for 3 s"):
                far.execute("echo there")
        far.reset(options={"task": 0})
        assert far.execute("echo there").observation == "there\n"
        assert hung and left_of(families) == []
        far.close()


def test_a_process_that_hangs_while_it_starts_is_given_up(
    raylets: Raylets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tmp_path / "first"

    def arrive(kit: EnvironmentSpec) -> EnvironmentSpec:
        """Stop the process that receives the specification first."""
        if not first.exists():
            first.write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGSTOP)
        return kit

    class HangingKit(EnvironmentSpec):
        def __reduce__(self) -> tuple[Any, ...]:
            return arrive, (EnvironmentSpec(**vars(self)),)

    with intercode.make("bash") as env:
        kit = make_environment_spec(env, "bash", {}, [0])
    with (
        connect(raylets.address) as ray,
        closing(HostManager(HangingKit(**vars(kit)), ray, 1)) as hosts,
    ):
        eventually(lambda: first.exists() and first.read_text() != "", "a process begins", 240)
        with monkeypatch.context() as impatient:
            impatient.setattr(host_manager, "START_TIMEOUT", 3.0)
            eventually(
                lambda: not traces.started(int(first.read_text())),
                "the hanging process is killed",
                60,
            )
        far = NodeEnv(hosts)
        far.reset(options={"task": 0})
        assert far.execute("echo there").observation == "there\n"
        far.close()


def test_processes_that_are_lost_at_once_do_not_exclude_their_node(
    raylets: Raylets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = tmp_path / "begun"
    begun.touch()

    def arrive(kit: EnvironmentSpec) -> EnvironmentSpec:
        """Stop the two processes that receive the specification first."""
        with begun.open("a") as file:
            file.write(f"{os.getpid()}\n")
        if os.getpid() in map(int, begun.read_text().split()[:2]):
            os.kill(os.getpid(), signal.SIGSTOP)
        return kit

    class StoppingKit(EnvironmentSpec):
        def __reduce__(self) -> tuple[Any, ...]:
            return arrive, (EnvironmentSpec(**vars(self)),)

    monkeypatch.setattr(host_manager, "CORES_PER_HOST", 1)
    monkeypatch.setattr(host_manager, "_MAX_STARTS", 2)
    with intercode.make("bash") as env:
        kit = make_environment_spec(env, "bash", {}, [0])
    with (
        connect(raylets.address) as ray,
        closing(HostManager(StoppingKit(**vars(kit)), ray, 2)) as hosts,
    ):
        eventually(lambda: begun.read_text().count("\n") == 2, "two processes begin", 240)
        for pid in begun.read_text().split():
            os.kill(int(pid), signal.SIGKILL)
        far = NodeEnv(hosts)
        far.reset(options={"task": 0})
        assert far.execute("echo there").observation == "there\n"
        assert not hosts.excluded
        far.close()


def test_a_node_answers_while_other_calls_take_long(raylets: Raylets) -> None:
    with intercode.make("bash", timeout=1e6) as env:
        kit = make_environment_spec(env, "bash", {"timeout": 1e6}, [0])
    with connect(raylets.address) as ray, closing(HostManager(kit, ray, 4)) as hosts:
        episodes = [NodeEnv(hosts) for _ in range(3)]
        for far in episodes:
            far.reset(options={"task": 0})
            assert far.host is not None
            far.host.send("call", far._episode_id, "execute", "sleep 1000000")
        assert far.host is not None
        assert ray.wait([far.host.send("heartbeat")], timeout=60)[0]


def test_an_environment_of_a_node_has_no_task_before_its_episode_begins(raylets: Raylets) -> None:
    with intercode.make("bash") as env:
        kit = make_environment_spec(env, "bash", {}, [0])
    with connect(raylets.address) as ray, closing(HostManager(kit, ray, 1)) as hosts:
        far = NodeEnv(hosts)
        for _ in range(2):
            for name in ("task", "index", "task_seed", "brief"):
                with pytest.raises(EnvironmentStateError, match="no episode yet: call reset"):
                    getattr(far, name)
            with pytest.raises(EnvironmentStateError, match="no episode yet: call reset"):
                far.execute("pwd")
            far.reset(options={"task": 0})
            far.end_episode()
            assert far.index == 0
            with pytest.raises(EnvironmentStateError, match="no open episode: call reset"):
                far.execute("pwd")
            with pytest.raises(UsageError, match="out of range"):
                far.reset(options={"task": 10_000})
        far.close()


def test_the_driver_is_killed_and_another_continues(
    raylets: Raylets, tmp_path: Path, episodes_of: Reader
) -> None:
    out = tmp_path / "run"
    command = [
        sys.executable,
        "-m",
        "intercode",
        "eval",
        "starter",
        "--agent",
        "gold",
        "--epochs",
        "4",
        "--parallel",
        "4",
        "--set",
        f"runner=ray:{raylets.address}",
        "--out",
        str(out),
    ]
    driver = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: lines(out) > 20 or driver.poll() is not None, "it plays", 120)
        families = raylets.families()
        assert driver.poll() is None and any(family.sandboxes for family in families)
    finally:
        driver.send_signal(signal.SIGKILL)
        driver.wait()
    assert left_of(families) == []
    before = lines(out)
    assert 20 < before < 4 * 70
    subprocess.run(command, check=True, capture_output=True, timeout=240)
    episodes = episodes_of(out)
    assert len(episodes) == len({(t.task, t.epoch) for t in episodes}) == 4 * 70
    assert all(t.success for t in episodes)


def test_an_image_reaches_a_node_by_its_content(
    raylets: Raylets, tmp_path: Path, squares: str, episodes_of: Reader
) -> None:
    """An image that the node's own cache does not have."""
    image = tmp_path / "image.tar"
    root = small_root(tmp_path / "root")
    subprocess.run(["tar", "-C", root, "-cf", image, "."], check=True)
    config = EvalConfig(
        squares,
        "gold",
        limit=2,
        parallel=2,
        runner=f"ray:{raylets.address}",
        out=tmp_path / "run",
        env_options={"image": f"tar:{image}"},
    )
    digest = make_plan(config).metadata["image_digest"].removeprefix("sha256:")
    layers = raylets.cache(raylets.nodes[0]) / "layers"
    assert not list(layers.glob(f"{digest[:32]}-*"))
    episodes = episodes_of(evaluate(config, quiet=True))
    assert [t.success for t in episodes] == [True, True]
    assert {t.run["image_digest"] for t in episodes} == {f"sha256:{digest}"}
    (there,) = layers.glob(f"{digest[:32]}-*")
    assert (there / "marker").read_text() == "this image\n"


def small_root(root: Path) -> Path:
    """Return a tree with the machine's bash, its libraries, and a file to recognise it."""
    for name in ("bin", "etc", "tmp", "dev", "proc", "sys", "usr/bin", "run", "root"):
        (root / name).mkdir(parents=True)
    (root / "marker").write_text("this image\n")
    found = subprocess.run(["ldd", "/bin/bash"], capture_output=True, text=True, check=True)
    needed = [word for word in found.stdout.split() if word.startswith("/")]
    for path in ["/bin/bash", *needed]:
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(Path(path).resolve().read_bytes())
        target.chmod(0o755)
    return root


def test_limits_and_going_on_are_as_on_one_machine(
    raylets: Raylets, squares: str, tmp_path: Path, episodes_of: Reader
) -> None:
    """The driver calls the model, within the run's limits; either runner resumes the run."""
    answer = ok("```bash\necho 1\n```", usage={"prompt_tokens": 100, "completion_tokens": 20})
    out = tmp_path / "run"
    with FaultyEndpoint(answer) as server:
        local = EvalConfig(
            squares,
            "try-again",
            model="m",
            base_url=server.base_url,
            max_turns=2,
            out=out,
            model_options={"max_tokens": 100},
            parallel=2,
            env_options={"record_diffs": True, "hashes": True},
        )
        far = replace(local, runner=f"ray:{raylets.address}")
        with pytest.raises(BudgetError, match="run's limit"):
            evaluate(replace(far, max_tokens=900), quiet=True)
        assert 0 < len(server.requests) <= 7
        first = episodes_of(out)
        evaluate(replace(far, tasks=("0", "1", "2", "3", "4", "5")), quiet=True)
        second = episodes_of(out)
        assert second[: len(first)] == first and len(second) == 6
        evaluate(local, quiet=True)
        # the task with 1 squared is solved in its first turn
        assert len(server.requests) == 1 + 2 * 7
        evaluate(replace(local, out=tmp_path / "alone"), quiet=True)
    found = reported(episodes_of(out))
    assert len(found) == 8
    for key, episode in reported(episodes_of(tmp_path / "alone")).items():
        steps = zip(episode["steps"], found[key]["steps"], strict=True)
        for alone, over in steps:
            timeless = {"usage": None, "messages": None}
            assert {**alone, **timeless} == {**over, **timeless}


def test_a_node_that_differs_is_left_out(
    raylets: Raylets, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(host_manager, "NODE_TIMEOUT", math.inf)  # waits for no other node
    with intercode.make("bash") as env:
        kit = replace(make_environment_spec(env, "bash", {}, [0]), version="0.0.1")
    with (
        connect(raylets.address) as ray,
        closing(HostManager(kit, ray, 2)) as hosts,
        pytest.raises(SandboxUnavailableError, match=r"its version is '.*', here '0\.0\.1'"),
    ):
        hosts.acquire()
    assert "is excluded: its version" in caplog.text


def test_an_environment_that_fails_on_a_host_is_reported(raylets: Raylets) -> None:
    with intercode.make("bash") as env:
        kit = make_environment_spec(env, "bash", {"reward": "no.such.module:reward"}, [])
    with (
        connect(raylets.address) as ray,
        closing(HostManager(kit, ray, 1)) as hosts,
        pytest.raises(SandboxUnavailableError, match=r"cannot import 'no\.such\.module'"),
    ):
        hosts.acquire()


def test_a_connection_lasts_until_its_last_user_leaves(raylets: Raylets) -> None:
    first, second = connect(raylets.address), connect(raylets.address)
    ray = first.__enter__()
    assert second.__enter__() is ray
    first.__exit__(None, None, None)
    assert ray.is_initialized() and ray.nodes()
    second.__exit__(None, None, None)
    assert not ray.is_initialized()
    ray.init(address=raylets.address, log_to_driver=False)
    with connect(raylets.address):
        pass
    assert ray.is_initialized()  # the cluster existed before
    ray.shutdown()


@pytest.mark.parametrize(
    ("runner", "error"),
    [
        ("rey", r"unknown runner 'rey'; did you mean 'ray'\?"),
        ("local:foo", "runner = 'local:foo': local has no address"),
    ],
)
def test_an_unknown_runner_is_refused_before_anything_is_written(
    runner: str, error: str, tmp_path: Path
) -> None:
    config = EvalConfig("starter", "gold", runner=runner, out=tmp_path / "run")
    with pytest.raises(UsageError, match=error):
        evaluate(config, quiet=True)
    assert not (tmp_path / "run").exists()


def test_a_missing_cluster_is_reported() -> None:
    with socket.socket() as taken:  # the port is taken, but nobody listens on it
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(UsageError, match=f"no Ray cluster answers at {address}") as told:
            connect(address).__enter__()
    assert "or give runner=ray:local" in str(told.value)


def test_a_full_disk_is_not_reported_as_a_missing_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    ray = pytest.importorskip("ray", reason="no Ray: pip install 'intercode-gym[ray]'")
    monkeypatch.setattr(ray, "init", fail)
    with pytest.raises(OSError, match="No space left"):
        connect("auto").__enter__()
