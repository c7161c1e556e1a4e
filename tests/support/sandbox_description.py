"""Everything that code in a sandbox can read about the sandbox."""

from __future__ import annotations

from intercode_sandbox.contract import BaseSandbox
from support import backend

_LOOK = r"""
echo $PPID; env; pwd; id; hostname; umask; ulimit -a; cat /proc/net/dev
wc -l < /proc/net/unix; cat /proc/sysvipc/* /proc/net/snmp
"""
_FILES = "ls -laR --time-style=+ /dev /tmp /root"
_LOOK_OF_NAMESPACES = r"""
echo $$; echo /proc/[0-9]*; df -h /; ls -i / | grep -v -E 'proc|sys'
sed -E 's/^[0-9]+ [0-9]+ [0-9]+:[0-9]+ //; s,^/[0-9]+/,/N/,
s/([ug]id)=[0-9]+/\1=N/g' /proc/self/mountinfo
"""
"""Further differences between two containers of one image: the used process numbers, inodes, how
full the disk is, the names and order of the engine's mounts, and the link count of a directory that
was written to."""


def describe(sandbox: BaseSandbox) -> list[str]:
    """Return the description as lines, without the start time of PID 1."""
    if backend.is_container():  # below a changed root, the parent has a number
        look = _LOOK.replace("echo $PPID; ", "") if backend.is_chroot() else _LOOK
        code = f"{look} {_FILES} | sed -E 's/^(d[^ ]*) +[0-9]+/\\1/'"
    else:
        code = f"{_LOOK} {_FILES}; {_LOOK_OF_NAMESPACES}"
    return sandbox.run(["/bin/bash", "-c", code], timeout=20).output.splitlines()
