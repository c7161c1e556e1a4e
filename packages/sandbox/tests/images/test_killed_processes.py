"""Processes killed while they unpack or fetch leave complete entries or none."""

from __future__ import annotations

import math
import multiprocessing
import os
import random
import signal
import sys
from collections.abc import Iterator
from multiprocessing.context import ForkProcess
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

import pytest

from intercode_sandbox.images import resolve
from intercode_sandbox.images.cache import prune
from support.registries import Faults, faulty
from support.sandboxes import PATIENCE
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


def resolve_until(spec: str, cache: Path, moment: float, count: Synchronized[int]) -> None:
    """Resolve an image, and end this process at one of its calls, for example to open a file."""

    def killed_at_the_moment(*_: object) -> None:
        count.value += 1
        if count.value > moment:
            signal.raise_signal(signal.SIGKILL)  # os.kill would be such a call, too

    sys.addaudithook(killed_at_the_moment)
    resolve(spec, cache)


def started(spec: str, cache: Path, moment: float) -> tuple[ForkProcess, Synchronized[int]]:
    count = FORK.Value("l", 0, lock=False)
    process = FORK.Process(target=resolve_until, args=(spec, cache, moment, count))
    process.start()
    return process, count


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
    process, count = started(spec, tmp_path / "whole", math.inf)
    process.join(PATIENCE)
    assert process.exitcode == 0 and count.value > 500
    chance = random.Random(form)
    killed = 0
    for number in range(KILLS):
        cache = tmp_path / f"cache{number % 3}"  # the next process finds what this one left
        moments = [chance.uniform(0, count.value) for _ in range(1 + number % 2)]
        for process, _ in [started(spec, cache, moment) for moment in moments]:
            process.join(PATIENCE)
            killed += process.exitcode == -signal.SIGKILL
        if (cache / "layers").exists():
            check(cache)
    assert killed >= 3, "an empty cache makes a process reach its moment"
    for number in range(3):
        cache = tmp_path / f"cache{number}"
        image = resolve(spec, cache)
        assert image.digest == IMAGE.digest and image.root is not None
        check(cache)
        prune.prune(cache)
        assert [p for p in (cache / "layers").iterdir() if p.suffix == ".half"] == []
        assert listing(image.root) == WHOLE
