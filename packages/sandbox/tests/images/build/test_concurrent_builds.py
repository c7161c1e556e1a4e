"""Processes that build the same image at once, some of which are killed."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
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
import signal, sys
from intercode_sandbox.images.build.on_demand import resolve_or_build

def end_at_the_moment(*_):
    global left
    left -= 1
    if left < 0:
        signal.raise_signal(signal.SIGKILL)

left = CALLS
sys.addaudithook(end_at_the_moment)
print(resolve_or_build(sys.argv[1]).digest, left)
"""
CALLS = 1_000_000
"""More than a build makes."""
SETUP = """
set -e
for i in 1 2 3 4 5 6; do echo $i >> /srv/lines; sleep 0.1; done
head -c 8 /proc/sys/kernel/random/uuid > /srv/once
"""


def start(folder: Path, calls: int = CALLS) -> subprocess.Popen[str]:
    """Start a build, in a process that ends itself at a call, for example to open a file."""
    code = BUILD.replace("CALLS", str(calls))
    return subprocess.Popen(
        [sys.executable, "-c", code, f"dockerfile:{folder}"],
        stdout=subprocess.PIPE,
        text=True,
    )


def built(builder: subprocess.Popen[str]) -> list[str]:
    """Return the digest of the image and the number of calls left; nothing if it was killed."""
    return builder.communicate(timeout=120)[0].split()


def write_context(folder: Path) -> Path:
    (folder / "files").mkdir(parents=True)
    (folder / "files" / "which").write_text(str(folder))
    (folder / "Dockerfile").write_text(f"FROM host\nCOPY files /srv/\nRUN <<SETUP\n{SETUP}SETUP\n")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_context(tmp_path)


@pytest.mark.slow
def test_one_builds_and_the_others_wait(folder: Path) -> None:
    builders = [start(folder) for _ in range(3)]
    digests = {built(builder)[0] for builder in builders}
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
    _, left = built(start(write_context(folder / "other")))
    calls = CALLS - int(left)
    builders = []
    for moment in sorted(random.Random(7).sample(range(calls), 3)):  # to leave most for the next
        builders.append(start(folder, moment))
        built(builders[-1])
    assert builders[0].returncode == -signal.SIGKILL
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
    assert built(second)[0] == resolve_or_build(f"dockerfile:{folder}").digest


@pytest.mark.slow
@pytest.mark.rootfs
def test_the_processes_of_a_killed_build_end(tmp_path: Path) -> None:
    """A command with several user ids runs in another kind of sandbox."""
    length = f"60.{random.randrange(10**9)}"
    text = f"FROM {requirements.image('nl2bash')}\nRUN setsid sleep {length} & sleep {length}\n"
    (tmp_path / "Dockerfile").write_text(text)
    builder = start(tmp_path)

    def running() -> int:
        lines = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):  # the process has ended already
                lines.append(path.read_bytes())
        return lines.count(f"sleep\0{length}\0".encode())

    eventually(lambda: running() == 2, "the command runs", 60)
    builder.kill()
    builder.communicate()
    eventually(lambda: running() == 0, "all processes have ended", 60)
