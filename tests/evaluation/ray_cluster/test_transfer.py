"""Sending trees, files and marks to nodes: unchanged, by content, and once."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from intercode.core.errors import DataError, SandboxError
from intercode.environments.ray.node_files import (
    CHUNK_SIZE,
    NodeFiles,
    is_missing,
    local_path,
    pack,
    unpack,
)
from intercode_sandbox.platforms.paths import cache_root, sandbox_uid

MOMENT = 1_700_000_000_123_456_789


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a directory with one entry of every kind."""
    root = tmp_path / "tree"
    (root / "deep" / "er").mkdir(parents=True)
    (root / "deep" / "er" / "large").write_bytes(os.urandom(CHUNK_SIZE + 17))
    (root / "script").write_text("#!/bin/sh\n")
    (root / "script").chmod(0o751)
    os.link(root / "script", root / "deep" / "same")
    (root / "link").symlink_to("/nowhere/at all")
    os.mkfifo(root / "pipe")
    os.utime(root / "script", ns=(MOMENT, MOMENT))
    os.utime(root / "deep", ns=(MOMENT + 5, MOMENT + 5))
    os.utime(root, ns=(MOMENT + 9, MOMENT + 9))
    return root


def arrived(parcel: NodeFiles, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of a parcel in another machine's cache, sent as over a network."""
    pieces, *directory = pack(parcel, bytes)
    assert max(map(len, pieces)) <= CHUNK_SIZE
    monkeypatch.setenv("INTERCODE_CACHE", str(cache))
    assert is_missing(parcel)
    unpack(parcel, pieces, *directory)
    assert not is_missing(parcel)
    return local_path(parcel)


def describe(root: Path) -> dict[str, tuple[object, ...]]:
    """Return everything about a tree that a sandbox could see, except its owner."""
    found = {}
    for path in [root, *sorted(root.rglob("*"))]:
        info = path.lstat()
        held: object = None
        if path.is_symlink():
            held = os.readlink(path)
        elif path.is_file():
            held = path.read_bytes()
        found[str(path.relative_to(root))] = (info.st_mode, info.st_nlink, info.st_mtime_ns, held)
    return found


def test_a_tree_arrives_as_it_is(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = arrived(NodeFiles("a" * 32, tree, "tree"), tmp_path / "cache", monkeypatch)
    assert there == tmp_path / "cache" / "layers" / f"{'a' * 32}-{sandbox_uid()}"
    assert describe(there) == describe(tree)
    assert {path.lstat().st_uid for path in there.rglob("*")} == {sandbox_uid()}


def test_deleted_files_of_an_overlay_stay_deleted(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mknod(tree / "deep" / "gone", stat.S_IFCHR, 0)
    os.setxattr(tree / "deep", "user.overlay.opaque", b"y")
    there = arrived(NodeFiles("b" * 32, tree, "upper"), tmp_path / "cache", monkeypatch)
    gone = (there / "deep" / "gone").lstat()
    assert stat.S_ISCHR(gone.st_mode) and gone.st_rdev == 0
    assert os.getxattr(there / "deep", "user.overlay.opaque") == b"y"
    assert "user.overlay.opaque" not in os.listxattr(there)
    assert (there / "deep" / "er" / "large").read_bytes() == (
        tree / "deep" / "er" / "large"
    ).read_bytes()


def test_a_file_keeps_its_name_and_its_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine" / "rewards.py"
    file.parent.mkdir()
    file.write_text("x = 1\n")
    there = arrived(NodeFiles("c" * 32, file, "file"), tmp_path / "cache", monkeypatch)
    assert there.parts[-2:] == ("mine", "rewards.py")
    assert there.read_text() == "x = 1\n"


def test_incomplete_parcels_are_refused(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parcel = NodeFiles("d" * 32, tree, "tree")
    pieces, *directory = pack(parcel, bytes)
    assert len(pieces) > 1
    monkeypatch.setenv("INTERCODE_CACHE", str(tmp_path / "cache"))
    cache_root().mkdir(exist_ok=True)
    with pytest.raises(DataError, match="is not a complete tar archive"):
        unpack(parcel, pieces[:1], *directory)
    assert is_missing(parcel)
    with pytest.raises(SandboxError, match="was removed while"):
        local_path(parcel)
    assert list((cache_root() / "layers").glob("*.half")) == []


def test_unreadable_files_are_reported(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match=r"absent cannot be sent to a node"):
        pack(NodeFiles("e" * 32, tmp_path / "absent", "tree"), bytes)
