"""Misleading the owner when it reads, writes, compares or copies the sandbox's files."""

from __future__ import annotations

from hostile.cases import Case, Probe, python


def _file(name: str, action: str, *probes: Probe, **more: object) -> Case:
    """After the action the owner runs the probes, `changes` and `clone`."""
    known: dict[str, object] = {"limit": 5, "late": False, **more}
    return Case(name, "file", (action,), probes=(*probes, ("changes", ""), ("clone", "")), **known)  # type: ignore[arg-type]


def _read(path: str) -> Probe:
    return ("read", path)


def _refused(path: str) -> Probe:
    return ("refused", path)


def _denied(path: str) -> Probe:
    return ("denied", path)


def _write(path: str) -> Probe:
    return ("write", path)


_SWAP = """
import os, sys
os.chdir('/tmp')
open('a', 'w').write('x')
os.symlink('@FILE@', 'b')
if os.fork(): os._exit(0)
os.setsid()
while True:
    os.rename('a', 'c'); os.rename('b', 'a'); os.rename('c', 'b')
"""
_SWAP_DIRECTORY = """
import os
os.chdir('/tmp')
os.makedirs('a')
os.symlink('@DIRECTORY@', 'b')
if os.fork(): os._exit(0)
os.setsid()
while True:
    os.rename('a', 'c'); os.rename('b', 'a'); os.rename('c', 'b')
"""
_MARKS = """
import os
os.makedirs('/tmp/d/e')
open('/tmp/f', 'w').close()
for name in ('opaque', 'whiteout', 'redirect', 'metacopy', 'origin', 'impure', 'nlink', 'upper'):
    for prefix in ('user.overlay.', 'trusted.overlay.', 'user.overlay.overlay.'):
        for path in ('/tmp/d', '/tmp/f', '/etc', '/'):
            for value in (b'y', b'@FILE@', b''):
                try: os.setxattr(path, prefix + name, value)
                except OSError: pass
print(os.listdir('/etc'), os.listdir('/tmp/d'))
"""

CASES = [
    _file("an absolute link", "ln -s @FILE@ /tmp/l", _refused("/tmp/l"), _refused("@FILE@")),
    _file(
        "a link that goes up",
        "ln -s ../../../../../../..@FILE@ /tmp/l",
        _refused("/tmp/l"),
        _refused("/../../../../../..@FILE@"),
        _refused("/tmp/../../..@FILE@"),
    ),
    _file(
        "a link to a directory of the host",
        "ln -s @DIRECTORY@ /tmp/l",
        _refused("/tmp/l/secret"),
        _denied("/tmp/l/evil"),
    ),
    _file(
        "a link to the root",
        "ln -s / /tmp/l",
        _read("/tmp/l/etc/passwd"),
        _refused("/tmp/l/../..@FILE@"),
        _write("/tmp/l/tmp/new"),
    ),
    _file(
        "a loop of links",
        "ln -s b /tmp/a; ln -s a /tmp/b; ln -s . /tmp/c",
        _refused("/tmp/a"),
        _denied("/tmp/a"),
        _denied("/tmp/b/x"),
        _refused("/tmp/c/c/c/c/a"),
    ),
    _file("a link to itself", "ln -s l /tmp/l", _refused("/tmp/l"), _denied("/tmp/l")),
    _file("a FIFO", "mkfifo /tmp/p", _refused("/tmp/p"), _denied("/tmp/p")),
    _file(
        "a FIFO with a reader",
        "mkfifo /tmp/p; (cat /tmp/p >/dev/null &)",
        _refused("/tmp/p"),
        _denied("/tmp/p"),
    ),
    _file("a FIFO with a writer", "mkfifo /tmp/p; (sleep 600 > /tmp/p &)", _refused("/tmp/p")),
    _file(
        "a socket",
        python("import socket\nsocket.socket(1).bind('/tmp/s')"),
        _refused("/tmp/s"),
        _denied("/tmp/s"),
    ),
    _file("a directory", "mkdir /tmp/d", _refused("/tmp/d"), _denied("/tmp/d")),
    _file("a directory in the way", "touch /tmp/f", _denied("/tmp/f/x"), _refused("/tmp/f/x")),
    _file(
        "devices",
        "ls -l /dev",
        _refused("/dev/zero"),
        _refused("/dev/tty"),
        _refused("/dev/random"),
        _denied("/dev/full"),
        _refused("/dev/ptmx"),
    ),
    _file(
        "links to devices",
        "ln -s /dev/zero /tmp/z; ln -s /dev/tty /tmp/t",
        _refused("/tmp/z"),
        _refused("/tmp/t"),
        _denied("/tmp/z"),
    ),
    _file(
        "magic links",
        "ln -s /proc/1/root /tmp/r; ln -s /proc/self/fd/0 /tmp/fd; "
        "ln -s /proc/1/cwd /tmp/c; ln -s /proc/1/exe /tmp/x; ln -s /dev/stdin /tmp/i",
        _refused("/tmp/r@FILE@"),
        _refused("/tmp/fd"),
        _refused("/tmp/c/etc/passwd"),
        _refused("/tmp/x"),
        _refused("/tmp/i"),
        _refused("/dev/fd/0"),
        _denied("/dev/stdout"),
        _refused("/proc/1/root/etc/passwd"),
        _denied("/tmp/r/tmp/x"),
    ),
    _file(
        "PID 1",
        "true",
        _refused("/proc/1/environ"),
        _refused("/proc/1/mem"),
        _refused("/proc/1/maps"),
        _denied("/proc/1/oom_score_adj"),
    ),
    _file(
        "the kernel's knobs",
        "ln -s /proc/sys/kernel/core_pattern /tmp/c; ln -s /proc/sysrq-trigger /tmp/s",
        _denied("/tmp/c"),
        _denied("/tmp/s"),
        _denied("/proc/sys/kernel/hostname"),
        _denied("/sys/power/state"),
    ),
    _file(
        "the machine's programs",
        "ln -s /usr/bin /tmp/b",
        _denied("/tmp/b/evil"),
        _denied("/usr/bin/id"),
        _denied("/usr/evil/evil"),
    ),
    _file("a file that never ends", "truncate -s 90M /tmp/f", _refused("/tmp/f")),
    _file("a file that grows", "(yes > /tmp/f &)", _read("/tmp/f")),
    _file(
        "files of no rights",
        "mkdir -m 0 /tmp/d; touch /tmp/d/f; chmod 0 /tmp/d/f",
        _read("/tmp/d/f"),
        _write("/tmp/d/f"),
    ),
    _file("an immutable file", "touch /tmp/f; chattr +i /tmp/f; chattr +a /etc", _write("/tmp/f")),
    _file(
        "a file swapped for a link",
        python(_SWAP),
        *[_read("/tmp/a")] * 20,
        *[_write("/tmp/a")] * 20,
    ),
    _file(
        "a directory swapped for a link",
        python(_SWAP_DIRECTORY),
        *[_read("/tmp/a/secret")] * 20,
        *[_write("/tmp/a/evil")] * 20,
    ),
    _file(
        "a parent that is removed meanwhile",
        "(while :; do mkdir -p /tmp/a/b; rm -rf /tmp/a; done 2>/dev/null &)",
        *[_write("/tmp/a/b/c")] * 10,
    ),
    _file(
        "forged overlay attributes",
        python(_MARKS),
        _read("/etc/passwd"),
        _read("/tmp/f"),
        shows=("passwd",),
    ),
    _file(
        "whiteouts",
        "mknod /tmp/w c 0 0; rm -rf /etc; mkdir /etc; ls -la /tmp/.wh* /etc",
        _refused("/etc/passwd"),
    ),
    _file(
        "names of all bytes",
        python(
            "import os\nos.chdir('/tmp')\nfor i in range(1, 256):\n"
            " if i != 47: open(bytes([i]) * 3 if i != 46 else b'...', 'w').close()"
        ),
        _read("/tmp/\n\n\n"),
        _read("/tmp/\udcff\udcff\udcff"),
        _write("/tmp/\udcfe\n\x1b[2J"),
    ),
    _file("a NUL in a path", "true", _refused("/tmp/a\0b"), _denied("/tmp/a\0b")),
    _file(
        "a path too long",
        "true",
        _refused("/tmp/" + "x" * 5000),
        _denied("/tmp/" + "x" * 5000),
        _denied("/tmp" + "/y" * 3000),
    ),
    _file(
        "paths that are none",
        "true",
        _refused(""),
        _refused("/"),
        _denied("/"),
        _denied(""),
        _read("etc/passwd"),
        _refused("..@FILE@"),
    ),
    _file(
        "1500 directories deep",
        python("import os\nos.chdir('/tmp')\nfor _ in range(1500): os.mkdir('d'); os.chdir('d')"),
    ),
    _file("sparse files beyond the disk", "for i in 1 2; do truncate -s 90M /tmp/f$i; done"),
    _file(
        "long names deep down",
        python(
            "import os\nos.chdir('/tmp')\nfor _ in range(60): os.mkdir('d' * 250); "
            "os.chdir('d' * 250)"
            "\nfor i in range(300): open(str(i), 'w').close()"
        ),
    ),
    _file(
        "ten thousand files",
        python("import os\nos.chdir('/tmp')\nfor i in range(10000): open(str(i), 'w').close()"),
    ),
    _file(
        "a disk that is full",
        "head -c 250M /dev/zero > /tmp/a; head -c 250M /dev/zero > /tmp/b;"
        " head -c 250M /dev/zero > /tmp/c",
        _denied("/tmp/new"),
        _read("/etc/passwd"),
    ),
    _file("a million links", "touch /tmp/f; for i in {1..400}; do ln /tmp/f /tmp/g$i; done"),
    _file(
        "sockets and FIFOs in a copy",
        python(
            "import os, socket\nos.chdir('/tmp')\nfor i in range(50):\n os.mkfifo(f'p{i}')\n"
            " socket.socket(1).bind(f's{i}')"
        ),
    ),
    _file(
        "the lower file system removed",
        "rm -rf /etc /home /srv /var /mnt 2>/dev/null; ls /",
        _refused("/etc/passwd"),
        _write("/etc/new"),
    ),
    _file(
        "the root renamed away",
        "mkdir /n; mv /tmp /var /etc /n/ 2>/dev/null; ls /n",
        _write("/tmp/new"),
        _read("/n/etc/passwd"),
    ),
    _file(
        "processes that will not be frozen",
        "trap '' STOP; (while :; do (:) & done "
        ">/dev/null 2>&1 &); (while :; do kill -CONT -1; done 2>/dev/null &)",
    ),
]
