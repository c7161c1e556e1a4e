"""``intercode.Sandbox``: commands, programs and wrong uses, on the tested back end."""

from __future__ import annotations

import contextlib
import io
import math
import re
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from intercode_sandbox import Limits, Sandbox, SandboxSpec
from intercode_sandbox.backends import resolve_image
from intercode_sandbox.errors import MissingCapabilityError, UsageError
from support import backend
from support.sandboxes import PATIENCE, eventually, open_one
from support.time_limits import limit_at

pytestmark = pytest.mark.sandbox


def test_a_result_has_both_streams_the_status_and_the_time(shared: Sandbox) -> None:
    result = shared.run("cat; echo error >&2; exit 3", stdin="input\n", env={"X": "1"})
    assert (result.stdout, result.stderr, result.exit_code) == ("input\n", "error\n", 3)
    assert sorted(result.output.splitlines()) == ["error", "input"]
    assert not (result.ok or result.timed_out or result.truncated)
    assert 0 < result.duration < 60
    merged = shared.run("for i in 1 2 3; do echo $i; echo -$i >&2; done", merge_stderr=True)
    assert merged.stdout == merged.output == "1\n-1\n2\n-2\n3\n-3\n"
    assert merged.stderr == ""
    listed = shared.run(["/bin/sh", "-c", 'echo "$0 $X"; pwd', "a b"], env={"X": "1"}, cwd="/tmp")
    assert listed.stdout == "a b 1\n/tmp\n"
    assert shared.run("kill -9 $$").exit_code == -9


def test_output_arrives_while_a_command_runs(shared: Sandbox) -> None:
    pieces: list[tuple[str, str]] = []

    def receive(text: str, stream: str) -> None:
        pieces.append((text, stream))
        shared.write("/tmp/seen", text)  # another request while the command runs

    wait = "until grep -qs é /tmp/seen; do sleep 0.01; done"
    result = shared.run(f"printf '\\303'; printf '\\251\\n'; {wait}; echo x >&2", on_output=receive)
    assert result.ok
    assert "".join(text for text, stream in pieces if stream == "stdout") == "é\n" == result.stdout
    assert pieces[-1] == ("x\n", "stderr")


def test_a_callback_that_raises_ends_the_command(shared: Sandbox) -> None:
    def refuse(text: str, stream: str) -> None:
        raise LookupError(text + stream)

    with pytest.raises(LookupError, match="started"):
        shared.run("echo started; sleep 600", on_output=refuse)
    assert "sleep" not in " ".join(shared.base.processes())


def test_a_time_limit_kills_one_command_with_its_children_and_no_other() -> None:
    with open_one() as sandbox:
        results = []
        code = "sleep 600 & until [ -e /go ]; do sleep 0.05; done; kill $! && echo done"
        run = partial(sandbox.run, code, timeout=None)  # the other limit must not be its own
        other = threading.Thread(target=lambda: results.append(run()))
        other.start()
        eventually(lambda: "sleep" in " ".join(sandbox.base.processes()), "sleep is started")
        with limit_at("partial"):
            result = sandbox.run("(setsid sleep 601 &) ; echo partial; sleep 602", timeout=PATIENCE)
        assert result.timed_out and result.stdout == "partial\n" and result.exit_code is None
        sandbox.write("/go", "")
        other.join()
        assert results[0].stdout == "done\n", "its child was alive"
        assert not sandbox.run("ps ax | grep 'sleep 60[12]' | grep -v grep").stdout


def test_a_time_limit_does_not_end_what_an_earlier_server_starts() -> None:
    server = "touch /up; until [ -e /go ]; do sleep 0.05; done; sleep 611 & echo $! > /pid; wait"
    with open_one() as sandbox:
        sandbox.run(["sh", "-c", f"(setsid sh -c '{server}' &)"])
        sandbox.run("until [ -e /up ]; do sleep 0.05; done; sleep 0.1")
        late = "touch /go; until [ -s /pid ]; do sleep 0.05; done; (setsid sleep 612 &); echo now; "
        with limit_at("now"):
            assert sandbox.run(late + "sleep 613", timeout=PATIENCE).timed_out
        eventually(lambda: sandbox.run("kill -0 $(cat /pid)").ok, "the child of the server lives")
        assert not sandbox.run("ps ax | grep 'sleep 61[23]' | grep -v grep").stdout


def test_long_output_is_bounded_and_background_writers_do_not_block() -> None:
    with open_one(limits=Limits(output=1000)) as sandbox:
        result = sandbox.run("seq 10000; echo e >&2; (while :; do echo x; done) & exit 4")
        assert result.exit_code == 4 and result.truncated
        assert result.stdout.startswith("1\n2\n") and len(result.stdout) < 1100
        assert result.stderr == "e\n"


def test_the_limit_of_output_is_that_of_each_stream() -> None:
    with open_one(limits=Limits(output=10_000)) as sandbox:
        result = sandbox.run("seq 1500; seq 1500 >&2")
        assert not result.truncated and len(result.output) == 2 * len(result.stdout) > 10_000


def test_a_limit_that_another_process_has_exceeded_is_not_reported() -> None:
    with open_one(limits=Limits(cpu_seconds=0.2)) as sandbox:
        assert sandbox.spawn("while :; do :; done").wait(60) == -9
        assert sandbox.run("false").limit_exceeded == ""
        assert sandbox.run("while :; do :; done").limit_exceeded == "cpu"


@pytest.mark.namespace_only("elsewhere no file system limits a sandbox: it is measured")
def test_a_full_disk_is_the_limit_of_the_command_that_reports_it() -> None:
    with open_one(limits=Limits(disk=1 << 20, inodes=200)) as sandbox:
        full = sandbox.run("LC_ALL=C head -c 5000000 /dev/zero > /big")
        assert not full.ok and full.limit_exceeded == "disk", full
        for shell in ("sh", "bash"):
            printed = sandbox.run([shell, "-c", "printf '%5000d' 1 > /other"])
            assert printed.limit_exceeded == "disk", printed
        assert sandbox.run("false").limit_exceeded == ""
        assert sandbox.run("rm /big; echo No space left on device; false").limit_exceeded == ""
        many = sandbox.run("mkdir /d; cd /d; for i in $(seq 300); do : > $i || exit 1; done")
        assert many.limit_exceeded == "inodes", many


def test_wrong_uses_are_named(shared: Sandbox) -> None:
    with shared.snapshot() as closed:
        pass
    for call, message in [
        (lambda: shared.run("true", cwd="tmp"), "cwd is absolute, unlike 'tmp'"),
        (lambda: shared.run(b"true"), "a command is a text, or a list .* not b'true'"),  # type: ignore[arg-type]
        (lambda: shared.run("true", stdin=None), "stdin is a text, bytes or an .* not None"),  # type: ignore[arg-type]
        (lambda: shared.run("true", timeout=10**400), "timeout is too large: give None for no"),
        (lambda: shared.run("true", timeout=0), "timeout has to be more than 0 seconds.* not 0"),
        (lambda: shared.run("true", timeout="5"), "timeout has to be more than 0 .* not '5'"),  # type: ignore[arg-type]
        (lambda: shared.run("true", env={"A=": "1"}), "variable 'A=' .* without '='"),
        (lambda: shared.run("true", env={"A": "a\0"}), "neither holds a NUL byte"),
        (lambda: shared.run("echo a\0"), r"an argument holds a NUL byte.*: 'echo a\\x00'"),
        (lambda: shared.run(["a\0b"]), "an argument holds a NUL byte"),
        (lambda: shared.spawn(["echo", "\0"]), "an argument holds a NUL byte"),
        (lambda: shared.write("/tmp/x", "", mode="755"), "such as 0o644, not '755'"),  # type: ignore[arg-type]
        (lambda: shared.read(b"/tmp"), "absolute, unlike b'/tmp'"),  # type: ignore[arg-type]
        (lambda: shared.run([]), "no command"),
        (lambda: shared.run(["echo", 2]), "an argument is a text, not 2: use '2'"),  # type: ignore[list-item]
        (lambda: shared.run("true", env={"A": 1}), "environment variable is a text, not 1"),  # type: ignore[dict-item]
        (lambda: shared.read("tmp"), "absolute, unlike 'tmp'"),
        (lambda: shared.fork(0), "at least 1, not 0"),
        (lambda: shared.restore(closed), "the snapshot is closed"),
        (lambda: Sandbox.load("/etc", backend=backend.chosen()), "/etc cannot be loaded: Is a"),
        (lambda: shared.upload("/no/such", "/x"), "/no/such cannot be uploaded: No such file"),
    ]:
        with pytest.raises(UsageError, match=message):
            call()
    assert shared.run(["ls", Path("/tmp")], cwd=Path("/")).ok  # type: ignore[list-item, arg-type]
    shared.write(Path("/tmp/by-path"), "abc")  # type: ignore[arg-type]
    assert shared.read(Path("/tmp/by-path")) == b"abc"  # type: ignore[arg-type]
    with pytest.raises(OSError, match="larger than 2 bytes: read takes a higher `limit`"):
        shared.read("/tmp/by-path", limit=2)
    assert shared.run("id -un", user="root").ok
    with pytest.raises(MissingCapabilityError, match=r"one user, root.*'nobody'.*users=True"):
        shared.run("true", user="nobody")
    with pytest.raises(OSError, match="no-such"):
        shared.run(["no-such"])
    for call in (lambda: shared.read("/no/such"), lambda: shared.download("/no/such", "/tmp/x")):
        with pytest.raises(FileNotFoundError, match="/no/such"):
            call()
    with pytest.raises(OSError, match="/dev/null/x"):
        shared.write("/dev/null/x", "")
    with shared.spawn("true") as process:
        with pytest.raises(UsageError, match="stdout and stderr, not to 'stdotu'"):
            process.read("stdotu")  # type: ignore[arg-type]
        assert process.wait(math.inf) == 0
    with shared.spawn("cat") as process:
        assert process.wait(-1) is None
    for timeout in (math.inf, 3e6):
        assert shared.run("sleep 0.1; echo a", timeout=timeout).stdout == "a\n"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"network": "bridge"}, "unknown network 'bridge'.*known: allow:HOST,..., host, none"),
        ({"limits": {"memory": 5}}, r"limits has to be Limits\(\.\.\.\), .* not {'memory': 5}"),
        ({"env": {"A": 1}}, "an environment variable is a text, not 1: use '1'"),
        ({"env": ["A=1"]}, "environment variables are a mapping"),
    ],
)
def test_a_specification_is_checked_before_a_backend_gets_it(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        Sandbox("host", **settings)
    with pytest.raises(UsageError, match=message):
        SandboxSpec(resolve_image("host"), **settings)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"processes": 4}, "the limit processes .* at least 5, not 4"),
        ({"memory": -5}, r"memory .* at least 16777216 \(16 MiB\), not -5"),
        ({"output": 0}, "the limit output .* at least 512, not 0"),
        ({"open_files": 3}, "the limit open_files .* at least 64, not 3"),
        ({"cpu_seconds": 0}, "the limit cpu_seconds .* at least 0.1, not 0"),
        ({"cpu_seconds": math.nan}, "the limit cpu_seconds .* 0.1, not nan"),
        ({"disk": 1 << 64}, "the limit disk .* of at most 9223372036854775807, not"),
        ({"processes": 2.5}, "the limit processes .* whole number .* not 2.5"),
        ({"memory": "much"}, "the limit memory is a whole number, .* unlike 'much'"),
        ({"memory": "1k"}, "the limit memory .* not 1024"),
        ({"memory": None}, "the limit memory .* not None"),
    ],
)
def test_limits_out_of_range_are_refused_where_they_are_made(
    limits: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        Limits(**limits)


def test_limits_are_read_as_on_the_command_line() -> None:
    given: dict[str, Any] = {"memory": "2g", "cpus": "1.5", "processes": "64"}
    assert Limits(**given) == Limits(memory=2 << 30, cpus=1.5, processes=64)


@pytest.mark.namespace_only("the page's programs choose their own back end")
def test_the_programs_of_the_page_are_short_and_print_what_it_shows() -> None:
    page = (Path(__file__).parents[3] / "docs" / "sandbox.md").read_text("utf-8")
    programs = re.findall(r"```python\n((?:from|import) .*?)```\n\n```\n(.*?)```", page, re.DOTALL)
    assert len(programs) == 3
    for program, output in programs:
        assert len(program.splitlines()) <= 15
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(program, {})
        assert printed.getvalue() == output


def test_a_spawned_program_is_written_to_and_read_from(shared: Sandbox) -> None:
    with shared.spawn("while read line; do echo got $line; echo err >&2; done; exit 5") as process:
        process.write("one\n")
        assert process.read(timeout=60) == b"got one\n"
        assert process.read("stderr", timeout=60) == b"err\n"
        with pytest.raises(TimeoutError):
            process.read(timeout=0.01)
        process.write(b"two\n")
        process.close_input()
        pieces = list(process.output(timeout=60))
        assert "".join(text for text, name in pieces if name == "stdout") == "got two\n"
        assert process.wait() == 5
        with pytest.raises(BrokenPipeError):
            process.write("three")


@pytest.mark.parametrize("timeout", [1e7, 1e300, math.inf, None])
def test_a_wait_may_have_any_length(shared: Sandbox, timeout: float | None) -> None:
    with shared.spawn(["cat"]) as process:
        process.write("a\n", timeout)
        assert process.read(timeout=timeout) == b"a\n"
        process.close_input()
        assert list(process.output(timeout)) == []
        assert process.wait(timeout) == 0
    with shared.spawn(["true"]) as process:
        assert process.wait(timeout) == 0


@pytest.mark.parametrize(
    ("timeout", "reason"),
    [
        (10**400, "is too large: give None for no limit"),
        (math.nan, "a number of seconds, or None for no limit, not nan"),
        ("5", "a number of seconds, .* not '5'"),
    ],
)
def test_a_wait_that_is_no_time_is_refused(shared: Sandbox, timeout: Any, reason: str) -> None:
    with shared.spawn(["cat"]) as process:
        waits = (
            lambda: process.write("a", timeout),
            lambda: process.read(timeout=timeout),
            lambda: list(process.output(timeout)),
            lambda: process.wait(timeout),
        )
        for wait in waits:
            with pytest.raises(UsageError, match=reason):
                wait()


def test_a_spawned_program_runs_in_the_background_until_it_is_closed(shared: Sandbox) -> None:
    with shared.spawn("sleep 603 & sleep 604; true") as process:
        eventually(lambda: "sleep" in " ".join(shared.base.processes()), "a child is started")
        assert process.wait(0) is None
        assert shared.run("echo a; sleep 600", timeout=0.3).timed_out
        assert process.wait(0) is None  # the time limit of another command is not its own
        with pytest.raises(TimeoutError):
            list(process.output(timeout=0.01))
    assert process.wait(60) == -9
    eventually(lambda: "sleep" not in " ".join(shared.base.processes()), "its children end")
    with pytest.raises(OSError, match="no-such"):
        shared.spawn(["no-such"])


def test_the_children_that_a_program_starts_while_it_is_killed_end_with_it() -> None:
    with open_one() as sandbox:
        for _ in range(5):
            with sandbox.spawn("for i in $(seq 100); do sleep 605 & done; wait"):
                eventually(lambda: "sleep" in " ".join(sandbox.base.processes()), "it has children")
            eventually(lambda: "sleep" not in " ".join(sandbox.base.processes()), "they end")


@pytest.mark.not_in_chroot
def test_a_program_on_a_terminal_controls_it_and_is_resized(shared: Sandbox) -> None:
    with shared.spawn(["/bin/sh", "-i"], terminal=(30, 90), env={"PS1": "$ "}) as process:
        process.write("stty -echo; tty; stty size < /dev/tty\n")
        seen = ""
        while "30 90" not in seen:
            seen += process.read(timeout=60).decode()
        assert "job control" not in seen and "/dev/pts/" in seen
        process.resize(40, 100)
        process.write("stty size; sleep 605; echo interrupted\n")
        while "40 100" not in seen:
            seen += process.read(timeout=60).decode()
        eventually(lambda: "sleep" in " ".join(shared.base.processes()), "sleep is started")
        process.write("\x03")
        process.write("exit 7\n")
        assert process.wait(60) == 7
        assert list(process.output(timeout=60))[-1][1] == "stdout"
    for size in ((0, 80), (40,), 5):
        with pytest.raises(
            UsageError, match=re.escape(f"from 1 to 65535 rows and columns, unlike {size}")
        ):
            shared.spawn("true", terminal=size)  # type: ignore[arg-type]


def test_usage_is_measured(shared: Sandbox) -> None:
    before = shared.usage()
    shared.write("/tmp/big", b"x" * (1 << 20))
    with shared.spawn("sleep 606"):
        during = shared.usage()
    assert during.disk >= before.disk + (1 << 20) and during.files > before.files
    assert during.processes > before.processes and during.memory > before.memory


def test_the_bytes_of_a_stream_are_beside_its_text(shared: Sandbox) -> None:
    result = shared.run(r"printf 'a\377\n\0'; printf '\200' >&2")
    assert (result.stdout, result.stderr) == ("a\\xff\n\0", "\\x80")
    assert (result.stdout_bytes, result.stderr_bytes) == (b"a\xff\n\0", b"\x80")


def test_the_bytes_of_a_long_stream_are_the_programs_alone() -> None:
    with open_one(limits=Limits(output=512)) as sandbox:
        result = sandbox.run("printf '%0600d' 0")
    assert "[... 88 bytes left out ...]" in result.stdout
    assert result.stdout_bytes == b"0" * 512


def test_a_text_without_a_shell_is_a_result() -> None:
    with open_one() as sandbox:
        sandbox.run("rm /bin || rm /bin/sh")  # a link in most images
        pieces: list[tuple[str, str]] = []
        result = sandbox.run("echo hi", on_output=lambda *piece: pieces.append(piece))
        assert (result.exit_code, result.ok, result.stdout) == (127, False, "")
        assert result.stderr == result.output == "/bin/sh: No such file or directory\n"
        assert pieces == [(result.stderr, "stderr")]
        assert sandbox.run("echo hi", merge_stderr=True).stdout == result.stderr
        with pytest.raises(FileNotFoundError, match="/none"):
            sandbox.run("echo hi", cwd="/none")
        with pytest.raises(FileNotFoundError):
            sandbox.run(["/bin/sh"])


def test_processes_are_listed_and_killed() -> None:
    with open_one() as sandbox:
        assert sandbox.run("sleep 600 & sleep 601 & echo").ok
        sleeping = ["sleep", "sleep"]
        eventually(lambda: list(sandbox.processes().values()) == sleeping, "both are executed")
        [first, second] = sandbox.processes()
        sandbox.kill(first, 15)
        eventually(lambda: list(sandbox.processes()) == [second], "the first has ended")
        sandbox.kill(second)
        eventually(lambda: not sandbox.processes(), "the second has ended")
        sandbox.kill(second)  # it has ended
        with sandbox.spawn("sleep 602 & echo on; sleep 603; :") as process:
            assert process.read() == b"on\n" and sandbox.processes() == {}
        for pid in (0, 1, -1, "2"):
            with pytest.raises(UsageError, match="number of a process"):
                sandbox.kill(pid)  # type: ignore[arg-type]
        for number in (0, -1, 1000, 1.5, "x", None):
            with pytest.raises(UsageError, match="that of a signal"):
                sandbox.kill(second, number)  # type: ignore[arg-type]


def test_a_program_reaches_a_service_of_its_owner(shared: Sandbox) -> None:
    if "listen" not in shared.capabilities:
        with pytest.raises(MissingCapabilityError, match="listen"):
            shared.listen()
        return
    for port in (-1, 70000, True, 1.5, "x", None):
        with pytest.raises(UsageError, match="port is a number"):
            shared.listen(port)  # type: ignore[arg-type]
    with (
        shared.listen() as listener,
        shared.spawn(
            ["bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{listener.getsockname()[1]}; cat <&3"]
        ) as process,
    ):
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"from the owner")
        assert process.wait() == 0
        assert process.read() == b"from the owner"


def test_a_sandbox_and_a_port_say_what_they_are() -> None:
    with open_one() as sandbox, sandbox.forward(8000) as forwarded:
        assert repr(sandbox) == f"<Sandbox of host, {sandbox.tier}>"
        assert repr(forwarded) == f"<ForwardedPort 127.0.0.1:{forwarded.port} to 8000>"
    assert repr(sandbox).endswith(", closed>")
