"""Checks what isolation this machine provides, and says how to get what is missing."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import time
from pathlib import Path

from intercode_sandbox import SandboxSpec, open_sandbox, tier_of
from intercode_sandbox.errors import ConfigError, SandboxError, SandboxUnavailableError, UsageError
from intercode_sandbox.platforms.paths import cache_remedy, cache_root, sandbox_uid
from intercode_sandbox.supervisor import build, programs
from intercode_sandbox.supervisor.runtime import seccomp, syscall_numbers
from intercode_sandbox.tiers.choice import LINUX_HINT
from intercode_sandbox.tiers.kernel_features import check_kernel
from intercode_sandbox.tiers.tier_table import Finding, tier_named
from intercode_sandbox.types import Image


def diagnose() -> list[Finding]:
    """Check everything that sandboxes need or can use. Takes a few seconds on machines with
    container engines."""
    if sys.platform != "linux":
        return [Finding("Linux", False, platform.system(), LINUX_HINT, needed=True)]
    from intercode_sandbox.tiers import checks  # imports the back ends

    return [
        _check_supervisor(),
        *check_kernel(),
        checks.check_cgroups(),
        _count_system_calls(),
        *_check_cache(),
        *_check_programs(),
        *checks.check_tiers(),
        _check_sandbox(),
        *_check_hard_limits(),
        _check_user_ids(),
        _check_users(),
    ]


def refused_system_calls() -> list[str]:
    """Return the names of the system calls that the filter of sandboxes refuses. Raises UsageError
    on machines for which there is no filter."""
    machine = platform.machine()
    if machine not in syscall_numbers.MACHINES:
        raise UsageError(f"there is no filter of system calls for {machine}, and no sandbox works")
    return seccomp.refused_calls(machine)


def _check_supervisor() -> Finding:
    """Look for the C programs that are compiled when the package is installed."""
    name = "sandbox supervisor"
    try:
        paths = [programs.find_program(program) for program in build.PROGRAMS]
    except SandboxUnavailableError as e:
        return Finding(name, False, str(e), programs.INSTALL_HINT, needed=True)
    return Finding(name, True, str(paths[0]), needed=True)


def _count_system_calls() -> Finding:
    """Count the system calls that the filter of sandboxes allows and refuses."""
    name, machine = "system calls in sandboxes", platform.machine()
    if machine not in syscall_numbers.MACHINES:
        return Finding(name, True, "no list for this machine")
    allowed = len(syscall_numbers.allowed_calls(machine))
    refused = len(refused_system_calls())
    names = "`intercode-sandbox doctor --system-calls` names them"
    detail = f"{allowed} allowed; {refused} and unknown ones refused ({names})"
    return Finding(name, True, detail)


def _check_user_ids(budget: Path = Path("/proc/sys/fs/pipe-user-pages-soft")) -> Finding:
    """Look whether sandboxes have user ids of their own, or else share the kernel's budget for
    pipes. Call this after a sandbox was opened."""
    name = "user id of each sandbox"
    from intercode_sandbox.namespace.launcher import Launcher

    try:
        if user_ids := tier_named(tier_of()).user_ids:
            return Finding(name, True, user_ids)
        error = Launcher.get().user_ids_error
    except (SandboxError, ConfigError):
        error = "no sandbox can be opened"
    pages = budget.read_text().strip() if budget.is_file() else "0"
    if not error or pages == "0":
        return Finding(name, not error, error)
    fix = (
        "run as root; or, if agents may work against each other, sysctl -w "
        "fs.pipe-user-pages-soft=0"
    )
    return Finding(name, False, f"{error}; all sandboxes share {pages} pages of pipe buffers", fix)


def _check_users() -> Finding:
    """Open a sandbox that has users besides root."""
    name = "users in sandboxes"
    try:
        with open_sandbox(SandboxSpec(Image("host", ""), users=True)):
            return Finding(name, True, "`user=` of a sandbox may be others than root")
    except (SandboxError, ConfigError) as e:
        return Finding(name, False, str(e), "needed for `user=` only: do what the reason says")


def _check_cache() -> list[Finding]:
    uid = sandbox_uid()
    try:
        root = cache_root()
    except ConfigError as e:  # it says what to do
        return [Finding("cache", False, str(e), "set INTERCODE_CACHE to your directory", True)]
    out = [Finding("sandbox id", uid != 0, str(uid), "" if uid else "set INTERCODE_SANDBOX_UID")]
    fix = cache_remedy()
    out.append(Finding("cache reachable by it", not fix, str(root), fix, needed=True))
    writable = os.access(root, os.W_OK)
    free = shutil.disk_usage(root).free / (1 << 30)
    fix = "" if writable else f"make {root} writable, or set INTERCODE_CACHE"
    out.append(Finding("cache writable", writable, f"{free:.1f} GiB free", fix, needed=True))
    return out


def _check_hard_limits() -> list[Finding]:
    """Look for hard limits that change what programs in sandboxes can do."""
    kept = lowered_hard_limits("")
    if not kept:
        return []
    detail = "programs in sandboxes have those of this shell or machine: "
    detail += ", ".join(f"{name} {value}" for name, value in kept.items())
    fix = "raise them as root (ulimit -H, /etc/security/limits.conf); results record them"
    return [Finding("hard limits", False, detail, fix)]


def _check_programs() -> list[Finding]:
    programs = (
        ("bash", "install bash: tasks on the image `host` need it", True),
        (
            "git",
            "install git: scoring by `git status` needs it on the image `host`",
            False,
        ),
        ("mmdebstrap", "install mmdebstrap, only to build images from recipes", False),
    )
    located = [(name, shutil.which(name), fix, needed) for name, fix, needed in programs]
    return [
        Finding(n, bool(at), at or "absent", "" if at else fix, must)
        for n, at, fix, must in located
    ]


def _check_sandbox() -> Finding:
    """Open a sandbox twice, because the first one starts the launcher, and run a command in it."""
    spec = SandboxSpec(Image("host", ""))
    try:
        with open_sandbox(spec):
            pass
        began = time.perf_counter()
        with open_sandbox(spec) as sandbox:
            opened = time.perf_counter()
            result = sandbox.run(["/bin/bash", "-c", "true"])
            done = time.perf_counter()
    except (SandboxError, ConfigError) as e:
        return Finding("a sandbox", False, str(e), "fix what is missing above", needed=True)
    detail = (
        f"{sandbox.tier}: opened in {1e3 * (opened - began):.0f} ms, "
        f"`true` in {1e3 * (done - opened):.1f} ms"
    )
    fix = "" if result.ok else f"`true` ended with {result.exit_code}: {result.output[:200]!r}"
    return Finding("a sandbox", result.ok, detail, fix, needed=True)


# The hard limits of this process that are below what a sandbox gives its programs, and that it may
# not raise. The supervisor refuses those of ``Limits`` (``require_limit`` in C) and keeps these.
_GIVEN = {
    "stack": ("RLIMIT_STACK", 8 << 20),
    "data": ("RLIMIT_DATA", None),
    "processor_time": ("RLIMIT_CPU", None),
    "locked_memory": ("RLIMIT_MEMLOCK", 1 << 20),
    "pending_signals": ("RLIMIT_SIGPENDING", 1024),
    "message_queues": ("RLIMIT_MSGQUEUE", 256 << 10),
}
"""What programs get, as the C code has it; None: no limit."""
_CAP_SYS_RESOURCE = 24


def lowered_hard_limits(tier: str) -> dict[str, int]:
    """Return the hard limits of this process which programs in sandboxes of a tier have in place of
    the higher ones that they have elsewhere, such as ``{"stack": 1048576}`` after ``ulimit -Hs
    1024``. Sizes are in bytes, times in seconds. Most often there is none."""
    if sys.platform != "linux" or not tier_named(tier).is_child or _may_raise():
        return {}
    import resource

    found = {}
    for name, (number, given) in _GIVEN.items():
        hard = resource.getrlimit(getattr(resource, number))[1]
        if hard != resource.RLIM_INFINITY and (given is None or hard < given):
            found[name] = hard
    return found


def _may_raise() -> bool:
    status = Path("/proc/self/status").read_text()
    return bool(int(status.partition("CapEff:")[2].split()[0], 16) >> _CAP_SYS_RESOURCE & 1)
