"""A new bash for every action: carried state, damage by an action, separate stderr."""

from __future__ import annotations

import select
from collections.abc import Iterator
from typing import Any

import pytest

import intercode
from intercode.core.errors import UnknownNameError, UsageError
from intercode.core.types import Dataset, Task
from intercode.environments.bash.env import BashEnv
from intercode.evaluation import check_env
from intercode.sessions import check_session
from intercode.sessions.bash import shell as shell_module
from intercode.sessions.bash.fresh import FreshShellSession
from intercode.sessions.bash.persistent import BashSession
from intercode_sandbox.contract import BaseSandbox
from support.sandboxes import PATIENCE, eventually, open_test_sandbox
from support.time_limits import limit_at

pytestmark = pytest.mark.sandbox


@pytest.fixture(scope="module")
def sandbox() -> Iterator[BaseSandbox]:
    with open_test_sandbox() as opened:
        yield opened


@pytest.fixture
def shell(sandbox: BaseSandbox) -> Iterator[FreshShellSession]:
    session = FreshShellSession(sandbox)
    yield session
    session.close()


def out(shell: Any, code: str) -> str:
    result = shell.run(code, 60)
    assert not result.timed_out
    return str(result.output)


@pytest.mark.parametrize("separate_stderr", [False, True])
@pytest.mark.parametrize("carry", [False, True])
def test_the_contract(sandbox: BaseSandbox, carry: bool, separate_stderr: bool) -> None:
    check_session(
        lambda: FreshShellSession(sandbox, carry_state=carry, separate_stderr=separate_stderr)
    )


def test_each_action_has_a_shell_of_its_own_that_knows_what_the_last_one_knew(
    shell: FreshShellSession,
) -> None:
    assert out(shell, "me=$$; x=1; a=(1 'b c'); declare -A m=([k]=v); f() { echo f $1; }") == ""
    assert out(shell, "alias l=true; set -o pipefail; cd /usr; shopt -s nullglob") == ""
    assert out(shell, "set -- p 'q r'") == ""
    assert out(shell, '[ $$ != $me ] && echo "$x ${a[1]} ${m[k]} $2"; f g') == "1 b c v q r\nf g\n"
    assert out(shell, "pwd; alias l; shopt nullglob; set -o | grep pipefail").split() == [
        "/usr",
        "alias",
        "l='true'",
        "nullglob",
        "on",
        "pipefail",
        "on",
    ]
    assert shell.run("(exit 7)", 60).exit_code == 7
    assert shell.cwd == "/usr"


def test_without_carrying_only_the_directory_stays(sandbox: BaseSandbox) -> None:
    shell = FreshShellSession(sandbox, carry_state=False)
    out(shell, "x=1; cd /usr; f() { :; }")
    assert out(shell, 'echo "[$x]"; pwd; type -t f') == "[]\n/usr\n"
    assert shell.state().text == ""


@pytest.mark.parametrize(
    ("action", "status"),
    [
        ("x=2; exit 3", 3),
        ("x=2; exec true", 0),
        ("x=2; kill -9 $$", -9),
        ("x=2; exec 50>&-", None),
        ("set -e; x=2; false", 1),
        ("x=2; logout 2>/dev/null || exit 4", 4),
    ],
)
def test_an_action_that_ends_its_shell_loses_its_own_effects_only(
    shell: FreshShellSession, action: str, status: int | None
) -> None:
    out(shell, "x=1; cd /usr")
    result = shell.run(action, 60)
    assert status is None or result.exit_code == status
    assert result.note.startswith("[the shell ended")
    assert "[the shell" not in result.output and result.observation == result.output + result.note
    assert out(shell, "echo $x; pwd") == "1\n/usr\n"


def test_an_unterminated_quote_ends_with_its_action(shell: FreshShellSession) -> None:
    out(shell, "x=1")
    assert shell.run("echo 'a", 60).exit_code == 2
    assert out(shell, "echo $x") == "1\n"


def test_a_time_out_kills_the_action_and_neither_older_jobs_nor_the_state(
    shell: FreshShellSession, sandbox: BaseSandbox
) -> None:
    out(shell, "x=1; sleep 531 & disown")
    with limit_at("before"):
        result = shell.run("x=2; sleep 532 & echo before; sleep 533", PATIENCE)
    assert result.timed_out and result.output == "before\n" and "time limit" in result.note
    assert out(shell, "echo $x") == "1\n"
    assert [name.split()[0] for name in sandbox.processes()] == ["sleep"]
    sandbox.kill_since(0)


def test_background_jobs_continue_and_print_later(
    shell: FreshShellSession, sandbox: BaseSandbox
) -> None:
    wait = "until [ -e /tmp/print ]; do sleep 0.05; done"
    assert out(shell, f"({wait}; echo late; sleep 600) & echo early") == "early\n"
    sandbox.write("/tmp/print", b"")
    eventually(lambda: "late\n" in out(shell, "true"), "a job's line")
    assert len(shell._job_outputs) <= 2, "what nobody holds any more is not kept"


def test_a_state_goes_from_session_to_session(shell: FreshShellSession, sandbox: Any) -> None:
    out(shell, "x='a b'; cd /usr")
    for kind in (BashSession, FreshShellSession):
        other = kind(sandbox, state=shell.state())
        assert out(other, 'echo "$x"; pwd') == "a b\n/usr\n"
        other.close()


@pytest.mark.parametrize("kind", [BashSession, FreshShellSession])
def test_separate_stderr(sandbox: BaseSandbox, kind: Any) -> None:
    session = kind(sandbox, separate_stderr=True)
    result = session.run("echo out; echo err >&2; printf '\\xff' >&2; echo more", 60)
    assert (result.output, result.stderr, result.observation) == (
        "out\nmore\n",
        "err\n\\xff",
        "out\nmore\nerr\n\\xff",
    )
    much = session.run("for i in {1..40000}; do echo $i; echo $i >&2; done", 60)
    assert much.ok and much.output == much.stderr and much.output.endswith("\n40000\n")
    with limit_at("a"):
        late = session.run("echo a >&2; sleep 60", PATIENCE)
    assert late.timed_out and (late.output, late.stderr) == ("", "a\n")
    assert session.run("true", 60).stderr == ""
    session.run("set -x", 60)
    assert session.run("echo traced", 60).stderr == "+ echo traced\n"
    session.close()
    merged = kind(sandbox)
    assert merged.run("echo a; echo b >&2; echo c", 60).output == "a\nb\nc\n"
    assert merged.run("true", 60).stderr is None
    merged.close()


TASKS = Dataset(
    "mine",
    "bash",
    (
        Task("mine/print", "Print five.", gold="echo five; echo odd >&2"),
        Task("mine/set", "Print x.", gold="echo $x; pwd", cwd="/usr", setup="x=1"),
    ),
)


@pytest.mark.parametrize("session", ["fresh", "fresh-carried"])
def test_the_environment_s_contract(session: str) -> None:
    check_env(intercode.make("bash", dataset=TASKS, session=session))


def test_an_environment_with_fresh_shells() -> None:
    with BashEnv(TASKS, session="fresh-carried", separate_stderr=True) as env:
        assert env.result_metadata()["env_options"] == {
            "session": "fresh-carried",
            "separate_stderr": True,
        }
        env.reset(options={"task": 1})
        observation = env.step("echo $x; pwd; y=2; echo odd >&2; exit")[0]
        assert observation.startswith("1\n/usr\nodd\n[the shell ended")
        assert env.score().success, "neither stderr nor notes are output"
        (other,) = env.fork()
        with other:
            assert other.step("echo $x$y")[0] == "1\n"
            assert other.result_metadata() == env.result_metadata()
    with BashEnv(TASKS, session="fresh") as env:
        env.reset(options={"task": 1})
        assert env.step("echo $x; pwd")[0] == "\n/usr\n"


@pytest.mark.paper
def test_bad_settings() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'fresh'"):
        BashEnv(TASKS, session="frehs")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="has its own session"):
        BashEnv(TASKS, session="fresh", profile="original")


def test_lines_shown_just_before_a_report_are_not_output_of_the_next_action(
    sandbox: BaseSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``poll`` looks at one descriptor after another: it can see a report and miss what the shell
    wrote before it. Here it misses that every time."""

    class Poll:
        def __init__(self) -> None:
            self._poll, self._first = real_poll(), -1

        def register(self, fd: int, events: int) -> None:
            self._first = fd if self._first < 0 else self._first
            self._poll.register(fd, events)

        def unregister(self, fd: int) -> None:
            self._poll.unregister(fd)

        def poll(self, timeout: int | None) -> list[tuple[int, int]]:
            ready = self._poll.poll(timeout)
            later = [(fd, events) for fd, events in ready if fd != self._first]
            return later or ready

    real_poll = select.poll
    monkeypatch.setattr(shell_module.select, "poll", Poll)
    session = FreshShellSession(sandbox)
    assert [session.run(action, 60).output for action in ("set -v; echo a", "echo b")] == [
        "a\n",
        "echo b\nb\n",
    ]


def test_with_set_v_a_shell_shows_no_line_after_its_report(
    sandbox: BaseSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would come too late to be taken out of the output. Bash would show an empty one."""
    shown: list[bytes] = []
    strip = shell_module.Shell._strip_trace

    def record(shell: shell_module.Shell, data: bytes) -> bytes:
        shown.append(data)
        return strip(shell, data)

    monkeypatch.setattr(shell_module.Shell, "_strip_trace", record)
    session = BashSession(sandbox)
    outputs = [session.run(action, 60).output for action in ("shopt -so verbose; echo a", "echo b")]
    assert outputs == ["a\n", "echo b\nb\n"]
    assert b"done\n" in b"".join(shown)
    assert b"\n\n" not in b"".join(shown)
