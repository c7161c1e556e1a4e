"""Checks that a sandbox back end satisfies the contract, to be called by its tests."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from intercode_sandbox.checks import expect_error, require
from intercode_sandbox.contract import SCRIPT_FD, BaseSandbox, Capability, Checkpoint
from intercode_sandbox.errors import InfrastructureError, MissingCapabilityError
from intercode_sandbox.types import FileInfo
from intercode_sandbox.users import User, find_user

_TIMEOUT = 60.0  # seconds; the commands take milliseconds on an idle machine


def check_sandbox(open_sandbox: Callable[[], BaseSandbox]) -> tuple[str, ...]:
    """Check a back end against ``BaseSandbox``.

    Args:
        open_sandbox: Opens a sandbox that has ``/bin/sh`` and the usual small tools.

    Returns:
        The names of the checked points: all of ``CONFORMANCE_POINTS``, except those of capabilities
        that the back end does not list. The methods of these must name what is missing.

    Raises:
        AssertionError: The back end does not satisfy a point.
    """
    with open_sandbox() as sandbox:
        checks = {**_BASE_CHECKS}
        checks |= {n: c for n, c in _CAPABILITY_CHECKS.items() if n in sandbox.capabilities}
        for check in checks.values():
            check(sandbox)
    with open_sandbox() as sandbox, open_sandbox() as other:
        sandbox.write("/tmp/mine", b"1")
        expect_error(FileNotFoundError, lambda: other.read("/tmp/mine"), "reading another sandbox")
    sandbox.close()
    expect_error(
        InfrastructureError, lambda: sandbox.run(["true"]), "a command in a closed sandbox"
    )
    return tuple(checks)


def _check_programs(sandbox: BaseSandbox) -> None:
    code = "cat; echo out; echo err >&2; exit 3"
    result = sandbox.run(code, stdin=b"in\n", timeout=_TIMEOUT)
    require(result.output == "in\nout\nerr\n", f"output comes out of order: {result.output!r}")
    require(result.exit_code == 3, f"`exit 3` gives the status {result.exit_code}")
    require(not result.timed_out, "a command that ends is reported as timed out")
    result = sandbox.run(r"printf '\377'", timeout=_TIMEOUT)
    require(result.ok and result.output != "", "output that is not UTF-8 is lost")
    result = sandbox.run("echo a; sleep 600 & sleep 600", timeout=3.0)
    require(result.timed_out and result.exit_code is None, f"a command is not timed out: {result}")
    require(result.output == "a\n", f"output before the time-out is lost: {result.output!r}")
    expect_error(OSError, lambda: sandbox.run(["/no/such/program"]), "a program that is not there")
    result = sandbox.run("while :; do echo 0123456789; done", timeout=1.0)
    longest = sandbox.spec.limits.output + 200
    require(len(result.output) <= longest, f"{len(result.output)} characters exceed the limit")
    require(
        result.omitted_bytes > 0 or len(result.output) < longest,
        "output is omitted and `omitted_bytes` is 0",
    )


def _check_script(sandbox: BaseSandbox) -> None:
    """Check that a shell can read its script from a descriptor, by a name in the directory in which
    it starts, as the sessions' shells do."""
    script, script_end = sandbox.open_script()
    output, output_end = os.pipe()
    stray = fcntl.fcntl(output, fcntl.F_DUPFD, 150)  # a number that no shell takes for itself
    try:
        directory, _, name = sandbox.script_path.rpartition("/")
        descriptors = {1: output_end, SCRIPT_FD: script}
        process = sandbox.spawn(["/bin/sh", name], cwd=directory, fds=descriptors)
        os.write(script_end, b"[ -e /proc/self/fd/%d ] && echo stray\necho read\nexit 4\n" % stray)
        require(process.wait(_TIMEOUT) == 4, f"no shell reads a script from {sandbox.script_path}")
        printed = os.read(output, 100)
        require(b"stray" not in printed, "a program has descriptors that it was not given")
        require(printed == b"read\n", f"the output of a spawned shell is lost: {printed!r}")
        if "script" in sandbox.capabilities:
            sandbox.write(sandbox.script_path, b"echo code\n")
            found = sandbox.run(["/bin/sh", sandbox.script_path], timeout=_TIMEOUT).output
            require(found == "code\n", f"a shell reads {found!r}, not the code that was written")
    finally:
        for fd in (script, script_end, output, output_end, stray):
            os.close(fd)


def _check_files(sandbox: BaseSandbox) -> None:
    require(not sandbox.changes(), f"a new sandbox has changes: {sorted(sandbox.changes())}")
    sandbox.write("/tmp/a b/c", b"\0\xff", mode=0o640)
    require(sandbox.read("/tmp/a b/c") == b"\0\xff", "a file does not read as it was written")
    changes = sandbox.changes()
    require({"/tmp/a b", "/tmp/a b/c"} <= changes.keys(), f"changes() omits a file: {changes}")
    require(list(changes) == sandbox.changed_paths(), "changed_paths() differs from changes()")
    entry = changes["/tmp/a b/c"]
    require((entry.kind, entry.mode, entry.size) == ("file", 0o640, 2), f"wrong entry: {entry}")
    sandbox.run("ln -s /no l; mkfifo p; mkdir d", cwd="/tmp", timeout=_TIMEOUT)
    expect_error(FileNotFoundError, lambda: sandbox.read("/tmp/l"), "reading a dangling link")
    expect_error(IsADirectoryError, lambda: sandbox.read("/tmp/d"), "reading a directory")
    refused = threading.Event()
    threading.Thread(target=_read_fifo, args=(sandbox, refused), daemon=True).start()
    require(refused.wait(_TIMEOUT), "reading a FIFO is not refused with OSError, or never ends")
    kinds = {path: entry.kind for path, entry in sandbox.changes().items()}
    found = [kinds.get(f"/tmp/{name}") for name in "lpd"]
    require(found == ["link", "fifo", "dir"], f"wrong kinds of changes: {found}")
    sandbox.run("rm -r 'a b' l p d", cwd="/tmp", timeout=_TIMEOUT)
    left = sandbox.changed_paths()
    require(not left, f"files that were made and removed, or directories of them, are left: {left}")


def _read_fifo(sandbox: BaseSandbox, refused: threading.Event) -> None:
    try:
        sandbox.read("/tmp/p")
    except OSError:
        refused.set()


def _check_listing(sandbox: BaseSandbox) -> None:
    sandbox.write("/tmp/listed/file", b"four", mode=0o600)
    sandbox.run("mkdir d && ln -s file l && mkfifo p && touch -d @7 file", cwd="/tmp/listed")
    found = sandbox.list_directory("/tmp/listed")
    require(list(found) == ["d", "file", "l", "p"], f"list_directory() gives {list(found)}")
    kinds = [info.kind for info in found.values()]
    require(kinds == ["dir", "file", "link", "fifo"], f"the kinds are {kinds}")
    require(found["file"] == FileInfo("file", 0o600, 4, 7.0), f"a file is {found['file']}")
    require(found["l"].target == "file", f"a link leads to {found['l'].target!r}")
    require(
        sandbox.file_info("/tmp/listed/l") == found["file"], "file_info() does not follow a link"
    )
    require(
        sandbox.file_info("/tmp/listed/l", follow=False) == found["l"],
        "file_info(follow=False) follows a link",
    )
    missing, file = "/tmp/listed/none", "/tmp/listed/file"
    expect_error(FileNotFoundError, lambda: sandbox.file_info(missing), "a path without a file")
    expect_error(NotADirectoryError, lambda: sandbox.list_directory(file), "listing a file")
    expect_error(IsADirectoryError, lambda: sandbox.remove("/tmp/listed"), "removing a directory")
    sandbox.remove("/tmp/listed", recursive=True)
    expect_error(FileNotFoundError, lambda: sandbox.remove("/tmp/listed"), "removing nothing")


def _check_fork(sandbox: BaseSandbox) -> None:
    sandbox.write("/tmp/before", b"1")
    with sandbox.fork() as copy:
        require(copy.changes() == sandbox.changes(), "a fork differs from its parent")
        copy.write("/tmp/before", b"2")
        sandbox.write("/tmp/after", b"3")
        require(sandbox.read("/tmp/before") == b"1", "a fork writes into its parent")
        expect_error(
            FileNotFoundError, lambda: copy.read("/tmp/after"), "a fork reading its parent's file"
        )
    snapshot = sandbox.snapshot()
    sandbox.write("/tmp/before", b"4")
    with snapshot.open() as first, snapshot.open_last() as second:
        for opened in (first, second):
            require(opened.read("/tmp/before") == b"1", "a snapshot changes with its sandbox")
    snapshot.close()
    expect_error(ValueError, snapshot.open, "opening a closed snapshot")


def _check_restore(sandbox: BaseSandbox) -> None:
    sandbox.write("/tmp/before", b"1")
    snapshot, changes = sandbox.snapshot(), sandbox.changes()
    sandbox.write("/tmp/before", b"2")
    sandbox.write("/tmp/later", b"3")
    sandbox.restore(snapshot)
    snapshot.close()
    require(sandbox.changes() == changes, "restore() leaves other files than the snapshot's")


def _check_processes(sandbox: BaseSandbox) -> None:
    mark, before = sandbox.mark(), sandbox.processes()
    sandbox.run("sleep 600 > /dev/null 2>&1 &", timeout=_TIMEOUT)
    require(len(sandbox.processes()) > len(before), "a background process ends with its action")
    kept = sandbox.spawn(["sleep", "600"])
    sandbox.kill_since(mark, keep=[kept.pid])
    deadline = time.monotonic() + _TIMEOUT
    while sandbox.processes() != before and time.monotonic() < deadline:
        time.sleep(0.01)
    require(sandbox.processes() == before, f"kill_since() leaves {sandbox.processes()}")
    require(kept.wait(0) is None, "kill_since() ends a process that it should keep")
    sandbox.signal(kept.pid, signal.SIGTERM)
    require(kept.wait(_TIMEOUT) == -signal.SIGTERM, "signal() does not reach a process")


def _check_save(sandbox: BaseSandbox) -> None:
    sandbox.write("/tmp/saved", b"1")
    with TemporaryDirectory() as directory:
        sandbox.save(Path(directory))
        found = Path(directory, "tmp", "saved").read_bytes()
        require(found == b"1", "save() does not write a changed file")


def _check_terminal(sandbox: BaseSandbox) -> None:
    script = "stty -echo; tty && stty size < /dev/tty; read line; echo got $line; exit 3"
    master, other = sandbox.open_terminal((33, 99))
    try:
        try:
            fds = dict.fromkeys(range(3), other)
            process = sandbox.spawn(["/bin/sh", "-c", script], fds=fds, on_terminal=True)
        finally:
            os.close(other)
        os.write(master, b"text\n")
        require(process.wait(_TIMEOUT) == 3, "a program on a terminal does not read its input")
        text, output = os.read(master, 4096), b""
        while text:
            output += text
            try:
                text = os.read(master, 4096)
            except OSError:  # nothing holds the other side open
                break
    finally:
        os.close(master)
    require(b"33 99" in output, f"a program has no controlling terminal of 33 x 99: {output!r}")
    require(b"got text" in output, f"the output of a program on a terminal is lost: {output!r}")


def _check_connect(sandbox: BaseSandbox) -> None:
    refused = [lambda: sandbox.connect(9), lambda: sandbox.connect("/tmp/no-socket")]
    for call in refused:
        expect_error(OSError, call, "connecting to nothing")
    expect_error(OSError, lambda: sandbox.connect(0), "connecting to the port 0")


def _check_listen(sandbox: BaseSandbox) -> None:
    with sandbox.listen() as listener:
        port = listener.getsockname()[1]
        expect_error(OSError, lambda: sandbox.listen(port), "listening at a port that is taken")
        with sandbox.connect(port) as inside, listener.accept()[0] as outside:
            inside.sendall(b"request")
            require(outside.recv(100) == b"request", "a port of the sandbox loses what is sent")
        if sandbox.spec.network == "none":
            connect = partial(socket.create_connection, ("127.0.0.1", port), _TIMEOUT)
            expect_error(OSError, connect, "connecting from outside to a port of the sandbox")


def _check_recycle(sandbox: BaseSandbox) -> None:
    sandbox.run("mkdir /made; sleep 600 > /dev/null 2>&1 &", timeout=_TIMEOUT)
    sandbox.recycle()
    require(not sandbox.changes(), f"recycle() leaves {sorted(sandbox.changes())}")
    if "processes" in sandbox.capabilities:
        require(not sandbox.processes(), f"recycle() leaves {sandbox.processes()}")
    require(sandbox.run("echo again", timeout=_TIMEOUT).output == "again\n", "it runs no command")


def _check_seal(sandbox: BaseSandbox) -> None:
    sandbox.write("/tmp/sealed", b"1")
    snapshot = sandbox.fork().seal()
    with snapshot.open() as first, snapshot.open() as second:
        first.write("/tmp/sealed", b"2")
        require(second.read("/tmp/sealed") == b"1", "a sandbox writes into its sealed files")
    snapshot.close()


def _check_checkpoint(sandbox: BaseSandbox) -> None:
    script, script_end = os.pipe()
    try:
        code = "kept=4; read line; exit $kept"
        process = sandbox.spawn(["/bin/sh", "-c", code], fds={0: script})
        with sandbox.fork() as copy:
            checkpoint = _wait_for_checkpoint(sandbox, process.pid)
            restored = copy.spawn(["/bin/sh"], fds={0: script}, checkpoint=checkpoint)
            checkpoint.close()
            process.kill()
            process.wait(_TIMEOUT)
            os.write(script_end, b"\n")
            require(restored.wait(_TIMEOUT) == 4, "a restored process does not continue")
    finally:
        os.close(script)
        os.close(script_end)


def _wait_for_checkpoint(sandbox: BaseSandbox, pid: int) -> Checkpoint:
    """Return a checkpoint of a process as soon as it waits, which a running one refuses."""
    deadline = time.monotonic() + _TIMEOUT
    while True:
        try:
            return sandbox.checkpoint(pid, [0])
        except OSError as e:
            if e.errno != errno.EBUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _check_usage(sandbox: BaseSandbox) -> None:
    before = sandbox.usage()
    sandbox.write("/tmp/size", b"x" * (1 << 20))
    sandbox.run("i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done", timeout=_TIMEOUT)
    process = sandbox.spawn(["sleep", "600"])
    usage = sandbox.usage()
    process.kill()
    process.wait(_TIMEOUT)
    sandbox.run("rm /tmp/size", timeout=_TIMEOUT)
    require(usage.disk - before.disk >= 1 << 20, f"a file of 1 MiB is not counted: {usage}")
    require(usage.files > before.files, f"a file is not counted: {usage}")
    require(usage.cpu_seconds > before.cpu_seconds, f"no processor time is counted: {usage}")
    require(usage.memory > 0 and usage.processes >= 1, f"a process is not counted: {usage}")


def _check_users(sandbox: BaseSandbox) -> None:
    user = find_user(sandbox, 1000)
    require(user is not None and user.uid == 1000, f"the user 1000 is {user}")
    assert user is not None
    code = "umask 077; id -u; grep -c '^CapEff:.*[1-9a-f]' /proc/self/status; echo secret > mine"
    sandbox.run("mkdir -m 1777 /tmp/shared; umask 077; echo > /tmp/shared/roots", timeout=_TIMEOUT)
    output, output_end = os.pipe()
    try:
        argv = ["/bin/sh", "-c", f"{code}; cat roots"]
        process = sandbox.spawn(argv, cwd="/tmp/shared", fds={1: output_end}, user=user)
        status = process.wait(_TIMEOUT)
        text = os.read(output, 100)
    finally:
        os.close(output)
        os.close(output_end)
    require(text == b"1000\n0\n", f"a user has root's number or capabilities: {text!r}")
    require(status == 1, "a user reads a file that is for root alone")
    found = sandbox.run("stat -c %u /tmp/shared/mine", timeout=_TIMEOUT).output
    require(found == "1000\n", f"the owner of a user's file is {found!r}")
    with sandbox.fork() as copy:
        found = copy.run("stat -c %u /tmp/shared/mine", timeout=_TIMEOUT).output
    require(found == "1000\n", f"the owner of a user's file is {found!r} in a fork")
    mark, before = sandbox.mark(), sandbox.processes()
    sandbox.spawn(["/bin/sh", "-c", "sleep 600 & sleep 600"], user=user)
    sandbox.kill_since(mark)
    require(sandbox.processes() == before, "kill_since() leaves processes of a user")
    sandbox.run("rm -r /tmp/shared", timeout=_TIMEOUT)


def _check_missing_capabilities(sandbox: BaseSandbox) -> None:
    calls: dict[Capability, Callable[[], object]] = {
        "detach": sandbox.detach,
        "listing": lambda: sandbox.list_directory("/"),
        "processes": lambda: sandbox.kill_since(0),
        "fork": sandbox.snapshot,
        "restore": lambda: sandbox.replace_files(sandbox),
        "recycle": sandbox.recycle,
        "seal": sandbox.seal,
        "save": lambda: sandbox.save(Path("/nonexistent")),
        "checkpoint": lambda: sandbox.checkpoint(1, ()),
        "terminal": lambda: sandbox.open_terminal((24, 80)),
        "connect": lambda: sandbox.connect(9),
        "listen": sandbox.listen,
        "usage": sandbox.usage,
        "users": lambda: sandbox.spawn(["true"], user=User("nobody", 65534, 65534)),
    }
    for capability, call in calls.items():
        if capability not in sandbox.capabilities:
            expect_error(MissingCapabilityError, call, f"the missing capability {capability!r}")


_BASE_CHECKS: dict[str, Callable[[BaseSandbox], None]] = {
    "programs": _check_programs,
    "script": _check_script,
    "files": _check_files,
    "missing capabilities": _check_missing_capabilities,
}
_CAPABILITY_CHECKS: dict[Capability, Callable[[BaseSandbox], None]] = {
    "listing": _check_listing,
    "recycle": _check_recycle,  # before its files are restored or its network is used
    "fork": _check_fork,
    "restore": _check_restore,
    "processes": _check_processes,
    "save": _check_save,
    "terminal": _check_terminal,
    "usage": _check_usage,
    "users": _check_users,
    "seal": _check_seal,
    "checkpoint": _check_checkpoint,
    "connect": _check_connect,
    "listen": _check_listen,
}
CONFORMANCE_POINTS = (*_BASE_CHECKS, *_CAPABILITY_CHECKS)
"""What ``check_sandbox`` checks: four points of every sandbox, and its capabilities."""
