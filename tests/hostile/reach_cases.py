"""Reaching out of the sandbox: the network, and what may leak into it."""

from __future__ import annotations

from hostile.cases import Case, python


def _network(name: str, code: str, *shows: str, hides: tuple[str, ...] = ("GOT",)) -> Case:
    return Case(name, "network", (code,), shows=shows, hides=hides, limit=5, late=False)


def _leak(name: str, code: str, *shows: str, hides: tuple[str, ...] = ()) -> Case:
    """No output may contain the planted secrets, which is checked for every case."""
    return Case(name, "leak", (code,), shows=shows, hides=hides, limit=5, late=False)


def _socket(name: str, family: int, kind: int, protocol: int) -> Case:
    code = (
        f"import socket\ntry: socket.socket({family}, {kind}, {protocol}); print('GOT')\n"
        "except OSError as e: print('REFUSED', e.strerror)\n"
        f"try: socket.socketpair({family}, {kind}, {protocol}); print('GOT')\n"
        "except (OSError, ValueError) as e: print('REFUSED', e)"
    )
    return _network(name, python(code), "REFUSED")


def _connect(name: str, family: str, address: str, kind: str = "STREAM") -> Case:
    code = (
        f"import socket\ntry:\n s = socket.socket(socket.AF_{family}, socket.SOCK_{kind})\n"
        f" s.settimeout(2); s.connect({address}); s.send(b'x'); print(s.recv(9)); print('GOT')\n"
        "except OSError as e: print('REFUSED', e)"
    )
    return _network(name, python(code), "REFUSED")


CASES = [
    _connect("a server of the host", "INET", "('127.0.0.1', @TCP@)"),
    _connect("a server of the host by IPv6", "INET6", "('::1', @TCP@)"),
    _connect("a server of the host by a mapped address", "INET6", "('::ffff:127.0.0.1', @TCP@)"),
    _connect("a server of the host by every address", "INET", "('0.0.0.0', @TCP@)"),
    _connect("a datagram to the host", "INET", "('127.0.0.1', @UDP@)", "DGRAM"),
    _connect("an abstract socket of the host", "UNIX", "'\\0@ABSTRACT@'"),
    _connect("a socket file of the host", "UNIX", "'@SOCKET@'"),
    _connect("an address on the internet", "INET", "('192.0.2.1', 80)"),
    _connect("an address on the internet by IPv6", "INET6", "('2001:db8::1', 80)"),
    _connect("a name server", "INET", "('8.8.8.8', 53)", "DGRAM"),
    _connect("the cloud's metadata", "INET", "('169.254.169.254', 80)"),
    _connect("the cloud's metadata by IPv6", "INET6", "('fd00:ec2::254', 80)"),
    _connect("a container engine's metadata", "INET", "('169.254.170.2', 80)"),
    _connect("the gateway", "INET", "('172.17.0.1', 22)"),
    _connect("everybody on the link", "INET", "('255.255.255.255', 9)", "DGRAM"),
    _connect("multicast", "INET", "('224.0.0.251', 5353)", "DGRAM"),
    _network(
        "the shell's own TCP",
        "exec 3<>/dev/tcp/127.0.0.1/@TCP@ && echo GOT; "
        "echo x > /dev/udp/192.0.2.1/53 && echo GOT; echo over",
        "over",
    ),
    _network(
        "names", "getent hosts example.com && echo GOT; cat /etc/resolv.conf; echo over", "over"
    ),
    _network(
        "interfaces",
        "tail -n +3 /proc/net/dev | cut -d: -f1; cat /proc/net/route | wc -l",
        "lo\n1\n",
    ),
    _network(
        "new interfaces",
        "ip link add d0 type dummy && echo GOT; ip link set lo down && "
        "echo GOT; ip addr add 10.0.0.1/8 dev lo && echo GOT; echo over",
        "over",
    ),
    _network(
        "a route by netlink",
        python(
            "import socket, struct\ntry:\n s = socket.socket(16, 3, 0)\n"
            " s.send(struct.pack('=IHHIIBxHiII', 32, 16, 0x605, 1, 0, 0, 0, 0, 0, 0))\n"
            " code = struct.unpack('=i', s.recv(999)[16:20])[0]\n"
            " print('GOT' if code == 0 else 'REFUSED')\n"
            "except OSError as e: print('REFUSED', e)"
        ),
        "REFUSED",
    ),
    _socket("netlink to the firewall", 16, 3, 12),
    _socket("netlink to the audit", 16, 3, 9),
    _socket("netlink to the devices", 16, 3, 15),
    _socket("vsock", 40, 1, 0),
    _socket("AF_ALG", 38, 5, 0),
    _socket("AF_PACKET", 17, 3, 768),
    _socket("AF_KEY", 15, 3, 2),
    _socket("AF_BLUETOOTH", 31, 5, 0),
    _socket("AF_CAN", 29, 3, 1),
    _socket("AF_TIPC", 30, 1, 0),
    _socket("AF_XDP", 44, 3, 0),
    _socket("AF_RDS", 21, 5, 0),
    _socket("AF_IB", 27, 1, 0),
    _socket("AF_SMC", 43, 1, 0),
    _socket("AF_NFC", 39, 5, 0),
    _socket("AF_KCM", 41, 2, 0),
    _socket("AF_QIPCRTR", 42, 2, 0),
    _socket("SCTP", 2, 1, 132),
    _socket("DCCP", 2, 6, 33),
    # leaks
    _leak(
        "the environment",
        "env; set; export -p; cat /proc/self/environ /proc/$PPID/environ",
        hides=("INTERCODE", "LD_LIBRARY_PATH", "PYTHONPATH"),
    ),
    _leak(
        "every process' environment",
        "cat /proc/*/environ /proc/*/cmdline /proc/*/task/*/environ | tr '\\0' '\\n'; ps auxe",
        hides=("INTERCODE", "pytest", "launcher"),
    ),
    _leak(
        "processes of the host",
        "ls -d /proc/[0-9]* | wc -l; ls /proc/@OWNER@ /proc/@VICTIM@; ps aux | wc -l",
        "No such file",
    ),
    _leak(
        "mounts",
        "cat /proc/*/mountinfo /proc/mounts /proc/*/mountstats; df -a; findmnt; lsblk",
        hides=("@HOME@/", "@CACHE@/layers", "@CACHE@/images", "@CACHE@/skeletons"),
    ),
    _leak(
        "maps",
        "cat /proc/*/maps /proc/*/smaps; ls -l /proc/*/exe /proc/*/cwd /proc/*/root /proc/*/fd",
        hides=("@HOME@/", "@CACHE@/layers"),
    ),
    _leak(
        "files of the host",
        "cat @FILE@ @HOMEFILE@; ls -la / /tmp /root /home /home/* /run "
        "/var/tmp /mnt /opt @HOME@ @CACHE@; head -c 99 /etc/shadow; cat /etc/passwd",
        "No such file",
    ),
    _leak(
        "files of the host by way of processes",
        "for p in /proc/[0-9]*; do cat $p/root@FILE@ $p/cwd@FILE@; done; echo over",
        "over",
    ),
    _leak(
        "going up and up",
        "cd /; cd ../../../../..; ls; cat ../../..@FILE@; "
        "cat /proc/self/root/../..@FILE@; echo over",
        "over",
    ),
    _leak(
        "descriptors",
        python(
            "import os\nfor pid in filter(str.isdigit, os.listdir('/proc')):\n"
            " try: print(pid, [os.readlink(f'/proc/{pid}/fd/{n}') for n in "
            "os.listdir(f'/proc/{pid}/fd')])\n except OSError as e: print(pid, e.strerror)\n"
            "print('high', [n for n in range(3, 4096) if os.path.exists(f'/proc/self/fd/{n}')])"
        ),
        hides=("memfd", "@CACHE@"),
    ),
    _leak(
        "directories held by descriptors",
        python(
            "import os\nfor n in range(3, 256):\n for way in ('..', '../../..', '.'):\n"
            "  try:\n   os.fchdir(n); os.chdir(way); print(n, os.getcwd(), os.listdir('.')[:5])\n"
            "  except OSError: pass\nprint('over')"
        ),
        "over",
    ),
    _leak(
        "other sandboxes",
        "cat @OTHERFILE@; ls /tmp; cat /proc/[0-9]*/cmdline | tr '\\0' ' '; "
        "ls -A /dev/shm; ipcs -a; cat /proc/net/unix; cat /proc/locks",
        "No such file",
        hides=("@OTHERMARK@",),
    ),
    _leak(
        "another sandbox's abstract socket",
        python(
            "import socket\ns = socket.socket(socket.AF_UNIX)\n"
            "try: s.connect('\\0@OTHERSOCKET@'); print('GOT')\n"
            "except OSError as e: print('REFUSED', e)"
        ),
        "REFUSED",
        hides=("GOT",),
    ),
    _leak(
        "another's lower layers",
        "find / -xdev -newer /proc/1/stat -type f 2>/dev/null | "
        "head -50; ls -laR /tmp /var/tmp /run /root | head -99",
    ),
    _leak(
        "gold, tests and flags",
        "grep -rIl -e '@SECRET@' /etc /tmp /root /home /var /run /srv "
        "/opt/intercode /mnt 2>/dev/null; find / -xdev -iname '*gold*' -not -path '/usr/*' "
        "-not -path '/opt/*' 2>/dev/null; find / -xdev -name '*intercode*' -not -path '/proc/*' "
        "2>/dev/null; echo over",
        "over",
        hides=("gold\n", "/intercode"),
    ),
    _leak(
        "the commands that came before",
        "history; fc -l; ls -la ~/.bash_history "
        "/root/.bash_history; cat /proc/*/cmdline | tr '\\0' ' '; last; cat /var/log/*",
    ),
    _leak(
        "the kernel's log",
        "dmesg; cat /dev/kmsg /proc/kmsg | head -c 99; journalctl; echo over",
        "over",
    ),
    _leak("keys", "cat /proc/keys /proc/key-users; keyctl show; echo over", "over"),
    _leak(
        "the machine's identity",
        "cat /etc/machine-id /var/lib/dbus/machine-id "
        "/sys/class/dmi/id/product_uuid /proc/sys/kernel/random/boot_id; hostname; echo over",
        "intercode\n",
        "over",
    ),
    _leak(
        "disks",
        "cat /proc/partitions; head -c 9 /dev/vda /dev/sda /dev/nvme0n1; ls /dev; blkid; echo over",
        "over",
    ),
    _leak(
        "the interpreter's home",
        "python3 -c 'import sys, sysconfig; print(sys.path, sys.prefix,"
        " sys.executable, sysconfig.get_paths())'; which -a python3",
        hides=("@HOME@/",),
    ),
    _leak(
        "core dumps and crash files",
        "ls /var/crash /var/lib/systemd/coredump /cores; "
        "cat /proc/sys/kernel/core_pattern; echo over",
        "over",
    ),
    _leak(
        "timers of the kernel",
        "cat /proc/timer_list /proc/sched_debug /proc/latency_stats "
        "/proc/vmallocinfo /proc/slabinfo 2>&1 | head -c 999; echo over",
        "over",
    ),
]
