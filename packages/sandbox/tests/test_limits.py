"""Limits of a sandbox, the reports when they are exceeded, and that limits leave no traces."""

from __future__ import annotations

import os
import signal
import subprocess
import textwrap
import threading
import time
from pathlib import Path
from typing import Any, get_args

import pytest

from intercode_sandbox.contract import LimitExceeded, Limits
from intercode_sandbox.limit_messages import reported_limit, with_limit_note
from intercode_sandbox.sizes import format_size
from intercode_sandbox.supervisor.runtime.cgroups import process_start_ticks
from intercode_sandbox.supervisor.watchdog import Watch, Watchdog
from intercode_sandbox.types import ExecResult
from support import backend
from support.sandboxes import PATIENCE, eventually
from support.shells import shell
from support.time_limits import limit_at

pytestmark = pytest.mark.sandbox
TIERS = backend.tiers()
MIB = 1 << 20
HOLD = "python3 -c 'import time; x = bytearray({} << 20); time.sleep({})'"


# ------------------------------------------------------------------------------ limits
@pytest.mark.parametrize("tier", TIERS)
def test_a_process_over_the_memory_limit_is_killed_and_reported(tier: str) -> None:
    with shell(tier, memory=128 * MIB, disk=16 * MIB) as (_, session):
        result = session.run(HOLD.format(600, 120), 60)
        assert result.exit_code == 137 and not result.timed_out
        assert result.observation.endswith("[killed: over the memory limit of 128 MiB]\n")
        assert session.run("echo on; false", 60).output == "on\n", "said once"
        assert session.run("bash -c 'kill -9 $$'", 60).observation.count("[killed") == 0


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS)
def test_many_processes_share_one_limit(tier: str) -> None:
    together = "".join(HOLD.format(60, 4) + " & " for _ in range(6))
    with shell(tier, memory=160 * MIB, disk=16 * MIB) as (_, session):
        result = session.run(
            together + "bad=0; for j in $(jobs -p); do wait $j || bad=1; done\n(exit $bad)", 60
        )
        assert "[killed: over the memory limit of 160 MiB]" in result.observation
        assert not result.timed_out
        assert session.run("echo on", 60).output == "on\n", "the shell itself was spared"


def test_every_limit_has_a_note_of_its_own() -> None:
    class Reporting:
        class spec:  # noqa: N801
            limits = Limits(cpu_seconds=3)

        def __init__(self, limit: str) -> None:
            self.limit_exceeded = lambda: limit

    def note(limit: str) -> str:
        sandbox: Any = Reporting(limit)
        return with_limit_note(sandbox, ExecResult("", 1), 5).note

    names = set(get_args(LimitExceeded)) - {""}
    assert len({note(name) for name in names}) == len(names)
    assert note("cpu") == "[killed: over the limit of 3 s of processor time]\n"
    assert "/dev/shm" in note("shared_memory")
    assert note("sockets") == "[over the limit sockets]\n", "a newer server's"


@pytest.mark.parametrize("tier", TIERS)
def test_shared_memory_counts_once(tier: str) -> None:
    code = """
    import os, time
    x = bytearray(b"x" * (80 << 20))
    for _ in range(4):
        if os.fork() == 0:
            time.sleep(1); os._exit(0)
    print(sum(os.wait()[1] for _ in range(4)))
    """
    with shell(tier, memory=200 * MIB) as (sandbox, _):
        assert sandbox.run(["python3", "-c", textwrap.dedent(code)]).output == "0\n"


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS)
def test_processor_time_is_counted_per_action(tier: str) -> None:
    with shell(tier, cpu_seconds=0.4) as (_, session):
        for spin in ("python3 -c 'while 1: pass'", "while :; do :; done"):
            result = session.run(spin, 60)
            assert "[killed: over the limit of 0.4 s of processor time]" in result.note
        assert session.run("for i in {1..99}; do /bin/true; done; sleep 0.5", 60).output == ""


@pytest.mark.parametrize("tier", TIERS)
def test_a_full_disk_ends_only_the_command_that_filled_it(tier: str) -> None:
    with shell(tier, memory=64 * MIB, disk=96 * MIB) as (_, session):
        result = session.run("head -c 200M /dev/zero > /tmp/full", 60)
        # containers share the engine's disk: the supervisor checks the use and kills
        if backend.is_container():
            assert "killed" in result.note and "limit of 96 MiB" in result.note
        else:
            assert "No space left on device" in result.output and "killed" not in result.note
        assert session.run("rm /tmp/full; echo on", 60).output == "on\n"


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS)
def test_too_many_processes_are_refused_by_fork(tier: str) -> None:
    with shell(tier, processes=24) as (_, session):
        # bash prints this before it tries again, for 15 seconds
        with limit_at("Resource temporarily unavailable"):
            result = session.run("for i in {1..40}; do sleep 9 & done", PATIENCE)
        assert "Resource temporarily unavailable" in result.output
        session.run("kill $(jobs -p)", 60)
        eventually(lambda: session.run("/bin/echo on", 60).output == "on\n", "room for a process")


def test_limits_of_time_output_and_file_size_are_reported() -> None:
    with shell("auto", output=4096, file_size=1 * MIB) as (_, session):
        with limit_at("before"):
            late = session.run("echo before; sleep 60", PATIENCE)
        assert late.observation == "before\n[killed: over the time limit of 120 s]\n"
        much = session.run("seq 100000", 60)
        assert much.ok and much.observation.endswith(
            "100000\n[cut: over the limit of 4 KiB for output]\n"
        )
        large = session.run("head -c 2M /dev/zero > /tmp/x", 60)
        assert large.observation.endswith("[killed: over the limit of 1 MiB for one file]\n")
        assert session.run("printf no; exit 3", 60).observation.count("over the") == 0


def test_a_note_begins_on_a_line_of_its_own() -> None:
    with shell("auto") as (sandbox, _):
        result = with_limit_note(sandbox, ExecResult("half", None, timed_out=True), 2.5)
        assert result.observation == "half\n[killed: over the time limit of 2.5 s]\n"
        fine = ExecResult("fine", 0)
        assert with_limit_note(sandbox, fine, 1) is fine
    assert [format_size(n) for n in (1 << 30, 3 * MIB // 2, 1000, 0)] == [
        "1 GiB",
        "1536 KiB",
        "1000 bytes",
        "0 bytes",
    ]


DISK, INODES = "limit of 16 MiB", "900 files"
REFUSED = [
    ("processes", {"processes": 24}, "for i in {1..40}; do sleep 2 & done", "24 processes"),
    ("addresses", {"address_space": 1 << 30}, "python3 -c 'bytearray(3 << 30)'", "1 GiB of memory"),
    (
        "one file",
        {"file_size": MIB},
        'python3 -c \'open("/tmp/x", "wb").write(bytes(9 << 20))\'',
        "1 MiB for one file",
    ),
    ("disk", {"disk": 16 * MIB}, "head -c 40M /dev/zero > /tmp/full; true", DISK),
    ("inodes", {"inodes": 900}, "for i in {1..999}; do : > /tmp/$i || break; done", INODES),
    (
        "open files",
        {"open_files": 64},
        "python3 -c 'x = [open(\"/dev/null\") for _ in range(99)]'",
        "64 open files",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize(
    ("limits", "code", "message"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED]
)
def test_refusals_are_reported_by_the_program_and_a_note(
    tier: str, limits: dict[str, float], code: str, message: str
) -> None:
    with shell(tier, **limits) as (_, session):
        result = session.run(code, 30)
        assert result.note.count(message) == 1, result
        # the supervisor checks this limit: see above
        counted = backend.is_container() and message in (
            DISK,
            INODES,
        )
        assert (result.output.strip() or counted) and message not in result.output
        assert session.run("pwd", 60).note == "", "said once"


@pytest.mark.parametrize("tier", TIERS)
def test_an_exceeded_limit_is_reported_with_its_action(tier: str) -> None:
    hog = "python3 -c 'import time; x = bytearray(300 << 20); time.sleep(120)'"
    with shell(tier, memory=128 * MIB, disk=16 * MIB) as (_, session):
        later = f"( ({hog}; : > /tmp/gone) & ); until [ -e /tmp/gone ]; do sleep 0.1; done"
        for code in (f"{hog} || true", later):
            result = session.run(code, 60)
            assert result.ok and result.note == "[killed: over the memory limit of 128 MiB]\n"
            assert session.run("false", 60).note == ""


@pytest.mark.parametrize("tier", TIERS)
def test_a_shell_that_fills_the_disk_twice_is_reported_with_its_action(tier: str) -> None:
    """The first time is a warning, which kills the shell's commands. The second time kills the
    shell."""
    fill = "for i in {{1..{}}}; do : > /tmp/{}$i; done"
    with shell(tier, inodes=900) as (_, session):
        result = session.run(f"{fill.format(950, 'a')}; sleep 0.5; {fill.format(99, 'b')}", 60)
        assert result.note.count("900 files") == 1, result
        assert session.run("pwd", 60).note == ""


def test_messages_of_limits_in_a_file_are_ignored() -> None:
    words = "No space left on device, Too many open files, MemoryError, File too large"
    with shell("auto") as (_, session):
        assert session.run(f"echo '{words}'", 60).note == ""
        assert session.run("echo No space left on device; false", 60).note == "", "there is room"


_FRAME = 'Traceback (most recent call last):\n  File "x.py", line 1, in <module>\n'
_PARSED = "    return compile(source, filename, mode, flags,\n"


@pytest.mark.parametrize(
    ("output", "limit"),
    [
        ("MemoryError\n", ""),
        (f"{_FRAME}    eval('-' * 10**5)\nMemoryError\n", ""),
        (f"{_FRAME}    eval('-' * 10**5)\n    ~~~~^^^^^^^^^^^^^\nMemoryError\n", ""),
        (f"{_FRAME}{_PARSED}           ^^^^^^^^^^^^^^^\nMemoryError\n", ""),
        (f"Cannot fork\n{_FRAME}    eval('-')\nMemoryError\n", "processes"),
        ("sh: 0: Cannot fork\nMemoryError", "address_space"),
        ("loading\nMemoryError", "address_space"),
        (f'{_FRAME}    re.compile("a" * 10**10)\nMemoryError', "address_space"),
        (f'{_FRAME}    eval("1" * 10**10)\n         ~~~~^~~~~~~~\nMemoryError', "address_space"),
        (f"{_FRAME}    x = bytes(10**10)\nMemoryError", "address_space"),
    ],
)
def test_only_code_that_is_too_deep_to_parse_lacks_memory_at_no_limit(
    output: str, limit: str
) -> None:
    assert reported_limit(output) == limit


# ------------------------------------------------------------------------------ watchdog
@pytest.mark.namespace_only("the watchdog of sandboxes without a control group")
def test_the_watchdog_keeps_its_interval_on_a_busy_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """This happens when a sandbox keeps all processors busy."""
    dog, pauses, here, rest = Watchdog(), list[float](), threading.get_ident(), time.sleep
    dog._watches[0] = Watch(0, None, None)

    def sleep(seconds: float) -> None:
        if threading.get_ident() != here:  # not in a thread of another test
            rest(seconds)
            return
        pauses.append(seconds)
        if len(pauses) == 3:
            raise InterruptedError

    monkeypatch.setattr(dog, "check_all", lambda: threading.Event().wait(0.2))
    monkeypatch.setattr(time, "sleep", sleep)
    with pytest.raises(InterruptedError):
        dog._run()
    assert pauses == [pytest.approx(0.1)] * 3


@pytest.mark.namespace_only("the watchdog of sandboxes without a control group")
def test_the_watchdog_rests_when_there_is_nothing_to_watch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Watchdog, "_current", None)  # that of sandboxes which other tests keep
    with shell("namespace/2"):
        dog = Watchdog._current
        assert dog is not None and dog._thread is not None and dog._thread.is_alive()
    eventually(lambda: dog._thread is None, "its thread has ended")
    with shell("namespace/2", memory=100 * MIB) as (_, session):
        assert "memory limit" in session.run(HOLD.format(300, 120), 60).observation


class _FullGroup:
    """A control group that has more than the limit, as while the kernel ends a large process."""

    def may_be_exceeded(self) -> bool:
        return True

    is_certain = may_be_exceeded


def test_a_small_process_is_not_killed_for_the_memory_of_one_that_is_ending() -> None:
    with subprocess.Popen(["sh", "-c", "sleep 60 & wait"], start_new_session=True) as family:
        try:
            children = Path(f"/proc/{family.pid}/task/{family.pid}/children")

            def command() -> bytes:
                pid = children.read_text().strip()
                return Path(f"/proc/{pid}/cmdline").read_bytes() if pid else b""

            eventually(lambda: command().startswith(b"sleep"), "the child has memory of its own")
            watch = Watch(family.pid, 64 * MIB, None, group=_FullGroup())  # type: ignore[arg-type]
            watch.start_ticks = process_start_ticks(family.pid)
            dog = Watchdog()
            dog._watches[family.pid] = watch
            dog.check_all()
            assert watch.victim is None and watch.limit_exceeded == ""
            watch.memory = 1
            dog.check_all()
            assert watch.victim is not None and watch.limit_exceeded == "memory"
        finally:
            os.killpg(family.pid, signal.SIGKILL)
