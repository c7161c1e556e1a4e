"""What only containers have: an engine, images in it, containers that serve again, their end."""

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

from intercode.core.errors import SandboxError, SandboxUnavailableError
from intercode.core.paths import sandbox_uid
from intercode.core.types import Layer, LayerSpec
from intercode.environments.base.layers import task_layer
from intercode.evaluation.conformance import check_sandbox
from intercode.sandbox import SandboxSpec, images, open_sandbox, strongest_kind, tier_of
from intercode.sandbox.container import (
    container_pool,
    engine,
    image_import,
    image_prune,
    limit_counters,
    orphans,
)
from intercode.sandbox.container.container_spec import container_spec
from intercode.sandbox.container.sandbox import ContainerSandbox
from intercode.sandbox.determinism import Determinism
from intercode.sandbox.supervisor.client import SupervisedSandbox
from support import requirements
from support.boxes import eventually, layer_of

pytestmark = pytest.mark.docker
OWNER = """
import sys, time
from intercode.sandbox import images
from intercode.sandbox import SandboxSpec, open_sandbox
box = open_sandbox(SandboxSpec(images.resolve("host")), sys.argv[1])
box.run(["/bin/sh", "-c", "sleep 1000 & echo hi > /tmp/f"])
print(box.supervisor_pid, flush=True)
time.sleep(1000)
"""


@pytest.fixture(scope="module", autouse=True)
def supervisor() -> None:
    """A container is always kept by the program."""


@pytest.fixture(scope="module", params=engine.ENGINE_NAMES)
def by(request: pytest.FixtureRequest) -> Iterator[engine.Engine]:
    requirements.require(request.param)
    yield engine.get_engine(request.param)
    container_pool.close_idle()


def open_one(by: engine.Engine, **spec: object) -> SupervisedSandbox:
    return open_sandbox(SandboxSpec(images.resolve("host"), **spec), by.name)  # type: ignore[arg-type]


def containers(by: engine.Engine, owner: str) -> list[str]:
    """The names of an owner's containers, in whatever state."""
    form = "{{.Names}}"
    told = by.run(
        "ps", "--all", "--filter", f"label={orphans.OWNER_LABEL}={owner}", "--format", form
    )
    return told.splitlines()


# -------------------------------------------------------------------------- the box
def test_a_container_is_a_sandbox(by: engine.Engine) -> None:
    assert tier_of(by.name) == f"container/{by.name}" == tier_of(f"container/{by.name}")
    check_sandbox(lambda: open_one(by))


def test_its_files_and_processes_have_the_owner_that_they_have_elsewhere(by: engine.Engine) -> None:
    with open_one(by) as box:
        told = box.run(["/bin/sh", "-c", "whoami; touch /tmp/f; stat -c %U:%G / /etc /tmp/f; ls ~"])
        assert told.output == "root\n" + "root:root\n" * 3
        rights = box.run(
            ["/bin/sh", "-c", "grep -E 'Cap(Prm|Eff|Amb)|NoNewPrivs' /proc/self/status"]
        )
        assert [line.split()[1] for line in rights.output.splitlines()] == ["0" * 16] * 3 + ["1"]
        assert not box.run(["/bin/sh", "-c", "cat /proc/1/environ || kill -9 1"]).output.strip(
            "\0"
        )[99:]
        assert box.run(["true"]).ok, "PID 1 lives on"


def test_a_root_that_nobody_may_enter_stops_nothing(by: engine.Engine) -> None:
    """Or an episode could keep itself from being scored."""
    with open_one(by) as box:
        box.run(["/bin/sh", "-c", "echo x > /root/f; chmod 000 /"])
        assert "/root/f" in box.changes() and box.read_file("/root/f") == b"x\n"
        assert box.size()[1] > 0
        with box.clone() as copy:
            assert copy.run(["/bin/sh", "-c", "cat /root/f"]).output == "x\n"
        box.recycle()
        assert box.run(["/bin/sh", "-c", "stat -c %a /"]).output == "755\n"


def test_it_begins_again_as_it_was_and_faster_than_a_new_one(by: engine.Engine) -> None:
    container_pool.close_idle()
    box = open_one(by)
    first = box.supervisor_pid
    box.run(["/bin/sh", "-c", "rm -rf /etc /tmp; mkdir /tmp; echo x > /new; sleep 100 &"])
    assert box.changes()
    box.close()
    with pytest.raises(SandboxError):
        box.run(["true"])
    with open_one(by) as again:
        assert again.supervisor_pid == first and not again.changes() and not again.processes()
        assert again.read_file("/etc/passwd").startswith(b"root:")


def test_what_met_a_limit_or_must_be_repeatable_does_not_serve_again(by: engine.Engine) -> None:
    from intercode.sandbox import Limits

    container_pool.close_idle()
    hog = "x = bytearray(300 << 20)"
    with open_one(by, limits=Limits(memory=64 << 20)) as box:
        first, result = box.supervisor_pid, box.run(["python3", "-c", hog], timeout=60)
        assert result.exit_code == -signal.SIGKILL
    with open_one(by, limits=Limits(memory=64 << 20)) as box:
        assert box.supervisor_pid != first
    with open_one(by, determinism=Determinism()) as box:
        first = box.supervisor_pid
        with pytest.raises(SandboxError, match="only a box that"):
            box.recycle()
    with open_one(by, determinism=Determinism()) as box:
        assert box.supervisor_pid != first


def test_a_group_that_bounds_no_box_counts_for_none(by: engine.Engine) -> None:
    """As that of whoever starts a container without root, under control groups of version 1."""
    with open_one(by) as box:
        limits = box.spec.limits
        for asked, own in ((limits, True), (replace(limits, memory=limits.memory // 4), False)):
            counted = limit_counters.LimitCounters(box.connection, asked)
            assert counted.counts_memory is own or by.rootless
            counted.close()


def test_files_of_a_box_can_be_kept_as_an_upper_layer(
    by: engine.Engine, tmp_path: Path, treed: Layer
) -> None:
    upper = tmp_path / "upper"
    upper.mkdir()
    tmp_path.chmod(0o755)
    with open_one(by, layers=(treed,)) as box:
        box.run(
            ["/bin/sh", "-c", "cd /data; rm -r dir; mkdir dir; echo new > dir/n; chmod 700 file"]
        )
        before = box.changes()
        box.write_upper(upper)
        spec = box.spec
    assert stat.S_ISCHR(os.lstat(upper / "data" / "dir" / "a").st_mode)
    for kind in (by.name, "namespace"):
        with open_sandbox(spec, kind, upper) as box:
            assert box.changes() == before, kind


@pytest.fixture
def treed(tree: Layer) -> Layer:
    return tree


# ------------------------------------------------------------------------- choosing
def test_a_variable_says_what_auto_means(
    by: engine.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERCODE_SANDBOX", by.name)
    assert tier_of() == tier_of("auto") == f"container/{by.name}"
    with open_sandbox(SandboxSpec(images.resolve("host"))) as box:
        assert box.tier == f"container/{by.name}"
    assert tier_of("namespace").startswith("namespace/")


def test_where_namespaces_are_forbidden_containers_serve(
    by: engine.Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "setup.sh"
    script.write_text("mkdir /made; echo x > /made/f; chmod 640 /made/f; rm -r /srv\n")
    image = images.resolve("host")

    def forbidden() -> str:
        raise SandboxUnavailableError("user namespaces are forbidden")

    monkeypatch.delenv("INTERCODE_SANDBOX", raising=False)
    monkeypatch.setattr("intercode.sandbox.namespace.tiers.strongest_tier", forbidden)
    monkeypatch.setattr("intercode.sandbox.container.engine.first_engine", lambda: by)
    monkeypatch.setenv("INTERCODE_CACHE", str(tmp_path / "cache"))
    tmp_path.chmod(0o755)
    strongest_kind.cache_clear()
    try:
        assert tier_of() == f"container/{by.name}"
        root = task_layer(LayerSpec("script", script), image).root
    finally:
        strongest_kind.cache_clear()
    assert (root / "made" / "f").read_text() == "x\n"
    assert stat.S_IMODE((root / "made" / "f").stat().st_mode) == 0o640
    assert stat.S_ISCHR(os.lstat(root / "srv").st_mode), "a whiteout"
    assert (root / "made").stat().st_uid == sandbox_uid()


# ------------------------------------------------------------------------ its life
def test_nothing_outlives_a_killed_owner(by: engine.Engine) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, by.name], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process.stdout as said:
        inside = int(said.readline())
    owner = (
        f"{process.pid}.{orphans.process_start_ticks(process.pid)}.{orphans._boot_and_namespace()}"
    )
    assert len(containers(by, owner)) == 1
    process.kill()
    process.wait()
    eventually(lambda: not Path(f"/proc/{inside}").exists(), "the supervisor has ended")
    eventually(lambda: not containers(by, owner), "the engine has removed the container", 30)


def test_what_was_never_started_is_swept_once_its_owner_has_gone(by: engine.Engine) -> None:
    name = image_import.ensure_image(
        by, container_spec(SandboxSpec(images.resolve("host")), by.name)
    )
    pid = os.getpid()
    later = orphans.process_start_ticks(pid) + 7
    dead = f"{pid}.{later}.{orphans._boot_and_namespace()}"
    made = []
    for owner in (dead, orphans.current_owner(), "of.somebody.else"):
        label = f"--label={orphans.OWNER_LABEL}={owner}"
        made.append(by.run("create", "--pull=never", "--network=none", label, name, "/bin/true"))
    try:
        assert [made[0].startswith(found) for found in orphans.remove_orphans(by)] == [True]
        assert containers(by, dead) == [] and len(containers(by, "of.somebody.else")) == 1
    finally:
        for container in made[1:]:
            by.run("rm", container)


def test_an_image_is_imported_once_however_many_ask(by: engine.Engine, tmp_path: Path) -> None:
    (tmp_path / "layer").mkdir()
    (tmp_path / "layer" / "mark").write_text(str(os.urandom(8)))
    spec = SandboxSpec(images.resolve("host"), (layer_of(tmp_path / "layer"),))
    made = container_spec(spec, by.name)
    image_import._known_images.clear()
    with ThreadPoolExecutor(3) as pool_of_threads:
        names = set(pool_of_threads.map(lambda _: image_import.ensure_image(by, made), range(3)))
    (name,) = names
    assert image_import._has_image(by, name)
    by.run("rmi", name)  # somebody tidies up: it is imported again, although this process saw it
    with ContainerSandbox(spec, by) as box:
        assert box.read_file("/mark") and not box.changes()
    container_pool.close_idle()
    eventually(lambda: _removed(by, name), "the image can be removed", 30)


def test_images_go_once_their_trees_are_gone(by: engine.Engine, tmp_path: Path) -> None:
    (tmp_path / "layer").mkdir()
    spec = SandboxSpec(images.resolve("host"), (Layer(tmp_path / "layer", str(os.urandom(8))),))
    box = ContainerSandbox(spec, by)
    name = image_import.ensure_image(by, container_spec(spec, by.name))
    assert name not in image_prune.prune_images(by, tmp_path)
    (tmp_path / "layer").rename(tmp_path / "elsewhere")
    assert name not in image_prune.prune_images(by, tmp_path), "a container uses it"
    box.close(wait=True)
    container_pool.close_idle()
    eventually(lambda: name in image_prune.prune_images(by, tmp_path), "it is removed", 30)
    assert not image_import._has_image(by, name)


def _removed(by: engine.Engine, name: str) -> bool:
    try:
        by.run("rmi", name)
    except SandboxError:  # its container is just ending
        return False
    return True


# -------------------------------------------------------------------------- faults
def test_a_daemon_that_does_not_answer_is_told(
    by: engine.Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if by.name == "podman":
        monkeypatch.setenv("CONTAINERS_STORAGE_CONF", str(tmp_path / "absent"))
        monkeypatch.setenv("CONTAINER_HOST", "tcp://127.0.0.1:1")
    else:
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(SandboxUnavailableError, match=r"daemon does not answer|needs? an engine"):
        open_one(by)


def test_a_machine_without_a_compiler_is_told(
    by: engine.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from intercode.sandbox.supervisor import programs

    monkeypatch.setattr(programs, "supervisor_program", lambda: (None, "the interpreter"))
    container_pool.close_idle()
    with pytest.raises(SandboxUnavailableError, match="install a C compiler"):
        open_one(by, hostname="another")
