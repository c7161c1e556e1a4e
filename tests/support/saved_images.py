"""Saved images built by tests: layers from entries, and Docker archives or OCI layouts of them."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from intercode_sandbox.images.oci.documents import architecture

Entry = tuple[str, bytes, dict[str, Any], bytes]


def entry(name: str, kind: bytes = tarfile.REGTYPE, content: bytes = b"", **header: Any) -> Entry:
    """An entry of a layer: name, kind as in tarfile, content, attributes of its TarInfo."""
    return name, kind, {"mode": 0o644, "mtime": 1_000_000_000, **header}, content


def directory(name: str, mode: int = 0o755) -> Entry:
    """Return a directory."""
    return entry(name, tarfile.DIRTYPE, mode=mode)


def link(name: str, target: str) -> Entry:
    """Return a symbolic link."""
    return entry(name, tarfile.SYMTYPE, linkname=target)


def layer(*entries: Entry) -> bytes:
    """Return the tar of a layer."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, kind, header, content in entries:
            member = tarfile.TarInfo(name)
            member.type, member.size = kind, len(content)
            for key, value in header.items():
                setattr(member, key, value)
            archive.addfile(member, io.BytesIO(content))
    return out.getvalue()


def sha(data: bytes) -> str:
    """Return the SHA-256 of some bytes as hex."""
    return hashlib.sha256(data).hexdigest()


def zipped(data: bytes) -> bytes:
    """Compress bytes with gzip; the result is always the same."""
    return gzip.compress(data, mtime=0)


@dataclass
class Saved:
    """An image of these layers (tars); ``store`` makes the stored form of each tar."""

    layers: Sequence[bytes]
    store: Callable[[bytes], bytes] = zipped
    start: dict[str, Any] = field(default_factory=dict)
    overrides: dict[str, Any] = field(default_factory=dict)

    @property
    def config(self) -> bytes:
        """Return the bytes of the configuration."""
        table = {
            "architecture": architecture(),
            "os": "linux",
            "config": self.start,
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{sha(d)}" for d in self.layers]},
            **self.overrides,
        }
        return json.dumps(table).encode()

    @property
    def digest(self) -> str:
        """Return the image id: the digest of its configuration."""
        return f"sha256:{sha(self.config)}"

    def manifest(self, blobs: dict[str, bytes]) -> bytes:
        """Return the bytes of the manifest; put the blobs that it names into ``blobs`` by
        digest."""
        stored = [self.store(data) for data in self.layers]
        for data in (self.config, *stored):
            blobs[sha(data)] = data
        table = {
            "schemaVersion": 2,
            "config": described(self.config),
            "layers": [described(data) for data in stored],
        }
        return json.dumps(table).encode()

    def docker_archive(self, path: Path, *names: str) -> Path:
        """Write the archive that `docker save` writes."""
        files = {f"{sha(data)}.tar": data for data in self.layers}
        config = f"{sha(self.config)}.json"
        listed = [
            {
                "Config": config,
                "RepoTags": list(names) or None,
                "Layers": [f"{sha(data)}.tar" for data in self.layers],
            }
        ]
        files |= {config: self.config, "manifest.json": json.dumps(listed).encode()}
        return write_tar(path, files)

    def oci(self, path: Path, *names: str) -> Path:
        """Write an OCI layout as a directory, with one entry for each name, or one without a
        name."""
        blobs: dict[str, bytes] = {}
        found = []
        for name in names or ("",):
            data = self.manifest(blobs)
            blobs[sha(data)] = data
            notes = {"annotations": {"org.opencontainers.image.ref.name": name}} if name else {}
            found.append({**described(data), **notes})
        write_layout(path, blobs, {"schemaVersion": 2, "manifests": found})
        return path


def described(data: bytes) -> dict[str, Any]:
    """Return a descriptor of some bytes."""
    return {"mediaType": "application/test", "digest": f"sha256:{sha(data)}", "size": len(data)}


def write_layout(path: Path, blobs: dict[str, bytes], index: dict[str, Any]) -> None:
    """Write the files of an OCI layout."""
    (path / "blobs" / "sha256").mkdir(parents=True)
    for digest, data in blobs.items():
        (path / "blobs" / "sha256" / digest).write_bytes(data)
    (path / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    (path / "index.json").write_text(json.dumps(index))


def write_tar(path: Path, files: dict[str, bytes], mode: str = "w") -> Path:
    """Return a tar of these files."""
    with tarfile.open(path, mode) as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


def listing(root: Path) -> set[str]:
    """Return every path below a tree."""
    return {str(p.relative_to(root)) for p in root.rglob("*")}
