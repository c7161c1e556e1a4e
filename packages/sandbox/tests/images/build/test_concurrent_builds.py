"""Processes that build the same image at once, some of which are killed."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from intercode_sandbox import SandboxSpec, open_sandbox
from intercode_sandbox.images.build import built_images, steps
from intercode_sandbox.images.build.on_demand import resolve_or_build
from support import requirements
from support.sandboxes import eventually

pytestmark = pytest.mark.sandbox

BUILD = """
import sys
from intercode_sandbox.images.build.on_demand import resolve_or_build
print(resolve_or_build(sys.argv[1]).digest)
"""
SETUP = """
set -e
for i in 1 2 3 4 5 6; do echo $i >> /srv/lines; sleep 0.1; done
head -c 8 /proc/sys/kernel/random/uuid > /srv/once
"""


def start(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", BUILD, f"dockerfile:{folder}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "which").write_text(str(tmp_path))
    (tmp_path / "Dockerfile").write_text(
        f"FROM host\nCOPY files /srv/\nRUN <<SETUP\n{SETUP}SETUP\n"
    )
    return tmp_path


@pytest.mark.slow
def test_one_builds_and_the_others_wait(folder: Path) -> None:
    builders = [start(folder) for _ in range(3)]
    digests = {builder.communicate(timeout=120)[0].strip() for builder in builders}
    image = resolve_or_build(f"dockerfile:{folder}")
    assert digests == {image.digest}  # the random part was created once
    with open_sandbox(SandboxSpec(image)) as sandbox:
        assert sandbox.run(["cat", "/srv/lines"]).output == "1\n2\n3\n4\n5\n6\n"


def test_threads_of_one_process(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(f"FROM host\nENV A={tmp_path.name}\nWORKDIR /srv/a\n")
    for _ in range(5):
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(resolve_or_build, [f"dockerfile:{tmp_path}"] * 8))
        assert all(image == found[0] for image in found)
        for record in [r for r in built_images.built_images() if r.digest == found[0].digest]:
            built_images.delete_built_image(record)


@pytest.mark.slow
def test_a_killed_build_leaves_nothing_valid(folder: Path) -> None:
    chance = random.Random(7)
    for _ in range(3):
        builder = start(folder)
        time.sleep(chance.uniform(0.3, 1.2))  # the build may be starting, running or ending
        builder.kill()
        builder.communicate()
    image = resolve_or_build(f"dockerfile:{folder}")
    with open_sandbox(SandboxSpec(image)) as sandbox:
        output = sandbox.run(
            ["bash", "-c", "cat /srv/lines | tr -d '\\n'; wc -c < /srv/once"]
        ).output
    assert output == "1234568\n"
    for layer in image.layers:
        left = list(steps.steps_directory().glob(f"{layer.root.name}.half-*"))
        assert not left, left


@pytest.mark.slow
def test_a_killed_build_frees_those_that_wait(folder: Path) -> None:
    first = start(folder)
    name = ""

    def begun() -> bool:
        nonlocal name
        stages = list(steps.steps_directory().glob("*.half-*"))
        name = next((s.name for s in stages if (s / "upper" / "srv" / "lines").is_file()), "")
        return bool(name) or first.poll() is not None

    eventually(begun, "the first build has begun", 60)
    second = start(folder)
    first.kill()
    first.communicate()
    digest, problem = second.communicate(timeout=120)
    assert digest.strip() == resolve_or_build(f"dockerfile:{folder}").digest, problem


@pytest.mark.slow
@pytest.mark.rootfs
def test_the_processes_of_a_killed_build_end(tmp_path: Path) -> None:
    """A command with several user ids runs in another kind of sandbox."""
    length = f"60.{random.randrange(10**9)}"
    text = f"FROM {requirements.image('nl2bash')}\nRUN setsid sleep {length} & sleep {length}\n"
    (tmp_path / "Dockerfile").write_text(text)
    code = BUILD.replace("resolve_or_build(sys", "resolve_or_build('dockerfile:' + sys")
    builder = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)])

    def running() -> int:
        lines = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):  # the process has ended already
                lines.append(path.read_bytes())
        return lines.count(f"sleep\0{length}\0".encode())

    eventually(lambda: running() == 2, "the command runs", 60)
    builder.kill()
    builder.wait()
    eventually(lambda: running() == 0, "all processes have ended", 60)
