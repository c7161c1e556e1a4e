"""Runs in a sandbox and prints what its process has inherited, as JSON. Uses system calls, because
not every sandbox has /proc."""

import ctypes
import json
import os
import platform
import resource
import sys
import time
from contextlib import suppress
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
_X86 = platform.machine() == "x86_64"
_CALLS = {  # name: numbers on x86-64 and on others
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigpending": (127, 136),
    "ioprio_get": (252, 31),
    "capget": (125, 90),
    "sched_getattr": (315, 275),
    "keyctl": (250, 219),
    "get_mempolicy": (239, 236),
}
_BY_PYTHON = (2, 13, 25)  # signals that the interpreter itself handles or ignores
_LIMITS = [name for name in dir(resource) if name.startswith("RLIMIT_") and name != "RLIMIT_OFILE"]
_PRCTL = {
    "dumpable": (3,),
    "timer slack": (30,),
    "securebits": (27,),
    "no_new_privs": (39,),
    "huge pages off": (42,),
    "memory merged": (68,),
    "machine checks": (34,),
    "write or execute": (66,),
    "speculation 0": (52, 0),
    "speculation 1": (52, 1),
    "end with the parent": (2,),
}
_POINTER_PRCTL = {"end with the parent", "time stamp counter"}


def call(name: str, *arguments: object) -> int:
    numbers = _CALLS[name]
    return int(_LIBC.syscall(ctypes.c_long(numbers[0 if _X86 else 1]), *arguments))


def prctl(*arguments: int) -> int:
    padded = [ctypes.c_ulong(a) for a in (*arguments, 0, 0, 0, 0)[:5]]
    result = int(_LIBC.prctl(*padded))
    return result if result >= 0 else -ctypes.get_errno()


def prctl_value(number: int) -> int:
    value = ctypes.c_int(-1)
    _LIBC.prctl(number, ctypes.byref(value), 0, 0, 0)
    return value.value


def signal_state() -> dict[str, object]:
    ignored, action = [], (ctypes.c_ulong * 4)()
    for number in range(1, 65):
        if number not in _BY_PYTHON and not call("rt_sigaction", number, None, action, 8):
            ignored += [number] if action[0] else []
    masks = {}
    for name, arguments in (("rt_sigprocmask", (0, None)), ("rt_sigpending", ())):
        mask = ctypes.c_uint64(0)
        call(name, *arguments, ctypes.byref(mask), 8)
        masks[name] = mask.value
    return {
        "ignored signals": ignored,
        "blocked signals": masks["rt_sigprocmask"],
        "pending signals": masks["rt_sigpending"],
    }


def capabilities() -> dict[str, str]:
    header, data = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    call("capget", header, data)
    sets = {
        name: data[i] | data[3 + i] << 32
        for i, name in enumerate(("effective", "permitted", "inheritable"))
    }
    sets["bounding"] = sum(1 << n for n in range(64) if prctl(23, n) == 1)
    sets["ambient"] = sum(1 << n for n in range(64) if prctl(47, 1, n) == 1)
    return {f"{name} capabilities": f"{value:x}" for name, value in sets.items()}


def scheduling() -> dict[str, object]:
    attributes = (ctypes.c_uint32 * 14)()
    call("sched_getattr", 0, attributes, 56, 0)
    return {
        "policy": attributes[1],
        "scheduling flags": attributes[2],
        "niceness": os.nice(0),
        "real-time priority": attributes[5],
        "input and output priority": call("ioprio_get", 1, 0),
        "processors": sorted(os.sched_getaffinity(0)),
    }


def open_descriptors() -> list[int]:
    found = []
    for number in range(4096):
        with suppress(OSError):
            os.fstat(number)
            found.append(number)
    return found


def has_terminal() -> bool:
    with suppress(OSError):
        os.close(os.open("/dev/tty", os.O_RDWR))
        return True
    return False


def main() -> None:
    descriptors = open_descriptors()
    mask = os.umask(0o22)
    state: dict[str, object] = {
        **signal_state(),
        **capabilities(),
        **scheduling(),
        **{name: prctl(*arguments) for name, arguments in _PRCTL.items()},
        **{f"limit {name[7:]}": resource.getrlimit(getattr(resource, name)) for name in _LIMITS},
        "end with the parent": prctl_value(2),
        "time stamp counter": prctl_value(25) if _X86 else 1,
        "descriptors": descriptors,
        "umask": mask,
        "terminal": has_terminal(),
        "leads its session": os.getsid(0) == os.getpgid(0) == os.getpid(),
        "groups": os.getgroups(),
        "personality": _LIBC.personality(ctypes.c_ulong(0xFFFFFFFF)),
        "machine": platform.machine(),
        "time zone": time.tzname[0],
        "variables": sorted(os.environ),
        "directory": os.getcwd(),
        "keys": call("keyctl", 0, -3, 0),
    }
    for name in ("oom_score_adj", "coredump_filter"):
        with suppress(OSError):
            state[name] = Path(f"/proc/self/{name}").read_text().strip()
    json.dump(state, sys.stdout)


main()
