"""Trees are unpacked once and atomically, by any number of processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from intercode_sandbox.errors import DataError
from intercode_sandbox.images.cache.trees import cached_tree
from intercode_sandbox.platforms import digests
from intercode_sandbox.platforms.digests import cached_file_digest
from support.sandboxes import eventually

SPAWN = multiprocessing.get_context("fork")


def slow_fill(root: Path) -> None:
    with (root.parent / "fills").open("a") as f:
        f.write("x")
    (root / "first").write_text("1")
    time.sleep(0.2)
    (root / "second").write_text("2")


def ask(cache: Path) -> None:
    tree = cached_tree(cache, "key", slow_fill)
    if sorted(p.name for p in tree.iterdir()) != ["first", "second"]:
        os._exit(3)


def hang(root: Path) -> None:
    (root / "half").write_text("half")
    (root.parent / "started").touch()
    signal.pause()


def test_many_processes_unpack_once_and_see_the_complete_tree(tmp_path: Path) -> None:
    waiting = [SPAWN.Process(target=ask, args=(tmp_path,)) for _ in range(6)]
    for process in waiting:
        process.start()
    for process in waiting:
        process.join(120)
    assert [p.exitcode for p in waiting] == [0] * 6
    assert (tmp_path / "layers" / "fills").read_text() == "x"


def test_a_killed_unpacking_leaves_nothing_valid(tmp_path: Path) -> None:
    process = SPAWN.Process(target=cached_tree, args=(tmp_path, "key", hang))
    process.start()
    eventually((tmp_path / "layers" / "started").exists, "the unpacking has begun")
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join(10)
    layers = tmp_path / "layers"
    assert not (layers / "key").exists()
    assert (layers / ".key.half" / "half").exists()
    tree = cached_tree(tmp_path, "key", slow_fill)
    assert sorted(p.name for p in tree.iterdir()) == ["first", "second"]
    assert not (layers / ".key.half").exists()


def test_a_failed_unpacking_leaves_nothing(tmp_path: Path) -> None:
    def fail(root: Path) -> None:
        (root / "half").touch()
        raise DataError("broken")

    with pytest.raises(DataError):
        cached_tree(tmp_path, "key", fail)
    assert [p.name for p in (tmp_path / "layers").iterdir()] == [".key.lock"]


def test_a_digest_is_remembered_until_the_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    monkeypatch.setattr(digests, "MIN_FILE_AGE", 3600.0)
    first = cached_file_digest(tmp_path, path)
    assert first == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert not (tmp_path / "digests").exists(), "a file this young may still change unnoticed"
    monkeypatch.setattr(digests, "MIN_FILE_AGE", -1.0)
    assert cached_file_digest(tmp_path, path) == first
    (known,) = (tmp_path / "digests").iterdir()
    known.write_text("0" * 64)
    assert cached_file_digest(tmp_path, path) == "0" * 64, "the index is what answers now"
    path.write_bytes(b"abd")
    os.utime(path, (1, 1))
    assert cached_file_digest(tmp_path, path) not in (first, "0" * 64)
    with pytest.raises(DataError, match="absent"):
        cached_file_digest(tmp_path, tmp_path / "absent")
