"""Lays out a sandbox's root: layers under a writable upper, /dev, /sys, and what the box is told
of the outside. Runs in the keeper, inside its new namespaces, before the root is changed."""

from __future__ import annotations

import os

from . import copying
from .syscalls import (
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
    mount,
    read_only,
)

TYPE_CHECKING = False  # the module typing would double this process's memory
if TYPE_CHECKING:
    from typing import Any

_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_MASKED = ("kcore", "keys", "latency_stats", "timer_list", "sched_debug", "sysrq-trigger", "kmsg")
_EMPTIED = ("acpi", "scsi", "tty/driver")
_SHOWN_READ_ONLY = ("bus", "fs", "irq", "sys")
_HARDENED = MS_NOSUID | MS_NODEV


class Layout:
    """Paths and descriptors of a laid-out root.

    ``root`` is where it is mounted; ``upper`` and ``lower`` are descriptors of the writable layer
    and of everything below it, for reading what changed.
    """

    def __init__(self, spec: dict[str, Any], copy_from: int | None) -> None:
        stage = spec["stage"]
        mount("none", "/", flags=MS_REC | MS_PRIVATE)
        options = f"mode=755,size={spec['limits']['disk']},nr_inodes={spec['limits']['inodes']}"
        mount("tmpfs", stage, "tmpfs", _HARDENED, options)
        os.chdir(stage)
        for name in ("lower", "upper", "work", "root"):
            os.mkdir(name, 0o755)
        upper, work = "upper", "work"
        if spec["upper"]:
            os.symlink(spec["upper"], "disk")
            upper, work = "disk/upper", "disk/work"
        lowers = [str(i) for i in range(len(spec["layers"]))]
        for name, path in zip(lowers, spec["layers"], strict=True):
            os.symlink(path, name)  # so that no path of the machine shows in the box's mounts
        if copy_from is not None:
            copying.copy_tree(copy_from, os.open(upper, os.O_RDONLY | os.O_DIRECTORY))
        self.lower = self._open_lower(lowers)
        options = f"lowerdir={':'.join(lowers)},upperdir={upper},workdir={work},userxattr,xino=off"
        if not spec["upper"]:
            options += ",volatile"
        mount("overlay", "root", "overlay", _HARDENED, options)
        self.upper = os.open(upper, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self.root = os.path.join(stage, "root")
        for source, target in spec["binds"]:
            bind_read_only(source, self.root + target)
        for i, (source, target) in enumerate(spec["shown"]):
            show(f"shown{i}", source, self.root + target)
        self._devices(writable=spec["look"] == "docker")
        self._sys(spec)

    def _open_lower(self, lowers: list[str]) -> int:
        """A descriptor of all lower layers merged, whiteouts applied."""
        if len(lowers) == 1:
            path = lowers[0]
        else:
            options = f"lowerdir={':'.join(lowers)},userxattr,xino=off"
            mount("overlay", "lower", "overlay", _HARDENED | MS_RDONLY, options)
            path = "lower"
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def _devices(self, writable: bool) -> None:
        """A /dev of its own; not ``writable``, so that nobody can remove what it holds."""
        dev = f"{self.root}/dev"
        flags = MS_NOSUID | MS_NOEXEC
        mount("tmpfs", dev, "tmpfs", flags, "mode=755,size=64k,nr_inodes=64")
        for name in _DEVICES:
            os.close(os.open(f"{dev}/{name}", os.O_CREAT | os.O_WRONLY, 0o666))
            mount(f"/dev/{name}", f"{dev}/{name}", flags=MS_BIND)
        for name, target in (("fd", "/proc/self/fd"), ("stdin", "/proc/self/fd/0"),
                             ("stdout", "/proc/self/fd/1"), ("stderr", "/proc/self/fd/2"),
                             ("ptmx", "pts/ptmx"), ("bash", "/proc/self/fd/62")):  # fmt: skip
            os.symlink(target, f"{dev}/{name}")
        os.mkdir(f"{dev}/pts")
        mount("devpts", f"{dev}/pts", "devpts", flags, "newinstance,ptmxmode=0666,mode=620")
        os.mkdir(f"{dev}/shm")
        mount("shm", f"{dev}/shm", "tmpfs", flags | MS_NODEV, "mode=1777,size=64m,nr_inodes=1024")
        if not writable:
            mount("none", dev, flags=flags | MS_BIND | MS_REMOUNT | MS_RDONLY)

    def _sys(self, spec: dict[str, Any]) -> None:
        """A read-only /sys: a fresh one, or with the host's network the host's."""
        target = f"{self.root}/sys"
        if spec["network"] == "host":
            mount("/sys", target, flags=MS_BIND | MS_REC)
            read_only(target)
            groups = f"{target}/fs/cgroup"
            if os.path.isdir(groups):  # what bounds the box is none of its business
                mount("tmpfs", groups, "tmpfs", _HARDENED | MS_RDONLY, "mode=555,size=4k")
        else:
            mount("sysfs", target, "sysfs", _HARDENED | MS_NOEXEC | MS_RDONLY)


def bind_read_only(source: str, target: str) -> None:
    """Show a directory or file of the machine at ``target``, which exists, without write access."""
    mount(source, target, flags=MS_BIND | MS_REC)
    read_only(target)


def show(name: str, source: str, target: str) -> None:
    """As ``bind_read_only`` for a directory whose place on the machine the box must not learn:
    a bind's mountinfo tells it, an overlay's tells only the names that it was mounted by."""
    os.symlink(source, name)
    os.mkdir(f"{name}.none")
    flags = _HARDENED | MS_RDONLY
    mount("overlay", target, "overlay", flags, f"lowerdir={name}:{name}.none,userxattr,xino=off")


def mount_proc(root: str) -> None:
    """Mount /proc with the host's knobs hidden. Runs as PID 1, before the old root is given up:
    the kernel allows a new /proc only where an old one can be seen."""
    proc = f"{root}/proc"
    mount("proc", proc, "proc", _HARDENED | MS_NOEXEC)
    for name in _SHOWN_READ_ONLY:
        if os.path.isdir(f"{proc}/{name}"):
            mount(f"{proc}/{name}", f"{proc}/{name}", flags=MS_BIND | MS_REC)
            read_only(f"{proc}/{name}")
    for name in _EMPTIED:
        if os.path.isdir(f"{proc}/{name}"):
            mount("tmpfs", f"{proc}/{name}", "tmpfs", _HARDENED | MS_RDONLY, "mode=555,size=4k")
    for name in _MASKED:
        if os.path.exists(f"{proc}/{name}"):
            mount(f"{root}/dev/null", f"{proc}/{name}", flags=MS_BIND)
