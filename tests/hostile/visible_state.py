"""Reads and damages everything of a sandbox that is no file of its image: what the kernel shows of
its processes, namespaces, devices, terminals and sockets."""

from __future__ import annotations

import json
import re

from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.supervisor.supervised_sandbox import SupervisedSandbox
from support import backend

READ = r"""
import fcntl, json, os, pty, resource, socket, stat, sys, termios, tty

found = {}

def lines(path):
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        data = b""  # the kernel gives long files in parts, whose length varies
        while len(data) < 1 << 18 and (part := os.read(fd, 1 << 18)):
            data += part
        return data.decode(errors='replace').splitlines()
    finally:
        os.close(fd)

def visit(path, content=True):
    try:
        info = os.lstat(path)
    except OSError as e:
        found[path] = e.strerror
        return
    entry = [oct(info.st_mode), info.st_uid, info.st_gid, oct(info.st_rdev)]
    try:
        if stat.S_ISLNK(info.st_mode):
            entry.append(os.readlink(path))
        elif stat.S_ISDIR(info.st_mode):
            for name in sorted(os.listdir(path)):
                visit(path + '/' + name, content)
        elif stat.S_ISREG(info.st_mode) and content:
            entry.append(lines(path))
        if path.startswith('/dev'):
            entry += [os.listxattr(path, follow_symlinks=False)]
    except (OSError, ValueError) as e:
        entry.append(str(getattr(e, 'strerror', e)))
    found[path] = entry

for top in '/proc/1', '/proc/self/', '/proc/sys', '/dev':
    visit(top)
for name in os.listdir('/proc'):
    if not name.isdigit() and not os.path.isdir('/proc/' + name) and name != 'kmsg':
        visit('/proc/' + name, name in ('mounts', 'keys', 'key-users'))
for name in 'sysvipc', 'net/', 'fs', 'tty', 'irq', 'bus', 'scsi', 'acpi':
    visit('/proc/' + name, name in ('sysvipc', 'net/'))
for top, below, files in os.walk('/sys'):  # what could be changed, and the network's devices
    for name in [*below, *files]:
        path = os.path.join(top, name)
        if os.access(path, os.W_OK, follow_symlinks=False) or '/net/' in path:
            visit(path, '/net/' in path)
for who in 0, 1:
    found['scheduling', who] = [
        os.getpriority(os.PRIO_PROCESS, who), os.sched_getscheduler(who),
        sorted(os.sched_getaffinity(who)), os.sched_getparam(who).sched_priority,
    ]
found['limits'] = [resource.getrlimit(n) for n in range(resource.RLIM_NLIMITS if hasattr(
    resource, 'RLIM_NLIMITS') else 16)]
found['uname'] = [*os.uname(), os.umask(0), os.getcwd(), sorted(os.environ.items())]
found['statvfs'] = [[path, v.f_flag, v.f_files - v.f_ffree, v.f_blocks - v.f_bfree]
                    for path in ('/dev/shm', '/dev') for v in [os.statvfs(path)]]
master, slave = pty.openpty()
found['terminal'] = [os.ttyname(slave), repr(termios.tcgetattr(slave)),
                     repr(fcntl.ioctl(slave, termios.TIOCGWINSZ, bytes(8))),
                     oct(os.fstat(slave).st_mode), os.fstat(slave).st_uid]
with open('/tmp/state.json', 'w') as file:
    json.dump({str(k): v for k, v in found.items()}, file)
"""

DAMAGE = r"""
import ctypes, fcntl, os, pty, resource, signal, socket, subprocess, termios
libc = ctypes.CDLL(None, use_errno=True)

def attempt(work, *arguments):
    try:
        return work(*arguments)
    except (OSError, ValueError, AttributeError, PermissionError):
        return None

def write(path, text):
    fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)

values = {'oom_score_adj': '900', 'oom_adj': '10', 'coredump_filter': '0x1', 'autogroup': '5',
          'timerslack_ns': '123456789', 'comm': 'evil', 'clear_refs': '1', 'sched': '0',
          'loginuid': '7', 'setgroups': 'deny', 'timens_offsets': 'monotonic 5 0'}
for process in '1', '1/task/1', 'self', str(os.getppid()):
    for name, value in values.items():
        attempt(write, f'/proc/{process}/{name}', value)
for top in '/proc/sys', '/sys', '/dev', '/proc/1':
    for path, below, files in os.walk(top):
        for name in [*below, *files]:
            whole = os.path.join(path, name)
            if os.access(whole, os.W_OK, follow_symlinks=False) and top != '/dev':
                attempt(write, whole, '1')
            if top == '/dev' or whole.count('/') < 4:
                attempt(os.chmod, whole, 0o4777 if name != 'null' else 0o600)
                attempt(os.utime, whole, (1, 1))
                attempt(os.setxattr, whole, 'user.x', b'x')
                attempt(os.rename, whole, whole + '.old')
for directory in '/dev', '/dev/pts', '/dev/shm', '/proc', '/sys', '/proc/1':
    attempt(os.chmod, directory, 0o700)
    attempt(os.utime, directory, (1, 1))
    attempt(os.mknod, directory + '/node', 0o600)
    attempt(os.symlink, '/tmp', directory + '/link')
for who in 1, 0:
    for kind in os.PRIO_PROCESS, os.PRIO_PGRP:
        attempt(os.setpriority, kind, who, 19)
    attempt(os.sched_setscheduler, who, os.SCHED_IDLE, os.sched_param(0))
    attempt(os.sched_setaffinity, who, {0})
    for limit in range(16) if who else ():
        attempt(resource.prlimit, who, limit, (3, 3))
    for kind in 1, 2, 3:
        libc.syscall(251 if os.uname().machine == 'x86_64' else 30, kind, who, 3 << 13)
for flag in (1, 0x0040000, 0x0080000, 0x0200000, 0x0800000):
    libc.personality(flag)
attempt(socket.sethostname, 'evil')
libc.setdomainname(b'evil', 4)
for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM:
    s = socket.socket(socket.AF_UNIX, kind)
    s.bind(b'\0left' + str(kind).encode())
    fcntl.fcntl(s.fileno(), fcntl.F_SETFD, 0)
    os.set_inheritable(s.fileno(), True)
for number in 29, 64, 68:  # shmget, semget, msgget
    libc.syscall(number, 0x1234, 4096, 0o1666)
libc.mq_open(b'/left', 0o100 | 2, 0o666, None)
libc.syscall(250, 1, b'left')  # keyctl: join a session
for _ in range(3):
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, b'\7\0\7\0\0\0\0\0')
    attempt(os.fchmod, slave, 0o777)
    settings = termios.tcgetattr(slave)
    settings[3] = 0
    termios.tcsetattr(slave, termios.TCSANOW, settings)
for name in 'null', 'zero', 'tty', 'pts/ptmx', 'shm':
    fd = attempt(os.open, '/dev/' + name, os.O_RDONLY | os.O_NONBLOCK)
    if fd is not None:
        attempt(fcntl.flock, fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
open('/dev/shm/left', 'w').write('x')
if os.fork() == 0:
    os.setsid()
    attempt(write, '/proc/self/autogroup', '7')
    for number in range(1, 65):
        attempt(signal.signal, number, signal.SIG_IGN)
    while True:
        signal.pause()
"""

_COUNTS = re.compile(
    r"/(schedstat|sched|statm|stat|smaps|smaps_rollup|maps|numa_maps|io|wchan|syscall|stack|pagemap|"
    r"auxv|mem|timers|latency|ksm_stat|ksm_merging_pages|environ|fdinfo/.*|map_files/.*|"
    r"patch_state|oom_score|arch_status)$"
)
"""Counters, addresses and times of a process; `stat` and `status` are compared by their constant
fields."""
_VARYING_STATUS = re.compile(r"^(Vm|Rss|Hugetlb|SigQ|voluntary|nonvoluntary|FDSize)")
_HOST = re.compile(
    r"/proc/sys/(fs/(dentry-state|inode-nr|inode-state|file-nr|aio-nr|quota)|"
    r"kernel/(random|pty/nr|ns_last_pid|perf_event_max_sample_rate|tainted)|net/netfilter)|"
    r".*/net//?(softnet_stat|sockstat6?|protocols|stat/(arp_cache|ndisc_cache|rt_cache))$"
)
"""Numbers of the whole machine, also those that the kernel shows in each network namespace."""
_OWN_NUMBER = re.compile(r"/proc/self//task/\d+")
_IDS = re.compile(
    r"\[\d+\]|^\d+ \d+ \d+:\d+ |\b(master|shared|propagate_from):\d+|autogroup-\d+|^[0-9a-f]{16}\b|"
    r"(?<= )\d{5,} *$|(?<= )/\d+(?=/(null|zero|full|random|urandom|tty) )"
)
"""Numbers of namespaces, mounts and their devices, scheduling groups, sockets, and of the directory
with a sandbox's device files."""
_ENGINE = re.compile(r"/(cgroup|cpuset|mountinfo|mounts|mountstats|children|key-users|net//?unix)$")
"""Names and numbers that an engine gives to containers, and the keys of their common user."""
_VARYING_PIDS = re.compile(
    rf"{_VARYING_STATUS.pattern}|^(State|Tgid|Pid|NStgid|NSpid|NSpgid|NSsid):"
)
"""Process numbers of containers continue. PID 1 is their supervisor, which may be running."""


def read_state(sandbox: BaseSandbox) -> dict[str, str]:
    """Return the visible state by path, without what differs between two new sandboxes."""
    output, code, _ = sandbox.run_bytes(["python3", "-c", READ], timeout=60)
    assert code == 0, output[-2000:].decode(errors="replace")
    state, container = {}, backend.is_container()
    text = sandbox.read("/tmp/state.json").decode()
    if isinstance(sandbox, SupervisedSandbox):
        text = re.sub(rf"\b{sandbox.user_id}\b", "-1", text)  # also a number of JSON
    for path, entry in json.loads(text).items():
        path = _OWN_NUMBER.sub("/proc/self/task/N", path)
        if _HOST.match(path) or (path.startswith("/proc/") and _COUNTS.search(path)):
            continue
        if container and _ENGINE.search(path):
            continue
        if path.endswith("/status") and isinstance(entry, list):
            varying = _VARYING_PIDS if container else _VARYING_STATUS
            entry[4] = [line for line in entry[4] if not varying.match(line)]
        if isinstance(entry, list):
            entry = [
                [_IDS.sub("", str(line)) for line in part]
                if isinstance(part, list)
                else _IDS.sub("", part)
                if isinstance(part, str)
                else part
                for part in entry
            ]
        state[path] = json.dumps(entry)
    return state
