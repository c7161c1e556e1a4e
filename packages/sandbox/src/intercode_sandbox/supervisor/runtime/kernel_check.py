"""Tries the kernel features that a sandbox needs, each in a process of its own.

tiers/kernel_features.py runs this as a program, under the user id of sandboxes.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable

from . import seccomp
from . import syscalls as sys_

_USER_AND_MOUNT = sys_.CLONE_NEWUSER | sys_.CLONE_NEWNS


def main(uid: int, stage: str) -> None:
    """Drop root if necessary, try everything, and print ``{name: error or ""}`` as JSON."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    sys_.prctl(sys_.PR_SET_DUMPABLE, 1)  # required to write the id maps
    trials: dict[str, Callable[[], None]] = {
        "user": lambda: _enter_namespaces(sys_.CLONE_NEWUSER),
        "overlay": lambda: _try_overlay(stage),
        "xattr": lambda: _try_xattr(stage),
        "proc": lambda: _try_proc(stage),
        "network": lambda: _enter_namespaces(sys_.CLONE_NEWUSER | sys_.CLONE_NEWNET),
        "seccomp": _try_seccomp,
        "landlock": _try_landlock,
    }
    sys.stdout.write(json.dumps({name: _run_in_child(trial) for name, trial in trials.items()}))


def _run_in_child(trial: Callable[[], None]) -> str:
    """Run a check in a child process. Return its error, empty for none."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        text = "it did not end by itself"
        try:
            trial()
            text = ""
        except Exception as e:
            text = f"{type(e).__name__}: {e}"
        finally:
            os.write(write, text.encode())
            os._exit(0)
    os.close(write)
    with open(read) as answer:
        text = answer.read()
    _, status = os.waitpid(pid, 0)
    return text if status == 0 else f"ended with status {status}"


def _enter_namespaces(flags: int) -> None:
    uid, gid = os.geteuid(), os.getegid()
    sys_.unshare(flags)
    for name, line in (
        ("setgroups", "deny"),
        ("uid_map", f"0 {uid} 1"),
        ("gid_map", f"0 {gid} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as f:
            f.write(line)


def _mount_stage(stage: str, flags: int = _USER_AND_MOUNT) -> None:
    _enter_namespaces(flags)
    sys_.mount("none", "/", flags=sys_.MS_REC | sys_.MS_PRIVATE)
    sys_.mount("tmpfs", stage, "tmpfs", sys_.MS_NOSUID | sys_.MS_NODEV, "mode=755")
    os.chdir(stage)


def _try_overlay(stage: str) -> None:
    _mount_stage(stage)
    for name in ("lower", "upper", "work", "root"):
        os.mkdir(name)
    options = "lowerdir=lower,upperdir=upper,workdir=work,userxattr,volatile"
    sys_.mount("overlay", "root", "overlay", sys_.MS_NOSUID | sys_.MS_NODEV, options)
    os.mkdir("root/made")


def _try_xattr(stage: str) -> None:
    _mount_stage(stage)
    os.mkdir("d")
    os.setxattr("d", "user.overlay.opaque", b"y")


def _try_proc(stage: str) -> None:
    _mount_stage(stage, _USER_AND_MOUNT | sys_.CLONE_NEWPID)
    os.mkdir("proc")

    def mounted() -> None:
        sys_.mount("proc", "proc", "proc", sys_.MS_NOSUID | sys_.MS_NODEV | sys_.MS_NOEXEC)

    if error := _run_in_child(mounted):  # a child is the first process of the new namespace
        raise OSError(error)


def _try_seccomp() -> None:
    sys_.prctl(sys_.PR_SET_NO_NEW_PRIVS, 1)
    sys_.install_filter(seccomp.build_filter(sys_.ARCH, sys_.KEY))


def _try_landlock() -> None:
    if sys_.landlock_version() < 6:
        raise OSError("sandboxes use version 6 of Landlock, which this kernel does not have")
