"""Docker and Podman archives and OCI layouts: accepted, refused, shared by content."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import shutil
import stat
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from intercode_sandbox.errors import DataError, UsageError
from intercode_sandbox.images import resolve
from intercode_sandbox.platforms.paths import sandbox_uid
from support.saved_images import (
    Saved,
    described,
    directory,
    entry,
    layer,
    listing,
    sha,
    write_layout,
    write_tar,
)

FIRST = layer(directory("etc"), entry("etc/a", content=b"one"), entry("gone", content=b"g"))
SECOND = layer(entry("etc/a", content=b"two", mode=0o4755), entry(".wh.gone"))
START = {
    "Env": ["PATH=/bin", "LANG=C.UTF-8", "EMPTY="],
    "WorkingDir": "/etc/",
    "Entrypoint": ["/a", "b"],
}


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def saved() -> Saved:
    return Saved([FIRST, SECOND], start=START)


def test_a_docker_archive(saved: Saved, tmp_path: Path, cache: Path) -> None:
    path = saved.docker_archive(tmp_path / "a.tar", "mine:latest", "host:5000/mine:2")
    image = resolve(f"docker-archive:{path}", cache)
    assert image.digest == saved.digest and image.root is not None
    assert listing(image.root) == {"etc", "etc/a"}
    assert (image.root / "etc/a").read_text() == "two"
    assert stat.S_IMODE((image.root / "etc/a").stat().st_mode) == 0o755
    assert {p.lstat().st_uid for p in image.root.rglob("*")} == {sandbox_uid()}
    assert image.env == {"PATH": "/bin", "LANG": "C.UTF-8", "EMPTY": ""} and image.cwd == "/etc"
    assert image.entrypoint == ("/a", "b")
    for name in ("mine", "mine:latest", "host:5000/mine:2", "mine:2"):
        assert resolve(f"docker-archive:{path}:{name}", cache).root == image.root
    with pytest.raises(UsageError, match=r"no image 'other'; it has mine:latest, host:5000/mine:2"):
        resolve(f"docker-archive:{path}:other", cache)
    with pytest.raises(UsageError, match="there is no file or directory"):
        resolve(f"docker-archive:{tmp_path}/absent.tar:x", cache)


def test_all_forms_of_an_image_are_one(saved: Saved, tmp_path: Path, cache: Path) -> None:
    folder = saved.oci(tmp_path / "oci", "v1")
    packed = tmp_path / "oci.tar"
    with tarfile.open(packed, "w") as archive:
        archive.add(folder, ".")
    plain = Saved([FIRST, SECOND], store=lambda data: data, start=START).oci(tmp_path / "plain")
    archive_ = saved.docker_archive(tmp_path / "a.tar")
    whole = tmp_path / "a.tar.gz"
    whole.write_bytes(gzip.compress(archive_.read_bytes()))
    specs = [
        f"oci:{folder}",
        f"oci:{folder}:v1",
        f"oci:{packed}",
        f"oci:{plain}",
        f"docker-archive:{archive_}",
        f"docker-archive:{whole}",
        f"docker-archive:{packed}",
    ]
    images = [resolve(spec, cache) for spec in specs]
    assert {image.digest for image in images} == {saved.digest}
    assert [image.name for image in images] == specs
    assert len(list((cache / "layers").glob("[!.]*"))) == 1


@pytest.mark.parametrize("store", [bz2.compress, lzma.compress, gzip.compress, bytes])
def test_layers_may_be_compressed_in_any_way(
    store: Callable[[bytes], bytes], tmp_path: Path, cache: Path
) -> None:
    image = resolve(f"oci:{Saved([FIRST], store=store).oci(tmp_path / 'o')}", cache)
    assert image.root is not None and (image.root / "etc/a").read_text() == "one"


def test_zstd(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if sys.version_info >= (3, 14):
        from compression.zstd import compress
    else:
        module = pytest.importorskip("zstandard", reason="pip install 'intercode-sandbox[zstd]'")
        compress = module.compress
    spec = f"oci:{Saved([FIRST], store=compress).oci(tmp_path / 'o')}"
    if sys.version_info < (3, 14):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, "zstandard", None)
            with pytest.raises(UsageError, match=r"the extra zstd .*zstd -d"):
                resolve(spec, cache)
    image = resolve(spec, cache)
    assert image.root is not None and (image.root / "etc/a").read_text() == "one"
    cut = Saved([FIRST], store=lambda data: compress(data)[:-20]).oci(tmp_path / "cut")
    with pytest.raises(DataError):
        resolve(f"oci:{cut}", tmp_path / "other")


def test_several_images_have_to_be_named(tmp_path: Path, cache: Path, saved: Saved) -> None:
    folder = saved.oci(tmp_path / "oci", "v1", "registry.example/name:v2")
    with pytest.raises(UsageError, match=r"several images: .*registry.example/name:v2, v1"):
        resolve(f"oci:{folder}", cache)
    with pytest.raises(UsageError, match="no image 'v3'"):
        resolve(f"oci:{folder}:v3", cache)
    for name in ("v1", "v2", "registry.example/name:v2", "name:v2"):
        assert resolve(f"oci:{folder}:{name}", cache).digest == saved.digest
    path = saved.docker_archive(tmp_path / "a.tar", "a:1")
    entries = json.loads(_member(path, "manifest.json"))
    several = [entries[0], {**entries[0], "RepoTags": ["b:1"]}]
    files = {name: _member(path, name) for name in _names(path)}
    write_tar(path, {**files, "manifest.json": json.dumps(several).encode()})
    with pytest.raises(UsageError, match=r"holds 2 images: .* out of a:1, b:1"):
        resolve(f"docker-archive:{path}", cache)
    assert resolve(f"docker-archive:{path}:b:1", cache).digest == saved.digest


def _names(path: Path) -> list[str]:
    with tarfile.open(path) as archive:
        return archive.getnames()


def _member(path: Path, name: str) -> bytes:
    with tarfile.open(path) as archive:
        source = archive.extractfile(name)
        assert source is not None
        return source.read()


def test_the_image_for_this_machine_is_taken(tmp_path: Path, cache: Path, saved: Saved) -> None:
    blobs: dict[str, bytes] = {}
    mine, other_platform = (
        saved.manifest(blobs),
        Saved([SECOND], overrides={"architecture": "s390x"}),
    )
    other = other_platform.manifest(blobs)
    machine = json.loads(saved.config)["architecture"]
    listed = [
        {**described(other), "platform": {"os": "linux", "architecture": "s390x"}},
        {**described(b"attestation"), "platform": {"os": "unknown", "architecture": "unknown"}},
        {**described(mine), "platform": {"os": "linux", "architecture": machine}},
    ]
    inner = json.dumps({"schemaVersion": 2, "manifests": listed}).encode()
    blobs |= {sha(data): data for data in (mine, other, inner)}
    write_layout(tmp_path / "o", blobs, {"manifests": [described(inner)]})
    assert resolve(f"oci:{tmp_path / 'o'}", cache).digest == saved.digest
    write_layout(tmp_path / "p", blobs, {"manifests": listed[:2]})
    with pytest.raises(UsageError, match=r"it has linux/s390x, unknown/unknown"):
        resolve(f"oci:{tmp_path / 'p'}", cache)
    with pytest.raises(UsageError, match="an image for linux/s390x"):
        resolve(f"docker-archive:{other_platform.docker_archive(tmp_path / 's.tar')}", cache)


@pytest.mark.parametrize("what", ["manifest", "config", "layer", "unpacked"])
def test_a_wrong_digest_is_refused(what: str, saved: Saved, tmp_path: Path, cache: Path) -> None:
    folder = saved.oci(tmp_path / "o")
    blobs: dict[str, bytes] = {}
    manifest = saved.manifest(blobs)
    changed = {
        "manifest": (manifest, manifest + b"\n"),
        "config": (saved.config, saved.config.replace(b"/etc/", b"/tmp/")),
        "layer": (gzip.compress(FIRST, mtime=0), gzip.compress(FIRST, 1)),
        "unpacked": (FIRST, layer(entry("evil"))),
    }[what]
    if what == "unpacked":  # Docker archives have no other digest for a layer
        path = saved.docker_archive(tmp_path / "a.tar")
        files = {name: _member(path, name) for name in _names(path)}
        files[f"{sha(FIRST)}.tar"] = changed[1]
        spec = f"docker-archive:{write_tar(path, files)}"
    else:
        (folder / "blobs/sha256" / sha(changed[0])).write_bytes(changed[1])
        spec = f"oci:{folder}"
    with pytest.raises(DataError, match=r"digest|unpacks to sha256"):
        resolve(spec, cache)
    assert not list((cache / "layers").glob("[!.]*")), "nothing of it may be used"


def test_a_configuration_with_another_digest_than_its_name(
    saved: Saved, tmp_path: Path, cache: Path
) -> None:
    path = saved.docker_archive(tmp_path / "a.tar")
    files = {name: _member(path, name) for name in _names(path)}
    files[f"{sha(saved.config)}.json"] = saved.config.replace(b"/etc/", b"/tmp/")
    with pytest.raises(DataError, match="has the wrong digest"):
        resolve(f"docker-archive:{write_tar(path, files)}", cache)


CONFIG: list[tuple[dict[str, Any], str]] = [
    ({"rootfs": {"diff_ids": ["sha256:short"]}}, "is not a digest"),
    ({"rootfs": {"diff_ids": []}}, "has 1 layers, its configuration names 0"),
    ({"rootfs": None}, "rootfs"),
    ({"rootfs": {"diff_ids": "x"}}, "diff_ids"),
    ({"config": {"Env": "x"}}, "Env"),
    ({"config": {"WorkingDir": "/a/../../b"}}, "is invalid"),
    ({"os": "windows"}, "windows/"),
    ({"architecture": 7}, "architecture"),
]


@pytest.mark.parametrize(("config", "message"), CONFIG)
def test_faulty_configurations(
    config: dict[str, Any], message: str, tmp_path: Path, cache: Path
) -> None:
    path = Saved([FIRST], overrides=config).docker_archive(tmp_path / "a.tar")
    with pytest.raises(UsageError, match=message):
        resolve(f"docker-archive:{path}", cache)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"x": b""}, "has no manifest.json"),
        ({"manifest.json": b"{"}, "is not valid JSON"),
        ({"manifest.json": b"{}"}, "is of type dict, not list"),
        ({"manifest.json": b"[]"}, "lists no image"),
        ({"manifest.json": b"[" * 100_000}, "is not valid JSON"),
        ({"manifest.json": b'[{"Config": "../../etc/passwd", "Layers": []}]'}, "lacks"),
        ({"manifest.json": b'[{"Config": "c", "Layers": [1]}]', "c": b"{}"}, "not names"),
        ({"manifest.json": b'[{"Config": "c", "Layers": []}]', "c": b"{}"}, "rootfs"),
        ({"index.json": b"{}", "oci-layout": b""}, "nothing"),
        ({"index.json": b'{"manifests": [{"digest": "sha256:../../x"}]}'}, "is not a digest"),
        ({"index.json": b'{"manifests": [{"digest": "md5:00"}]}'}, "is not a digest"),
        ({"index.json": b'{"manifests": 7}'}, "is not of type list"),
    ],
)
def test_faulty_archives(
    files: dict[str, bytes], message: str, tmp_path: Path, cache: Path
) -> None:
    path = write_tar(tmp_path / "a.tar", files)
    with pytest.raises(UsageError, match=message):
        resolve(f"docker-archive:{path}", cache)


def test_indexes_without_an_end_and_old_schemas(tmp_path: Path, cache: Path) -> None:
    data = b'{"schemaVersion": 1, "fsLayers": []}'
    write_layout(tmp_path / "old", {sha(data): data}, {"manifests": [described(data)]})
    with pytest.raises(DataError, match="schema 1"):
        resolve(f"oci:{tmp_path / 'old'}", cache)
    blobs = {}
    for _ in range(6):
        data = json.dumps({"manifests": [described(data)]}).encode()
        blobs[sha(data)] = data
    write_layout(tmp_path / "deep", blobs, {"manifests": [described(data)]})
    with pytest.raises(DataError, match="nested more than"):
        resolve(f"oci:{tmp_path / 'deep'}", cache)


def test_bombs(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that decompresses to too much, an endless archive, and a huge header."""
    monkeypatch.setenv("INTERCODE_IMAGE_LIMIT", "1M")
    zeros = layer(entry("zeros", content=bytes(2 << 20)))
    endless = FIRST + bytes(4 << 20)
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 1 << 32
    for data, message in [
        (zeros, "unpacks to more bytes than may be written"),
        (endless, "more than the allowed"),
        (header.tobuf(), "a header of 4294967296 bytes"),
    ]:
        path = Saved([data]).oci(tmp_path / sha(data))
        with pytest.raises(DataError, match=message):
            resolve(f"oci:{path}", cache)
    assert not list((cache / "layers").glob("[!.]*"))


def test_parts_that_are_not_plain_files(saved: Saved, tmp_path: Path, cache: Path) -> None:
    """A layout whose blobs are pipes or directories does not block the reader."""
    folder = saved.oci(tmp_path / "o")
    index = folder / "index.json"
    blob = folder / "blobs/sha256" / json.loads(index.read_text())["manifests"][0]["digest"][7:]
    blob.unlink()
    os.mkfifo(blob)
    with pytest.raises(DataError, match="is not a plain file"):
        resolve(f"oci:{folder}", cache)
    shutil.rmtree(folder / "blobs")
    with pytest.raises(DataError, match=r"lacks blobs/sha256/.* save it again"):
        resolve(f"oci:{folder}", cache)


def test_archives_that_count_as_a_plain_tar(saved: Saved, tmp_path: Path, cache: Path) -> None:
    path = saved.docker_archive(tmp_path / "a.tar")
    with pytest.raises(UsageError, match=f"write docker-archive:{path}"):
        resolve(f"tar:{path}", cache)
    (tmp_path / "x:y").mkdir()
    odd = shutil.copy(path, tmp_path / "x:y" / "a:b.tar")
    assert resolve(f"docker-archive:{odd}", cache).digest == saved.digest
