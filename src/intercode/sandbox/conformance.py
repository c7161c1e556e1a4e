"""Checks that a sandbox back end satisfies the contract, to be called by its tests."""

from __future__ import annotations

from collections.abc import Callable

from intercode.core.checks import expect_error, require
from intercode.core.errors import InfrastructureError
from intercode.sandbox.contract import Sandbox

_TIMEOUT = 60.0  # seconds; the commands take milliseconds on an idle machine


def check_sandbox(open_sandbox: Callable[[], Sandbox]) -> None:
    """Check a back end against ``contract.Sandbox``. Raises AssertionError.

    ``open_sandbox`` opens a sandbox that has ``/bin/sh`` and the usual small tools.
    """
    with open_sandbox() as sandbox:
        _check_programs(sandbox)
        _check_files(sandbox)
        _check_clone(sandbox)
    with open_sandbox() as sandbox, open_sandbox() as other:
        sandbox.write_file("/tmp/mine", b"1")
        expect_error(
            FileNotFoundError, lambda: other.read_file("/tmp/mine"), "reading another sandbox"
        )
    sandbox.close()
    expect_error(
        InfrastructureError, lambda: sandbox.run(["true"]), "a command in a closed sandbox"
    )


def _check_programs(sandbox: Sandbox) -> None:
    code = "cat; echo out; echo err >&2; exit 3"
    result = sandbox.run(["/bin/sh", "-c", code], stdin=b"in\n", timeout=_TIMEOUT)
    require(result.output == "in\nout\nerr\n", f"output comes out of order: {result.output!r}")
    require(result.exit_code == 3, f"`exit 3` gives the status {result.exit_code}")
    require(not result.timed_out, "a command that ends is reported as timed out")
    result = sandbox.run(["/bin/sh", "-c", r"printf '\377'"], timeout=_TIMEOUT)
    require(result.ok and result.output != "", "output that is not UTF-8 is lost")
    result = sandbox.run(["/bin/sh", "-c", "echo a; sleep 600 & sleep 600"], timeout=1.0)
    require(result.timed_out and result.exit_code is None, f"a command is not timed out: {result}")
    require(result.output == "a\n", f"output before the time-out is lost: {result.output!r}")
    expect_error(OSError, lambda: sandbox.run(["/no/such/program"]), "a program that is not there")
    result = sandbox.run(["/bin/sh", "-c", "while :; do echo 0123456789; done"], timeout=1.0)
    longest = sandbox.spec.limits.output + 200
    require(len(result.output) <= longest, f"{len(result.output)} characters exceed the limit")
    require(
        result.omitted_bytes > 0 or len(result.output) < longest,
        "output is omitted and `omitted_bytes` is 0",
    )


def _check_files(sandbox: Sandbox) -> None:
    require(not sandbox.changes(), f"a new sandbox has changes: {sorted(sandbox.changes())}")
    sandbox.write_file("/tmp/a b/c", b"\0\xff", mode=0o640)
    require(sandbox.read_file("/tmp/a b/c") == b"\0\xff", "a file does not read as it was written")
    changes = sandbox.changes()
    require({"/tmp/a b", "/tmp/a b/c"} <= changes.keys(), f"changes() omits a file: {changes}")
    entry = changes["/tmp/a b/c"]
    require((entry.kind, entry.mode, entry.size) == ("file", 0o640, 2), f"wrong entry: {entry}")
    sandbox.run(
        ["/bin/sh", "-c", "ln -s /no /tmp/l; mkfifo /tmp/p; mkdir /tmp/d"], timeout=_TIMEOUT
    )
    expect_error(FileNotFoundError, lambda: sandbox.read_file("/tmp/l"), "reading a dangling link")
    expect_error(IsADirectoryError, lambda: sandbox.read_file("/tmp/d"), "reading a directory")
    expect_error(OSError, lambda: sandbox.read_file("/tmp/p"), "reading a FIFO")
    kinds = {path: entry.kind for path, entry in sandbox.changes().items()}
    found = [kinds.get(f"/tmp/{name}") for name in "lpd"]
    require(found == ["link", "fifo", "dir"], f"wrong kinds of changes: {found}")
    sandbox.run(["/bin/sh", "-c", "rm -r /tmp/*"], timeout=_TIMEOUT)
    require(
        not sandbox.changes(), f"created and removed files are listed: {sorted(sandbox.changes())}"
    )


def _check_clone(sandbox: Sandbox) -> None:
    sandbox.write_file("/tmp/before", b"1")
    with sandbox.clone() as copy:
        require(copy.changes() == sandbox.changes(), "a clone differs from its parent")
        copy.write_file("/tmp/before", b"2")
        sandbox.write_file("/tmp/after", b"3")
        require(sandbox.read_file("/tmp/before") == b"1", "a clone writes into its parent")
        expect_error(
            FileNotFoundError, lambda: copy.read_file("/tmp/after"), "a clone's parent's file"
        )
