"""Opens a sandbox in one process for each deviation, and prints what its programs have inherited:
``python owner.py TIER [NAME ...]``."""

from __future__ import annotations

import ctypes
import json
import os
import pty
import resource
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from intercode_sandbox import SandboxSpec, open_sandbox
from intercode_sandbox.doctor_checks import lowered_hard_limits
from intercode_sandbox.types import Image

PROBE = (Path(__file__).parent / "probe.py").read_text()
_LIBC = ctypes.CDLL(None, use_errno=True)


def _prctl(*arguments: int) -> None:
    padded = [ctypes.c_ulong(a) for a in (*arguments, 0, 0, 0, 0)[:5]]
    if _LIBC.prctl(*padded) < 0:
        raise OSError(ctypes.get_errno(), f"prctl {arguments}")


def _ignore_signals() -> None:
    for number in signal.valid_signals():
        with suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)


def _block_signals() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


def _lower(name: str, soft: int) -> Callable[[], None]:
    number = getattr(resource, name)
    return lambda: resource.setrlimit(number, (soft, resource.getrlimit(number)[1]))


def _lower_for_good(name: str, limit: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(getattr(resource, name), (limit, limit))


def _set_variables() -> None:
    os.environ.update(
        TZ="Asia/Kathmandu",
        LANG="de_DE.UTF-8",
        LC_ALL="C.UTF-8",
        LD_PRELOAD="",
        IFS="x",
        BASH_ENV="/nowhere",
        PYTHONPATH="/nowhere",
        HTTP_PROXY="http://127.0.0.1:9",
    )


def _open_descriptors() -> None:
    for number in range(30, 60):
        os.dup2(1, number, inheritable=True)


def _take_terminal() -> None:
    os.setsid()
    _, slave = pty.openpty()
    os.close(os.open(os.ttyname(slave), os.O_RDWR))


def _write(file: str, text: str) -> Callable[[], None]:
    def write() -> None:
        Path(f"/proc/self/{file}").write_text(text)

    return write


def _make_capabilities_inheritable() -> None:
    header, data = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    _LIBC.capget(header, data)
    data[2], data[5] = data[1], data[4]
    _LIBC.capset(header, data)
    for number in range(41):
        _LIBC.prctl(47, 2, number, 0, 0)


_PERSONALITIES = 0x0040000 | 0x0400000 | 0x0020000  # no random addresses, executable data, old name
Deviation = Callable[[], Any]
DEVIATIONS: dict[str, Deviation] = {
    "none": lambda: None,
    "ignored signals": _ignore_signals,
    "blocked signals": _block_signals,
    "umask": lambda: os.umask(0o077),
    "variables": _set_variables,
    "descriptors": _open_descriptors,
    "terminal": _take_terminal,
    "personality": lambda: _LIBC.personality(ctypes.c_ulong(_PERSONALITIES)),
    "timer slack": lambda: _prctl(29, 77_000_000),
    "huge pages": lambda: _prctl(41, 1),
    "speculation": lambda: _prctl(53, 0, 4),
    "machine checks": lambda: _prctl(33, 1, 1),
    "batch policy": lambda: os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0)),
    "input and output": lambda: _LIBC.syscall(251 if _is_x86() else 30, 1, 0, 3 << 13),
    "soft files": _lower("RLIMIT_NOFILE", 256),
    "soft stack": _lower("RLIMIT_STACK", 1 << 20),
    "endless stack": _lower("RLIMIT_STACK", resource.RLIM_INFINITY),
    "soft data": _lower("RLIMIT_DATA", 1 << 30),
    "core files": _lower("RLIMIT_CORE", 1 << 20),
    "core filter": _write("coredump_filter", "0x1"),
    "killed first": _write("oom_score_adj", "700"),
}
ROOT_DEVIATIONS: dict[str, Deviation] = {
    "niceness": lambda: os.nice(5),
    "higher priority": lambda: os.nice(-3),
    "real-time policy": lambda: os.sched_setscheduler(
        0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(3)
    ),
    "idle policy": lambda: os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0)),
    "files": _lower_for_good("RLIMIT_NOFILE", 256),
    "processes": _lower_for_good("RLIMIT_NPROC", 100),
    "file size": _lower_for_good("RLIMIT_FSIZE", 64 << 20),
    "address space": _lower_for_good("RLIMIT_AS", 6 << 30),
    "stack": _lower_for_good("RLIMIT_STACK", 1 << 20),
    "data": _lower_for_good("RLIMIT_DATA", 1 << 30),
    "processor time": _lower_for_good("RLIMIT_CPU", 600),
    "pending signals": _lower_for_good("RLIMIT_SIGPENDING", 100),
    "message queues": _lower_for_good("RLIMIT_MSGQUEUE", 4096),
    "locked memory": _lower_for_good("RLIMIT_MEMLOCK", 1 << 16),
    "allowed priorities": lambda: [
        resource.setrlimit(getattr(resource, name), (30, 30))
        for name in ("RLIMIT_NICE", "RLIMIT_RTPRIO")
        if hasattr(resource, name)
    ],
    "capabilities": _make_capabilities_inheritable,
    "bounding set": lambda: _prctl(24, 29),  # CAP_AUDIT_WRITE
    "securebits": lambda: _prctl(28, 1 << 2),  # no change of capabilities with the user id
    "groups": lambda: os.setgroups([4, 27, 1000]),
    "input and output before others": lambda: _LIBC.syscall(
        251 if _is_x86() else 30, 1, 0, 1 << 13 | 2
    ),
    "merged memory": lambda: _prctl(67, 1),
}


def _is_x86() -> bool:
    return os.uname().machine == "x86_64"


def observe(tier: str) -> dict[str, Any]:
    """Return what a program in a new sandbox has inherited."""
    with open_sandbox(SandboxSpec(Image("host", "")), tier) as sandbox:
        done = sandbox.run(["python3", "-I", "-S", "-c", PROBE])
        state: dict[str, Any] = json.loads(done.output)
        state["ignored by bash"] = sandbox.run(["bash", "-c", "trap -p"]).output
        process = sandbox.spawn(["sleep", "60"])
        number = process._send_signal.keywords["child"]  # type: ignore[attr-defined]
        for name in ("oom_score_adj", "coredump_filter"):
            if name not in state:
                file = Path(f"/proc/{number}/{name}")
                state[name] = file.read_text().strip()
        process.kill()
    state["kept hard limits"] = lowered_hard_limits(tier)
    return state


def deviate_and_observe(tier: str, name: str) -> dict[str, Any]:
    """Return the same for an owner with a deviation, in a process of its own."""
    with tempfile.TemporaryFile() as file:
        child = os.fork()
        if child == 0:
            what = "cannot deviate"
            try:
                {**DEVIATIONS, **ROOT_DEVIATIONS}[name]()
                what = "cannot observe"
                answer = observe(tier)
            except Exception as e:
                answer = {"error": f"{what}: {type(e).__name__}: {e}"}
            with suppress(OSError):
                os.write(file.fileno(), json.dumps(answer).encode())
            os._exit(0)
        os.waitpid(child, 0)
        file.seek(0)
        answer: dict[str, Any] = json.loads(file.read())
        return answer


if __name__ == "__main__":
    names = sys.argv[2:] or [*DEVIATIONS, *(ROOT_DEVIATIONS if os.geteuid() == 0 else ())]
    print(json.dumps({name: deviate_and_observe(sys.argv[1], name) for name in names}))
