"""The settings of this machine in /etc that its programs read, for sandboxes that show the programs
(the image ``host``)."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from intercode_sandbox.types import Network

_ETC = Path("/etc")
_CERTIFICATES = (
    "ca-certificates/extracted",
    "pki/ca-trust/extracted",
    "pki/tls/cert.pem",
    "pki/tls/certs",
    "ssl/ca-bundle.pem",
    "ssl/cert.pem",
    "ssl/certs",
)
SETTINGS = (
    *_CERTIFICATES,
    "X11/rgb.txt",
    "crypto-policies",
    "debian_version",
    "ethertypes",
    "fonts",
    "gai.conf",
    "groff",
    "host.conf",
    "inputrc",
    "iproute2",
    "locale.alias",
    "login.defs",
    "magic",
    "magic.mime",
    "manpath.config",
    "maven/logging",
    "maven/m2.conf",
    "mime.types",
    "networks",
    "os-release",
    "pki/tls/openssl.cnf",
    "protocols",
    "rpc",
    "services",
    "sgml",
    "shells",
    "ssl/openssl.cnf",
    "terminfo",
    "xml",
)
"""Files and directories. None holds keys: a private key is left out wherever it lies."""
JAVA_DIRECTORIES, JAVA_ENTRIES = "java-*-openjdk", "java-*"
"""Patterns of what Debian's Java needs to start. It is not copied: a root of its own gets binds of
the directories, and commands of the tier ``landlock`` may read the entries."""
TIME_ZONE = ("localtime", "timezone")
"""Only on the machine's network: elsewhere all machines give the same time zone, UTC."""
_PRIVATE = "PRIVATE KEY-----"
_MAX_FILE, _MAX_ALL = 4 << 20, 16 << 20  # bytes


@dataclass(frozen=True)
class HostSettings:
    """Files to write into a root, as ``supervisor.root_files`` writes them, with a name of their
    content."""

    files: dict[str, list[Any]]
    digest: str


def setting_names(network: Network) -> tuple[str, ...]:
    """Return what sandboxes with this network show in /etc."""
    return (*SETTINGS, *(TIME_ZONE if network == "host" else ()))


def java_settings(pattern: str) -> list[str]:
    """Return the paths in /etc that match one of the two patterns of Java."""
    return sorted(map(str, _ETC.glob(pattern)))


@functools.lru_cache(maxsize=2)
def read_settings(network: Network) -> HostSettings:
    """Return the settings that everybody may read. They are read once in a process."""
    files: dict[str, list[Any]] = {}
    left = _MAX_ALL
    for name in setting_names(network):
        for path in _walk(_ETC / name):
            entry = _read(path, min(left, _MAX_FILE))
            if entry is not None:
                for parent in [p for p in reversed(path.parents) if p.is_relative_to(_ETC)][1:]:
                    files.setdefault(str(parent), [0o755, None])
                files[str(path)] = entry
                left -= len(entry[1] or "")
    digest = hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()
    return HostSettings(files, digest)


def _walk(path: Path) -> Iterator[Path]:
    yield path
    if path.is_dir() and not path.is_symlink():
        with suppress(OSError):
            for entry in sorted(path.iterdir()):
                yield from _walk(entry)


def _read(path: Path, limit: int) -> list[Any] | None:
    """Return mode and content of a setting, or None if a sandbox may not have it."""
    with suppress(OSError):
        info = path.lstat()
        if stat.S_ISLNK(info.st_mode):
            return [None, os.readlink(path)]
        if stat.S_ISDIR(info.st_mode):
            return [0o755, None] if info.st_mode & 0o005 == 0o005 else None
        if stat.S_ISREG(info.st_mode) and info.st_mode & 0o004 and info.st_size <= limit:
            text = path.read_bytes().decode("utf-8", "surrogateescape")
            return None if _PRIVATE in text else [0o644, text]
    return None
