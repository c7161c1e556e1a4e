"""After any damage to its shell the next action has a shell, and the time limit holds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from intercode.sessions.bash.persistent import BashSession
from intercode.sessions.bash.shell import may_end_shell
from support.sandboxes import open_test_sandbox

pytestmark = pytest.mark.sandbox
_FILL = """python3 -c '
import os, time
while True:
    try:
        if os.fork() == 0: time.sleep(600)
    except OSError:
        open("/tmp/full", "w")
        time.sleep(600)' &
until [ -e /tmp/full ]; do :; done"""


@pytest.fixture
def shell() -> Iterator[BashSession]:
    with open_test_sandbox() as sandbox:
        yield BashSession(sandbox)


@pytest.mark.parametrize("code", ["set -r", "ulimit -n 5", "enable -n .", "x=ulim; ${x}it -n 5"])
def test_a_shell_that_takes_no_action_is_replaced(shell: BashSession, code: str) -> None:
    shell.run("kept=yes", 60)
    shell.run(code, 60)
    shell.run("true", 60)
    assert shell.run("builtin echo on", 60).output == "on\n"


def test_a_failing_action_is_not_mistaken_for_one_that_did_not_run(
    shell: BashSession,
) -> None:
    shell.run("x=1", 60)
    for code in ("false", "grep no-such-name /etc/passwd", "cd /no/such", "bash -c 'cd /no/such'"):
        result = shell.run(code, 60)
        assert (result.exit_code, result.note) == (1, ""), code
    assert shell.run("echo $x", 60).output == "1\n"


def test_a_state_that_hangs_the_shell_that_restores_it_is_given_up(shell: BashSession) -> None:
    shell.run("declare() { sleep 600; }; shopt() { sleep 600; }; x=1", 60)
    assert "without its variables" in shell.run("exit", 3.0).note
    assert shell.run("echo ${x-unset}", 60).output == "unset\n"


def test_a_sandbox_without_room_for_a_process_runs_builtins_at_once(shell: BashSession) -> None:
    """Neither the saved state nor the last exit status needs a process."""
    shell.run(_FILL, 60)
    shell.run("builtin false", 60)
    for code, status in (("builtin echo $?", 0), ("return 3", 3), ("builtin echo $?", 0)):
        result = shell.run(code, 60.0)
        assert (result.timed_out, result.exit_code) == (False, status), result
    assert result.output == "3\n"


def test_garbage_in_the_report_is_ignored(shell: BashSession) -> None:
    shell.run("x=1", 60)
    shell.run("yes >&50 &", 60)
    shell.run("(exit 3)", 60)
    shell.run("echo on", 60)
    assert shell.run("echo on", 60).output == "on\n"


@pytest.mark.parametrize("status", ["²", "1" * 5000, "-1", "256x"])
def test_an_invalid_status(shell: BashSession, status: str) -> None:
    code = f"builtin() {{ command printf '%s %s /\\0' \"$3\" '{status}' >&50; }}"
    shell.run(code, 0.5)
    shell.run("exit", 0.5)
    assert shell.run("command echo on", 60).output == "on\n"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("exec 1>&-", True),
        ("a;exec ls", True),
        ("printf -v PATH x", True),
        ("kill $$", True),
        ("${x:-exec} ls", True),
        (". ./f", True),
        ("find . -exec kill 1 \\;", True),
        ("find . -exec ls {} +", False),
        ("find . -type f -printf '%p'", False),
        ("find\n. f", True),
        ("ls", False),
    ],
)
def test_actions_that_may_end_the_shell_are_known_by_their_words(code: str, expected: bool) -> None:
    assert may_end_shell(code) == expected
