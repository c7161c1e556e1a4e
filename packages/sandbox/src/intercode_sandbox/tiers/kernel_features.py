"""Checks which features of the kernel this machine has, and says how to get the missing ones."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from intercode_sandbox.errors import ConfigError
from intercode_sandbox.platforms.paths import cache_root, sandbox_uid
from intercode_sandbox.supervisor import runtime
from intercode_sandbox.tiers.platforms import detect_confinement
from intercode_sandbox.tiers.remedies import container_options_hint, user_namespace_fix
from intercode_sandbox.tiers.tier_table import Finding

_BOOTSTRAP = (
    "import sys;sys.path.insert(0,sys.argv[1]);from runtime.kernel_check import main;"
    "main(int(sys.argv[2]),sys.argv[3])"
)
_SECONDS = 30.0
_FEATURES = {
    "user": "user namespaces",
    "overlay": "overlay in a user namespace",
    "xattr": "extended attributes on tmpfs",
    "proc": "a new /proc",
    "network": "network namespace",
    "seccomp": "seccomp filter",
    "landlock": "Landlock",
}


def check_kernel() -> list[Finding]:
    """Try the features of the kernel that some tier uses."""
    errors = _try_kernel_features()
    return [
        Finding(what, not errors[key], errors[key], _fix(key, errors) if errors[key] else "")
        for key, what in _FEATURES.items()
    ]


@contextmanager
def _stage() -> Iterator[Path]:
    """Yield a directory to mount in: one of the cache, or else a temporary one."""
    try:
        stage = cache_root() / "stage"
        stage.mkdir(exist_ok=True)
    except (ConfigError, OSError):
        with tempfile.TemporaryDirectory() as temporary:
            yield Path(temporary)
    else:
        yield stage


def _try_kernel_features() -> dict[str, str]:
    """Run runtime/kernel_check.py and return its errors by name; an empty text means none."""
    here = str(Path(runtime.__file__).parent.parent)
    with _stage() as stage:
        argv = [sys.executable, "-I", "-S", "-c", _BOOTSTRAP, here, str(sandbox_uid()), str(stage)]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_SECONDS, check=False)
    try:
        errors: dict[str, str] = json.loads(done.stdout)
    except ValueError:
        last = (done.stderr.strip() or f"status {done.returncode}").splitlines()[-1]
        return dict.fromkeys(_FEATURES, f"the check itself failed: {last}")
    return errors


def _fix(key: str, errors: dict[str, str]) -> str:
    """Return the remedy for a missing feature. Features that need user namespaces refer to the
    remedy for those."""
    if key not in ("user", "seccomp", "landlock") and errors["user"]:
        return "see user namespaces"
    if key == "xattr":
        return (
            f"kernel 6.6 or newer (this is {platform.release()}); with this one, a directory "
            "that was removed and made again may show old files"
        )
    if key == "landlock":
        return (
            "a kernel with CONFIG_SECURITY_LANDLOCK, 6.12 or newer to be of use, and "
            "`landlock` in its parameter lsm="
        )
    needs = {
        "user": user_namespace_fix() or "a kernel with CONFIG_USER_NS",
        "overlay": f"kernel 5.11 or newer (this is {platform.release()})",
        "proc": "a /proc of which no part is masked",
        "network": "a kernel with CONFIG_NET_NS",
        "seccomp": "a kernel with CONFIG_SECCOMP_FILTER, on x86_64 or aarch64",
    }
    return container_options_hint(detect_confinement()) or needs[key]
