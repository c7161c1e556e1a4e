"""Valid, hostile and broken tar archives."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from intercode_sandbox.errors import DataError
from intercode_sandbox.images.archives import tar

ME = os.geteuid()
Entry = tuple[str, bytes, dict[str, object], bytes]


def entry(
    name: str, kind: bytes = tarfile.REGTYPE, content: bytes = b"", **metadata: object
) -> Entry:
    return name, kind, {"mode": 0o644, "mtime": 1_000_000_000, **metadata}, content


def make(path: Path, entries: Sequence[Entry], mode: str = "w") -> Path:
    with tarfile.open(path, mode, format=tarfile.PAX_FORMAT) as archive:
        for name, kind, metadata, content in entries:
            member = tarfile.TarInfo(name)
            member.type, member.size = kind, len(content)
            for key, value in metadata.items():
                setattr(member, key, value)
            archive.addfile(member, io.BytesIO(content))
    return path


@pytest.fixture
def unpack(tmp_path: Path) -> Callable[..., Path]:
    def unpack(*entries: Entry) -> Path:
        root = tmp_path / "box" / "root"
        root.mkdir(parents=True)
        tar.unpack(make(tmp_path / "a.tar", entries), root, ME)
        return root

    return unpack


def outside(root: Path) -> list[Path]:
    """Return the entries beside the tree; an archive must not create any."""
    return [p for p in root.parent.rglob("*") if root not in (p, *p.parents)]


def test_preserved_and_dropped_attributes(unpack: Callable[..., Path]) -> None:
    root = unpack(
        entry("./", tarfile.DIRTYPE, mode=0o755),
        entry("./d", tarfile.DIRTYPE, mode=0o1777, pax_headers={"mtime": "1700000000.123456789"}),
        entry("d/file", content=b"text", mode=0o6751, pax_headers={"mtime": "1700000000.5"}),
        entry("d/again", tarfile.LNKTYPE, linkname="./d/file"),
        entry("d/link", tarfile.SYMTYPE, linkname="/etc/passwd", mtime=1_500_000_000),
        entry("d/pipe", tarfile.FIFOTYPE, mode=0o620),
        entry("closed", tarfile.DIRTYPE, mode=0o500),
        entry("closed/inner", content=b"x", mode=0o400),
        entry("implied/deep/file", content=b"y"),
        entry("disk", tarfile.BLKTYPE, devmajor=8, devminor=0),
        entry("dev", tarfile.DIRTYPE, mode=0o755),
        entry("dev/null", tarfile.CHRTYPE, devmajor=1, devminor=3),
        entry("dev/fd", tarfile.SYMTYPE, linkname="/proc/self/fd"),
    )
    names = {str(p.relative_to(root)) for p in root.rglob("*")}
    assert names == {
        "d",
        "d/file",
        "d/again",
        "d/link",
        "d/pipe",
        "closed",
        "closed/inner",
        "implied",
        "implied/deep",
        "implied/deep/file",
        "dev",
    }
    modes = {n: stat.S_IMODE((root / n).lstat().st_mode) for n in names - {"d/link"}}
    assert (modes["d"], modes["d/file"], modes["d/pipe"]) == (0o1777, 0o751, 0o620)
    assert (modes["closed"], modes["closed/inner"], modes["implied"]) == (0o700, 0o400, 0o755)
    assert (root / "d").stat().st_mtime_ns == 1_700_000_000_123_456_789
    assert (root / "d/file").stat().st_mtime_ns == 1_700_000_000_500_000_000
    assert (root / "d/file").samefile(root / "d/again")
    assert os.readlink(root / "d/link") == "/etc/passwd"
    assert (root / "d/link").lstat().st_mtime == 1_500_000_000
    assert stat.S_ISFIFO((root / "d/pipe").stat().st_mode)
    assert {p.lstat().st_uid for p in root.rglob("*")} == {ME}


def test_names_that_are_not_text_and_sparse_files(tmp_path: Path) -> None:
    odd = os.fsdecode(b"na\xffme\n")
    path = make(tmp_path / "a.tar", [entry(odd, content=b"1"), entry("l" * 200, content=b"2")])
    (tmp_path / "r").mkdir()
    tar.unpack(path, tmp_path / "r", ME)
    assert set(os.listdir(tmp_path / "r")) == {odd, "l" * 200}


@pytest.mark.parametrize(
    "entries",
    [
        [entry("/etc/escaped", content=b"x")],
        [entry("../escaped", content=b"x")],
        [entry("a/../../escaped", content=b"x")],
        [entry("..", tarfile.DIRTYPE)],
        [entry("../escaped", tarfile.DIRTYPE)],
        [entry("../escaped", tarfile.SYMTYPE, linkname="x")],
        [entry("stolen", tarfile.LNKTYPE, linkname="/etc/passwd")],
        [entry("stolen", tarfile.LNKTYPE, linkname="../secret")],
        [entry("up", tarfile.SYMTYPE, linkname=".."), entry("up/escaped", content=b"x")],
        [entry("up", tarfile.SYMTYPE, linkname=".."), entry("up/escaped/", tarfile.DIRTYPE)],
        [entry("up", tarfile.SYMTYPE, linkname=".."), entry("up/e", tarfile.SYMTYPE, linkname="x")],
        [entry("up", tarfile.SYMTYPE, linkname=".."), entry("up/e/f", content=b"x")],
        [
            entry("up", tarfile.SYMTYPE, linkname=".."),
            entry("stolen", tarfile.LNKTYPE, linkname="up/secret"),
        ],
        [
            entry("a", tarfile.SYMTYPE, linkname="b"),
            entry("b", tarfile.SYMTYPE, linkname=".."),
            entry("a/escaped", content=b"x"),
        ],
        [entry("file", content=b"x"), entry("file/inner", content=b"x")],
        [entry("d", tarfile.DIRTYPE), entry("d", tarfile.SYMTYPE, linkname="..")],
        [entry("d/f", content=b"x"), entry("d", tarfile.SYMTYPE, linkname="..")],
        [entry("gone", tarfile.LNKTYPE, linkname="nothing")],
        [entry("odd", b"Z")],
        [entry("late", pax_headers={"mtime": "soon"})],
        [entry("late", pax_headers={"mtime": "1e99"})],
    ],
)
def test_hostile_archives_are_refused(
    unpack: Callable[..., Path], tmp_path: Path, entries: list[Entry]
) -> None:
    (tmp_path / "box").mkdir()
    (tmp_path / "box" / "secret").write_text("secret")
    root = tmp_path / "box" / "root"
    with pytest.raises(DataError, match=r"a\.tar"):
        unpack(*entries)
    assert outside(root) == [root.parent / "secret"]
    assert (root.parent / "secret").stat().st_nlink == 1


def test_a_repeated_entry_replaces_the_first_and_follows_no_link(
    unpack: Callable[..., Path], tmp_path: Path
) -> None:
    target = tmp_path / "victim"
    target.write_text("whole")
    root = unpack(
        entry("f", tarfile.SYMTYPE, linkname=str(target)),
        entry("f", content=b"new"),
        entry("g", content=b"one"),
        entry("h", tarfile.LNKTYPE, linkname="g"),
        entry("g", content=b"two"),
        entry("s", tarfile.SYMTYPE, linkname=str(tmp_path)),
        entry("s", tarfile.DIRTYPE, mode=0o755),
        entry("s/in", content=b"in"),
    )
    assert target.read_text() == "whole"
    assert (root / "f").read_bytes() == b"new" and not (root / "f").is_symlink()
    assert ((root / "g").read_bytes(), (root / "h").read_bytes()) == (b"two", b"one")
    assert (root / "s" / "in").read_bytes() == b"in" and not (tmp_path / "in").exists()


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_broken_archives_say_so(tmp_path: Path, mode: str) -> None:
    content = os.urandom(5000)
    entries = [entry(f"f{n}", content=content) for n in range(4)]
    whole = make(tmp_path / "whole.tar", entries, mode).read_bytes()
    (tmp_path / "r").mkdir()
    tar.unpack(tmp_path / "whole.tar", tmp_path / "r", ME)
    assert (tmp_path / "r/f3").read_bytes() == content
    cuts = [whole[: len(whole) // 2], whole[: len(whole) * 5 // 8], b"", b"no tar" * 300]
    if mode == "w":
        record = 512 + 5120
        headless = whole[:record] + b"?" * 512 + whole[record + 512 :]
        cuts += [whole[:record], whole[: record + 100], headless]
    for n, broken in enumerate(cuts):
        path = tmp_path / f"broken{n}.tar"
        path.write_bytes(broken)
        (tmp_path / f"r{n}").mkdir()
        with pytest.raises(DataError, match=rf"broken{n}\.tar"):
            tar.unpack(path, tmp_path / f"r{n}", ME)


def test_zstd_without_support_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "a.tar.zst").write_bytes(b"\x28\xb5\x2f\xfd" + b"\0" * 600)
    (tmp_path / "r").mkdir()
    with pytest.raises(DataError, match=r"a\.tar\.zst"):
        tar.unpack(tmp_path / "a.tar.zst", tmp_path / "r", ME)


@pytest.mark.parametrize("kind", [tarfile.REGTYPE, b"Z"])
def test_an_entry_of_an_endless_size_ends(tmp_path: Path, kind: bytes) -> None:
    entry = tarfile.TarInfo("dev/x")  # which is skipped
    entry.type, entry.size = kind, 1 << 62
    (tmp_path / "root").mkdir()
    archive = tmp_path / "endless.tar"
    archive.write_bytes(entry.tobuf(tarfile.GNU_FORMAT) + bytes(4096))
    with pytest.raises(DataError, match=r"is not a complete tar archive"):
        tar.unpack(archive, tmp_path / "root", 0)
