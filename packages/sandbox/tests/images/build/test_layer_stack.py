"""Reading stacked layers as a sandbox would see them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from intercode_sandbox.errors import DataError
from intercode_sandbox.images.build.layer_stack import LayerStack


def tree(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.fixture
def stack(tmp_path: Path) -> LayerStack:
    low = tree(tmp_path / "low", a="a", gone="x", dir__one="1", dir__two="2", hidden__in="h")
    (low / "lib").symlink_to("dir")
    (low / "abs").symlink_to("/dir/two")
    (low / "loop").symlink_to("loop")
    (low / "up").symlink_to("../../../a")
    high = tree(tmp_path / "high", a="new", dir__three="3", hidden__new="n")
    os.mknod(high / "gone", stat.S_IFCHR, 0)
    os.mknod(high / "dir" / "one", stat.S_IFCHR, 0)
    os.setxattr(high / "hidden", "user.overlay.opaque", b"y")
    return LayerStack([high, low])


def test_what_is_seen(stack: LayerStack) -> None:
    assert [name for name, _, _ in stack.walk()] == [
        "",
        "a",
        "abs",
        "dir",
        "dir/three",
        "dir/two",
        "hidden",
        "hidden/new",
        "lib",
        "loop",
        "up",
    ]
    assert [name for name, _, _ in stack.walk("dir")] == ["dir", "dir/three", "dir/two"]
    assert [name for name, _, _ in stack.walk("", depth=0)] == [""]
    found = stack.find("a")
    assert found is not None and Path(found[0]).read_text() == "new"
    assert stack.find("dir/two") and stack.find("hidden/new")
    for name in ("gone", "dir/one", "hidden/in", "none", "a/below"):
        assert stack.find(name) is None, name


def test_a_text_is_a_file_s(stack: LayerStack, tmp_path: Path) -> None:
    """Reading does not wait for a pipe, nor follow a link to this machine's files."""
    os.mkfifo(tmp_path / "high" / "pipe")
    (tmp_path / "high" / "out").symlink_to("/etc/hostname")
    assert stack.read_text("abs") == "2" and stack.read_text("up") == "new"
    for path in ("pipe", "out", "none", "dir"):
        assert stack.read_text(path) == ""


def test_links_are_followed_within(stack: LayerStack) -> None:
    assert stack.resolve("/lib/two") == "dir/two"
    assert stack.resolve("abs") == "dir/two" and stack.resolve("abs", last=False) == "abs"
    assert stack.resolve("up") == "a"
    assert stack.resolve("lib/../a/./new") == "a/new"
    with pytest.raises(DataError, match="too many levels of symbolic links"):
        stack.resolve("loop")
