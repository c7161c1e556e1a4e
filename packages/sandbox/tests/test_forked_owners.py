"""What a process opened belongs to that process: a forked child can neither use it nor end it."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import traceback
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from intercode_sandbox import Sandbox, SandboxPool, SandboxSpec, images, open_sandbox
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.errors import SandboxUnavailableError, UsageError
from intercode_sandbox.platforms.forks import own_socketpair
from support import backend
from support.sandboxes import open_one, open_test_sandbox

pytestmark = pytest.mark.sandbox

SECONDS = 60


def _fork_in_c() -> int:
    """Fork as a C library does, without a word to Python."""
    return int(ctypes.PyDLL(None).fork())


@contextmanager
def _child(action: Callable[[], object], fork: Callable[[], int] = os.fork) -> Iterator[int]:
    """Run an action in a forked child, which then waits for the end of the ``with`` block. Yields
    the child's number when the action is done, 0 if it raised."""
    ends, done = os.pipe(), os.pipe()
    child = fork()
    if not child:
        signal.alarm(SECONDS)  # ends a child that hangs
        try:
            os.close(ends[1])
            action()
            os.write(done[1], b"+")
            os.close(done[1])
            os.read(ends[0], 1)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(done[1])
    try:
        yield child if os.read(done[0], 1) else 0
    finally:
        for fd in (*ends, done[0]):
            os.close(fd)
        os.waitpid(child, 0)


def _refused(use: Callable[[], object], owner: int) -> None:
    with pytest.raises(UsageError, match=f"the process {owner} opened this .* open another"):
        use()


def test_a_forked_child_can_neither_use_nor_end_what_its_parent_opened() -> None:
    owner = os.getpid()
    with open_one() as sandbox, sandbox.snapshot() as snapshot, sandbox.spawn("cat") as process:
        uses: list[Callable[[], object]] = [
            lambda: sandbox.run("true"),
            lambda: sandbox.read("/etc/hostname"),
            lambda: sandbox.base,
            lambda: Sandbox.from_snapshot(snapshot),
            lambda: process.wait(SECONDS),
            lambda: process.read(timeout=SECONDS),
            lambda: process.write("child\n"),
            process.kill,
        ]
        base: BaseSandbox = sandbox.base

        def use_all() -> None:
            for use in (*uses, base.changes):
                _refused(use, owner)
            for end in (process, sandbox, snapshot, base):
                end.close()
            assert sandbox.is_lost and base.is_lost
            with open_one() as own:
                assert own.run("echo child").output == "child\n"

        with _child(use_all) as child:
            assert child
            process.write("parent\n")
            process.close_input()  # the child lives, and does not keep the input open
            assert process.wait(SECONDS) == 0
            assert process.read(timeout=SECONDS) == b"parent\n"
            assert sandbox.run("echo on").output == "on\n"


@pytest.mark.namespace_only("a connection into the sandbox")
def test_a_forked_child_neither_closes_nor_keeps_a_forwarded_port() -> None:
    with open_one() as sandbox, sandbox.spawn("python3 -u -m http.server 8000") as server:
        assert server.read(timeout=SECONDS)
        forwarded = sandbox.forward(8000)
        with _child(forwarded.close) as child:
            assert child
            address = f"http://{forwarded.host}:{forwarded.port}/"
            assert urllib.request.urlopen(address).status == 200
            forwarded.close()
            with pytest.raises(OSError, match="refused"):
                urllib.request.urlopen(address)


def test_each_forked_child_has_a_pool_of_its_own() -> None:
    with SandboxPool("host", size=2, backend=backend.chosen()) as pool:  # one opens still
        taken = pool.take()
        names = [f"/{number}" for number in range(4)]

        def serve(name: str) -> None:
            pool.give_back(taken)
            for _ in range(3):  # both threads of the pool open some
                with pool.sandbox() as sandbox:
                    assert not any(map(sandbox.exists, names))
                    sandbox.write(name, "")
                    assert sandbox.exists(name)

        def serve_and_fork() -> None:
            serve(names[2])
            with _child(lambda: serve(names[3])) as grandchild:
                assert grandchild
            pool.close()

        with (
            _child(lambda: serve(names[0])) as first,
            _child(lambda: serve(names[1])) as second,
            _child(serve_and_fork) as third,
        ):
            assert first and second and third
            with pool.sandbox() as sandbox:
                assert not any(map(sandbox.exists, names))
            assert taken.run("echo on").output == "on\n"
            pool.give_back(taken)


def test_a_closed_descriptor_does_not_keep_a_forked_child_from_giving_up_the_others() -> None:
    closed, other = own_socketpair()

    def fork() -> int:
        os.close(closed.fileno())
        return os.fork()

    def check() -> None:
        assert other.fileno() < 0

    with other, _child(check, fork) as child:
        closed.detach()
        assert child


def _end_of_program(open_it: Callable[[], BaseSandbox], fork: Callable[[], int]) -> None:
    """Let a process open a sandbox with a program, fork, and be killed. Return when the program
    has ended, while the forked child lives."""
    reader, writer = os.pipe()
    ends = os.pipe()
    owner = os.fork()
    if not owner:
        sandbox = open_it()
        sandbox.spawn(["sleep", "600"], fds={1: writer})
        os.close(writer)
        if fork():
            os.kill(os.getpid(), signal.SIGKILL)
        os.close(ends[1])
        os.read(ends[0], 1)
        os._exit(0)
    os.close(writer)
    try:
        os.waitpid(owner, 0)
        assert select.select([reader], [], [], SECONDS)[0], "the program continues"
        assert os.read(reader, 1) == b""
    finally:
        for fd in (reader, *ends):
            os.close(fd)


def test_a_killed_owner_ends_its_sandbox_although_its_forked_child_lives() -> None:
    _end_of_program(open_test_sandbox, os.fork)


@pytest.mark.namespace_only("it opens sandboxes of every tier that knows its owner")
@pytest.mark.parametrize("name", ["namespace/1", "namespace/2", "chroot", "landlock"])
def test_a_killed_owner_ends_its_sandbox_although_c_code_forked_a_child(name: str) -> None:
    def open_it() -> BaseSandbox:
        return open_sandbox(SandboxSpec(images.resolve("host")), name)

    try:
        open_it().close()
    except SandboxUnavailableError as e:
        pytest.skip(str(e))
    _end_of_program(open_it, _fork_in_c)
