"""Processes killed while they unpack or fetch leave complete entries or none."""

from __future__ import annotations

import multiprocessing
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from intercode_sandbox.images import resolve
from intercode_sandbox.images.cache import prune
from support.registries import Faults, faulty
from support.saved_images import Saved, directory, entry, layer, listing

FORK = multiprocessing.get_context("fork")
KILLS = 9
FILES = [entry(f"d/{n}", content=os.urandom(4000)) for n in range(120)]
IMAGE = Saved(
    [
        layer(directory("d"), *FILES[:60]),
        layer(*FILES[60:]),
        layer(entry("d/.wh.7"), entry("e", content=os.urandom(300_000))),
    ]
)
WHOLE = {"d", "e", *(f"d/{n}" for n in range(120) if n != 7)}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    monkeypatch.setenv("REGISTRY_AUTH_FILE", str(tmp_path / "none.json"))
    blobs: dict[str, bytes] = {}
    with faulty(Faults(IMAGE.manifest(blobs), blobs)) as host:
        yield host


def seconds_of(spec: str, cache: Path) -> float:
    """Return the seconds that a process needs without being killed."""
    start = time.monotonic()
    process = FORK.Process(target=resolve, args=(spec, cache))
    process.start()
    process.join(60)
    assert process.exitcode == 0
    return time.monotonic() - start


def check(cache: Path) -> None:
    """Check that every tree and blob with its final name is complete."""
    for tree in (cache / "layers").glob("[!.]*"):
        assert listing(tree) == WHOLE
        assert (tree / "e").stat().st_size == 300_000
    blobs: dict[str, bytes] = {}
    IMAGE.manifest(blobs)
    for blob in (cache / "blobs").glob("[!.]*"):
        assert blob.read_bytes() == blobs[blob.name]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["docker-archive", "registry"])
def test_killed_at_random_moments(form: str, tmp_path: Path, server: str) -> None:
    spec = f"registry:{server}/x:1"
    if form == "docker-archive":
        spec = f"docker-archive:{IMAGE.docker_archive(tmp_path / 'a.tar')}"
    # the shortest of three: a pause of the machine would make all moments too late
    whole = min(seconds_of(spec, tmp_path / f"measured{n}") for n in range(3))
    chance = random.Random(form)
    killed = 0
    for number in range(KILLS):
        cache = tmp_path / f"cache{number % 3}"  # the next process finds what this one left
        pair = [FORK.Process(target=resolve, args=(spec, cache)) for _ in range(1 + number % 2)]
        for process in pair:
            process.start()
        time.sleep(chance.uniform(0, whole))
        for process in pair:
            process.kill()
        for process in pair:
            process.join(20)
            killed += process.exitcode == -9
        if (cache / "layers").exists():
            check(cache)
    assert killed, "no process was killed in time: the moments are too late"
    for number in range(3):
        cache = tmp_path / f"cache{number}"
        image = resolve(spec, cache)
        assert image.digest == IMAGE.digest and image.root is not None
        check(cache)
        prune.prune(cache)
        assert [p for p in (cache / "layers").iterdir() if p.suffix == ".half"] == []
        assert listing(image.root) == WHOLE
