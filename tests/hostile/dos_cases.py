"""Exhausting resources: processes, memory, disk, descriptors, time, output."""

from __future__ import annotations

from typing import Any

from hostile.cases import LIMIT, Case, python


def _dos(
    name: str, *actions: str, late: bool | None = None, limit: float = LIMIT, **more: Any
) -> Case:
    return Case(name, "dos", actions, late=late, limit=limit, **more)


_TILL_REFUSED = "try:\n    while True: {}\nexcept (OSError, MemoryError) as e: print('full', e)"


def _until_refused(name: str, before: str, again: str, limit: float = LIMIT) -> Case:
    """Return Python code that takes more of a resource until it is refused, and then waits."""
    loop = _TILL_REFUSED.format(again)
    return _dos(
        name,
        python(f"import os\n{before}\n{loop}\nimport time; time.sleep(60)"),
        late=True,
        limit=limit,
    )


_ENDS_FIRST = """
import ctypes, os, threading, time
def end_first_thread(then, *arguments):
    threading.Thread(target=then, args=arguments).start()
    ctypes.CDLL(None).syscall({'aarch64': 93}.get(os.uname().machine, 60), 0)
"""  # the process then looks like a zombie, though other threads run


CASES = [
    # processes
    _dos("fork bomb", ":(){ :|:& };: ; sleep 30"),
    _dos("fork bomb in the background", ":(){ :|:& };:"),
    _dos("fork bomb of subshells", "f() { (f) & (f) & wait; }; f"),
    _dos("sleepers without end", "while :; do sleep 600 & done"),
    _dos("forks in Python", python("import os\nwhile True:\n try: os.fork()\n except OSError: 0")),
    _dos(
        "forks into new sessions",
        python("import os\nwhile True:\n try:\n  os.fork(); os.setsid()\n except OSError: 0"),
    ),
    _dos(
        "zombies",
        python(
            "import os,time\nfor _ in range(9999):\n try:\n"
            "  if os.fork() == 0: os._exit(0)\n except OSError: time.sleep(9)"
        ),
    ),
    _dos(
        "threads",
        python(
            "import threading, time\nn = 0\ntry:\n while True:\n"
            "  threading.Thread(target=time.sleep, args=(60,), daemon=True).start()"
            "\nexcept RuntimeError: time.sleep(60)"
        ),
        late=True,
    ),
    _dos(
        "sleepers whose first threads have ended",
        python(
            _ENDS_FIRST
            + """
while True:
    try:
        if os.fork() == 0: end_first_thread(time.sleep, 60)
    except OSError: time.sleep(60)"""
        ),
    ),
    _dos(
        "spinning once the first thread has ended",
        python(
            _ENDS_FIRST
            + """
def spin():
    while True: pass
end_first_thread(spin)"""
        ),
        late=True,
    ),
    _dos("executing itself", "echo 'exec $0' > /tmp/s; chmod +x /tmp/s; sh /tmp/s", late=True),
    _dos(
        "raising the limits",
        "ulimit -u unlimited; ulimit -n 1000000; ulimit -v unlimited; echo done",
        late=False,
    ),
    # processor time
    _dos("spinning in the shell", "while :; do :; done", late=True),
    _dos("spinning in Python", python("while True: pass"), late=True),
    _dos("spinning twice in the background", "while :; do :; done & while :; do :; done &"),
    _dos("spinning deaf to signals", "trap '' TERM INT HUP QUIT; while :; do :; done", late=True),
    _dos("spinning at the best priority", "nice -n -20 sh -c 'while :; do :; done'", late=True),
    _dos("a real-time spinner", "chrt -f 99 sh -c 'while :; do :; done'; sleep 5", late=True),
    _dos(
        "a slow regular expression",
        "echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab | "
        "grep -E '(a|aa|aaa)+(a|aa|aaa)+(a|aa|aaa)+(a|aa|aaa)+\\1\\2\\3\\4c'; sleep 5",
        late=True,
    ),
    _dos("walking all files for ever", "while :; do find / -xdev >/dev/null 2>&1; done", late=True),
    _dos("a huge brace expansion", "echo {1..100000000} | wc -c"),
    _dos("a huge width", "printf '%0900000000d' 1 | wc -c"),
    _dos("recursion without end", "f() { f; }; f"),
    _dos("recursion of substitutions", "f() { x=$(f); }; f"),
    _dos("a script that sources itself", "echo '. /tmp/s' > /tmp/s; . /tmp/s"),
    _dos("an arithmetic loop", "((i=0)); for ((;;)); do ((i++)); done", late=True),
    # memory
    _dos("memory in one process", python("x = bytearray(9 << 30)\nx[::4096] = x[::4096]")),
    _dos("memory bit by bit", python("x = []\nwhile True: x.append(bytearray(1 << 22))")),
    _dos("memory in many processes", "for i in 1 2 3 4; do tail -c 1G /dev/zero & done; wait"),
    _dos(
        "memory once the first thread has ended",
        python(
            _ENDS_FIRST
            + """
def take(all):
    while True: all.append(bytearray(1 << 22))
end_first_thread(take, [])"""
        ),
    ),
    _dos("memory in the shell", "x=a; while :; do x=$x$x; done"),
    _dos("an endless line", "tr '\\0' x < /dev/zero | head -c 3G | read x; sleep 5"),
    # in pieces that reach the limit of memory before that of open files
    _dos(
        "anonymous files",
        python(
            "import os\nx = []\nwhile True:\n f = os.memfd_create('x'); "
            "os.write(f, bytes(1 << 22)); x.append(f)"
        ),
    ),
    _until_refused("anonymous mappings", "import mmap; x = []", "x.append(mmap.mmap(-1, 1 << 30))"),
    _dos(
        "locked memory",
        python(
            "import ctypes\nl = ctypes.CDLL(None)\nprint(l.mlockall(3))\nx = bytearray(1 << 26)"
        ),
        limit=5,
    ),
    _dos(
        "shared memory of System V",
        "for i in 1 2 3 4 5 6 7 8; do ipcmk -M 64M; done; ipcs -m",
        limit=5,
        late=False,
    ),
    _dos(
        "semaphores of System V",
        "for i in 1 2 3 4 5 6 7 8; do ipcmk -S 250; ipcmk -Q; done",
        limit=5,
        late=False,
    ),
    _until_refused("a full /dev/shm", "f = open('/dev/shm/f', 'wb', 0)", "f.write(bytes(1 << 20))"),
    # files
    _dos("a full disk", "cat /dev/zero > /tmp/f; cat /dev/zero > /root/g; echo x > /tmp/h"),
    _dos(
        "a full disk and a full /dev/shm",
        "head -c 200M /dev/zero > /tmp/f; head -c 200M /dev/zero > /tmp/g; "
        "head -c 200M /dev/zero > /tmp/h; head -c 90M /dev/zero > /dev/shm/f",
        limit=3,
    ),
    _until_refused(
        "no inodes left", "os.chdir('/tmp'); n = 0", "n += 1; os.close(os.open(str(n), os.O_CREAT))"
    ),
    _until_refused(
        "directories in directories", "os.chdir('/tmp')", "os.mkdir('d'); os.chdir('d')"
    ),
    _until_refused(
        "links in links", "os.chdir('/tmp'); n = 0", "os.symlink(str(n), str(n + 1)); n += 1"
    ),
    _until_refused(
        "hard links", "open('/tmp/0', 'w'); n = 0", "n += 1; os.link('/tmp/0', f'/tmp/{n}')"
    ),
    _dos(
        "a removed file that a second thread writes",
        python(
            _ENDS_FIRST
            + """
def write():
    file = open('/tmp/f', 'wb', 0); os.unlink('/tmp/f')
    try:
        while True: file.write(bytes(1 << 20))
    except OSError: time.sleep(60)
end_first_thread(write)"""
        ),
        late=True,
        limit=3,
    ),
    _dos("a sparse file beyond the limit", "truncate -s 100T /tmp/f; ls -l /tmp", late=False),
    _dos(
        "many sparse files",
        "for i in {1..60}; do truncate -s 200M /tmp/f$i; done",
        late=False,
        limit=5,
    ),
    _dos(
        "names as long as they get",
        "cd /tmp; n=$(printf %0250d 1); for i in {1..15}; do mkdir $n; cd $n; done; touch $n",
        limit=5,
        late=False,
    ),
    _dos(
        "a file that grows as it is read",
        "echo x > /tmp/f; cat /tmp/f >> /tmp/f; tail -f /tmp/f >> /tmp/f",
        late=True,
    ),
    _dos(
        "a thousand attributes",
        python(
            "import os\nopen('/tmp/f', 'w')\ntry:\n"
            " for i in range(100000): os.setxattr('/tmp/f', f'user.{i}', bytes(4000))\n"
            "except OSError as e: print(e)"
        ),
        limit=5,
    ),
    # descriptors and the like
    _until_refused(
        "pipes",
        "import fcntl; x = []",
        "r, w = os.pipe(); x.append((r, w)); fcntl.fcntl(w, 1031, 1 << 20)",
    ),
    _until_refused("open files", "x = []", "x.append(os.open('/dev/null', 0))"),
    _until_refused(
        "watches",
        "import ctypes; l = ctypes.CDLL(None, use_errno=True); f = l.inotify_init(); n = 0",
        "n += 1; os.mkdir(f'/tmp/{n}'); l.inotify_add_watch(f, f'/tmp/{n}'.encode(), 2)"
        " >= 0 or os.chdir('/watches-refused')",
    ),
    _until_refused(
        "watching instances",
        "import ctypes; l = ctypes.CDLL(None, use_errno=True)",
        "l.inotify_init() >= 0 or os.chdir('/instances-refused')",
    ),
    _until_refused("terminals", "x = []", "x.append(os.openpty())"),
    _until_refused(
        "descriptors in flight",
        "import socket, array; p = socket.socketpair(); a = array.array('i', [0] * 200);"
        " p[0].setblocking(False)",
        "p[0].sendmsg([b'x'], [(1, 1, a)]); p = (*socket.socketpair(), p); p[0].setblocking(False)",
    ),
    _until_refused("sockets", "import socket; x = []", "x.append(socket.socket())"),
    _until_refused(
        "timers",
        "import ctypes; l = ctypes.CDLL(None, use_errno=True); b = ctypes.create_string_buffer(64)",
        "l.timer_create(0, None, b) == 0 or os.chdir('/timers-refused')",
    ),
    # output
    _dos("300 MB of output", "head -c 300M /dev/zero", limit=3),
    _dos("300 MB of lines", "yes 0123456789 | head -c 300M", limit=3),
    _dos("output without end", "yes", late=True),
    _dos("errors without end", "yes >&2", late=True),
    _dos("output without a line's end", "tr '\\0' x < /dev/zero", late=True),
    _dos("output from the background", "yes & sleep 600", late=True),
    _dos("bytes one by one", python("import os\nwhile True: os.write(1, b'x')"), late=True),
    _dos(
        "a dump of memory",
        "ulimit -c unlimited; bash -c 'kill -SEGV $$'; ls -l /tmp; true",
        late=False,
        limit=5,
    ),
]
