"""All that a box tells about itself."""

from __future__ import annotations

from intercode.sandboxes.namespace.sandbox import NamespaceSandbox

_LOOK = r"""
echo $$ $PPID; env; pwd; id; hostname; umask; ulimit -a; ls -laR --time-style=+ /dev /tmp /root
cat /proc/net/dev
ls -i / | grep -v -E 'proc|sys'; echo /proc/[0-9]*; wc -l < /proc/net/unix
cat /proc/sysvipc/*; df -h /; cat /proc/net/snmp
sed 's/^[0-9]* [0-9]* [0-9]*:[0-9]* //' /proc/self/mountinfo
"""


def look(box: NamespaceSandbox) -> list[str]:
    """It as lines, but for when PID 1 began."""
    return box.run(["/bin/bash", "-c", _LOOK], timeout=20).output.splitlines()
