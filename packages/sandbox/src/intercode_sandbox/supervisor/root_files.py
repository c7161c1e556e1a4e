"""Generates the files of a sandbox's root that no image holds: host names, resolver, and for the
image ``host`` an /etc for the machine's own programs."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from stat import S_IMODE, S_ISDIR
from typing import Any

from intercode_sandbox.contract import STANDARD_PATH, SandboxSpec
from intercode_sandbox.determinism import RANDOM_FILE, Determinism
from intercode_sandbox.errors import UsageError
from intercode_sandbox.hidden_files import hidden_packages
from intercode_sandbox.host_settings import (
    JAVA_DIRECTORIES,
    HostSettings,
    java_settings,
    read_settings,
)
from intercode_sandbox.lines import split_lines
from intercode_sandbox.platforms.paths import cache_root, closed_directory, sandbox_uid
from intercode_sandbox.supervisor import clock

RootFiles = dict[str, list[Any]]
PACKAGE = Path(__file__).resolve().parents[1]
"""Directory of this package."""
_PASSWD = (
    "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
)
_GROUP = "root:x:0:\nnogroup:x:65534:\n"
_CLOCK_LIBRARY, _OWNER_LIBRARY = "/etc/clock.so", "/dev/owner.so"
_SOURCE_DIRECTORIES = (Path("/usr/src"), Path("/usr/local/src"))
_SYSTEM_KINDS = {"proc", "sysfs", "cgroup", "cgroup2", "devtmpfs", "devpts"}
_PROGRAM_DIRECTORIES = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")


def python_home() -> tuple[str, str] | None:
    """Return the directory of the running interpreter and a path to which root's launcher can bind
    it for its sandboxes, or None if it is in /usr."""
    source = str(Path(sys.base_prefix).resolve())
    if source == "/usr" or source.startswith("/usr/"):
        return None
    if os.geteuid() != 0:
        return source, source
    return source, str(cache_root() / "python")


def generate_root_files(spec: SandboxSpec) -> tuple[RootFiles, list[list[str]]]:
    """Return files to write below every layer, and directories of the machine to bind read-only."""
    hosts = f"127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost\n127.0.1.1\t{spec.hostname}\n"
    files: RootFiles = {
        "/dev": [0o755, None],
        "/proc": [0o555, None],
        "/sys": [0o555, None],
        "/etc": [0o755, None],
        "/etc/hosts": [0o644, hosts],
        "/etc/hostname": [0o644, spec.hostname + "\n"],
        "/etc/resolv.conf": [0o644, _resolv_conf(spec)],
    }
    if spec.appearance == "docker":
        files["/.dockerenv"] = [0o755, ""]
    if spec.determinism is not None:
        _add_determinism(files, spec, spec.determinism)
    binds: list[list[str]] = []
    if spec.image.root is None:
        _add_host_programs(files, binds)
    _add_mount_points(spec, files, binds)
    return files, binds


def _add_mount_points(spec: SandboxSpec, files: RootFiles, binds: list[list[str]]) -> None:
    """Add the paths of ``mounts`` with the modes that their directories have in the image. No part
    of a path is a link, which could lead elsewhere."""
    used = [target for _, target in [*binds, *anonymous_mounts(spec, "")]]
    for target in spec.mounts:
        for taken in used:
            if Path(target).is_relative_to(taken) or Path(taken).is_relative_to(target):
                raise UsageError(f"{target} cannot be a mount: another directory is at {taken}")
        trees = [layer.root for layer in reversed(spec.all_layers)]
        trees += [spec.image.root] if spec.image.root is not None else []
        for path in [*reversed(Path(target).parents), Path(target)][1:]:
            found = [status for tree in trees if (status := _status(tree, path))]
            trees = [tree for tree in trees if (s := _status(tree, path)) and S_ISDIR(s.st_mode)]
            content = files.get(str(path), [0, None])[1]
            if content is not None or (found and not S_ISDIR(found[0].st_mode)):
                raise UsageError(f"{target} cannot be a mount: {path} is no directory of the image")
            files.setdefault(str(path), [S_IMODE(found[0].st_mode) if found else 0o755, None])
        used.append(target)


def shown_directories(spec: SandboxSpec) -> list[list[str]]:
    """Return what ``mounts`` show: source, path in the sandbox, and the number of the source, for a
    comparison once it is mounted. Call it for each sandbox: anything may be at a path later. Raises
    UsageError for what cannot be shown."""
    return [
        [path, target, number]
        for target, source in spec.mounts.items()
        for path, number in [_shown_directory(source)]
    ]


def _status(tree: Path, path: Path) -> os.stat_result | None:
    try:
        return os.lstat(tree / path.relative_to("/"))
    except (FileNotFoundError, NotADirectoryError):
        return None


def _shown_directory(source: str | Path) -> tuple[str, str]:
    """Return the directory that a mount shows, without links, and its number. Raises UsageError."""
    path = Path(os.path.realpath(source))
    if not path.is_dir():
        raise UsageError(f"{source} cannot be mounted: it is no directory of this machine")
    info = path.stat()
    if blocked := closed_directory(path):
        raise UsageError(
            f"{source} cannot be mounted: the user of sandboxes cannot enter {blocked}: chmod o+x "
            f"{blocked}, or copy it with `files`"
        )
    device = f"{os.major(info.st_dev)}:{os.minor(info.st_dev)}"
    mounts = Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape")
    for line in split_lines(mounts):
        words, kind = line.split(" "), line.partition(" - ")[2].split(" ")[0]
        inner = re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), words[4])
        if words[2] == device and kind in _SYSTEM_KINDS:
            raise UsageError(f"{source} cannot be mounted: it is a directory of the system")
        # an engine would show it, and writable
        if inner.startswith(f"{str(path).rstrip('/')}/"):
            raise UsageError(f"{source} cannot be mounted: it holds the mount {inner}")
    return str(path), f"{info.st_dev}:{info.st_ino}"


def root_tree(spec: SandboxSpec, files: RootFiles) -> Path:
    """Return the directory that holds the result of ``generate_root_files`` and, for the image
    ``host``, the settings of the machine."""
    return cached_root_files(
        files, read_settings(spec.network) if spec.image.root is None else None
    )


def cached_root_files(files: RootFiles, settings: HostSettings | None = None) -> Path:
    """Return the directory of the cache that holds these files. Writes it if it is missing."""
    uid = sandbox_uid()
    named = [uid, files, settings.digest] if settings else [uid, files]
    digest = hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()[:24]
    home = cache_root() / "skeletons"
    final = home / digest
    if final.is_dir():
        return final
    home.mkdir(exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f"{digest}.", dir=home))
    write_root_files(temporary, {**settings.files, **files} if settings else files)
    if os.geteuid() == 0:
        for entry in (temporary, *temporary.rglob("*")):
            os.lchown(entry, uid, uid)
    try:
        temporary.rename(final)
    except OSError:  # another process wrote it first
        shutil.rmtree(temporary)
    return final


def write_root_files(directory: Path, files: RootFiles) -> None:
    """Write files below a directory, and create it if it is absent."""
    directory.mkdir(exist_ok=True)
    for path, (mode, text) in files.items():
        _write_entry(directory / path.lstrip("/"), mode, text)
    directory.chmod(0o755)


def _write_entry(path: Path, mode: int | None, text: str | None) -> None:
    """Write a directory (text None), a link (mode None), or a file."""
    if text is None:
        path.mkdir(parents=True, exist_ok=True)
    elif mode is None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(text)
        return
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert mode is not None
    path.chmod(mode)


def anonymous_mounts(spec: SandboxSpec, empty: str) -> list[list[str]]:
    """Return directories of the machine whose path must stay hidden: the interpreter's, and an
    empty one that covers every hidden directory. /dev/null covers hidden files."""
    if spec.image.root is not None:
        return []
    home = python_home()
    found = [[home[0], "/opt/python"]] if home else []
    return found + [
        [empty if path.is_dir() else "/dev/null", to] for path, to in _hidden_paths(spec)
    ]


def _hidden_paths(spec: SandboxSpec) -> list[tuple[Path, str]]:
    """Return what the image ``host`` must not show of the directories that it shows, with the paths
    in the sandbox: sources, this package and those that hide themselves, and the files of tasks."""
    home = python_home()
    trees = [(Path("/usr"), "/usr"), *([(Path(home[0]), "/opt/python")] if home else [])]
    found: list[tuple[Path, str]] = []
    for path in hidden_sources(spec):
        if not path.exists() or any(path.is_relative_to(above) for above, _ in found):
            continue
        found += [
            (path, str(Path(target, path.relative_to(tree))))
            for tree, target in trees
            if path.is_relative_to(tree)
        ]
    return found


def hidden_sources(spec: SandboxSpec) -> list[Path]:
    """Return the paths of this machine that no sandbox on the image ``host`` may show, sorted."""
    return sorted({*_SOURCE_DIRECTORIES, PACKAGE, *hidden_packages(), *spec.image.hidden})


def environment(spec: SandboxSpec) -> dict[str, str]:
    """Return the environment variables of commands."""
    path = STANDARD_PATH
    if spec.image.root is None and python_home():
        path += ":/opt/python/bin"
    base = {"PATH": path, "HOSTNAME": spec.hostname, "HOME": "/root"}
    fixed = spec.determinism.environment if spec.determinism else {}
    return {**base, **spec.image.env, **fixed, **spec.env}


def _add_determinism(files: RootFiles, spec: SandboxSpec, settings: Determinism) -> None:
    """Add a machine id, a seeded shell, and the clock library. /etc/ld.so.preload names the
    library, so it is not visible in the environment, and programs that start with an empty
    environment load it too."""
    files["/etc/machine-id"] = [0o444, f"{settings.machine_id}\n"]
    files[RANDOM_FILE] = [0o644, f"RANDOM={settings.random_seed_for(0)}\n"]
    built = clock.clock_library(settings, unpacked=_unpacked(spec))
    if built is not None:
        files[_CLOCK_LIBRARY] = [0o755, built.decode("utf-8", "surrogateescape")]
        files["/etc/ld.so.preload"] = [0o644, f"{_CLOCK_LIBRARY}\n"]


def _unpacked(spec: SandboxSpec) -> int:
    """Return when the image and its layers were unpacked, in nanoseconds since the epoch. Their
    directories change last."""
    trees = [layer.root for layer in spec.all_layers]
    trees += [spec.image.root] if spec.image.root is not None else []
    found = [_status(tree, Path("/")) for tree in trees]
    return max((status.st_ctime_ns for status in found if status), default=0)


def owner_files(spec: SandboxSpec, user: int) -> RootFiles:
    """Return the files that make programs see the user of a sandbox without user namespace as root,
    to write over those of ``generate_root_files``."""
    library = clock.clock_library(spec.determinism, user, spec.hostname, _unpacked(spec))
    assert library is not None
    has_clock = spec.determinism is not None and clock.clock_library(spec.determinism) is not None
    path = _CLOCK_LIBRARY if has_clock else _OWNER_LIBRARY
    return {
        path: [0o755, library.decode("utf-8", "surrogateescape")],
        "/etc/ld.so.preload": [0o644, f"{path}\n"],
    }


def _resolv_conf(spec: SandboxSpec) -> str:
    if spec.network not in ("none", "host"):
        from intercode_sandbox.network.rules import GATEWAY  # most sandboxes have no rules

        return f"nameserver {GATEWAY}\n"
    try:
        return Path("/etc/resolv.conf").read_text() if spec.network == "host" else ""
    except OSError:
        return ""


def _add_host_programs(files: RootFiles, binds: list[list[str]]) -> None:
    for name, mode in (
        ("/usr", 0o755),
        ("/root", 0o700),
        ("/home", 0o755),
        ("/tmp", 0o1777),
        ("/run", 0o755),
        ("/var", 0o755),
        ("/var/tmp", 0o1777),
        ("/opt", 0o755),
        ("/mnt", 0o755),
        ("/srv", 0o755),
    ):
        files[name] = [mode, None]
    files["/etc/passwd"] = [0o644, _PASSWD]
    files["/etc/group"] = [0o644, _GROUP]
    files["/etc/nsswitch.conf"] = [0o644, "passwd: files\ngroup: files\nhosts: files dns\n"]
    binds.append(["/usr", "/usr"])
    for name in _PROGRAM_DIRECTORIES:
        tree = Path("/", name)
        if tree.is_symlink():
            files[f"/{name}"] = [None, os.readlink(tree)]
        elif tree.is_dir():
            files[f"/{name}"] = [0o755, None]
            binds.append([f"/{name}", f"/{name}"])
    for shown in ("/etc/alternatives", *java_settings(JAVA_DIRECTORIES)):
        if Path(shown).is_dir():
            files[shown] = [0o755, None]
            binds.append([shown, shown])
    # a copy, because every program opens it: a watch of the machine's file would count its programs
    with suppress(OSError):
        text = Path("/etc/ld.so.cache").read_bytes().decode("utf-8", "surrogateescape")
        files["/etc/ld.so.cache"] = [0o644, text]
    if python_home():
        files["/opt/python"] = [0o755, None]
