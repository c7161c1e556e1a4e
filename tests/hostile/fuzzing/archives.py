"""Saved images: layers with links, devices, whiteouts and odd names, and archives with wrong
bytes."""

from __future__ import annotations

import shutil
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from hostile.fuzzing.outside import Outside
from intercode.core.errors import InterCodeError
from intercode_sandbox.images import resolve
from support.saved_images import Entry, Saved, entry, layer, zipped

_KINDS = (
    tarfile.REGTYPE,
    tarfile.DIRTYPE,
    tarfile.SYMTYPE,
    tarfile.LNKTYPE,
    tarfile.CHRTYPE,
    tarfile.BLKTYPE,
    tarfile.FIFOTYPE,
    tarfile.CONTTYPE,
    tarfile.AREGTYPE,
    b"Z",
)
_PARTS = (
    "a",
    "b",
    "etc",
    "usr",
    "bin",
    "..",
    ".",
    "",
    ".wh.a",
    ".wh..wh..opq",
    ".wh.",
    ".wh..",
    "é",
    "\udcff",
    "x" * 255,
    "x" * 256,
    "\n",
    "a b",
    "\\",
    "manifest.json",
)
_NUMBERS = st.one_of(st.integers(-1, 2), st.sampled_from((-(1 << 40), 1 << 31, 1 << 62)))


@dataclass(frozen=True, slots=True)
class Archive:
    """The layers of an image, how it is stored, and bytes of the archive to replace."""

    layers: list[list[Entry]]
    oci: bool
    zipped: bool
    damage: list[tuple[int, int]]


class Archives:
    """Unpacking saved images. It writes below the cache only, and reads nothing outside of the
    archive. A faulty archive is an error of this package."""

    limit, memory = 20.0, 256 << 20

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="fuzz-images-"))
        self.outside = Outside(self.folder / "outside")

    def cases(self) -> st.SearchStrategy[Archive]:
        """Return a strategy of archives."""
        place = st.lists(st.sampled_from(_PARTS), min_size=1, max_size=4).map("/".join)
        path = st.one_of(
            place,
            place.map("/{}".format),
            st.sampled_from(("@OUTSIDE@", "@OUTSIDE@/secret", "@OUTSIDE@/made")),
            st.integers(1, 12).map(lambda up: "../" * up + "@OUTSIDE@/secret"),
        )
        header = st.fixed_dictionaries(
            {"mode": st.integers(0, 0o7777), "linkname": path},
            optional={
                "mtime": _NUMBERS,
                "uid": _NUMBERS,
                "gid": _NUMBERS,
                "devmajor": st.integers(0, 8),
                "devminor": st.integers(0, 8),
                "pax_headers": st.dictionaries(
                    st.sampled_from(
                        (
                            "path",
                            "linkpath",
                            "size",
                            "mtime",
                            "uid",
                            "SCHILY.xattr.user.a",
                            "SCHILY.xattr.trusted.overlay.opaque",
                            "GNU.sparse.map",
                            "GNU.sparse.major",
                            "GNU.sparse.realsize",
                        ),
                    ),
                    st.one_of(st.text(max_size=5), path, _NUMBERS.map(str)),
                    max_size=2,
                ),
            },
        )
        entries = st.builds(
            lambda name, kind, content, header: entry(name, kind, content, **header),
            path,
            st.sampled_from(_KINDS),
            st.binary(max_size=20),
            header,
        )
        damage = st.lists(st.tuples(st.integers(0, 20_000), st.integers(0, 255)), max_size=3)
        return st.builds(
            Archive,
            st.lists(st.lists(entries, max_size=6), min_size=1, max_size=3),
            st.booleans(),
            st.booleans(),
            st.one_of(st.just([]), damage),
        )

    def attack(self, case: Archive) -> None:
        """Write the archive and resolve it as an image."""
        work = self.folder / "work"
        work.mkdir()
        try:
            if (spec := self._write(case, work)) is None:
                return
            cache = work / "cache"
            try:
                root = resolve(spec, cache).root
            except InterCodeError:
                root = None
            self.outside.check(cache)
            assert root is None or root.is_relative_to(cache), f"the image is at {root}"
        finally:
            _remove(work)

    def _write(self, case: Archive, work: Path) -> str | None:
        """Return the image's specification, or None if a tar cannot hold these entries."""
        place = str(self.outside.folder)

        def fill(value: Any) -> Any:
            if isinstance(value, dict):
                return {key: fill(each) for key, each in value.items()}
            return value.replace("@OUTSIDE@", place) if isinstance(value, str) else value

        try:
            tars = [
                layer(*((fill(n), k, fill(h), c) for n, k, h, c in entries))
                for entries in case.layers
            ]
        except (ValueError, tarfile.HeaderError, OverflowError):
            return None
        saved = Saved(tars, store=zipped if case.zipped else bytes)
        if case.oci:
            path = saved.oci(work / "image")
            files = [*sorted((path / "blobs" / "sha256").iterdir()), path / "index.json"]
        else:
            path = saved.docker_archive(work / "image.tar", "a:b")
            files = [path]
        for at, byte in case.damage:
            file = files[at % len(files)]
            data = bytearray(file.read_bytes())
            data[at % len(data)] = byte
            file.write_bytes(data)
        return f"{'oci' if case.oci else 'docker-archive'}:{path}"

    def close(self) -> None:
        """Remove the files."""
        _remove(self.folder)


def _remove(folder: Path) -> None:
    for directory in folder.rglob("*"):
        if directory.is_dir() and not directory.is_symlink():
            directory.chmod(0o755)
    shutil.rmtree(folder)
