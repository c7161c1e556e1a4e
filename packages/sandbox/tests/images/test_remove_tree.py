"""Removing trees that are hard to remove."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from intercode_sandbox.images.cache.remove_tree import remove_tree
from support.trees import deep


def test_a_tree_deeper_than_the_limit_on_paths(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    deep(tmp_path / "tree", 3000)
    remove_tree(tmp_path / "tree")
    assert not list(tmp_path.iterdir())


def test_modes_links_and_bytes(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    tree = tmp_path / "tree"
    (tree / "locked" / "inner").mkdir(parents=True)
    (tree / "locked" / "inner" / "big").write_bytes(os.urandom(1 << 16))
    os.link(tree / "locked" / "inner" / "big", tree / "twin")
    (tree / "link").symlink_to(outside)
    (tree / "locked" / "up").symlink_to("../../outside")
    os.mkfifo(tree / "pipe")
    (tree / "locked" / "inner").chmod(0)
    (tree / "locked").chmod(0)
    assert 1 << 16 <= remove_tree(tree) < 1 << 17
    assert (outside / "kept").read_text() == "x" and not tree.exists()


def test_a_link_to_a_tree_is_not_a_tree(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(OSError, match="Not a directory"):
        remove_tree(tmp_path / "link")
    assert (tmp_path / "real").is_dir()
