"""Checks what isolation this machine provides, and says how to get what is missing."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

from intercode.core.errors import SandboxError, SandboxUnavailableError
from intercode.core.paths import cache_remedy, cache_root, sandbox_uid
from intercode.core.types import Image
from intercode.sandbox import SandboxSpec, isolation_tiers, open_sandbox
from intercode.sandbox.isolation_tiers import Finding
from intercode.sandbox.supervisor import build, programs, runtime
from intercode.sandbox.supervisor.runtime import seccomp, syscall_numbers

_BOOTSTRAP = "import sys;sys.path.insert(0,sys.argv[1]);from runtime.kernel_check import main;" \
    "main(int(sys.argv[2]),sys.argv[3])"  # fmt: skip
_SECONDS = 30.0


def diagnose() -> list[Finding]:
    """Check everything that sandboxes need or can use. Takes a few seconds on machines with
    container engines."""
    if sys.platform != "linux":
        fix = "run on Linux (a virtual machine or WSL 2 will do); reports work everywhere"
        return [Finding("Linux", False, platform.system(), fix, needed=True)]
    supervisor, errors = _check_supervisor(), _try_kernel_features()
    sandbox = _check_sandbox()
    tiers = isolation_tiers.check_tiers(errors, sandbox.ok)
    return [
        supervisor, *_check_kernel(errors), _name_refused_calls(), _check_pipe_budget(),
        *_check_cache(),
        *_check_programs(), *tiers, sandbox,
    ]  # fmt: skip


def _check_supervisor() -> Finding:
    """Look for the C programs that are compiled when the package is installed."""
    name = "sandbox supervisor"
    try:
        paths = [programs.find_program(program) for program in build.PROGRAMS]
    except SandboxUnavailableError as e:
        return Finding(name, False, str(e), programs.INSTALL_HINT, needed=True)
    return Finding(name, True, str(paths[0]), needed=True)


_KERNEL_FEATURES = {
    "user": ("user namespaces", True),
    "overlay": ("overlay in a user namespace", True),
    "xattr": ("extended attributes on tmpfs", False),
    "proc": ("a new /proc", True),
    "network": ("network namespace", True),
    "seccomp": ("seccomp filter", True),
}


def _try_kernel_features() -> dict[str, str]:
    """Run runtime/kernel_check.py and return its errors by name; an empty text means none."""
    stage = cache_root() / "stage"
    stage.mkdir(exist_ok=True)
    here = str(Path(runtime.__file__).parent.parent)
    argv = [sys.executable, "-I", "-S", "-c", _BOOTSTRAP, here, str(sandbox_uid()), str(stage)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=_SECONDS, check=False)
    try:
        errors: dict[str, str] = json.loads(done.stdout)
    except ValueError:
        last = (done.stderr.strip() or f"status {done.returncode}").splitlines()[-1]
        return dict.fromkeys((*_KERNEL_FEATURES, "landlock"), f"the check itself failed: {last}")
    return errors


def _check_kernel(errors: dict[str, str]) -> list[Finding]:
    return [
        Finding(
            what, not errors[key], errors[key], _fix(key, errors) if errors[key] else "", needed
        )
        for key, (what, needed) in _KERNEL_FEATURES.items()
    ]


def _name_refused_calls() -> Finding:
    """Name the system calls that the filter of sandboxes refuses."""
    machine = platform.machine()
    if machine not in syscall_numbers.MACHINES:
        return Finding("system calls in sandboxes", True, "no list for this machine")
    allowed = len(syscall_numbers.allowed_calls(machine))
    names = ", ".join(seccomp.refused_calls(machine))
    return Finding(
        "system calls in sandboxes", True, f"{allowed} allowed; refused: {names}, and unknown ones"
    )


def _check_pipe_budget(file: Path = Path("/proc/sys/fs/pipe-user-pages-soft")) -> Finding:
    """Look for the kernel's budget for pipes, which all sandboxes of a user share."""
    pages = file.read_text().strip() if file.is_file() else "0"
    detail = "" if pages == "0" else f"{pages} pages for all sandboxes together"
    fix = "sysctl -w fs.pipe-user-pages-soft=0, if agents may work against each other"
    return Finding("pipes of each sandbox", not detail, detail, fix if detail else "")


def _fix(key: str, errors: dict[str, str]) -> str:
    """Return the remedy for a missing feature. Features that need user namespaces refer to the
    remedy for those."""
    if key not in ("user", "seccomp") and errors["user"]:
        return "see user namespaces"
    if key == "xattr":
        return f"kernel 6.6 or newer (this is {platform.release()}); else removed directories " \
            "that are made again may show old files"  # fmt: skip
    needs = {
        "user": user_namespace_fix() or "a kernel with CONFIG_USER_NS",
        "overlay": f"kernel 5.11 or newer (this is {platform.release()})",
        "proc": "a /proc of which no part is covered",
        "network": "a kernel with CONFIG_NET_NS",
        "seccomp": "a kernel with CONFIG_SECCOMP_FILTER, on x86_64 or aarch64",
    }
    return container_options_hint(detect_confinement()) or needs[key]


def _check_cache() -> list[Finding]:
    uid, root = sandbox_uid(), cache_root()
    out = [Finding("sandbox id", uid != 0, str(uid), "" if uid else "set INTERCODE_SANDBOX_UID")]
    fix = cache_remedy()
    out.append(Finding("cache reachable by it", not fix, str(root), fix, needed=True))
    writable = os.access(root, os.W_OK)
    free = shutil.disk_usage(root).free / (1 << 30)
    fix = "" if writable else f"make {root} writable, or set INTERCODE_CACHE"
    out.append(Finding("cache writable", writable, f"{free:.1f} GiB free", fix, needed=True))
    return out


def _check_programs() -> list[Finding]:
    programs = (
        ("bash", "install bash: tasks on the image `host` need it", True),
        ("git", "install git: the profile `original` on the image `host` needs it", False),
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
    except SandboxError as e:
        return Finding("a sandbox", False, str(e), "fix what is missing above", needed=True)
    detail = f"{sandbox.tier}: opened in {1e3 * (opened - began):.0f} ms, " \
        f"`true` in {1e3 * (done - opened):.1f} ms"  # fmt: skip
    fix = "" if result.ok else f"`true` ended with {result.exit_code}: {result.output[:200]!r}"
    return Finding("a sandbox", result.ok, detail, fix, needed=True)


_SYSCTLS = (
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),  # Ubuntu 24.04
    ("kernel.unprivileged_userns_clone", "0", "1"),  # Debian before 11
    ("user.max_user_namespaces", "0", "10000"),
)
_OPTION = "--security-opt {}=unconfined"
_KUBERNETES = {
    "seccomp": "seccompProfile: {type: Unconfined}",
    "apparmor": "appArmorProfile: {type: Unconfined}",
    "systempaths": "procMount: Unmasked",
}


def user_namespace_fix(proc: Path = Path("/proc/sys")) -> str:
    """Return commands that allow user namespaces if settings of this machine forbid them."""
    found = []
    for name, forbids, allows in _SYSCTLS:
        file = proc / name.replace(".", "/")
        if file.is_file() and file.read_text().strip() == forbids:
            found.append(f"sysctl -w {name}={allows}")
    return " and ".join(found)


def detect_confinement(proc: Path = Path("/proc/self")) -> list[str]:
    """Return the restrictions of the container around this process, by the names of their options.

    ``seccomp``: a filter; ``apparmor``: a profile; ``systempaths``: parts of /proc or /sys are
    masked, so the kernel refuses to mount new ones.
    """
    found = []
    if _field(proc / "status", "Seccomp:") == "2":
        found.append("seccomp")
    try:
        profile = (proc / "attr" / "current").read_text().strip("\0\n ")
    except OSError:
        profile = ""  # no AppArmor
    # SELinux writes no mode in parentheses
    if profile not in ("", "unconfined") and "(" in profile:
        found.append("apparmor")
    targets = [line.split()[4] for line in (proc / "mountinfo").read_text().splitlines()]
    masked = ("/proc/", "/sys/firmware", "/sys/devices")
    if any(target.startswith(masked) and not target.endswith("binfmt_misc") for target in targets):
        found.append("systempaths")
    return found


def _field(file: Path, name: str) -> str:
    for line in file.read_text().splitlines():
        if line.startswith(name):
            return line.removeprefix(name).strip()
    return ""


def container_options_hint(confined: list[str]) -> str:
    """Return how to start the container without the given restrictions; empty for none."""
    if not confined:
        return ""
    options = " ".join(_OPTION.format(name) for name in confined)
    context = ", ".join(_KUBERNETES[name] for name in confined)
    pod = f"securityContext: {{{context}}}"
    if "systempaths" in confined:
        pod += " with hostUsers: false"
    return f"start the container with the additional options: {options} (Kubernetes: {pod})"
