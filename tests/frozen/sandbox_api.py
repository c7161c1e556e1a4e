"""Uses sandboxes of one back end through the Python interface, and prints what came of each call.

``sandboxes.py`` runs this file with the version under test. Arguments: the name of a back end, or
``remote`` for one behind a server that is started here, and ``blocking`` or ``async``. Prints JSON
with ``exact`` and ``wording`` (messages of errors), as ``Item`` has them.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

try:
    from intercode_sandbox import AsyncSandbox, Limits, Sandbox
except ImportError:  # the version has one distribution
    from intercode_sandbox import AsyncSandbox, Limits, Sandbox

LOOP = asyncio.new_event_loop()


class Blocking:
    """Calls the coroutines of an asynchronous object as a blocking one would be called."""

    def __init__(self, target: Any) -> None:
        self.target = target

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.target, name)
        if not inspect.iscoroutinefunction(found):
            return found
        return lambda *args, **settings: wrapped(LOOP.run_until_complete(found(*args, **settings)))


def wrapped(value: Any) -> Any:
    """Return a value of the asynchronous interface in the form of the blocking one."""
    if isinstance(value, list):
        return [wrapped(part) for part in value]
    return Blocking(value) if type(value).__name__.startswith("Async") else value


class Calls:
    """Collects results by label. ``opened``: how a sandbox is opened."""

    def __init__(self, opened: Callable[..., Any]) -> None:
        self.open = opened
        self.exact: dict[str, Any] = {}
        self.wording: dict[str, str] = {}

    def add(self, label: str, call: Callable[[], Any]) -> Any:
        """Call, and add what it returns, or the class of its error."""
        try:
            value = call()
        except Exception as e:
            self.exact[label] = ["raised", *(c.__name__ for c in type(e).__mro__[:-3])]
            self.wording[label] = str(e)
            return None
        self.exact[label] = plain(value)
        return value

    @contextmanager
    def sandbox(self, label: str, **settings: Any) -> Iterator[Any]:
        """Open a sandbox; None if that fails, which is added."""
        opened = []
        self.add(f"{label}: opens", lambda: opened.append(self.open(**settings)))
        try:
            yield opened[0] if opened else None
        finally:
            for sandbox in opened:
                sandbox.close()


def plain(value: Any) -> Any:
    """Return a result as JSON, without its duration."""
    if type(value).__name__ == "Result":
        fields = (
            "stdout",
            "stderr",
            "exit_code",
            "omitted_bytes",
            "limit_exceeded",
            "ok",
            "timed_out",
            "truncated",
        )
        return {name: getattr(value, name) for name in fields}
    if type(value).__name__ == "FileEntry":
        kept = {"kind": value.kind, "mode": value.mode, "new": value.new, "target": value.target}
        return kept | {"size": value.size, "digest": value.digest} if value.kind == "file" else kept
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        parts = [plain(part) for part in value]
        return sorted(parts) if isinstance(value, set | frozenset) else parts
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return value if isinstance(value, str | int | float | bool | None) else type(value).__name__


COMMANDS: dict[str, Any] = {
    "output": "echo out; echo err >&2; exit 3",
    "words": ["printf", "%s-%s", "a b", "$HOME"],
    "bytes": "printf '\\377\\000\\n\\r\\tz'",
    "environment": "env | grep -v -e ^PWD -e ^OLDPWD | sort",
    "pipe": "seq 5 | tail -n 2",
    "SIGKILL": "kill -9 $$",
    "SIGTERM": "kill $$",
    "SIGSEGV": "kill -SEGV $$",
    "trapped": "trap 'echo caught; exit 7' TERM; kill $$",
    "child killed": "sh -c 'kill -9 $$'; echo $?",
    "limits": "ulimit -n; ulimit -c; ulimit -s; umask; nproc >/dev/null; pwd; id -u",
    "missing": ["/nosuch"],
    "not executable": ["/etc/passwd"],
    "directory": ["/usr"],
    "127": "nosuchcommand",
    "network": "cat /proc/net/dev | tail -n +3 | cut -d: -f1 | sort",
    "background": "sleep 1000 & echo left",
}
"""Label -> command."""
PROGRAM = "import time\nx = bytearray(400 << 20)\ntime.sleep(3600)"
LIMITED: dict[str, tuple[dict[str, int], Any]] = {
    "memory": ({"memory": 100 << 20}, ["python3", "-c", PROGRAM]),
    "processes": ({"processes": 20}, "for i in $(seq 60); do sleep 100 & done 2>/dev/null; wait"),
    "cpu": ({"cpu_seconds": 1}, "while :; do :; done"),
    "disk": ({"disk": 8 << 20}, "head -c 50000000 /dev/zero > /tmp/big"),
    "file size": ({"file_size": 1 << 20}, "head -c 5000000 /dev/zero > /tmp/big"),
    "inodes": ({"inodes": 200}, "cd /tmp; for i in $(seq 400); do : > f$i || exit 4; done"),
    "open files": (
        {"open_files": 64},
        ["python3", "-c", "f = [open('/dev/null') for _ in range(100)]"],
    ),
    "cut": ({"output": 4096}, "seq 20000; seq 300 >&2"),
    "cut merged": ({"output": 4096}, "seq 20000 2>&1"),
    "none exceeded": ({"output": 4096}, "seq 100"),
}
"""Label -> limits and a command that meets them."""
CHANGING = """
cd /work && mkdir -p a/b && printf one > a/b/one && chmod 640 a/b/one && ln -s b a/link
mkfifo a/pipe; ln a/b/one a/hard; touch -d @0 kept; printf two > changed; rm gone
mv moved moved-away; mkdir empty; chmod 700 directory; ln -s nowhere broken
printf x > "a name with
a line"
"""
FILES = {f"/work/{name}": name for name in ("kept", "changed", "gone", "moved", "directory/in")}


def commands(calls: Calls) -> None:
    """Run commands that end in each way."""
    with calls.sandbox("commands", env={"GIVEN": "1"}, files={"/work/input": "line\n"}) as sandbox:
        if sandbox is None:
            return
        for label, command in COMMANDS.items():
            calls.add(f"run {label}", lambda c=command: sandbox.run(c))
        run = sandbox.run
        calls.add("run stdin", lambda: run("cat; pwd", stdin="typed\n", cwd="/work"))
        calls.add("run env", lambda: run("echo $GIVEN $MORE", env={"MORE": "2"}))
        calls.add("run merged", lambda: run("echo a; echo b >&2; echo c", merge_stderr=True))
        calls.add("run at the time limit", lambda: run("sleep 3600", timeout=1))
        calls.add("run after it", lambda: run("echo on"))
        calls.add("run nowhere", lambda: run("pwd", cwd="/nosuch"))
        calls.add("run as a user", lambda: run("id -u", user="nobody"))
        calls.add("run with a wrong time limit", lambda: run("true", timeout=-1))
        calls.add("run nothing", lambda: run([]))
        calls.add("read", lambda: sandbox.read("/work/input"))
        calls.add("read missing", lambda: sandbox.read("/nosuch"))
        calls.add("read directory", lambda: sandbox.read("/work"))
        calls.add("read too long", lambda: sandbox.read("/work/input", 2))
        calls.add("write", lambda: sandbox.write("/work/deep/er/file", b"\xff\n", 0o600))
        calls.add(
            "written", lambda: run("stat -c %a deep/er/file; wc -c < deep/er/file", cwd="/work")
        )
        calls.add("write on a directory", lambda: sandbox.write("/work", ""))
        calls.add("write a relative path", lambda: sandbox.write("x", ""))
        calls.add("upload missing", lambda: sandbox.upload("/nosuch/file", "/work/x"))
        calls.add("usage", lambda: type(sandbox.usage()).__name__)
        calls.add("no fork", lambda: sandbox.fork(0))
        for name in ("image", "tier", "capabilities", "is_lost"):
            calls.add(name, lambda n=name: getattr(sandbox, n, None))
        sandbox.close()
        calls.add("run when closed", lambda: run("true"))
        calls.add("read when closed", lambda: sandbox.read("/work/input"))
        calls.add("close again", sandbox.close)


def processes(calls: Calls) -> None:
    """Start processes, write to them, and end them."""
    with calls.sandbox("processes") as sandbox:
        if sandbox is None:
            return

        def talk() -> list[Any]:
            process = sandbox.spawn("cat; exit 5")
            process.write("hello\n")
            first = process.read(timeout=60)
            process.close_input()
            return [first, process.wait(60)]

        def end(number: int) -> Any:
            process = sandbox.spawn("echo begun; exec sleep 3600")
            first = process.read(timeout=60)
            process.kill(number)
            return [first, process.wait(60)]

        def terminal() -> list[Any]:
            process = sandbox.spawn("stty size; test -t 0 && echo terminal", terminal=(30, 99))
            parts = []
            while part := process.read(timeout=60):
                parts.append(part)
            return [
                b"".join(p.encode() if isinstance(p, str) else p for p in parts),
                process.wait(60),
            ]

        calls.add("spawn and talk", talk)
        calls.add("spawn and kill", lambda: end(signal.SIGKILL))
        calls.add("spawn and terminate", lambda: end(signal.SIGTERM))
        calls.add("spawn on a terminal", terminal)
        calls.add("spawn missing", lambda: sandbox.spawn(["/nosuch"]))
        calls.add("wait for none", lambda: sandbox.spawn("sleep 3600").wait(0))


def limits(calls: Calls) -> None:
    """Meet each limit in a sandbox of its own."""
    for label, (values, command) in LIMITED.items():
        with calls.sandbox(f"limit {label}", limits=Limits(**values)) as sandbox:
            if sandbox is not None:
                merged = "merged" in label
                calls.add(
                    f"limit {label}",
                    lambda s=sandbox, c=command, m=merged: s.run(c, merge_stderr=m, timeout=300),
                )
                calls.add(f"limit {label}: then", lambda s=sandbox: s.run("echo on"))
    calls.add("wrong limit", lambda: Limits(memory=-1))
    calls.add("wrong image", lambda: calls.open(image="recipe:nosuch"))
    calls.add("wrong network", lambda: calls.open(network="some"))


def files(calls: Calls) -> None:
    """Change files in every way; snapshot, restore, fork, save and load them."""
    with calls.sandbox("files", files=FILES) as sandbox:
        if sandbox is None:
            return
        calls.add("changes at first", sandbox.changes)
        snapshot = calls.add("snapshot", sandbox.snapshot)
        calls.add("change", lambda: sandbox.run(CHANGING))
        calls.add("changes", sandbox.changes)
        [fork] = calls.add("fork", sandbox.fork) or [None]
        if snapshot is not None:
            calls.add("restore", lambda: sandbox.restore(snapshot))
            calls.add("changes when restored", sandbox.changes)
        if fork is not None:
            calls.add("changes of a fork", fork.changes)
            calls.add(
                "a fork alone",
                lambda: [fork.run("echo new > /work/changed").ok, fork.read("/work/changed")],
            )
            fork.close()
        with tempfile.TemporaryDirectory() as folder:
            saved = Path(folder, "saved")
            calls.add("save", lambda: sandbox.save(saved))
            calls.add("save again", lambda: sandbox.save(saved))
            kinds = calls.add("download", lambda: sandbox.download("/work", Path(folder, "got")))
            if kinds is not None:
                got = sorted(Path(folder, "got").rglob("*"))
                calls.exact["downloaded"] = [str(p.relative_to(Path(folder, "got"))) for p in got]


def main(backend: str, interface: str) -> None:
    """Make all calls and print what came of them."""
    server = None
    if backend == "remote":
        words = [sys.executable, "-m", "intercode", "serve", "--protocol", "sandboxes", "--port=0"]
        server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        address = re.search(r"http://\S+:\d+", server.stdout.readline())
        assert address is not None, "the server has ended"
        backend = f"remote:{address[0]}"

    def open_sandbox(**settings: Any) -> Any:
        settings = {"image": "host", "backend": backend, **settings}
        if interface == "blocking":
            return Sandbox(**settings)
        return Blocking(LOOP.run_until_complete(AsyncSandbox.open(**settings)))

    calls = Calls(open_sandbox)
    try:
        for part in (commands, processes, limits, files):
            part(calls)
    finally:
        if server is not None:
            server.terminate()
            server.wait(60)
    print(json.dumps({"exact": calls.exact, "wording": calls.wording}))


if __name__ == "__main__":
    main(*sys.argv[1:])
