"""One bash for a whole episode: what carries over, and which damage an action can do."""

from __future__ import annotations

import re

import pytest

from intercode.sessions.bash.persistent import BashSession
from intercode_sandbox.contract import BaseSandbox
from support.sandboxes import PATIENCE, open_test_sandbox
from support.time_limits import limit_at

pytestmark = pytest.mark.sandbox


@pytest.fixture
def shell(sandbox: BaseSandbox) -> BashSession:
    return BashSession(sandbox)


def out(shell: BashSession, code: str) -> str:
    """Return the output of an action that must not time out."""
    result = shell.run(code, 60)
    assert not result.timed_out
    return result.output


@pytest.mark.parametrize(
    ("first", "then", "expected"),
    [
        ("x=1; export y=2", "echo $x; printenv y", "1\n2\n"),
        ("f() { echo in-$1; }", "f 3", "in-3\n"),
        ("a=(1 '2 3'); declare -A m=([k]=v)", "echo ${#a[@]} ${m[k]}", "2 v\n"),
        ("cd /usr/lib", "pwd; cd - >/dev/null; pwd", "/usr/lib\n/\n"),
        ("shopt -s nullglob", "echo /no*such", "\n"),
        ("set -- p q", "echo $2", "q\n"),
        ("umask 077", "touch /tmp/f; stat -c %a /tmp/f", "600\n"),
        ("exec 5>/tmp/five", "echo to-five >&5; cat /tmp/five", "to-five\n"),
        ("trap 'echo got' USR1", "kill -USR1 $$; echo on", "got\non\n"),
        ("shopt -s expand_aliases; alias hi='echo hello'", "hi", "hello\n"),
    ],
)
def test_what_carries_over(shell: BashSession, first: str, then: str, expected: str) -> None:
    assert out(shell, first) == ""
    assert out(shell, then) == expected


def test_a_variable_of_the_owner_is_not_the_root_that_programs_see() -> None:
    with open_test_sandbox(env={"SANDBOX_ROOT": "/tmp"}) as sandbox:
        session = BashSession(sandbox)
        session.run("mkdir tmp/d; cd tmp/d", 60)
        assert session.cwd == "/tmp/d"
        session.close()


def test_the_exit_status_carries_over(shell: BashSession) -> None:
    assert shell.run("(exit 3)", 60).exit_code == 3
    assert out(shell, "echo $?") == "3\n"


def test_tracing_shows_the_action_only(shell: BashSession) -> None:
    out(shell, "set -x")
    assert re.fullmatch(r"\+ echo hi\nhi\n", out(shell, "echo hi"))
    assert re.fullmatch(r"\+ printf hi\nhi", out(shell, "printf hi"))
    shell.run("false", 60)
    assert re.fullmatch(r"\+ echo 1\n1\n", out(shell, "echo $?"))


def test_the_output_of_a_debug_trap_is_not_part_of_the_state(shell: BashSession) -> None:
    out(shell, "trap 'echo trapped' DEBUG")
    text = shell.state().text
    assert "\ntrapped" not in text and text.endswith("trap -- 'echo trapped' DEBUG\n")
    assert out(shell, "echo on") == "trapped\non\n"
    assert "with the variables" in shell.run("exit", 60).note
    assert out(shell, "echo on") == "trapped\non\n"


def test_background_jobs_survive(shell: BashSession) -> None:
    out(shell, "(until test -e /tmp/go; do sleep 0.02; done; echo went > /tmp/went) & p=$!")
    assert out(shell, "kill -0 $p && touch /tmp/go; wait $p; cat /tmp/went") == "went\n"


def test_a_time_out_leaves_jobs_of_earlier_actions_running(shell: BashSession) -> None:
    for _ in range(10):
        out(shell, "sleep 600 & p=$!")
        with limit_at("begun"):
            assert shell.run("echo begun; sleep 600", PATIENCE).timed_out
        assert out(shell, "kill -0 $p && echo alive") == "alive\n"


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("break", 0),
        ("return 3", (2, 3)),
        ("continue 5", 0),
        ("echo 'open", 2),
        ('echo "open $(', 2),
        ("if true; then", 2),
        ("cat <<E\nabc", 0),
        (")", 2),
        ("while false; do :; done; (exit 9)", 9),
        ("unset IFS; IFS=x", 0),
        ("PATH=; unset HOME", 0),
        ("read line", 1),
        ("exec 0<&-", 0),
        ("echo() { false; }; printf() { false; }; eval() { false; }", 0),
        ("set -u; : $unset_variable", None),
        ("readonly PWD", 0),
    ],
)
def test_actions_that_must_not_end_the_shell(
    shell: BashSession, code: str, status: int | tuple[int, int] | None
) -> None:
    out(shell, "kept=yes")
    result = shell.run(code, 60)
    if status is None:  # bash ends itself, and the variables are lost
        assert "[the shell ended;" in result.observation
    else:
        assert result.exit_code in (status if isinstance(status, tuple) else (status,))
        assert out(shell, "builtin echo $kept") == "yes\n"
    assert out(shell, "builtin echo on") == "on\n"


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("exit 7", 7),
        ("exec true", 0),
        ("exec sh -c 'exit 4'", 4),
        ("kill -9 $$", -9),
        ("set -e; false", 1),
        ("exec 50>&-", 0),
        ("echo forged >&50", None),
        ("cat /dev/zero | head -c 100000 >&50", None),
    ],
)
def test_a_shell_that_ends_is_started_again_where_it_was(
    shell: BashSession, code: str, status: int | None
) -> None:
    out(shell, "cd /usr/lib; x=1")
    result = shell.run(f"echo before; {code}", 60)
    assert result.output.startswith("before\n")
    assert "[the shell ended; a new one was started in /usr/lib" in result.observation
    assert status is None or result.exit_code == status
    state = "1" if "with the variables it had before" in result.note else "unset"
    assert out(shell, "pwd; echo ${x-unset}") == f"/usr/lib\n{state}\n"
    assert shell.cwd == "/usr/lib"


def test_a_new_shell_whose_directory_has_gone_starts_at_the_root(shell: BashSession) -> None:
    out(shell, "mkdir /tmp/d; cd /tmp/d; rmdir /tmp/d")
    shell.run("exit", 60)
    assert out(shell, "pwd") == "/\n"


def test_the_observation_reports_a_shell_that_cannot_restart(shell: BashSession) -> None:
    out(shell, "rm /bin")
    shell.run("exit 3", 60)


def test_a_closed_output_loses_only_its_own_text(shell: BashSession) -> None:
    assert out(shell, "exec 1>&- 2>&-") == ""
    shell.run("echo nobody hears", 60)
    assert "[the shell ended" in shell.run("exit", 60).observation
    assert out(shell, "echo heard") == "heard\n"


def test_a_time_out_keeps_a_shell_with_aliases(shell: BashSession) -> None:
    out(shell, "shopt -s expand_aliases; alias say='echo said' for='echo'")
    for code in ("x=1; echo begun; sleep 600", "echo begun; while :; do :; done"):
        with limit_at("begun"):
            assert shell.run(code, PATIENCE).timed_out
        assert out(shell, "say $x") == "said 1\n"


@pytest.mark.parametrize(
    "code",
    [
        "exec cat /dev/zero >/dev/null",
    ],
)
def test_a_shell_that_does_not_answer_costs_one_time_out(shell: BashSession, code: str) -> None:
    result = shell.run(code, 0.3)
    assert (result.timed_out, result.exit_code) == (True, None)
    assert out(shell, "echo on") == "on\n"


def test_a_time_out_keeps_the_shell_and_what_was_printed(shell: BashSession) -> None:
    out(shell, "cd /usr; x=1")
    with limit_at("before"):
        result = shell.run("x=2; echo before; sleep 600", PATIENCE)
    assert (result.exit_code, result.timed_out) == (None, True)
    assert result.observation == "before\n[killed: over the time limit of 120 s]\n"
    assert out(shell, "echo $x; pwd; jobs") == "2\n/usr\n"


def test_a_time_out_in_a_loop_of_the_shell_keeps_variables(shell: BashSession) -> None:
    out(shell, "x=1")
    with limit_at("begun"):
        assert shell.run("x=2; echo begun; while :; do :; done", PATIENCE).timed_out
    assert out(shell, "echo $x") == "2\n"


@pytest.mark.parametrize("busy", ["sleep 600", "while :; do :; done"])
def test_a_time_out_ends_the_whole_action(shell: BashSession, busy: str) -> None:
    assert shell.run(f"{busy}; : > /tmp/later", 0.3).timed_out
    assert out(shell, "sleep 0.1; ls /tmp") == ""


def test_a_time_out_kills_what_ignores_signals(shell: BashSession) -> None:
    code = "trap '' TERM INT HUP; (trap '' TERM; sleep 601) & setsid sleep 602; sleep 603"
    assert shell.run(code, 0.5).timed_out
    # on lines of their own, because bash may report here which job was killed
    assert "sleep" not in out(shell, "cat /proc/[0-9]*/comm").splitlines()


@pytest.mark.parametrize(
    ("code", "reason"),
    [("echo a\0b", "NUL"), ("echo " + "a" * (4 << 20), "has 4,194,309 characters")],
    ids=["NUL", "too long"],
)
def test_an_action_that_no_shell_is_given(shell: BashSession, code: str, reason: str) -> None:
    result = shell.run(code, 60)
    assert not result.ok and reason in result.output
    assert out(shell, "echo on") == "on\n"


def test_a_long_action(shell: BashSession) -> None:
    text = "a'b\"c\\ $x\n" * 10_000
    assert out(shell, f"wc -c <<'END'\n{text}END") == f"{len(text)}\n"
    assert out(shell, "#" * 100_000 + "\necho on") == "on\n"


def test_unicode_and_bytes(shell: BashSession) -> None:
    assert out(shell, "echo 'ä€🙂'; printf '\\xff'") == "ä€🙂\n\\xff"
    assert out(shell, "cd /tmp; mkdir $'\\xfe\\n'; cd $'\\xfe\\n'; echo on") == "on\n"
    assert shell.cwd == "/tmp/\udcfe\n"
    assert shell.run("exit", 60).note.startswith("[the shell ended")
    assert out(shell, "pwd | od -An -c").split() == [*"/tmp/", "376", "\\n", "\\n"]


def test_half_a_surrogate_pair(shell: BashSession) -> None:
    assert not shell.run("echo \ud83d", 60).timed_out


def test_standard_input_is_empty(shell: BashSession) -> None:
    assert out(shell, "cat; read x; echo $?; python3 -c 'print(repr(input()))' 2>&1 | tail -1") == (
        "1\nEOFError: EOF when reading a line\n"
    )


def test_reading_the_script_breaks_one_action_only(shell: BashSession) -> None:
    """Descriptor 62 is only the action itself; 255 belongs to bash."""
    assert "builtin" not in out(shell, "cat <&62")
    shell.run("cat <&255", 0.3)
    shell.run("read -u 255 -t 0.2 eaten", 0.3)
    assert out(shell, "echo on") == "on\n"


def test_much_output_before_the_end_is_all_there(shell: BashSession) -> None:
    assert out(shell, "seq 100000").count("\n") == 100_000
    clipped = shell.run("seq 1000000", 60)
    assert (
        clipped.omitted_bytes > 5_000_000
        and "\n1000000\n[cut: over the limit" in clipped.observation
    )
    assert out(shell, "yes & echo on").count("on\n") == 1


def test_two_sessions_in_one_sandbox(sandbox: BaseSandbox) -> None:
    a, b = BashSession(sandbox, cwd="/usr"), BashSession(sandbox)
    assert (out(a, "x=1; pwd"), out(b, "echo $x; pwd")) == ("/usr\n", "\n/\n")
    a.close()
    a.close()
    assert out(b, "echo on") == "on\n"


def test_a_session_closes_after_its_sandbox_is_gone(sandbox: BaseSandbox) -> None:
    session = BashSession(sandbox)
    sandbox.close()
    session.close()


def test_the_next_action_does_not_report_jobs_killed_by_a_time_out(shell: BashSession) -> None:
    for _ in range(25):
        late = shell.run("sleep 600 & sleep 600 & sleep 600; echo on", 0.03)
        assert late.timed_out
        assert shell.run("echo next", 60).output == "next\n"
