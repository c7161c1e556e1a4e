"""Determines what commands may read of this machine, and makes the directory of a sandbox."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from intercode_sandbox.contract import (
    ROOT_VARIABLE,
    SCRIPT_FD,
    SandboxSpec,
    mounts_error,
    refuse_rules,
)
from intercode_sandbox.errors import SandboxUnavailableError
from intercode_sandbox.host_settings import JAVA_ENTRIES, java_settings, setting_names
from intercode_sandbox.overlay_format import copy_tree
from intercode_sandbox.platforms.paths import cache_root, state_path
from intercode_sandbox.supervisor import root_files
from intercode_sandbox.supervisor.root_files import RootFiles

TIER = "landlock"
OTHER_TIERS = "namespace, container and chroot can (`intercode-sandbox doctor` says how)"
"""The end of messages about what this tier cannot do."""
SCRIPT = "/dev/bash"
"""A link to the descriptor from which a shell reads its script."""
_PROGRAM_DIRECTORIES = ("bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr")
_SETTINGS = (
    "alternatives",
    "bash.bashrc",
    "ca-certificates.conf",
    "gitconfig",
    "group",
    "hosts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "nsswitch.conf",
    "passwd",
    "profile",
    "resolv.conf",
)
"""What programs read in /etc, besides what they see in every tier. Much of the rest is none of a
sandbox's business."""
_MACHINE_FACTS = (
    "cpuinfo",
    "filesystems",
    "loadavg",
    "meminfo",
    "stat",
    "uptime",
    "version",
    "sys/kernel/pid_max",
    "sys/kernel/random/uuid",
    "sys/vm/overcommit_memory",
)
"""What commands may read in /proc: nothing about a process."""
_DEVICES = ("full", "null", "random", "urandom", "zero")
_SYSTEM_DIRECTORIES = frozenset(
    {*_PROGRAM_DIRECTORIES, "boot", "dev", "etc", "opt", "proc", "run", "sys", "var"}
)
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def require_possible(spec: SandboxSpec) -> None:
    """Raise SandboxUnavailableError for a specification that this tier cannot fulfil."""
    if spec.image.root is not None or spec.image.layers:
        raise SandboxUnavailableError(
            f"a sandbox of the tier {TIER} has the programs of this machine, which are the image "
            f"'host', and cannot show the image {spec.image.name}; {OTHER_TIERS}"
        )
    if spec.mounts:
        raise mounts_error(TIER)
    refuse_rules(spec, TIER)
    prefix, own = Path(sys.base_prefix).resolve(), Path("~").expanduser().resolve()
    if root_files.python_home() is not None and own.is_relative_to(prefix):
        raise SandboxUnavailableError(
            f"commands in a sandbox of the tier {TIER} may read the directory of this Python, "
            f"{prefix}, which holds the home directory {own}; use a Python that has "
            f"a directory of its own; {OTHER_TIERS}"
        )
    wanted = {
        "the appearance of a Docker container": spec.appearance != "plain",
        "a clock and random numbers of its own": spec.determinism is not None,
        "a writable layer in a directory": spec.upper is not None,
        "a limit on processors, for want of a control group": spec.limits.cpus is not None,
    }
    for what, is_wanted in wanted.items():
        if is_wanted:
            raise SandboxUnavailableError(
                f"a sandbox of the tier {TIER} cannot have {what}; {OTHER_TIERS}"
            )
    for layer in spec.layers:
        for name in sorted(_SYSTEM_DIRECTORIES.intersection(os.listdir(layer.root))):
            raise SandboxUnavailableError(
                f"a layer has files in /{name}, where programs in a sandbox of the tier {TIER} see "
                f"those of this machine; {OTHER_TIERS}"
            )


def skeleton() -> RootFiles:
    """Return the files that every sandbox begins with."""
    return {
        "/dev": [0o755, None],
        SCRIPT: [None, f"/proc/self/fd/{SCRIPT_FD}"],
        "/root": [0o700, None],
        "/tmp": [0o1777, None],
    }


def fill_directory(target: int, trees: Iterable[Path]) -> None:
    """Copy trees, the topmost first, to an empty directory."""
    for tree in reversed(list(trees)):
        source = os.open(tree, _DIRECTORY)
        try:
            copy_tree(source, target)
        finally:
            os.close(source)


def environment(spec: SandboxSpec, base: str) -> dict[str, str]:
    """Return the environment variables of commands in the sandbox at ``base``."""
    env = root_files.environment(spec)
    home = root_files.python_home()
    if home is not None:
        env["PATH"] = env["PATH"].replace("/opt/python/bin", f"{sys.base_prefix}/bin")
    own = {"HOME": f"{base}/root", "TMPDIR": f"{base}/tmp"}
    if spec.network != "host":
        own["TZ"] = "UTC"  # /etc/localtime is a link, which no rule hides
    own = {name: path for name, path in own.items() if name not in spec.env}
    return {**env, **own, ROOT_VARIABLE: base}


def command_rules(spec: SandboxSpec) -> dict[str, Any]:
    """Return the paths that commands may read, whose names they may list, and the devices that they
    may use, as ``supervisor/c/landlock/rules.c`` expects them."""
    # a Python in ~/.local has the histories of this user below its directory
    private = (cache_root(), state_path())
    hidden = {path.resolve() for path in (*root_files.hidden_sources(spec), *private)}
    trees = [Path("/", name) for name in _PROGRAM_DIRECTORIES]
    if root_files.python_home() is not None:
        trees.append(Path(sys.base_prefix).resolve())
    readable, listed = list[str](), list[str]()
    for tree in trees:
        if not tree.is_symlink():  # a link leads to a directory of the list
            _collect(tree.resolve(), hidden, readable, listed)
    names = (*_SETTINGS, *setting_names(spec.network))
    readable += [f"/etc/{name}" for name in names]
    readable += map(str, _resolved_settings(names))
    readable += java_settings(JAVA_ENTRIES)
    readable += [f"/proc/{name}" for name in _MACHINE_FACTS]
    return {
        "readable": readable,
        "listed": listed,
        "devices": [f"/dev/{name}" for name in _DEVICES],
    }


def _collect(path: Path, hidden: set[Path], readable: list[str], listed: list[str]) -> None:
    """Add a directory of which commands may read everything but the hidden paths. A rule holds for
    all that is below its path, so a directory with something hidden in it gives way to the entries
    beside that."""
    if path in hidden or not path.exists():
        return
    if not any(each.is_relative_to(path) for each in hidden):
        readable.append(str(path))
        return
    listed.append(str(path))
    with suppress(OSError):
        for entry in sorted(path.iterdir()):
            if not entry.is_symlink():
                _collect(entry, hidden, readable, listed)


def _resolved_settings(names: Iterable[str]) -> Iterator[Path]:
    """Yield the targets of settings that are links, as resolv.conf often is."""
    for name in {"localtime", "resolv.conf", "os-release"}.intersection(names):
        path = Path("/etc", name)
        if path.is_symlink() and path.exists():
            yield path.resolve()
