"""Stacked layers: whiteouts, replacements, links, and refused entries."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from intercode_sandbox.errors import DataError
from intercode_sandbox.images.archives import tar
from intercode_sandbox.images.archives.layered_writer import LayeredWriter
from intercode_sandbox.images.archives.set_user_id import is_program
from intercode_sandbox.images.archives.unpack_limits import UnpackLimits
from support.saved_images import Entry, directory, entry, layer, link, listing

Stack = Callable[..., Path]


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    """Writes layers (lists of entries) into a tree that has a secret file beside it."""

    def stack(*layers: list[Entry]) -> Path:
        root = tmp_path / "box" / "root"
        root.mkdir(parents=True, exist_ok=True)
        (root.parent / "secret").write_text("secret")
        writer = LayeredWriter(root, os.geteuid(), "image", keeps_programs=True)
        for number, entries in enumerate(layers, 1):
            writer.begin_layer(f"image (layer {number})")
            tar.write_entries(io.BytesIO(layer(*entries)), writer)
        writer.finish()
        return root

    return stack


LOWER = [
    directory("a"),
    entry("a/x", content=b"x"),
    entry("a/y", content=b"y"),
    directory("a/sub"),
    entry("a/sub/z", content=b"z"),
    entry("top", content=b"top"),
]


def test_a_whiteout_removes_files_of_lower_layers(stack: Stack) -> None:
    root = stack(LOWER, [entry("a/.wh.x"), entry("a/.wh.sub"), entry(".wh.top"), entry(".wh.no")])
    assert listing(root) == {"a", "a/y"}


@pytest.mark.parametrize("order", [1, -1])
def test_an_opaque_directory_hides_lower_layers_but_not_its_own(stack: Stack, order: int) -> None:
    upper = [
        entry("a/.wh..wh..opq"),
        entry("a/new", content=b"n"),
        directory("a/sub"),
        entry("a/sub/own", content=b"o"),
    ]
    root = stack(LOWER, upper[::order])
    assert listing(root) == {"a", "a/new", "a/sub", "a/sub/own", "top"}


@pytest.mark.parametrize("order", [1, -1])
def test_a_whiteout_does_not_affect_its_own_layer(stack: Stack, order: int) -> None:
    upper = [entry("a/.wh.x"), entry("a/x", content=b"new"), entry("a/.wh.sub"), directory("a/sub")]
    root = stack(LOWER, upper[::order])
    assert (root / "a/x").read_text() == "new"
    assert listing(root) == {"a", "a/x", "a/y", "a/sub", "top"}


def test_an_entry_replaces_files_of_lower_layers(stack: Stack) -> None:
    root = stack(
        LOWER,
        [entry("a/sub", content=b"file"), directory("top"), entry("top/in", content=b"in")],
        [link("top", "a"), entry("a/x", tarfile.LNKTYPE, linkname="a/y")],
        [entry("a/y", content=b"other")],
    )
    assert (root / "a/sub").read_text() == "file" and os.readlink(root / "top") == "a"
    assert ((root / "a/x").read_text(), (root / "a/y").read_text()) == ("y", "other")


def test_a_directory_merges_layers_and_takes_the_last_mode_and_time(stack: Stack) -> None:
    root = stack(LOWER, [entry("a", tarfile.DIRTYPE, mode=0o750, mtime=5), entry("a/n")])
    assert listing(root) == {"a", "a/x", "a/y", "a/sub", "a/sub/z", "a/n", "top"}
    assert (root / "a").stat().st_mode & 0o777 == 0o750 and (root / "a").stat().st_mtime == 5


def test_links_on_the_way_stay_inside(stack: Stack) -> None:
    """Engines do the same, as they unpack with the image as the root."""
    root = stack(
        [directory("usr/bin"), link("bin", "usr/bin"), link("abs", "/usr"), link("up", "../../..")],
        [entry("bin/tool", content=b"t"), entry("abs/lib/so", content=b"s"), entry("up/flat")],
        [entry("/abs/bin/.wh.tool"), entry("/rooted", content=b"r")],
    )
    assert listing(root) == {
        "usr",
        "usr/bin",
        "usr/lib",
        "usr/lib/so",
        "bin",
        "abs",
        "up",
        "flat",
        "rooted",
    }
    assert listing(root.parent) == {"secret", "root"} | {f"root/{p}" for p in listing(root)}


def test_what_is_made_harmless(stack: Stack) -> None:
    forged = {"SCHILY.xattr.trusted.overlay.opaque": "y", "SCHILY.xattr.user.overlay.opaque": "y"}
    root = stack(
        LOWER,
        [
            entry("whiteout", tarfile.CHRTYPE, devmajor=0, devminor=0),
            entry("disk", tarfile.BLKTYPE, devmajor=8, devminor=0),
            entry("su", content=b"x", mode=0o6755, uid=0),
            entry("games", content=b"x", mode=0o4755, uid=5),
            entry("a", tarfile.DIRTYPE, mode=0o755, pax_headers=forged),
            entry(".wh..wh.plnk", tarfile.DIRTYPE),
            entry("dev/mem", tarfile.CHRTYPE, devmajor=1, devminor=1),
            entry("dev/.wh.null"),
        ],
    )
    assert listing(root) == {"a", "a/x", "a/y", "a/sub", "a/sub/z", "top", "su", "games"}
    for name in ("su", "games"):
        assert (root / name).stat().st_mode & 0o7777 == 0o755
        assert is_program(str(root / name), (root / name).stat()) == (name == "su")
    assert os.listxattr(root / "a") == []


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([entry("../escaped", content=b"x")], "is outside the tree"),
        ([entry("a/../../escaped", content=b"x")], "is outside the tree"),
        ([entry("../.wh.secret")], "is outside the tree"),
        ([entry(".wh...")], "names no file"),
        ([entry("a/.wh..")], "names no file"),
        ([entry(".wh.")], "names no file"),
        ([entry("a/.wh.x/y", content=b"x")], "is below a whiteout"),
        ([entry(".wh..wh..opq/y")], "is below a whiteout"),
        ([entry("stolen", tarfile.LNKTYPE, linkname="../secret")], "is outside the tree"),
        ([entry("stolen", tarfile.LNKTYPE, linkname="/secret")], "not an earlier file"),
        ([link("one", "two"), link("two", "one"), entry("one/x")], "too many levels"),
        ([entry("top/inner", content=b"x")], "not a directory"),
        ([directory("d"), entry("d", content=b"x")], "a directory and then"),
        ([directory("a/n"), entry("a/n/f"), entry("a", tarfile.LNKTYPE, linkname="top")], "and th"),
        ([entry("n" * 300, content=b"x")], "not a complete tar archive"),
        ([entry("/".join(["d"] * 600), content=b"x")], "directories deep"),
        ([link("empty", "")], "not a complete tar archive"),
        ([entry("b", content=b"x" * 20_000), entry("c", content=b"x" * 20_000)], "more bytes than"),
    ],
)
def test_hostile_layers_are_refused(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, entries: list[Entry], message: str
) -> None:
    monkeypatch.setenv("INTERCODE_IMAGE_LIMIT", "30K")
    with pytest.raises(DataError, match=message):
        stack(LOWER, entries)


def test_a_link_to_itself_replaced_and_whited_out_never_leaves_the_tree(
    stack: Stack, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "file").write_text("whole")
    root = stack(
        [link("out", str(victim)), link("gone", str(victim / "file"))],
        [entry("out/.wh.file"), entry("out/.wh..wh..opq"), entry(".wh.gone")],
        [entry("out", content=b"now a file")],
    )
    assert (victim / "file").read_text() == "whole"
    assert listing(root) == {"out"} and not (root / "out").is_symlink()


def test_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bounds = UnpackLimits(100, entries=2)
    bounds.count_entry("image", 60)
    with pytest.raises(DataError, match="has a size of -1 bytes"):
        bounds.count_entry("image", -1)
    bounds.count_entry("image", 40)
    with pytest.raises(DataError, match="entries"):
        bounds.count_entry("image")
    monkeypatch.setenv("INTERCODE_IMAGE_LIMIT", "2G")
    assert UnpackLimits.for_directory(tmp_path).size <= 2 << 30
    monkeypatch.setenv("INTERCODE_IMAGE_LIMIT", "much")
    with pytest.raises(ValueError, match="write bytes or such as 20G"):
        UnpackLimits.for_directory(tmp_path)
