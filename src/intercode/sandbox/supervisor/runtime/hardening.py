"""What is taken away from everything that runs in a box: limits, capabilities, system calls."""

from __future__ import annotations

import contextlib
import resource

from . import seccomp
from . import syscalls as sys_

# CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID NET_BIND_SERVICE NET_RAW SYS_CHROOT
# AUDIT_WRITE SETFCAP: what a container's root has, less what could reach further
_ALLOWED_CAPABILITIES = {0, 1, 3, 4, 5, 6, 7, 10, 13, 18, 29, 31}


def drop_capabilities() -> None:
    """Take capabilities and system calls from what this process and its children to come execute.
    There is no way back."""
    capability = 0
    with contextlib.suppress(OSError):  # the first number that this kernel does not know
        while True:
            if capability not in _ALLOWED_CAPABILITIES:
                sys_.prctl(sys_.PR_CAPBSET_DROP, capability)
            capability += 1


def install_seccomp_filter() -> None:
    """Install the filter on this process and its children to come. There is no way back."""
    sys_.prctl(sys_.PR_SET_NO_NEW_PRIVS, 1)
    sys_.install_filter(seccomp.build_filter(sys_.ARCH, sys_.KEY))


def set_limits(limits: dict[str, int]) -> None:
    """Set the limits that a process hands on to its children. There is no way back."""
    for name, value in (
        (resource.RLIMIT_NPROC, limits["processes"]),
        (resource.RLIMIT_NOFILE, limits["open_files"]),
        (resource.RLIMIT_FSIZE, limits["file_size"]),
        (resource.RLIMIT_AS, limits["address_space"]),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 1 << 20),
    ):
        hard = resource.getrlimit(name)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(name, (value, value))
