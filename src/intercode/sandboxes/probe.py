"""What isolation this machine gives, by trying it, and how to get what is missing."""

from __future__ import annotations

import json
import os
import platform
import shutil
import stat
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from intercode.errors import SandboxError
from intercode.paths import cache_root, sandbox_uid
from intercode.sandboxes import SandboxSpec, open_sandbox
from intercode.sandboxes.namespace import box
from intercode.types import Image

_BOOT = "import sys;sys.path.insert(0,sys.argv[1]);from box.probing import main;" \
    "main(int(sys.argv[2]),sys.argv[3])"  # fmt: skip
_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. ``needed``: no sandbox works without it. ``fix``: how to get it."""

    name: str
    ok: bool
    detail: str = ""
    fix: str = ""
    needed: bool = False


def probe() -> list[Finding]:
    """Everything that sandboxes need or can use on this machine. Takes about a second."""
    if sys.platform != "linux":
        fix = "run on Linux (a virtual machine or WSL 2 will do); reports work everywhere"
        return [Finding("Linux", False, platform.system(), fix, needed=True)]
    return [*_kernel(), *cgroups(), *_cache(), *_programs(), _sandbox()]


_KERNEL = {
    "user": ("user namespaces", True),
    "overlay": ("overlay in a user namespace", True),
    "xattr": ("extended attributes on tmpfs", False),
    "proc": ("a new /proc", True),
    "network": ("network namespace", True),
    "seccomp": ("seccomp filter", True),
}


def _kernel() -> list[Finding]:
    stage = cache_root() / "stage"
    stage.mkdir(exist_ok=True)
    here = str(Path(box.__file__).parent.parent)
    argv = [sys.executable, "-I", "-S", "-c", _BOOT, here, str(sandbox_uid()), str(stage)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=_SECONDS, check=False)
    try:
        errors = json.loads(done.stdout)
    except ValueError:
        last = (done.stderr.strip() or f"status {done.returncode}").splitlines()[-1]
        errors = dict.fromkeys(_KERNEL, f"the trial itself failed: {last}")
    return [
        Finding(what, not errors[key], errors[key], _fix(key) if errors[key] else "", needed)
        for key, (what, needed) in _KERNEL.items()
    ]


def _fix(key: str) -> str:
    container = (
        "in a container, ask for --security-opt seccomp=unconfined "
        "--security-opt apparmor=unconfined --security-opt systempaths=unconfined"
    )
    if key == "user":
        return f"{user_namespaces_off() or 'the kernel needs CONFIG_USER_NS'}; {container}"
    if key == "overlay":
        return f"kernel 5.11 or newer (this is {platform.release()}); {container}"
    if key == "xattr":
        return f"kernel 6.6 or newer (this is {platform.release()}); else removed directories " \
            "that are made again may show old files"  # fmt: skip
    if key == "seccomp":
        return f"a kernel with CONFIG_SECCOMP_FILTER, on x86_64 or aarch64; {container}"
    return container


def user_namespaces_off(proc: Path = Path("/proc/sys")) -> str:
    """The settings of this machine that forbid user namespaces, as commands that allow them."""
    settings = (
        ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),  # Ubuntu 24.04
        ("kernel.unprivileged_userns_clone", "0", "1"),  # Debian before 11
        ("user.max_user_namespaces", "0", "10000"),
    )
    found = []
    for name, forbids, allows in settings:
        file = proc / name.replace(".", "/")
        if file.is_file() and file.read_text().strip() == forbids:
            found.append(f"sysctl -w {name}={allows}")
    return " and ".join(found)


def cgroups(root: Path = Path("/sys/fs/cgroup")) -> list[Finding]:
    """Which control groups there are, and whether this process may make some."""
    if (root / "cgroup.controllers").is_file():
        version, places = "v2", [root / _own_group().lstrip("/")]
    else:
        version, places = "v1", [root / name for name in ("memory", "pids")]
        if not any(place.is_dir() for place in places):
            return [Finding("cgroups", False, "none mounted", "limits are per process then")]
    writable = all(place.is_dir() and os.access(place, os.W_OK) for place in places)
    fix = "systemd-run --user --scope -p Delegate=yes COMMAND gives a group of one's own; " \
        "without, limits are per process"  # fmt: skip
    detail = f"{version}, {'writable' if writable else 'not writable'}"
    return [Finding("cgroups", writable, detail, "" if writable else fix)]


def _own_group() -> str:
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        number, _, group = line.split(":", 2)
        if number == "0":
            return group
    return "/"


def _cache() -> list[Finding]:
    uid, root = sandbox_uid(), cache_root()
    out = [Finding("sandbox id", uid != 0, str(uid), "" if uid else "set INTERCODE_SANDBOX_UID")]
    shut = [p for p in (root, *root.parents) if not _enters(p, uid)]
    fix = f"chmod o+x {shut[0]}, or set INTERCODE_CACHE to another directory" if shut else ""
    out.append(Finding("cache reachable by it", not shut, str(root), fix, needed=True))
    writable = os.access(root, os.W_OK)
    free = shutil.disk_usage(root).free / (1 << 30)
    fix = "" if writable else f"make {root} writable, or set INTERCODE_CACHE"
    out.append(Finding("cache writable", writable, f"{free:.1f} GiB free", fix, needed=True))
    return out


def _enters(directory: Path, uid: int) -> bool:
    found = directory.stat()
    bit = stat.S_IXUSR if found.st_uid == uid else stat.S_IXOTH
    return bool(found.st_mode & bit) or (uid == os.geteuid() and os.access(directory, os.X_OK))


def _programs() -> list[Finding]:
    wanted = (
        ("bash", "install bash: tasks on the image `host` need it", True),
        ("git", "install git: the profile `original` on the image `host` needs it", False),
        ("mmdebstrap", "install mmdebstrap, only to build images from recipes", False),
        ("docker", "only for images that must be containers", False),
        ("podman", "only for images that must be containers", False),
    )
    found = [(name, shutil.which(name), fix, needed) for name, fix, needed in wanted]
    return [
        Finding(n, bool(at), at or "absent", "" if at else fix, must) for n, at, fix, must in found
    ]


def _sandbox() -> Finding:
    """Make a real one, twice (the first starts the launcher), and run a command in it."""
    spec = SandboxSpec(Image("host", ""))
    try:
        with open_sandbox(spec):
            pass
        began = time.perf_counter()
        with open_sandbox(spec) as sandbox:
            made = time.perf_counter()
            result = sandbox.run(["/bin/bash", "-c", "true"])
            done = time.perf_counter()
    except SandboxError as e:
        return Finding("a sandbox", False, str(e), "mend what is missing above", needed=True)
    detail = f"{sandbox.tier}: made in {1e3 * (made - began):.0f} ms, " \
        f"`true` in {1e3 * (done - made):.1f} ms"  # fmt: skip
    fix = "" if result.ok else f"`true` ended with {result.exit_code}: {result.output[:200]!r}"
    return Finding("a sandbox", result.ok, detail, fix, needed=True)
