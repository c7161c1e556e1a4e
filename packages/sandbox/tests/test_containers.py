"""Features of containers only: an engine, imported images, recycled containers, their end."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from intercode.environments.base.layers import task_layer
from intercode_sandbox import SandboxSpec, images, open_sandbox, tier_of
from intercode_sandbox.container import (
    engine,
    image_import,
    limit_counters,
    orphans,
)
from intercode_sandbox.container.container_spec import container_spec
from intercode_sandbox.container.image_import import prune_images
from intercode_sandbox.container.sandbox import ContainerSandbox
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.determinism import Determinism
from intercode_sandbox.errors import SandboxError, SandboxUnavailableError
from intercode_sandbox.platforms.paths import sandbox_uid
from intercode_sandbox.supervisor.recycling import recycler
from intercode_sandbox.tiers.choice import choose_tier
from intercode_sandbox.types import Layer, LayerSpec
from support import requirements
from support.sandboxes import eventually, layer_of

pytestmark = pytest.mark.docker
OWNER = """
import sys, time
from intercode_sandbox import images
from intercode_sandbox import SandboxSpec, open_sandbox
sandbox = open_sandbox(SandboxSpec(images.resolve("host")), sys.argv[1])
sandbox.run(["/bin/sh", "-c", "sleep 1000 & echo hi > /tmp/f"])
print(sandbox.supervisor_pid, flush=True)
time.sleep(1000)
"""


@pytest.fixture(scope="module", params=engine.ENGINE_NAMES)
def container_engine(request: pytest.FixtureRequest) -> Iterator[engine.ContainerEngine]:
    requirements.require(request.param)
    yield engine.get_engine(request.param)
    recycler().clear()


def open_one(container_engine: engine.ContainerEngine, **spec: object) -> BaseSandbox:
    return open_sandbox(SandboxSpec(images.resolve("host"), **spec), container_engine.name)  # type: ignore[arg-type]


def containers(container_engine: engine.ContainerEngine, owner: str) -> list[str]:
    """The names of an owner's containers, in any state."""
    form = "{{.Names}}"
    message = container_engine.run(
        "ps", "--all", "--filter", f"label={orphans.OWNER_LABEL}={owner}", "--format", form
    )
    return message.splitlines()


# -------------------------------------------------------------------- the sandbox
def test_the_name_of_an_engine_is_that_of_its_tier(
    container_engine: engine.ContainerEngine,
) -> None:
    assert (
        tier_of(container_engine.name)
        == f"container/{container_engine.name}"
        == tier_of(f"container/{container_engine.name}")
    )


def test_owners_of_files_and_processes_are_shown_as_root(
    container_engine: engine.ContainerEngine,
) -> None:
    with open_one(container_engine) as sandbox:
        message = sandbox.run(
            ["/bin/sh", "-c", "whoami; touch /tmp/f; stat -c %U:%G / /etc /tmp/f; ls ~"]
        )
        assert message.output == "root\n" + "root:root\n" * 3
        rights = sandbox.run(
            ["/bin/sh", "-c", "grep -E 'Cap(Prm|Eff|Amb)|NoNewPrivs' /proc/self/status"]
        )
        assert [line.split()[1] for line in rights.output.splitlines()] == ["0" * 16] * 3 + ["1"]
        assert not sandbox.run(["/bin/sh", "-c", "cat /proc/1/environ || kill -9 1"]).output.strip(
            "\0"
        )[99:]
        assert sandbox.run(["true"]).ok, "PID 1 still runs"


def test_a_root_directory_without_permissions_can_be_scored(
    container_engine: engine.ContainerEngine,
) -> None:
    """Otherwise an episode could prevent its own scoring."""
    with open_one(container_engine) as sandbox:
        sandbox.run(["/bin/sh", "-c", "echo x > /root/f; chmod 000 /"])
        assert "/root/f" in sandbox.changes() and sandbox.read("/root/f") == b"x\n"
        assert sandbox.size()[1] > 0
        with sandbox.fork() as copy:
            assert copy.run(["/bin/sh", "-c", "cat /root/f"]).output == "x\n"
        sandbox.recycle()
        assert sandbox.run(["/bin/sh", "-c", "stat -c %a /"]).output == "755\n"


def test_a_recycled_container_is_clean_and_faster_than_a_new_one(
    container_engine: engine.ContainerEngine,
) -> None:
    recycler().clear()
    sandbox = open_one(container_engine)
    first = sandbox.supervisor_pid
    remove = "rm -rf /etc/passwd /etc/group /tmp; mkdir /tmp; echo x > /new; sleep 100 &"
    sandbox.run(["/bin/sh", "-c", remove])
    assert sandbox.changes()
    sandbox.close()
    with pytest.raises(SandboxError):
        sandbox.run(["true"])
    with open_one(container_engine) as again:
        assert again.supervisor_pid == first and not again.changes() and not again.processes()
        assert again.read("/etc/passwd").startswith(b"root:")


def test_containers_over_a_limit_or_deterministic_are_not_recycled(
    container_engine: engine.ContainerEngine,
) -> None:
    from intercode_sandbox import Limits

    recycler().clear()
    hog = "x = bytearray(300 << 20)"
    with open_one(container_engine, limits=Limits(memory=64 << 20)) as sandbox:
        first, result = sandbox.supervisor_pid, sandbox.run(["python3", "-c", hog], timeout=60)
        assert result.exit_code == -signal.SIGKILL
    with open_one(container_engine, limits=Limits(memory=64 << 20)) as sandbox:
        assert sandbox.supervisor_pid != first
    with open_one(container_engine, determinism=Determinism()) as sandbox:
        first = sandbox.supervisor_pid
        with pytest.raises(SandboxError, match="cannot be recycled"):
            sandbox.recycle()
    with open_one(container_engine, determinism=Determinism()) as sandbox:
        assert sandbox.supervisor_pid != first


def test_a_container_with_a_changed_merged_directory_is_replaced_by_a_new_one(
    container_engine: engine.ContainerEngine, tmp_path: Path, treed: Layer
) -> None:
    """An overlay shows another one when it is made again."""
    recycler().clear()
    (tmp_path / "data" / "dir").mkdir(parents=True)
    layers = (treed, layer_of(tmp_path))
    show = ["stat", "-c", "%b %s %h", "/data", "/data/dir"]
    with open_one(container_engine, layers=layers) as sandbox:
        first, shown = sandbox.supervisor_pid, sandbox.run(show).output
        sandbox.run(["touch", "/data/dir/new"])
    with open_one(container_engine, layers=layers) as sandbox:
        assert sandbox.supervisor_pid != first and sandbox.run(show).output == shown
        sandbox.run(["touch", "/data/dir/new"])
        with pytest.raises(SandboxError, match="shows that its entries were changed"):
            sandbox.recycle()


def test_a_control_group_without_the_requested_limits_is_ignored(
    container_engine: engine.ContainerEngine,
) -> None:
    """For example the caller's group, without root and with control groups of version 1."""
    with open_one(container_engine) as sandbox:
        limits = sandbox.spec.limits
        for requests, own in ((limits, True), (replace(limits, memory=limits.memory // 4), False)):
            counted = limit_counters.LimitCounters(sandbox.connection, requests)
            assert counted.counts_memory is own or container_engine.rootless
            counted.close()


def test_files_can_be_saved_as_an_upper_layer(
    container_engine: engine.ContainerEngine, tmp_path: Path, treed: Layer
) -> None:
    upper = tmp_path / "upper"
    upper.mkdir()
    tmp_path.chmod(0o755)
    with open_one(container_engine, layers=(treed,)) as sandbox:
        sandbox.run(
            ["/bin/sh", "-c", "cd /data; rm -r dir; mkdir dir; echo new > dir/n; chmod 700 file"]
        )
        before = sandbox.changes()
        sandbox.save(upper)
        spec = sandbox.spec
    assert stat.S_ISCHR(os.lstat(upper / "data" / "dir" / "a").st_mode)
    for kind in (container_engine.name, "namespace"):
        with open_sandbox(spec, kind, upper) as sandbox:
            assert sandbox.changes() == before, kind


@pytest.fixture
def treed(tree: Layer) -> Layer:
    return tree


# ------------------------------------------------------------------------- choice
def test_an_environment_variable_defines_auto(
    container_engine: engine.ContainerEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERCODE_SANDBOX", container_engine.name)
    assert tier_of() == tier_of("auto") == f"container/{container_engine.name}"
    with open_sandbox(SandboxSpec(images.resolve("host"))) as sandbox:
        assert sandbox.tier == f"container/{container_engine.name}"
    assert tier_of("namespace").startswith("namespace/")


def test_auto_uses_containers_where_namespaces_are_forbidden(
    container_engine: engine.ContainerEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "setup.sh"
    script.write_text("mkdir /made; echo x > /made/f; chmod 640 /made/f; rm -r /srv\n")
    image = images.resolve("host")

    monkeypatch.delenv("INTERCODE_SANDBOX", raising=False)
    others = [name for name in engine.ENGINE_NAMES if name != container_engine.name]
    stronger = ["namespace.open.check_cgroup_tier", "namespace.open.check_watchdog_tier"]
    for check in (*stronger, *(f"container.open.check_{name}" for name in others)):
        monkeypatch.setattr(f"intercode_sandbox.{check}", lambda: (False, "it is forbidden"))
    monkeypatch.setenv("INTERCODE_CACHE", str(tmp_path / "cache"))
    tmp_path.chmod(0o755)
    choose_tier.cache_clear()
    try:
        assert tier_of() == f"container/{container_engine.name}"
        root = task_layer(LayerSpec("script", script), image).root
    finally:
        choose_tier.cache_clear()
    assert (root / "made" / "f").read_text() == "x\n"
    assert stat.S_IMODE((root / "made" / "f").stat().st_mode) == 0o640
    assert stat.S_ISCHR(os.lstat(root / "srv").st_mode), "a whiteout"
    assert (root / "made").stat().st_uid == sandbox_uid()


# ----------------------------------------------------------------------- life cycle
def test_a_killed_owner_leaves_no_container(container_engine: engine.ContainerEngine) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, container_engine.name], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process.stdout as output:
        inside = int(output.readline())
    owner = (
        f"{process.pid}.{orphans.process_start_ticks(process.pid)}.{orphans._boot_and_namespace()}"
    )
    assert len(containers(container_engine, owner)) == 1
    process.kill()
    process.wait()
    eventually(lambda: not Path(f"/proc/{inside}").exists(), "the supervisor has ended")
    eventually(
        lambda: not containers(container_engine, owner), "the engine has removed the container", 30
    )


def test_containers_that_never_started_are_removed_after_their_owner(
    container_engine: engine.ContainerEngine,
) -> None:
    name = image_import.ensure_image(
        container_engine, container_spec(SandboxSpec(images.resolve("host")), container_engine.name)
    )
    pid = os.getpid()
    later = orphans.process_start_ticks(pid) + 7
    dead = f"{pid}.{later}.{orphans._boot_and_namespace()}"
    made = []
    for owner in (dead, orphans.current_owner(), "of.somebody.else"):
        label = f"--label={orphans.OWNER_LABEL}={owner}"
        made.append(
            container_engine.run(
                "create", "--pull=never", "--network=none", label, name, "/bin/true"
            )
        )
    try:
        removed = orphans.remove_orphans(container_engine)  # also those of tests beside this one
        assert not any(m.startswith(found) for found in removed for m in made[1:])
        # another process may be about to remove it
        eventually(lambda: containers(container_engine, dead) == [], "it is removed", 60)
        assert len(containers(container_engine, "of.somebody.else")) == 1
    finally:
        for container in made[1:]:
            container_engine.run("rm", container)


def test_concurrent_requests_import_an_image_once(
    container_engine: engine.ContainerEngine, tmp_path: Path
) -> None:
    (tmp_path / "layer").mkdir()
    (tmp_path / "layer" / "mark").write_text(str(os.urandom(8)))
    spec = SandboxSpec(images.resolve("host"), (layer_of(tmp_path / "layer"),))
    made = container_spec(spec, container_engine.name)
    image_import._known_images.clear()
    with ThreadPoolExecutor(3) as pool_of_threads:
        names = set(
            pool_of_threads.map(
                lambda _: image_import.ensure_image(container_engine, made), range(3)
            )
        )
    (name,) = names
    assert image_import._has_image(container_engine, name)
    # someone prunes images: it is imported again, although this process has seen it
    container_engine.run("rmi", name)
    with ContainerSandbox(spec, container_engine) as sandbox:
        assert sandbox.read("/mark") and not sandbox.changes()
    recycler().clear()
    eventually(lambda: _removed(container_engine, name), "the image can be removed", 30)


def test_images_without_their_trees_are_pruned(
    container_engine: engine.ContainerEngine, tmp_path: Path
) -> None:
    (tmp_path / "layer").mkdir()
    spec = SandboxSpec(images.resolve("host"), (Layer(tmp_path / "layer", str(os.urandom(8))),))
    sandbox = ContainerSandbox(spec, container_engine)
    name = image_import.ensure_image(container_engine, container_spec(spec, container_engine.name))
    assert name not in prune_images(container_engine, tmp_path)
    (tmp_path / "layer").rename(tmp_path / "elsewhere")
    assert name not in prune_images(container_engine, tmp_path), "a container uses it"
    sandbox.close(wait=True)
    recycler().clear()
    eventually(lambda: name in prune_images(container_engine, tmp_path), "it is removed", 30)
    assert not image_import._has_image(container_engine, name)


def _removed(container_engine: engine.ContainerEngine, name: str) -> bool:
    try:
        container_engine.run("rmi", name)
    except SandboxError:  # the container is just ending
        return False
    return True


# -------------------------------------------------------------------------- errors
def test_a_daemon_that_does_not_answer_is_reported(
    container_engine: engine.ContainerEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if container_engine.name == "podman":
        monkeypatch.setenv("CONTAINERS_STORAGE_CONF", str(tmp_path / "absent"))
        monkeypatch.setenv("CONTAINER_HOST", "tcp://127.0.0.1:1")
    else:
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(SandboxUnavailableError, match=r"daemon does not answer|needs? an engine"):
        open_one(container_engine)
