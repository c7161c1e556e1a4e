"""Mounts a sandbox's root: layers below a writable upper layer, /dev, /sys, and directories of the
machine. Runs in the supervisor, in its new namespaces."""

from __future__ import annotations

import os

from . import overlay
from .syscalls import (
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
    attach_mount,
    make_read_only,
    mount,
    pivot_root,
    umount,
)

TYPE_CHECKING = False  # importing typing would double this process's memory
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_STAGE_DIRECTORIES = ("lower", "upper", "work", "root", "fresh", "none")
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_MASKED = ("kcore", "keys", "latency_stats", "timer_list", "sched_debug", "sysrq-trigger", "kmsg")
_EMPTY_DIRECTORIES = ("acpi", "scsi", "tty/driver")
_READ_ONLY_PARTS = ("bus", "fs", "irq", "sys")
_HARDENED = MS_NOSUID | MS_NODEV
_VOLATILE = ",volatile"  # nothing needs to be written to a disk
_DEV = MS_NOSUID | MS_NOEXEC


def prepare_stage(stage: str, own_network: bool) -> None:
    """Mount /dev and /sys below ``stage`` and change to it. They do not depend on the request, and
    are bound into the root later. PID 1 mounts /proc beside them (see ``mount_proc``)."""
    mount("none", "/", flags=MS_REC | MS_PRIVATE)
    mount("tmpfs", stage, "tmpfs", _HARDENED, "mode=755,size=1m,nr_inodes=100")
    os.chdir(stage)
    for name in (*_STAGE_DIRECTORIES, "proc", "dev", "sys"):
        os.mkdir(name, 0o755)
    _mount_dev("dev")
    _mount_sys("sys", own_network)


class RootLayout:
    """Paths and descriptors of a mounted root, in the directory of ``prepare_stage``.

    ``root`` is its path. ``uppers`` are descriptors of the writable layer and the sealed ones below
    it; ``lower`` is one of all other layers merged. They are used to read changes.

    ``copies``: descriptors of upper layers to start with, the lowest first. ``sealed``: detached
    mounts of sealed upper layers, the topmost first.
    """

    def __init__(self, spec: dict[str, Any], copies: list[int], sealed: list[int]) -> None:
        mount("none", ".", flags=_HARDENED | MS_REMOUNT, options=_size_options(spec["limits"]))
        upper, work = "upper", "work"
        if spec["upper"]:
            os.symlink(spec["upper"], "disk")
            upper, work = "disk/upper", "disk/work"
        lowers = [str(i) for i in range(len(spec["layers"]))]
        for name, path in zip(lowers, spec["layers"], strict=True):
            os.symlink(path, name)  # so that no path of the machine shows in the sandbox's mounts
        for source in copies:
            overlay.copy_tree(source, _open_directory(upper))
        options = f"lowerdir={':'.join([*lowers, 'none'])},userxattr,xino=off"
        mount("overlay", "lower", "overlay", _HARDENED | MS_RDONLY, options)
        self.lower = _open_directory("lower")
        between = [f"sealed{i}" for i in range(len(sealed))]
        for name, fd in zip(between, sealed, strict=True):
            os.mkdir(name)
            attach_mount(fd, name)
        options = _overlay_options([*between, *lowers], upper, work)
        mount("overlay", "root", "overlay", _HARDENED, options + _VOLATILE * (not spec["upper"]))
        self.root = os.path.abspath("root")
        self.hidden_directory = -1  # used by ``remount_root``
        if not spec["upper"]:
            self.hidden_directory, upper = _hide_layers(), "root/dev/upper"
        self.uppers = [_open_directory(upper), *map(_open_directory, between)]
        for source, target in spec["binds"]:
            bind_read_only(source, self.root + target)
        for i, (source, target) in enumerate(spec["anonymous_mounts"]):
            mount_anonymously(f"shown{i}", source, self.root + target)
        if spec["appearance"] != "docker":  # so that the files in it cannot be removed
            mount("none", "dev", flags=_DEV | MS_BIND | MS_REMOUNT | MS_RDONLY)
        _bind_into_root(["/proc", "/dev", "/sys"], ".")


def remount_root(
    spec: dict[str, Any], base: int, copies: Sequence[int] = ()
) -> tuple[list[int], int]:
    """Give a sandbox a fresh upper layer, or one with ``copies``, and change to the new root, which
    looks like the first one.

    Nothing may run in the sandbox during the call. A waiting process has the new root afterwards,
    but keeps its working directory with the old files. Returns descriptors as in ``RootLayout``:
    the uppers, and the hidden directory. Raises OSError, for example if the image is on an overlay
    itself.
    """
    os.fchdir(base)
    mount("tmpfs", "fresh", "tmpfs", _HARDENED, f"mode=755,{_size_options(spec['limits'])}")
    for name in _STAGE_DIRECTORIES:
        os.mkdir(f"fresh/{name}", 0o755)
    mount("lower", "fresh/lower", flags=MS_BIND)
    os.chdir("fresh")
    target = _open_directory("upper")
    for source in copies:
        overlay.copy_tree(source, target)
    os.close(target)
    lowers = [str(i) for i in range(len(spec["layers"]))]
    os.symlink("lower", lowers[0])  # all layers merged; the others are empty
    for name in lowers[1:]:
        os.mkdir(name)
    mount("overlay", "root", "overlay", _HARDENED, _overlay_options(lowers) + _VOLATILE)
    base = _hide_layers()
    uppers = [_open_directory("root/dev/upper")]
    umount("/dev/shm")
    _mount_shm("/dev")
    more = [target for _, target in (*spec["binds"], *spec["anonymous_mounts"])]
    _bind_into_root([*more, "/proc", "/dev", "/sys"], "")
    change_root("root")
    return uppers, base


def change_root(root: str) -> None:
    """Make a mounted directory the root, and unmount the old one."""
    os.chdir(root)
    pivot_root(".", ".")
    umount(".")
    os.chdir("/")


def _hide_layers() -> int:
    """Bind the layers to a hidden directory below /dev of the new root, so that the upper layer can
    be sealed later. Return a descriptor of that directory."""
    mount(".", "root/dev", flags=MS_BIND)
    mount("lower", "root/dev/lower", flags=MS_BIND)
    return _open_directory("root/dev")


def _bind_into_root(paths: list[str], prefix: str) -> None:
    """Bind the mounts at some paths to the same paths of the new root. They are not moved, because
    /proc lists mounts in the order of their creation, which should not vary."""
    for path in paths:
        mount(prefix + path, f"root{path}", flags=MS_BIND | MS_REC)


def _overlay_options(lowers: list[str], upper: str = "upper", work: str = "work") -> str:
    """Return an overlay's options. Processes in the sandbox can read them."""
    return f"lowerdir={':'.join(lowers)},upperdir={upper},workdir={work},userxattr,xino=off"


def _size_options(limits: dict[str, int]) -> str:
    return f"size={limits['disk']},nr_inodes={limits['inodes']}"


def _open_directory(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def _mount_dev(dev: str) -> None:
    """Mount a new /dev."""
    mount("tmpfs", dev, "tmpfs", _DEV, "mode=755,size=64k,nr_inodes=64")
    for name in _DEVICES:
        os.close(os.open(f"{dev}/{name}", os.O_CREAT | os.O_WRONLY, 0o666))
        mount(f"/dev/{name}", f"{dev}/{name}", flags=MS_BIND)
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "/proc/self/fd/0"),
                         ("stdout", "/proc/self/fd/1"), ("stderr", "/proc/self/fd/2"),
                         ("ptmx", "pts/ptmx"), ("bash", "/proc/self/fd/62")):  # fmt: skip
        os.symlink(target, f"{dev}/{name}")
    os.mkdir(f"{dev}/pts")
    mount("devpts", f"{dev}/pts", "devpts", _DEV, "newinstance,ptmxmode=0666,mode=620")
    os.mkdir(f"{dev}/shm")
    _mount_shm(dev)


def _mount_shm(dev: str) -> None:
    mount("shm", f"{dev}/shm", "tmpfs", _DEV | MS_NODEV, "mode=1777,size=64m,nr_inodes=1024")


def _mount_sys(target: str, own_network: bool) -> None:
    """Mount a read-only /sys: a new one, or with the host's network that of the host."""
    if own_network:
        mount("sysfs", target, "sysfs", _HARDENED | MS_NOEXEC | MS_RDONLY)
        return
    mount("/sys", target, flags=MS_BIND | MS_REC)
    make_read_only(target)
    groups = f"{target}/fs/cgroup"
    if os.path.isdir(groups):  # hide the control groups that limit the sandbox
        mount("tmpfs", groups, "tmpfs", _HARDENED | MS_RDONLY, "mode=555,size=4k")


def bind_read_only(source: str, target: str) -> None:
    """Bind a directory or file of the machine to ``target``, which exists, read-only."""
    mount(source, target, flags=MS_BIND | MS_REC)
    make_read_only(target)


def mount_anonymously(name: str, source: str, target: str) -> None:
    """Mount a directory whose path on the machine must stay hidden from the sandbox. A bind mount
    would show the path in mountinfo; an overlay shows only the names that it was mounted by."""
    os.symlink(source, name)
    os.mkdir(f"{name}.none")
    flags = _HARDENED | MS_RDONLY
    mount("overlay", target, "overlay", flags, f"lowerdir={name}:{name}.none,userxattr,xino=off")


def mount_proc(stage: str) -> int:
    """Mount a /proc below the stage, with the host's settings hidden.

    Runs in PID 1 before the change of root, because the kernel allows a new /proc only while an old
    one is visible. Returns a file that holds the last process number, or /dev/null if the kernel
    has none.
    """
    proc = f"{stage}/proc"
    mount("proc", proc, "proc", _HARDENED | MS_NOEXEC)
    counter = f"{proc}/sys/kernel/ns_last_pid"
    last = os.open(counter if os.path.exists(counter) else "/dev/null", os.O_RDWR | os.O_CLOEXEC)
    for name in _READ_ONLY_PARTS:
        if os.path.isdir(f"{proc}/{name}"):
            mount(f"{proc}/{name}", f"{proc}/{name}", flags=MS_BIND | MS_REC)
            make_read_only(f"{proc}/{name}")
    for name in _EMPTY_DIRECTORIES:
        if os.path.isdir(f"{proc}/{name}"):
            mount("tmpfs", f"{proc}/{name}", "tmpfs", _HARDENED | MS_RDONLY, "mode=555,size=4k")
    for name in _MASKED:
        if os.path.exists(f"{proc}/{name}"):
            mount(f"{stage}/dev/null", f"{proc}/{name}", flags=MS_BIND)
    return last
