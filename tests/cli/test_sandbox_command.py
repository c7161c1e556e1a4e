"""``intercode sandbox``: commands, terminals, copies, and the list of live sandboxes."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import shlex
import socket
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from intercode import Sandbox
from intercode.cli import main
from intercode.core.errors import SandboxError, SandboxLostError
from intercode_sandbox import TerminalServer
from intercode_sandbox.namespace.launcher import Launcher
from support.sandboxes import eventually

pytestmark = [pytest.mark.sandbox, pytest.mark.namespace_only]


def run_cli(*words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "intercode", "sandbox", *words]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=60)


def test_run_passes_streams_and_the_exit_status_on() -> None:
    data = bytes(range(256)) * 1000
    done = run_cli("run", "--", "sh", "-c", "cat; echo problem >&2; exit 7", stdin=data)
    assert (done.returncode, done.stdout) == (7, data)
    assert b"problem" in done.stderr.splitlines()


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["kill -9 $$"], 137, ""),
        (["--timeout", "0.5", "echo begun; sleep 60"], 124, "time limit of 0.5 s"),
        (["no-such-program", "-x"], 127, "intercode: no-such-program: No such"),
        (["--cwd", "/none", "true"], 127, "intercode: /none: No such"),
        (["/etc", "-x"], 126, "intercode: /etc: Permission"),
        (["--limit", "memory=much", "true"], 2, "with K, M or G, unlike 'much'"),
        (["--limit", "memry=1g", "true"], 2, "did you mean 'memory'"),
        (["--file", "/work", "true"], 2, "PATH=LOCAL, unlike '/work'"),
        (["--backend", "no-such-tier", "true"], 2, "no-such-tier"),
        ([], 2, "no command"),
    ],
)
def test_run_has_a_status_for_each_ending(
    words: list[str], status: int, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["sandbox", "run", *words]) == status
    assert message in capfd.readouterr().err


def test_run_uses_its_options(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "given").write_text("from here\n")
    options = ["--file", f"/work={tmp_path}", "--cwd", "/work", "--env", "NAME=a=b"]
    options += ["--limit", "open_files=99", "--timeout", "30"]
    assert main(["sandbox", "run", *options, "cat given; echo $NAME; ulimit -n"]) == 0
    assert capfd.readouterr().out == "from here\na=b\n99\n"


def test_commands_run_as_a_user_of_the_image(capfd: pytest.CaptureFixture[str]) -> None:
    if why := Launcher.get().user_ids_error:
        pytest.skip(f"sandboxes have one user: {why}")
    command = "id -u; tty -s || echo $USER > /tmp/by; ls -l /tmp/by | cut -d' ' -f3"
    assert main(["sandbox", "run", "--user", "nobody", command]) == 0
    assert capfd.readouterr().out == "65534\nnobody\n"
    words = ["--setup", "echo > /root/made", "--user", "1000:2000", "--forks", "1", "id -u; id -g"]
    assert main(["sandbox", "run", *words]) == 0
    assert capfd.readouterr().out.splitlines()[1:] == ["1000", "2000"]
    assert main(["sandbox", "run", "--user", "no-such-user", "true"]) == 2
    assert "no user 'no-such-user'" in capfd.readouterr().err


def test_fork_runs_a_command_in_each_copy(capfd: pytest.CaptureFixture[str]) -> None:
    command = "ls /n*; : > /n.$FORK; test $FORK != 2"
    assert main(["sandbox", "run", "--setup", "seq 5 > /n", "--forks", "3", "--", command]) == 1
    lines = capfd.readouterr().out.splitlines()
    assert lines[1::2] == ["/n"] * 3  # no copy sees the file of another
    assert [line.partition(",")[0] for line in lines[::2]] == [
        f"== fork {number}: exit status {int(number == 2)}" for number in (1, 2, 3)
    ]
    for forks in ([], ["--forks", "2"]):
        assert main(["sandbox", "run", "--setup", "exit 4", *forks, "true"]) == 1
        assert "set-up command failed: exit status 4" in capfd.readouterr().err
    assert main(["sandbox", "run", "--setup", "echo set > /n", "cat /n"]) == 0
    assert capfd.readouterr().out == "set\n"
    for option in (["--forks", "2"], ["--timeout", "2"]):
        assert main(["sandbox", "run", "--terminal", *option, "true"]) == 2
        assert "--terminal" in capfd.readouterr().err


def read_until(terminal: int, expected: bytes, seconds: float = 30.0) -> bytes:
    data, deadline = b"", time.monotonic() + seconds
    while expected not in data and time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.5)[0]:
            data += os.read(terminal, 4096)
    assert expected in data
    return data


def test_shell_has_the_window_size_and_control_keys_and_restores_the_terminal() -> None:
    master, slave = pty.openpty()
    try:
        before = termios.tcgetattr(slave)
        termios.tcsetwinsize(slave, (33, 99))
        command = [sys.executable, "-m", "intercode", "sandbox", "run", "--terminal"]
        process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0) and None,
        )
        os.write(master, b"stty size\n")
        read_until(master, b"33 99")
        termios.tcsetwinsize(master, (40, 120))
        # a shell that waited for stty would take an early interrupt for that of stty, and go on
        os.write(master, b"sh -c 'stty size </dev/tty & exec sleep 60'\n")
        read_until(master, b"40 120")
        os.write(master, b"\x03")  # ends sleep, and neither the shell nor the command line
        os.write(master, b"echo after=$?; exit 5\n")
        read_until(master, b"after=130")
        assert process.wait(30) == 5
        assert termios.tcgetattr(slave) == before
    finally:
        os.close(master)
        os.close(slave)


@pytest.mark.parametrize("words", [["run", "--terminal"], ["attach", "/nowhere"]])
def test_a_shell_without_a_terminal_is_refused(words: list[str]) -> None:
    done = run_cli(*words)
    assert done.returncode == 2
    assert b"a shell needs a terminal" in done.stderr


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_terminals_attach_to_a_live_sandbox_until_it_ends() -> None:
    def attach() -> tuple[int, int]:
        pid, terminal = pty.fork()
        if pid == 0:
            termios.tcsetwinsize(0, (33, 99))
            os.execv(words[0], words)
        return pid, terminal

    sandbox = Sandbox("host", files={"/work/note": "here\n"})
    with sandbox, TerminalServer(sandbox, cwd="/work") as server:
        words = shlex.split(server.command)
        pid, terminal = attach()
        os.write(terminal, b"stty size; cat note; exit\n")
        read_until(terminal, b"33 99\r\nhere")
        assert os.waitpid(pid, 0)[1] == 0  # with the shell
        os.close(terminal)
        pid, terminal = attach()
        os.write(terminal, b"echo $((6 * 7))\n")
        read_until(terminal, b"42")
    assert os.waitpid(pid, 0)[1] == 0  # with the sandbox
    os.close(terminal)
    pid, terminal = attach()
    read_until(terminal, b"no live sandbox serves shells at")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 2
    os.close(terminal)


def test_a_directory_with_a_long_name_for_temporary_files_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (long := tmp_path / ("x" * 100)).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    with Sandbox("host") as sandbox, pytest.raises(SandboxError, match="set TMPDIR to"):
        TerminalServer(sandbox)


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A directory whose name leaves room for that of a socket."""
    with tempfile.TemporaryDirectory(prefix="t") as name:
        yield Path(name)


def test_directories_of_killed_processes_are_removed(
    short_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(short_path))

    def make(name: str, age: float, listens: bool = False) -> socket.socket:
        directory = short_path / f"intercode-terminal-{name}"
        directory.mkdir()
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(directory / "socket"))
        if listens:
            listener.listen()
        else:
            listener.close()
        os.utime(directory, (time.time() - age,) * 2)
        return listener

    make("left", 3600)
    make("starts", 1)
    live = make("live", 3600, listens=True)
    (short_path / "intercode-terminal-empty").mkdir()
    os.utime(short_path / "intercode-terminal-empty", (1e9, 1e9))
    (short_path / "kept" / "a").mkdir(parents=True)
    (short_path / "intercode-terminal-link").symlink_to(short_path / "kept")
    with Sandbox("host") as sandbox, TerminalServer(sandbox) as server:
        left = set(os.listdir(short_path)) - {Path(server.path).parent.name}
    live.close()
    names = {f"intercode-terminal-{name}" for name in ("starts", "live", "link")}
    assert left == {"kept", *names} and os.listdir(short_path / "kept") == ["a"]


def test_live_sandboxes_are_listed_and_can_be_ended(capfd: pytest.CaptureFixture[str]) -> None:
    def listed() -> list[dict[str, object]]:
        capfd.readouterr()
        assert main(["sandbox", "list", "--json"]) == 0
        return [one for one in json.loads(capfd.readouterr().out) if one["owner"] == os.getpid()]

    before = len(listed())
    with Sandbox("host") as sandbox:
        sandbox.spawn(["sleep", "60"])
        [live] = listed()[before:]
        assert (live["image"], live["tier"]) == ("host", sandbox.tier)
        assert live["memory"] and live["pid"] != os.getpid()
        assert main(["sandbox", "end", str(os.getpid())]) == 2  # not a sandbox
        assert main(["sandbox", "end", str(live["pid"])]) == 0
        eventually(lambda: sandbox.is_lost, "the sandbox is lost")
        with pytest.raises(SandboxLostError):
            sandbox.run("true")
        assert len(listed()) == before
    with Sandbox("host"):
        assert len(listed()) == before + 1
    assert len(listed()) == before
