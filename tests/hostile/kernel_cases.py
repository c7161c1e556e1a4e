"""Requesting from the kernel what a sandbox must not have."""

from __future__ import annotations

import platform
from typing import Any

from hostile.cases import Case, python

_CALL = """
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
for arguments in {arguments!r}:
    whole = [a.encode() if isinstance(a, str) else ctypes.c_long(a) for a in arguments]
    result = libc.syscall({number}, *whole)
    name = errno.errorcode.get(ctypes.get_errno())
    refused = name in ('EPERM', 'ENOSYS')
    print('GOT' if result >= 0 else 'REFUSED' if refused else 'REACHED', name)
"""
_ARM = platform.machine() == "aarch64"


def _call(name: str, x86: int, arm: int, *arguments: list[Any]) -> Case:
    """A system call by number that must be refused with any arguments."""
    code = _CALL.format(number=arm if _ARM else x86, arguments=arguments or ([0] * 6,))
    return Case(
        name,
        "kernel",
        (python(code),),
        shows=("REFUSED",),
        hides=("GOT", "REACHED"),
        limit=5,
        late=False,
    )


def _try(name: str, action: str, *shows: str, hides: tuple[str, ...] = ()) -> Case:
    return Case(name, "kernel", (action,), shows=shows, hides=hides, limit=5, late=False)


_NEW = [0x10000000, 0x20000, 0x20000000, 0x40000000, 0x8000000, 0x4000000, 0x2000000, 0x80]
_IOCTL = """
import fcntl, os, pty
pid, master = pty.fork()
if pid == 0:
    for number, data in ((0x5412, b'x'), (0x541C, b'\\x03'), (0x5437, b'')):
        try:
            fcntl.ioctl(0, number, data)
            print('GOT', hex(number), flush=True)
        except OSError as e:
            print('REFUSED', hex(number), e.strerror, flush=True)
    os._exit(0)
while True:
    try: data = os.read(master, 999)
    except OSError: break
    if not data: break
    os.write(1, data)
"""

CASES = [
    # namespaces and mounts
    _call("mount", 165, 40, ["none", "/tmp", "tmpfs", 0, 0], ["/", "/tmp", "", 4096, 0]),
    _call("remounting what is read-only", 165, 40, ["none", "/usr", "", 32 | 4096, 0]),
    _call("umount", 166, 39, ["/proc", 2], ["/proc/sys", 2], ["/dev", 0]),
    _call("pivot_root", 155, 41, [".", "."]),
    _call("open_tree", 428, 428, [-100, "/", 1], [-100, "/usr", 0x8001]),
    _call("open_tree_attr", 467, 467, [-100, "/", 1, 0, 0]),
    _call("move_mount", 429, 429, [-100, "/usr", -100, "/tmp", 0]),
    _call("fsopen", 430, 430, ["tmpfs", 0], ["proc", 0], ["overlay", 0]),
    _call("fspick", 433, 433, [-100, "/usr", 0]),
    _call("mount_setattr", 442, 442, [-100, "/usr", 0x8000, 0, 32]),
    _call("unshare", 272, 97, *[[flag] for flag in _NEW]),
    _call("clone into new namespaces", 56, 220, *[[flag | 17, 0, 0, 0, 0] for flag in _NEW[:-1]]),
    _call("clone3", 435, 435, [0, 0], [0, 88]),
    _call("setns", 308, 268, [0, 0], [0, 0x10000000]),
    _call("statmount", 457, 457, [0, 0, 0, 0]),
    _call("listmount", 458, 458, [0, 0, 0, 0]),
    _call("listns", 470, 470, [0, 0, 0, 0]),
    _call("swapon", 167, 224, ["/tmp/f", 0]),
    _call("quotactl", 179, 60, [0x800002, "/dev/vda", 0, 0]),
    _try(
        "new namespaces by the programs",
        "unshare -Ur id; unshare -m true; unshare -n true; nsenter -t 1 -a id; "
        "mount -t tmpfs x /mnt; mount --bind / /mnt; umount -l /proc; chroot /proc/1/root id; "
        "echo over",
        "over",
        hides=("uid=",),
    ),
    _try(
        "chroot and out again",
        python(
            "import os\nos.mkdir('/tmp/c')\nfd = os.open('/', 0)\nos.chroot('/tmp/c')\n"
            "os.fchdir(fd)\n"
            "for _ in range(64): os.chdir('..')\nos.chroot('.')\nprint(os.path.exists('@FILE@'))"
        ),
        "False",
    ),
    # other processes
    _call("ptrace", 101, 117, [16, 1, 0, 0], [0, 0, 0, 0], [0x4206, 1, 0, 0]),
    _call("process_vm_readv", 310, 270, [1, 0, 0, 0, 0, 0]),
    _call("process_vm_writev", 311, 271, [1, 0, 0, 0, 0, 0]),
    _call("kcmp", 312, 272, [1, 1, 0, 0, 0]),
    _call("pidfd_getfd", 438, 438, [0, 0, 0]),
    _call("process_madvise", 440, 440, [0, 0, 0, 0, 0]),
    _try(
        "signals to the host",
        "for p in @OWNER@ @VICTIM@ $((@OWNER@ - 1)); do kill -9 $p; "
        "kill -STOP $p; renice -n 19 $p; done; echo over",
        "No such process",
        "over",
    ),
    _try(
        "PID 1",
        "for s in {1..64}; do kill -$s 1; done 2>/dev/null; cat /proc/1/environ "
        "/proc/1/mem /proc/1/maps /proc/1/stack /proc/1/syscall; ls -l /proc/1/fd/ /proc/1/cwd/ "
        "/proc/1/root/ /proc/1/ns/ /proc/1/map_files/; echo over",
        "denied",
        "over",
    ),
    _try(
        "PID 1 by signals at once",
        "for i in {1..300}; do for s in SEGV BUS ABRT ILL FPE; do "
        "kill -$s 1; done; done 2>/dev/null; echo over",
        "",
        "over",
    ),
    _try(
        "PID 1 as the first victim of memory",
        "for f in /proc/1/{,task/1/}{oom_score_adj,oom_adj,coredump_filter,autogroup,sched}; do "
        "{ echo 900 > $f; } 2>/dev/null && echo wrote; done; cat /proc/1/oom_score_adj",
        "0\n",
        hides=("wrote", "900"),
    ),
    _try(
        "the scores of being killed for memory",
        "echo -1000 > /proc/self/oom_score_adj && cat /proc/self/oom_score_adj; echo over",
        "over",
        hides=("-1000\n",),
    ),
    # into the kernel
    _call("keyctl", 250, 219, [0, -3, 0], [11, -3, 0], [1, "x"]),
    _call("add_key", 248, 217, ["user", "k", "v", 1, -3]),
    _call("request_key", 249, 218, ["user", "k", 0, -3]),
    _call("bpf", 321, 280, [0, 0, 0], [5, 0, 128]),
    _call("perf_event_open", 298, 241, [0, 0, -1, -1, 0]),
    _call("io_uring_setup", 425, 425, [8, 0]),
    _call("io_uring_enter", 426, 426, [0, 0, 0, 0, 0]),
    _call("io_uring_register", 427, 427, [-1, 0, 0, 0]),
    _call("userfaultfd", 323, 282, [0], [1], [0x80000]),
    _call("init_module", 175, 105, [0, 0, ""]),
    _call("finit_module", 313, 273, [0, "", 0]),
    _call("delete_module", 176, 106, ["overlay", 0]),
    _call("kexec_load", 246, 104, [0, 0, 0, 0]),
    _call("kexec_file_load", 320, 294, [0, 0, 0, 0, 0]),
    _call("reboot", 169, 142, [0xFEE1DEAD, 672274793, 0x1234567, 0], [0xFEE1DEAD, 672274793, 0, 0]),
    _call("syslog", 103, 116, [3, 0, 0], [5, 0, 0], [10, 0, 0]),
    _call("acct", 163, 89, ["/tmp/f"]),
    _call("setting the clock", 227, 112, [0, 0]),
    _call("settimeofday", 164, 170, [0, 0]),
    _call("adjtimex", 159, 171, [0]),
    _call("the name of the machine", 170, 161, ["evil", 4]),
    _call("open_by_handle_at", 304, 265, [-100, 0, 0]),
    _call("name_to_handle_at", 303, 264, [-100, "/", 0, 0, 0]),
    _call("fanotify_init", 300, 262, [0, 0]),
    _call("vhangup", 153, 58),
    _call("fsconfig", 431, 431, [-1, 0, 0, 0, 0]),
    *(
        []
        if _ARM
        else [
            _call("iopl", 172, 0, [3]),
            _call("ioperm", 173, 0, [0, 8, 1]),
            _call("modify_ldt", 154, 0, [1, 0, 0]),
            _call("the x32 table of calls", 0x40000000 + 39, 0),
            _call("the x32 table's mount", 0x40000000 + 165, 0, ["none", "/tmp", "tmpfs", 0, 0]),
        ]
    ),
    # settings
    _try(
        "/proc/sys",
        "for f in kernel/core_pattern kernel/hostname kernel/modprobe vm/overcommit_"
        "memory fs/file-max kernel/randomize_va_space net/ipv4/ip_forward user/max_user_namespaces"
        "; do echo evil > /proc/sys/$f && echo GOT $f; done; find /proc/sys -type f -perm -200 "
        "2>/dev/null | while read f; do cat $f > $f && echo GOT $f; done 2>/dev/null; echo over",
        "Read-only file system",
        "over",
        hides=("GOT",),
    ),
    _try(
        "sysrq",
        "echo h > /proc/sysrq-trigger; echo b | tee /proc/sys/kernel/sysrq; echo over",
        "over",
    ),
    _try(
        "core_pattern",
        "echo '|/tmp/evil' > /proc/sys/kernel/core_pattern && echo GOT; echo over",
        "over",
        hides=("GOT",),
    ),
    _try(
        "memory of the kernel",
        "head -c 99 /proc/kcore | wc -c; head -c 9 /dev/mem; "
        "head -c 9 /dev/kmsg; head -c 9 /proc/kmsg | wc -c; head -c 9 /proc/kpagecount; "
        "grep -v '^0000000000000000' /proc/kallsyms | head -3; echo over",
        "0\n",
        "over",
        hides=("ffffffff",),
    ),
    _try(
        "/sys",
        "find /sys -type f -perm -200 2>/dev/null | head -200 | while read f; do "
        "echo 1 > $f && echo GOT $f; done 2>/dev/null; echo over",
        "over",
        hides=("GOT",),
    ),
    _try(
        "cgroups",
        "mkdir /sys/fs/cgroup/x && echo GOT; ls /sys/fs/cgroup | head; "
        "echo $$ > /sys/fs/cgroup/cgroup.procs && echo GOT; "
        "echo /tmp/x > /sys/fs/cgroup/release_agent && echo GOT; echo over",
        "over",
        hides=("GOT",),
    ),
    _try(
        "device nodes",
        "cd /tmp; for d in 'b 254 0' 'b 8 0' 'c 1 1' 'c 10 200' 'c 1 3'; do "
        "mknod n $d && echo GOT; done; head -c 9 n; ls -l /dev; echo over",
        "not permitted",
        "over",
        hides=("GOT",),
    ),
    _try("a whiteout made by hand", "mknod /tmp/w c 0 0 && ls -la /tmp/w; echo over", "over"),
    # rights
    _try(
        "setuid",
        "cp /usr/bin/id /tmp/id; chmod 6777 /tmp/id; chown 12345 /tmp/id; /tmp/id -u; "
        "su -c id nobody; sudo -n id; ls -l /usr/bin/su; newuidmap $$ 0 0 1; echo over",
        "0\n",
        "over",
    ),
    _try(
        "other ids",
        python(
            "import os\nfor f in (os.setuid, os.setgid, lambda n: os.setgroups([n])):\n"
            " try: f(12345); print('CHANGED', os.getresuid())\n"
            " except OSError as e: print('REFUSED', e.strerror)"
        ),
        "REFUSED",
    ),
    _try(
        "capabilities",
        "grep -E 'Cap(Eff|Bnd|Amb)|NoNewPrivs|Seccomp:' /proc/self/status; "
        "capsh --print; setpriv --ambient-caps +sys_admin true; setcap cap_sys_admin+ep /tmp/x",
        "NoNewPrivs:\t1",
        "Seccomp:\t2",
        hides=("ffffffffff",),
    ),
    _try(
        "typing into a terminal",
        python(_IOCTL),
        "REFUSED 0x5412",
        "REFUSED 0x541c",
        hides=("GOT 0x5412", "GOT 0x541c"),
    ),
    _try(
        "the owner's terminal",
        "echo x > /dev/tty; ls -l /dev/pts /dev/tty; "
        "python3 -c 'import os; print(os.ttyname(0))'; echo over",
        "No such device",
        "over",
    ),
    _try(
        "the machine's programs",
        "for f in /usr/bin/id /usr/bin/evil /lib/evil /opt/python/evil "
        "/etc/alternatives/evil; do echo x > $f && echo GOT $f; done; rm -f /usr/bin/id; "
        "chmod 777 /usr/bin; touch /usr; id -u",
        "Read-only file system",
        "0\n",
        hides=("GOT /usr", "GOT /lib", "GOT /opt/python", "GOT /etc/alt"),
    ),
    _try(
        "the machine's programs through a descriptor",
        python(
            "import os\nfd = os.open('/usr/bin/id', os.O_RDONLY)\n"
            "for p in (f'/proc/self/fd/{fd}', f'/dev/fd/{fd}'):\n"
            " try: os.write(os.open(p, os.O_RDWR), b'x'); print('GOT')\n"
            " except OSError as e: print('REFUSED', e.strerror)"
        ),
        "REFUSED",
        hides=("GOT",),
    ),
]
