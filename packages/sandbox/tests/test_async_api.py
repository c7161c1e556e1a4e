"""Sandboxes for asyncio, and pools of them."""

from __future__ import annotations

import asyncio
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from intercode_sandbox import (
    AsyncSandbox,
    AsyncSandboxProcess,
    Limits,
    Sandbox,
    SandboxPool,
    SandboxProcess,
)
from intercode_sandbox.api import process as process_module
from intercode_sandbox.api.request_threads import MAX_THREADS, in_executor
from intercode_sandbox.errors import SandboxError, UsageError
from support import backend
from support.sandboxes import PATIENCE, end_waiting, eventually, eventually_async

pytestmark = pytest.mark.sandbox


def open_one() -> AsyncSandbox:
    return AsyncSandbox("host", backend=backend.chosen())


_TOGETHER = """echo $1
: > /tmp/started.$1
until [ -e /tmp/started.32 ] && [ $(ls /tmp/started.* | wc -l) = 32 ]; do sleep 0.1; done
echo end >&2
exit $1
"""
"""Ends when all 32 have begun, so that one after the other would never end."""


def test_a_silent_command_is_killed_and_one_that_writes_is_not() -> None:
    async def play() -> None:
        limits = Limits(idle_timeout=2)
        async with AsyncSandbox("host", backend=backend.chosen(), limits=limits) as sandbox:
            silent = await sandbox.run("echo begin; sleep 600", timeout=None)
            assert (silent.stdout, silent.limit_exceeded) == ("begin\n", "idle_timeout")
            late = await sandbox.run("while :; do echo on; sleep 0.1; done", timeout=4)
            assert (late.timed_out, late.limit_exceeded) == (True, "")

    asyncio.run(play())


def test_it_has_the_properties_and_methods_of_a_sandbox() -> None:
    async def look() -> None:
        async with open_one() as sandbox:
            names = ("image", "limits", "tier", "capabilities", "is_lost")
            assert [getattr(sandbox, n) for n in names] == [
                getattr(sandbox.sandbox, n) for n in names
            ]

    asyncio.run(look())
    of_owners = {"base", "from_base", "release", "transform"}
    public = {name for name in vars(Sandbox) if not name.startswith("_")}
    assert public - of_owners <= set(dir(AsyncSandbox))


def test_a_coroutine_function_is_no_callback_for_output() -> None:
    async def show(text: str, stream: str) -> None:
        raise AssertionError(text)

    async def run() -> None:
        async with open_one() as sandbox:
            with pytest.raises(UsageError, match="on_output is the coroutine function"):
                await sandbox.run("echo hi", on_output=show)
            with pytest.raises(UsageError, match="on_output is the coroutine function"):
                sandbox.sandbox.run("echo hi", on_output=show)

    asyncio.run(run())


def test_many_commands_run_at_once_without_a_thread_each(tmp_path: Path) -> None:
    async def play() -> None:
        async with open_one() as sandbox:
            await sandbox.write("/tmp/go.sh", _TOGETHER)
            before = threading.active_count()
            seen: list[str] = []
            runs = [
                sandbox.run(
                    f"sh /tmp/go.sh {n}", timeout=300, on_output=lambda text, _: seen.append(text)
                )
                for n in range(1, 33)
            ]
            results = await asyncio.gather(*runs)
            assert threading.active_count() <= before + MAX_THREADS
            assert [r.exit_code for r in results] == list(range(1, 33))
            assert [r.output for r in results] == [f"{n}\nend\n" for n in range(1, 33)]
            assert "".join(seen).count("end") == 32
            first, second = await sandbox.fork(2)
            await first.run("echo changed > /tmp/go.sh")
            assert (await second.read("/tmp/go.sh")).startswith(b"echo $1")
            await first.save(tmp_path / "saved.tar")
            await asyncio.gather(first.close(), second.close())
            with pytest.raises(SandboxError):
                await first.run("true")

    asyncio.run(play())


@pytest.mark.heavy
def test_two_hundred_sandboxes_at_once_in_one_thread() -> None:
    count = backend.some(200)

    async def play(count: int) -> None:
        opened = await asyncio.gather(*(open_one().__aenter__() for _ in range(count)))
        try:
            runs = [each.run(f"sleep 0.2; echo {n}") for n, each in enumerate(opened)]
            assert [r.output for r in await asyncio.gather(*runs)] == [
                f"{n}\n" for n in range(count)
            ]
        finally:
            await asyncio.gather(*(each.close() for each in opened))

    def count_threads() -> int:  # without those that recycle sandboxes for the next test
        return sum("recycle" not in thread.name for thread in threading.enumerate())

    asyncio.run(play(1))  # opens what a process keeps from its first sandbox on
    end_waiting()
    threads, held = count_threads(), len(os.listdir("/proc/self/fd"))
    asyncio.run(play(count))
    assert count_threads() <= threads + MAX_THREADS + 4
    end_waiting()
    eventually(lambda: len(os.listdir("/proc/self/fd")) <= held, "no descriptor is left open")


@pytest.mark.not_in_chroot
def test_programs_in_the_background_of_one_thread(tmp_path: Path) -> None:
    async def talk(sandbox: AsyncSandbox, number: int) -> None:
        code = "read a; echo out $a; echo err >&2; (sleep 611 &); exit 3"
        async with await sandbox.spawn(code) as process:
            waiting = asyncio.create_task(process.wait())
            assert await process.wait(0.01) is None
            with pytest.raises(TimeoutError):
                await process.read(timeout=0.01)
            await process.write(f"{number}\n")
            found = sorted([piece async for piece in process.output(60)])
            assert found == [("err\n", "stderr"), (f"out {number}\n", "stdout")]
            assert await waiting == await process.wait() == 3

    async def play() -> None:
        async with open_one() as sandbox:
            await sandbox.write_files({"/work/big.py": "import sys; print(len(sys.stdin.read()))"})
            await asyncio.gather(*(talk(sandbox, n) for n in range(20)))
            async with await sandbox.spawn("python3 big.py", cwd="/work") as process:
                await process.write(b"x" * 3_000_000)  # many times what a pipe holds
                await process.close_input()
                assert await process.read(timeout=60) == b"3000000\n"
                assert await process.read() == b""
            async with await sandbox.spawn("stty size; cat", terminal=(33, 99)) as process:
                size = b""
                while not size.endswith(b"\n"):  # the kernel may give a line in two parts
                    size += await process.read(timeout=60)
                assert size == b"33 99\r\n"
                await process.resize(40, 100)
                assert process.pid == process.process.pid > 0
                reading = asyncio.create_task(process.read())
                await process.kill()
                assert await reading == b"" and await process.wait(60) == -9
            with pytest.raises(TimeoutError):
                async with await sandbox.spawn("sleep 612; true") as process:
                    await process.write(b"x" * 1_000_000, timeout=0.1)
            await sandbox.save(tmp_path / "saved.tar")
            async with await sandbox.forward(8000) as forwarded:
                assert forwarded.port > 0
            with await sandbox.snapshot() as snapshot:
                opened = await AsyncSandbox.from_snapshot(snapshot)
            loaded = await AsyncSandbox.load(tmp_path / "saved.tar", backend=backend.chosen())
            async with opened, loaded:
                for each in (opened, loaded):
                    assert (await each.run("ls /work")).stdout == "big.py\n"

    asyncio.run(play())


def test_a_time_limit_and_a_cancelled_run_kill_their_commands() -> None:
    async def play() -> None:
        async with open_one() as sandbox:
            loop: Any = asyncio.get_running_loop()

            def let_time_pass(*_: object) -> None:
                loop.time = lambda: time.monotonic() + PATIENCE

            code = "echo before; sleep 607"
            result = await sandbox.run(code, timeout=PATIENCE, on_output=let_time_pass)
            assert result.timed_out and result.stdout == "before\n"
            run = asyncio.ensure_future(sandbox.run("sleep 608; true"))
            processes = sandbox.sandbox.base.processes
            await eventually_async(lambda: "sleep" in " ".join(processes()), "it runs")
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run
            eventually(lambda: "sleep" not in " ".join(processes()), "the command ends")

            def refuse(text: str, stream: str) -> None:
                raise LookupError(text + stream)

            with pytest.raises(LookupError, match="started"):
                await sandbox.run("echo started; sleep 609", on_output=refuse)
            eventually(lambda: "sleep" not in " ".join(processes()), "the command ends")

    asyncio.run(play())
    with pytest.raises(SandboxError, match="not open"):
        _ = open_one().sandbox


@pytest.mark.parametrize("recycle", [False, True])
def test_a_pool_serves_clean_sandboxes(recycle: bool) -> None:
    kind = backend.chosen()
    with SandboxPool("host", 2, recycle=recycle, files={"/work/a": "a"}, backend=kind) as pool:
        for _ in range(4):
            with pool.sandbox() as sandbox, pool.sandbox() as other:
                assert sandbox.run("cat /work/a; ls /work; echo x > /work/b").stdout == "aa\n"
                other.write("/work/b", "y")
                assert sandbox.read("/work/b") == b"x\n"
                sandbox.run("sleep 610 > /dev/null 2>&1 &")
        many = [pool.take() for _ in range(4)]
        for each in many:
            pool.give_back(each)
        assert all(each.is_lost for each in many)
        taken = pool.take()
    assert taken.run("ls /work").stdout == "a\n"
    pool.give_back(taken)
    with pytest.raises(SandboxError):
        taken.run("true")
    with pytest.raises(UsageError, match="pool is closed"):
        pool.take()
    with pytest.raises(UsageError, match="at least 1 sandbox, not 0"):
        SandboxPool("host", 0)


@pytest.mark.parametrize("recycle", [False, True])
def test_a_pool_takes_back_what_was_taken_once_and_stays_at_its_size(recycle: bool) -> None:
    kind = backend.chosen()
    with SandboxPool("host", 1, recycle=recycle, backend=kind) as pool:
        taken = [pool.take() for _ in range(3)]
        for sandbox in taken:
            pool.give_back(sandbox)
        assert len(pool._ready) == 1
        with pytest.raises(UsageError, match="given back once"):
            pool.give_back(taken[0])
        with Sandbox("host", backend=kind) as foreign:
            with pytest.raises(UsageError, match="from which it was taken"):
                pool.give_back(foreign)
            assert foreign.run("true").ok
        pool.take().close()  # instead of giving it back
        with pool.sandbox(), pool.sandbox() as other:
            assert other.run("true").ok
        assert len(pool._ready) == 1


@pytest.mark.not_in_chroot
def test_what_was_made_before_giving_back_does_not_reach_the_next_taker() -> None:
    with SandboxPool("host", 1, recycle=True, backend=backend.chosen()) as pool:
        first = pool.take()
        process, forwarded = first.spawn("sleep 611"), first.forward(8000)
        pool.give_back(first)
        with pool.sandbox() as second:
            started = second.spawn("sleep 612")
            process.kill()
            assert process.read() == b""
            with pytest.raises(BrokenPipeError):
                process.write("x")
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection((forwarded.host, forwarded.port))
            with pytest.raises(SandboxError, match="given back"):
                first.run("true")
            first.close()
            assert first.is_lost and started.wait(0) is None


def test_a_closed_sandbox_frees_the_streams_of_its_processes() -> None:
    with Sandbox("host", backend=backend.chosen()) as sandbox:
        sandbox.run("true")
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(10):
            sandbox.spawn("true").wait()
        reader = sandbox.spawn("sleep 613")
        read: list[bytes] = []
        thread = threading.Thread(target=lambda: read.append(reader.read()))
        thread.start()
    thread.join(60)
    assert read == [b""]
    # a back end may keep a sandbox for reuse, with a few descriptors; these processes had 33
    assert len(os.listdir("/proc/self/fd")) < before + 15


def test_a_thread_that_reads_takes_no_other_file_for_a_closed_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another thread closes the program at the worst moment, and opens files that get the numbers
    of its streams."""
    opened: list[int] = []

    class Poll:
        def __init__(self) -> None:
            self._poll = select.poll()
            self.register = self._poll.register

        def poll(self, milliseconds: float | None) -> list[tuple[int, int]]:
            reader.close()
            opened.extend(fd for _ in range(8) for fd in os.pipe())
            return self._poll.poll(10_000 if milliseconds is None else milliseconds)

    events = {"POLLIN": select.POLLIN, "POLLOUT": select.POLLOUT}
    with Sandbox("host", backend=backend.chosen()) as sandbox:
        reader = sandbox.spawn("sleep 614")
        monkeypatch.setattr(process_module, "select", SimpleNamespace(poll=Poll, **events))
        try:
            assert reader.read() == b""
        finally:
            for fd in opened:
                os.close(fd)


def test_a_task_that_reads_learns_that_a_thread_has_closed_the_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def close_before_the_event_loop_waits(of: Any) -> int:
        asked.append(of)
        if len(asked) == 2:
            program.close()
        return SandboxProcess.duplicate(program, of)

    async def read() -> bytes:
        return await AsyncSandboxProcess(program).read(timeout=30)

    with Sandbox("host", backend=backend.chosen()) as sandbox:
        program = sandbox.spawn("sleep 615")
        monkeypatch.setattr(program, "duplicate", close_before_the_event_loop_waits)
        assert asyncio.run(read()) == b"" and asked[:2] == ["stdout", "stdout"]


def test_busy_threads_do_not_delay_a_time_limit() -> None:
    async def play() -> None:
        async with open_one() as sandbox:
            release = threading.Event()
            busy = [asyncio.ensure_future(in_executor(release.wait)) for _ in range(MAX_THREADS)]
            try:
                async with asyncio.timeout(30):
                    assert (await sandbox.run("sleep 621", timeout=0.1)).timed_out
            finally:
                release.set()
            await asyncio.gather(*busy)

    asyncio.run(play())


def test_what_a_cancelled_call_opens_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def cancel(call: Coroutine[Any, Any, object]) -> None:
        begun.clear()
        cancelled.clear()
        task = asyncio.ensure_future(call)
        await eventually_async(begun.is_set, "the call has begun")
        task.cancel()
        cancelled.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    def slow(method: Callable[..., Any], made: list[Any]) -> Any:
        def call(*args: Any) -> Any:
            begun.set()
            assert cancelled.wait(60)
            made.append(method(*args))
            return made[-1]

        return call

    async def take(pool: SandboxPool) -> None:
        async with pool.async_sandbox():
            raise AssertionError("not reached")

    pooled: list[Sandbox] = []
    forks: list[list[Sandbox]] = []
    begun, cancelled = threading.Event(), threading.Event()
    with SandboxPool("host", 1, backend=backend.chosen()) as pool:
        monkeypatch.setattr(pool, "take", slow(pool.take, pooled))
        asyncio.run(cancel(take(pool)))
        eventually(lambda: pooled[0].is_lost if pooled else False, "it is given back")
    with Sandbox("host", backend=backend.chosen()) as sandbox:
        monkeypatch.setattr(sandbox, "fork", slow(sandbox.fork, forks))
        asyncio.run(cancel(AsyncSandbox.of(sandbox).fork(2)))
        eventually(lambda: bool(forks) and all(f.is_lost for f in forks[0]), "they are closed")
