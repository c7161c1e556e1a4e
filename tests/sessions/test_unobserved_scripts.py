"""Actions see nothing of the scripts that a session runs around them.

The outputs of a session's actions are compared with what one bash prints that reads all actions as
its script, and the directory of a session with the one in which the kernel has its shell.
"""

from __future__ import annotations

import random
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import intercode
from intercode.core.types import Dataset, Task
from intercode.sessions.bash import scripts
from intercode.sessions.bash.fresh import FreshShellSession
from intercode.sessions.bash.persistent import BashSession
from intercode_sandbox.contract import BaseSandbox
from support.sandboxes import PATIENCE, open_test_sandbox
from support.time_limits import limit_at

pytestmark = pytest.mark.sandbox
_SESSIONS = [BashSession, FreshShellSession]
_LONG = "\n#" + "x" * 2000
_SAME_IN_ALL = [
    ["trap 'echo D $BASH_COMMAND' DEBUG", "echo one; echo two", "trap - DEBUG", "echo x"],
    [
        "n=0; trap 'n=$((n+1))' DEBUG",
        "echo $n",
        "cd /usr; echo $n $PWD",
        "false || true",
        "for i in 1 2; do :; done",
        "echo $n",
        "trap -p DEBUG",
        "trap - DEBUG; echo $n",
        "echo $n",
    ],
    ["trap 'echo E $?' ERR", "false", "echo a", "(exit 3)", "set -E", "f() { false; }; f", "trap"],
    ["trap 'echo R' RETURN", "echo a", "f() { :; }; f", "set -T", "f", "trap - RETURN", "echo b"],
    ["trap", "trap -p", "echo a", "trap 'echo bye' EXIT", "trap -p", "trap - EXIT; echo b"],
    [
        "trap 'echo D $BASH_COMMAND' DEBUG; set -T",
        "f() { echo in; }",
        "f",
        "(echo s)",
        "echo $(echo c)",
        "trap -p",
        "set +T",
        "f",
    ],
    [
        "shopt -s extdebug",
        "trap 'echo D; [[ $BASH_COMMAND != echo* ]]' DEBUG",
        "echo no",
        "true",
        "trap - DEBUG",
        "echo yes",
    ],
    [
        "trap 'echo D' DEBUG",
        "cat <<E\nab\nE",
        "case x in x) echo y;; esac",
        "[[ a == a ]]; echo $?",
        "((1)) && echo u",
        "while false; do :; done",
        "{ echo g; }",
        "select x in 1; do :; done",
    ],
    [
        "shopt -s extdebug; trap 'echo D' DEBUG",
        "echo a",
        "trap 'echo E >&2' DEBUG",
        "f() { echo f; }",
        "f",
        "echo b",
        "shopt -u extdebug",
        "trap - DEBUG",
        "echo c",
    ],
    ["set -u; trap 'echo D' DEBUG", "echo ${x-unset}", "set -e", "true; echo a", "false || echo b"],
    ["IFS=0123456789; trap 'echo D' DEBUG", "echo a", "x='1a2'; echo $x"],
    ["readonly LINENO PWD; trap 'echo D' DEBUG", "echo a", "cd /usr; pwd"],
    ["trap 'echo usr' USR1", "kill -USR1 $$; echo a", "trap"],
    ["set -v", "echo a\nprintf b", "false", "set +v", "echo c"],
    ["shopt -so verbose; echo a", "echo b"],
    ["x='trap -p'; $x", "$x", "eval 'echo a; trap'", "f() { trap; }", "f"],
    [
        "echo 'trap -p; trap \"echo D\" DEBUG' > /tmp/s.sh",
        ". /tmp/s.sh",
        "echo a",
        ". /tmp/s.sh",
        "trap - DEBUG",
        "echo b",
        "source /tmp/s.sh" + _LONG,
        "echo c",
    ],
    ["sleep 0.01 & wait $!; echo $?", "jobs", "trap 'echo D' DEBUG", "sleep 0.01 & wait", "jobs"],
    ["trap 'echo D' DEBUG" + _LONG, "echo one; echo two" + _LONG, "trap - DEBUG" + _LONG, "echo x"],
    ["trap $'echo a\\necho \"it\\'s\"' DEBUG", "echo b", "trap -p", "trap - DEBUG"],
    ["POSIXLY_CORRECT=1; trap 'echo D' DEBUG", "echo a", "trap - DEBUG", "echo b"],
    [
        "shopt -s expand_aliases extglob; trap 'echo D' DEBUG",
        "alias b='{ echo'",
        "b in; }",
        "cd /; echo /@(usr|nothing)",
        "trap - DEBUG",
        "echo c",
    ],
    ["set -x", "echo a", "set +x", "echo b"],
    ["set -ex; echo a; set +ex", "set -o xtrace", "f() { echo in; }; f", "set +o xtrace", "echo b"],
    ["shopt -s expand_aliases; alias '{'='echo brace' for='echo F'", "echo a", "cd /usr", "pwd"],
    [
        "shopt -s expand_aliases; alias builtin='echo B' }='echo b' do=x [[=y",
        "echo a; pwd",
        "echo b",
    ],
    [
        "shopt -s expand_aliases; alias e='echo '",
        "e a",
        "e 'b",
        "unalias e",
        "shopt -u expand_aliases",
    ],
    ["shopt -s expand_aliases; alias do=x", "enable -n printf", "echo a; pwd", "printf b"],
    [
        "shopt -s expand_aliases; alias {='echo B' for='echo F' }=x !=x done=x [[=x",
        "trap 'echo D $BASH_COMMAND' DEBUG; set -eT",
        "for a",
        "(exit 1) || cd /usr; pwd",
        "set -x; echo $(echo a)",
        "set +x; unalias -a",
        "for i in b; do { echo $i; }; done",
        "trap - DEBUG",
        "echo b",
    ],
    [
        "shopt -s expand_aliases; trap 'echo D' DEBUG; trap 'echo E' ERR",
        "alias do='echo A'",
        "do a; false",
        "unalias do; alias a='echo A'; unset BASH_ALIASES",
        "a b",
    ],
    ["set -o posix; alias q='echo q'", "q", "q x", "set +o posix", "echo b"],
    ["enable -n builtin printf . trap :", "echo a", "x=1; cd /usr", "echo $x $PWD", "printf b"],
    ["builtin() { :; }; x=5; cd /usr", "pwd; echo $x", "unset -f builtin; echo b", "set -u", "pwd"],
    ['builtin() { command builtin "$@"; }', "exit() { echo no; }", "exit", "(exit 3) || echo $?"],
    ["declare -F; alias; jobs; history", "compgen -v __", "echo a", "declare -F; compgen -v __"],
    ["ls /proc/self/fd | wc -l", "sh -c 'ls /proc/self/fd | wc -l'", "echo <(true)"],
    ["echo x >&63", "exec 63>TMP/f; echo x >&63", "echo y; cat TMP/f; exec 63>&-", "cat <(echo b)"],
    ["exec() { echo EX; }; exec a", "echo b", "unset -f exec; echo c"],
    ["BASH_XTRACEFD=1; set -x", "echo a", "set +x", "echo b"],
    ["shopt -s expand_aliases; alias for=x", "unset BASH_ALIASES", "cd /usr; pwd", "echo a; false"],
]
_SAME_IN_ONE_SHELL = [
    [
        "readonly __last=a __options=b __statuses=c; declare -i __state; __status() { echo f; }",
        "readonly -f __status; shopt -s expand_aliases; alias q='echo Q'",
        "q a",
        "(exit 5)",
        "echo $? $__last $__options $__statuses; __status",
    ],
    [
        "trap 'echo D $BASH_COMMAND' DEBUG",
        "false",
        "echo $?",
        "true",
        "echo $?",
        "echo a b",
        "echo $_",
    ],
    ["trap 'echo D' DEBUG", "false | true | false", "echo ${PIPESTATUS[@]}"],
    [
        "shopt -s expand_aliases; alias {=x for=x",
        "trap 'echo D' DEBUG",
        "false | true | (exit 5)",
        "echo $? ${PIPESTATUS[@]} a b",
        "echo $?",
        "echo $_",
    ],
    ["set -v", "false", "echo $?", "(exit 9)", "echo $?"],
    ["set -x", "false", "echo $?", "(exit 9)", "echo $?"],
    ["x=7; declare -i _", "true x", "echo $_ $x", "true 5", "echo $_", "echo a"],
    ["true a b; x=_", "echo ${!x}", "true q", "declare -p _", "set | grep -a ^_"],
    ["exec 9>TMP/f; BASH_XTRACEFD=9; set -x", "echo a", "f() { echo in; }", "f", "cat TMP/f"],
    ["exec {a}>/dev/null; echo $a", "exec {b}>/dev/null; echo $b"],
]
_WORDS = [
    "a",
    "b c",
    "'x y'",
    '"q $?"',
    "$HOME",
    "*.none",
    "--",
    "''",
    "/tmp",
    "$'n\\tl'",
    "it\\'s",
    "${#HOME}",
    "$(echo sub)",
    "{1..2}",
]
_COMMANDS = [
    "echo %s",
    "true %s",
    "false %s",
    "test -n %s",
    "x=1",
    "y=$(echo z)",
    "(exit 7)",
    "[[ a == b ]]",
    "((0))",
    "! true %s",
    "f %s",
    "cd /tmp",
    "{ echo %s; }",
    "sh -c 'exit 3'",
    "x=2 true %s",
    "for i in %s; do echo $i; done",
    "if true; then false %s; fi",
    "unset x",
    "set -o pipefail",
    "set +o pipefail",
    "shopt -s nullglob",
    "cat > /dev/null <<E",
    "case a in a) false;; esac",
]
_READERS = [
    'echo "[$_] ${PIPESTATUS[@]} $?"',
    'echo "[$_]" $?',
    'echo "${PIPESTATUS[*]}" "[$_]"',
    "echo $? ${PIPESTATUS[@]}",
    "echo ${_}",
    'echo "${PIPESTATUS[0]} [$_]" | cat',
    "# it's",
    "  ",
    'f() { echo "in f $_"; return ${1:+5}; }; true defined',
]
_STACK_OF_CALLS = [
    [
        "f() { caller 0 | cut -d ' ' -f 2; caller 1 >/dev/null; echo $?; }",
        "f",
        "g() { f; }; g",
        "caller >/dev/null; echo $?",
    ],
    [
        "f() { echo ${#FUNCNAME[@]} ${#BASH_SOURCE[@]} ${#BASH_LINENO[@]}; }; f",
        "f",
        "echo on; f",
        "echo ${FUNCNAME[@]} ${#BASH_SOURCE[@]}",
    ],
]

_HISTORY = [
    [
        "set -o history",
        "echo a",
        "false",
        "history",
        "echo $?",
        "history 2",
        "history -c",
        "history",
    ],
    ["set -o history\nhistory", "for i in 1 2\ndo echo $i\ndone", "history; fc -l"],
    ["set -o history; set -H", "echo a", "echo !!", "!ec", "!none", "fc -l", "history"],
    ["set -o history", "HISTCONTROL=ignoreboth", "echo a", "echo a", " echo hidden", "history"],
    [
        "set -o history",
        "HISTIGNORE='*'",
        "echo a",
        "history",
        "HISTIGNORE='ls*'",
        "ls /dev/null",
        "echo b",
        "history",
    ],
    ["set -o history; HISTIGNORE='[{]*'", "echo a", "history", "unset HISTIGNORE", "history"],
    ["set -o history", "HISTSIZE=3", "echo a", "echo b", "history", "echo c", "history"],
    ["set -o history", "history -s a b", "history -d 1", "fc -s a=x echo; history"],
    [
        "set -o history",
        "cat <<E\nx\nE",
        "x='a\nb'; echo \"$x\"",
        "shopt -u cmdhist",
        "history",
        "for i in 1\ndo echo $i\ndone",
        "shopt -s cmdhist lithist",
        "if :\nthen echo\nfi",
        "history",
    ],
    [
        "set -o history",
        "eval 'echo a'",
        "trap 'echo E' ERR",
        "false",
        "trap",
        "trap - ERR",
        "history",
    ],
    ["mkdir -p TMP; echo 'set -o history; HISTIGNORE=x' > TMP/s", ". TMP/s", "echo a", "history"],
    ["set -o history", "set +o history", "echo a", "shopt -so history", "echo b", "history"],
    [
        "set -o history",
        "echo $HISTCMD",
        "true a b",
        "echo $_ $HISTCMD",
        "false | true | false",
        "echo ${PIPESTATUS[@]} $?",
        "true 'a\nb!c'",
        'echo "$_"',
        "(exit 5)",
        "echo $?",
        "history",
    ],
    [
        "set -o history; mkdir -p TMP",
        "HISTFILE=TMP/f",
        "echo a",
        "history -a; cat TMP/f",
        "history -w; cat TMP/f",
        "echo b",
        "history -a; cat TMP/f",
    ],
    [
        "set -o history",
        "HISTTIMEFORMAT='%Y'; history | wc -l",
        "x=1\n\n# no\necho $x",
        "  ",
        "# c",
        "HISTTIMEFORMAT=; history",
    ],
    [
        "set -o history",
        "set -v",
        "echo a",
        "history",
        "set +v",
        "set -x",
        "history",
        "set +x",
        "history",
    ],
    [
        "set -o history; set -e",
        "f() { history; }",
        "f",
        "shopt -s expand_aliases",
        "alias h=history",
        "h",
    ],
    ["set -o posix", "set -o history", "echo a", "history"],
    ["set -o history; shopt -s expand_aliases; alias for='echo F'", "for a", "echo b", "history"],
    [
        "set -o history; shopt -s expand_aliases",
        "alias {='echo B' if='echo I' [[=x !=y builtin=z",
        "x='a b'; echo $x",
        "(exit 4)",
        "echo $?",
        "cat <<E\nh\nE",
        "unset BASH_ALIASES",
        "cd /usr; pwd",
        "unalias -a; alias",
        "for i in 1; do echo $i; done",
        "history",
    ],
]


def run_in_bash(actions: list[str], *arguments: str) -> str:
    """Return what one bash prints that reads the actions as its script, from a pipe. It ignores no
    signal, however the tests were started. ``arguments``: where it finds the script."""
    script = "".join(f"{action}\n" for action in actions)
    return subprocess.run(
        ["env", "--default-signal", "/bin/bash", "--norc", "--noprofile", *arguments],
        input=script,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd="/",
        env={"PATH": "/usr/bin:/bin", "HOME": "/root"},
        check=False,
    ).stdout


def outputs(session: Any, actions: list[str]) -> str:
    results = [session.run(action, 60) for action in actions]
    assert not [r.note for r in results if r.note]
    return "".join(r.output for r in results)


def without_line_numbers(text: str) -> str:
    return re.sub(r"^\S+: line \d+: ", "", text, flags=re.MULTILINE)


@pytest.mark.parametrize("actions", _SAME_IN_ALL, ids=lambda actions: actions[0][:40])
@pytest.mark.parametrize("kind", _SESSIONS)
def test_a_session_prints_what_one_bash_prints(
    sandbox: BaseSandbox, kind: Any, actions: list[str], tmp_path: Path
) -> None:
    actions = [action.replace("TMP", str(tmp_path)) for action in actions]
    outputs(kind(sandbox), [f"mkdir -p {tmp_path}"])
    assert without_line_numbers(outputs(kind(sandbox), actions)) == without_line_numbers(
        run_in_bash(actions)
    )


@pytest.mark.parametrize("actions", _SAME_IN_ONE_SHELL, ids=lambda actions: actions[0][:40])
def test_a_persistent_shell_keeps_the_last_status_word_and_statuses_of_a_pipeline(
    sandbox: BaseSandbox, actions: list[str], tmp_path: Path
) -> None:
    actions = [action.replace("TMP", str(tmp_path)) for action in actions]
    outputs(BashSession(sandbox), [f"mkdir -p {tmp_path}"])
    assert outputs(BashSession(sandbox), actions) == run_in_bash(actions)


@pytest.mark.parametrize("actions", _HISTORY, ids=lambda actions: actions[1][:40])
def test_the_history_lists_the_actions_and_no_line_of_the_session(
    sandbox: BaseSandbox, actions: list[str], tmp_path: Path
) -> None:
    actions = [action.replace("TMP", str(tmp_path)) for action in actions]
    expected = without_line_numbers(run_in_bash(actions))
    assert without_line_numbers(outputs(BashSession(sandbox), actions)) == expected


def test_the_history_outlives_a_time_out_and_is_saved_at_the_end_of_its_shell(
    sandbox: BaseSandbox,
) -> None:
    session = BashSession(sandbox)
    outputs(session, ["set -o history; HISTFILE=/tmp/list", "echo a"])
    endless = "echo begun; while :; do :; done"
    with limit_at("begun"):
        assert session.run(endless, PATIENCE).timed_out
    assert outputs(session, ["history"]) == f"    1  echo a\n    2  {endless}\n    3  history\n"
    assert "the shell ended" in session.run("exit", 60).note
    expected = f"echo a\n{endless}\nhistory\nexit\n"
    assert outputs(session, ["cat /tmp/list"]) == expected
    assert (
        outputs(session, ["history 3"]) == "    4  exit\n    5  cat /tmp/list\n    6  history 3\n"
    )


@pytest.mark.parametrize("kind", _SESSIONS)
def test_a_restored_shell_lists_no_line_of_the_session(sandbox: BaseSandbox, kind: Any) -> None:
    session = BashSession(sandbox)
    outputs(session, ["set -o history"])
    assert outputs(kind(sandbox, state=session.state()), ["history"]) == "    1  history\n"


@pytest.mark.parametrize("option", ["-o", "+o"])
def test_parameters_that_end_like_an_option_are_restored(sandbox: BaseSandbox, option: str) -> None:
    session = BashSession(sandbox)
    outputs(session, [f"set {option} history; set -- set -o history"])
    restored = BashSession(sandbox, state=session.state())
    expected = f"3 set history\nset {option} history\n"
    assert outputs(restored, ["echo $# $1 $3; set +o | grep history"]) == expected


def random_actions(seed: int) -> list[str]:
    """Return actions that leave and read ``$?``, ``$_`` and ``PIPESTATUS``."""
    chosen = random.Random(seed)

    def command() -> str:
        words = " ".join(chosen.choice(_WORDS) for _ in range(chosen.randrange(1, 3)))
        return chosen.choice(_COMMANDS).replace("%s", words)

    def action() -> str:
        kind = chosen.random()
        if kind < 0.45:
            return chosen.choice(_READERS)
        if kind < 0.6:  # whatever the first ones print is lost, so that none gets SIGPIPE
            first = " | ".join(f"{{ {command()}; }} >/dev/null" for _ in range(2))
            return f"{first} | (exit 4)" if "<<" not in first else "true | false"
        code = command()
        return f"{code}\ntext\nE" if "<<" in code else f"{code}{chosen.choice(['', ' || false'])}"

    return ["true start", *(action() for _ in range(12))]


@pytest.mark.parametrize("seed", range(8))
def test_actions_read_what_the_last_command_of_the_action_before_left(
    sandbox: BaseSandbox, seed: int
) -> None:
    actions = random_actions(seed)
    expected = without_line_numbers(run_in_bash(actions))
    assert without_line_numbers(outputs(BashSession(sandbox), actions)) == expected, actions


def test_the_last_word_outlives_actions_that_do_not_read_it(sandbox: BaseSandbox) -> None:
    actions = ["true | false", "mkdir -p /tmp/made", "(exit 3)", "  # nothing", "echo $_"]
    assert outputs(BashSession(sandbox), actions) == "/tmp/made\n"
    actions = [
        "true one two",
        "trap 'echo D' DEBUG; echo $_",
        "trap - DEBUG",
        "false | true",
        "(echo ${PIPESTATUS[@]})",
        "echo ${PIPESTATUS[@]}",
    ]
    assert outputs(BashSession(sandbox), actions) == run_in_bash(actions)


@pytest.mark.parametrize(
    ("code", "status", "printed"),
    [
        ("readonly r=1; echo a; r=2; echo no", 1, "a\n"),
        ("echo a; shopt -s failglob\necho *.none; echo no", 1, "a\n"),
        ("echo a\nls ;; x\necho no", 2, "a\n"),
        ("echo a; return 4; echo no", 4, "a\n"),
        ('echo a\necho "open $(', 2, "a\n"),
        ("trap ': D' DEBUG\necho 'open", 2, ""),
        ("shopt -s expand_aliases; alias {=x\necho 'open", 2, ""),
        ("echo a\ncat <<E\nbody", 0, "a\nbody\n"),
        ("echo a; set -e; (exit 3)", None, "a\n"),
    ],
)
def test_an_action_that_ends_early_is_reported(
    sandbox: BaseSandbox, code: str, status: int | None, printed: str
) -> None:
    session = BashSession(sandbox)
    session.run("x=kept", 60)
    result = session.run(code, 60)
    assert "".join(re.findall(r"^\w+\n", result.output, re.MULTILINE)) == printed
    if status is None:
        assert result.note.startswith("[the shell ended")
        return
    assert (result.exit_code, result.note) == (status, "")
    assert session.run("echo $x; true | (exit 5)", 60).output == "kept\n"
    assert session.run("echo ${PIPESTATUS[@]} $?", 60).output == "0 5 5\n"


@pytest.mark.parametrize("session_class", _SESSIONS)
@pytest.mark.parametrize("option", ["s", "u"])
@pytest.mark.parametrize("trap", ["", "trap 'echo D' DEBUG; set -o history; "])
def test_a_state_changes_no_text_of_the_agent(
    sandbox: BaseSandbox, session_class: Any, option: str, trap: str
) -> None:
    other = "s" if option == "u" else "u"
    text = f"\nshopt -{other} expand_aliases\numask 0022\nset --\n"
    session = session_class(sandbox)
    session.run(f"f() {{ cat <<E{text}E\n}}; g() {{ :{text}}}; h() {{ echo '{text}'; }}", 60)
    session.run(f"x='{text}'; set -- '{text}'; alias l='{text}' hi='echo hello'", 60)
    session.run(f"trap 'true {text}' EXIT; shopt -{option} expand_aliases; {trap}", 60)
    shown = 'declare -f f g h; declare -p x; alias; trap; shopt expand_aliases; printf %q "$1"'
    outputs = []
    for _ in range(3):
        outputs.append(session.run(shown, 60).output)
        outputs.append(session.run("hi", 60).output)
        session = session_class(sandbox, state=session.state())
    assert outputs[:2] == outputs[2:4] == outputs[4:]
    assert outputs[0].count(text) == 4
    assert ("hello" in outputs[1]) == (option == "s")


@pytest.mark.parametrize(
    "code",
    [
        "echo a; set -n",
        "echo a\nset -o noexec; echo b",
        "echo a; f",
        "echo a; n=n; set -$n",
        "trap 'set -n' USR1; echo a; kill -USR1 $$",
    ],
)
@pytest.mark.parametrize("kind", _SESSIONS)
def test_a_shell_that_runs_nothing_more_is_replaced_at_once(
    sandbox: BaseSandbox, kind: Any, code: str
) -> None:
    session = kind(sandbox)
    outputs(session, ["x=1", "echo 'set -n'; y=2", "f() { set -o noexec; }"])
    result = session.run(code, 600)
    assert (result.output, result.exit_code) == ("a\n", 0)
    assert result.note.startswith("[the shell ended")
    assert outputs(session, ["echo $x $y"]) == "1 2\n"


def test_an_action_is_run_by_a_new_shell_if_the_one_before_takes_none(sandbox: BaseSandbox) -> None:
    session = BashSession(sandbox)
    outputs(session, ["x=1", "enable -n enable builtin unset"])
    result = session.run("echo $x a", 60)
    assert (result.output, result.exit_code) == ("1 a\n", 0)
    assert result.note.startswith("[the shell ended; a new one was started in /, with")


@pytest.mark.parametrize("code", ["__trace=5", "declare -n __trace=X; X=5", "readonly __trace=5"])
def test_a_shell_that_traces_elsewhere_keeps_all_variables(sandbox: BaseSandbox, code: str) -> None:
    session = BashSession(sandbox)
    outputs(session, [f"{code}; BASH_XTRACEFD=2"])
    session.run("exit 1", 60)
    assert outputs(session, ["echo $__trace $BASH_XTRACEFD; echo $X"]).split()[:2] == ["5", "2"]


def test_errexit_of_an_earlier_action_ends_the_shell(sandbox: BaseSandbox) -> None:
    session = BashSession(sandbox)
    session.run("set -e", 60)
    result = session.run("false; echo no", 60)
    assert result.output == ""
    assert result.note.startswith("[the shell ended")


@pytest.mark.parametrize("actions", _STACK_OF_CALLS, ids=["caller", "variables"])
@pytest.mark.parametrize("kind", _SESSIONS)
def test_the_stack_of_calls_is_that_of_a_script(
    sandbox: BaseSandbox, kind: Any, actions: list[str]
) -> None:
    given = without_line_numbers(outputs(kind(sandbox), actions))
    assert given == without_line_numbers(run_in_bash(actions, "/dev/stdin"))


@pytest.mark.parametrize(
    "code",
    [
        "return 3",
        "break",
        "no-such-program",
        "echo $LINENO\necho $LINENO",
        "echo ${BASH_SOURCE[@]}",
        "echo 'open",
        "if true; then",
        ")",
        "x=$((1/0))",
        "local x",
        "caller | wc -l",
        "echo $0 $#",
        "echo ${FUNCNAME[@]}",
        "cat <&62 | wc -l",
        "echo $BASH_COMMAND",
    ],
)
@pytest.mark.parametrize("kind", _SESSIONS)
def test_a_long_action_behaves_like_a_short_one(sandbox: BaseSandbox, kind: Any, code: str) -> None:
    session = kind(sandbox)
    pad = ":\n" * 1000 if code[0] not in "'i)" else ""
    short, long = session.run(code, 60), session.run(code + _LONG, 60)
    assert (long.output, long.exit_code) == (
        re.sub(r"line 2: (?=syntax)", "line 3: ", short.output),
        short.exit_code,
    ) or "62" in code
    assert not pad or session.run(pad + code, 60).exit_code == short.exit_code


def test_a_shell_with_traps_is_restored_and_copied_with_them(sandbox: BaseSandbox) -> None:
    session = BashSession(sandbox)
    outputs(session, ["n=0; x=1; trap 'n=$((n+1))' DEBUG; trap 'echo bye' EXIT"])
    assert session.run("exit", 60).output == "bye\n"
    assert outputs(session, ["echo $x", "trap -p"]).count("trap -- ") == 2
    for kind in _SESSIONS:
        copy = kind(sandbox, state=session.state())
        before = int(outputs(copy, ["echo $n"]))
        assert int(outputs(copy, ["true; true; echo $n"])) == before + 3
        assert "RTMAX" not in outputs(copy, ["trap"])


def test_a_time_out_with_traps_gives_the_variables_from_before(sandbox: BaseSandbox) -> None:
    session = BashSession(sandbox)
    outputs(session, ["x=1; trap 'echo D' DEBUG"])
    late = session.run("x=2; while :; do :; done", 1.0)
    assert late.timed_out and "with the variables it had before" in late.note
    assert outputs(session, ["echo $x"]) == "D\n1\n"


def test_a_shell_that_lists_traps_once_is_interrupted_as_before(sandbox: BaseSandbox) -> None:
    session = BashSession(sandbox)
    assert outputs(session, ["x=1; trap -p"]) == ""
    with limit_at("begun"):
        assert session.run("x=2; echo begun; while :; do :; done", PATIENCE).timed_out
    assert outputs(session, ["echo $x", "trap"]) == "2\n"


@pytest.mark.parametrize("kind", ["persistent", "fresh", "fresh-carried"])
def test_snapshots_and_forks_of_an_environment_see_no_more(kind: str) -> None:
    tasks = Dataset("mine", "bash", (Task("mine/one", "Print one.", gold="echo one"),))
    with intercode.make("bash", dataset=tasks, session=kind, max_turns=20) as env:
        env.reset()
        assert env.step("trap 'echo D $BASH_COMMAND' DEBUG; trap")[0].count("trap --") == 1
        expected = "one\n" if kind == "fresh" else "D echo one\none\n"
        assert env.step("echo one")[0] == expected
        saved = env.snapshot()
        (copy,) = env.fork()
        with copy:
            assert copy.step("echo one")[0] == expected
        assert env.step("trap - DEBUG")[0] == ("" if kind == "fresh" else "D trap - DEBUG\n")
        assert env.step("echo one")[0] == "one\n"
        env.restore(saved)
        assert env.step("echo one")[0] == expected


@pytest.mark.parametrize("kind", _SESSIONS)
@pytest.mark.parametrize(
    ("actions", "directory"),
    [
        (["mkdir /tmp/d; cd /tmp/d", "rmdir /tmp/d", "exit"], "/"),
        (["mkdir /tmp/d; cd /tmp/d; rmdir /tmp/d; exit"], "/"),
        (["mkdir /tmp/d; cd /tmp/d; mv /tmp/d /tmp/e"], "/tmp/e"),
        (["mkdir /tmp/d; cd /tmp/d; mv /tmp/d /tmp/e", "exit"], "/tmp/e"),
        (["cd /usr; PWD=/lost"], "/usr"),
        (["cd /usr; PWD=lost", "exit"], "/usr"),
        (["cd /usr; unset PWD"], "/usr"),
        (["readonly PWD; cd /usr"], "/usr"),
        (["mkdir -p /tmp/p/q; cd /tmp/p/q; rm -r /tmp/p", "exit"], "/"),
        (["trap 'echo D' DEBUG; cd /usr; PWD=/lost"], "/usr"),
    ],
)
def test_the_directory_is_the_one_in_which_the_kernel_has_the_shell(
    sandbox: BaseSandbox, kind: Any, actions: list[str], directory: str
) -> None:
    session = kind(sandbox)
    for action in actions:
        result = session.run(action, 60)
    if "exit" in actions[-1]:
        assert kind is FreshShellSession or f"started in {directory}," in result.note
        session.run("true", 60)
        assert session.run("echo $PWD", 60).output == f"{directory}\n"
    assert session.cwd == directory
    shown = session.run("readlink /proc/self/cwd", 60).output.splitlines()[-1]
    assert shown == session.cwd == directory


def test_a_link_in_the_directory_s_name_stays(sandbox: BaseSandbox) -> None:
    session = BashSession(sandbox)
    session.run("mkdir /tmp/a; ln -s /tmp/a /tmp/l; cd /tmp/l", 60)
    assert session.cwd == "/tmp/l"
    assert "started in /tmp/l" in session.run("exit", 60).note
    assert outputs(session, ["pwd; echo $PWD"]) == "/tmp/l\n/tmp/l\n"


@pytest.mark.parametrize("trap", [":", "trap 'echo D >&9' DEBUG"])
def test_leaving_a_deleted_directory_keeps_the_shell(sandbox: BaseSandbox, trap: str) -> None:
    session = BashSession(sandbox)
    outputs(session, [f"exec 9>/dev/null; {trap}; x=1; mkdir /tmp/d; cd /tmp/d; rmdir /tmp/d"])
    assert session.cwd == "/tmp/d"
    assert session.run("pwd -P; cd ..", 60).note == ""
    assert session.cwd == "/tmp"
    assert outputs(session, ["echo $x; /bin/pwd"]) == "1\n/tmp\n"


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ("T 3 a:b  /dT1\0", scripts.ActionReport(3, frozenset("ab"), "/d", True, (), "''")),
        (
            "T 3 a:b ,0,3 /d\nTx 0\0",
            scripts.ActionReport(3, frozenset("ab"), "/d\n", False, (0, 3), "'x '"),
        ),
        ("T 3 a:b  ..T1\0", scripts.ActionReport(3, frozenset("ab"), "..", False, (), "''")),
        ("T 3 a:b  T0\0", scripts.ActionReport(3, frozenset("ab"), "/", False, (), "''")),
        (
            "bash: 1: /dev/null/T 0 a ,0 ,1 /d x/Ta'bT: Not\n",
            scripts.ActionReport(0, frozenset("a"), "/d x", None, (0, 1), "'a'\\''b'"),
        ),
        ("forged T 3 a:b  /dT1\0", None),
        ("T 3 a:b  /d1\0", None),
        ("T 256 a  /dT1\0", None),
        ("T x a  /dT1\0", None),
        ("3 a  /dT1\0", None),
    ],
)
def test_reports(record: str, expected: scripts.ActionReport | None) -> None:
    assert scripts.parse_report(record, "T") == expected


def test_the_debug_trap_of_a_state_is_found_whatever_it_says() -> None:
    state = "x=1\ntrap -- 'a' SIGINT\n"
    for text in ("echo", "it'\\''s", "a' SIGINT", "trap -- b"):
        trap = f"trap -- {scripts.quote(text)} DEBUG\n"
        assert scripts.split_debug_trap(state + trap) == (state, trap)
    assert scripts.split_debug_trap(state) == (state, "")


@pytest.mark.parametrize("line", ["", "umask 1\nset --\ntrap -- '"])
def test_the_option_of_aliases_is_found_behind_any_number_of_lines_like_it(line: str) -> None:
    own = f"shopt -s expand_aliases\n{line}\n" * 40_000
    end = "shopt -u autocd\nshopt -u expand_aliases\numask 0022\nset -- a\nset -o emacs\n"
    state = f"f () \n{{\n    cat <<E\n{own}E\n\n}}\n{end}trap -- ':' EXIT\n"
    changed, was_on = scripts.set_aliases(state, on=True)
    assert not was_on
    assert changed == state.replace("shopt -u expand", "shopt -s expand")
    assert scripts.set_aliases(changed, on=False) == (state, True)


@pytest.fixture
def sandbox() -> Any:
    with open_test_sandbox() as opened:
        yield opened
