"""The live Python interpreter of an episode, in a real sandbox."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from intercode.core.errors import SandboxError
from intercode.sessions import check_session
from intercode.sessions.python.interpreter import InterpreterEndedError, InterpreterRefusedError
from intercode.sessions.python.session import PythonSession, may_end_interpreter
from intercode_sandbox.contract import BaseSandbox
from support.sandboxes import eventually, open_test_sandbox

pytestmark = pytest.mark.sandbox

FAULT = " with SIGSEGV (too deep a recursion, or a fault in code outside of Python)"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[BaseSandbox]:
    with open_test_sandbox() as opened:
        yield opened


@pytest.fixture
def session(sandbox: BaseSandbox) -> Iterator[PythonSession]:
    opened = PythonSession(sandbox)
    yield opened
    opened.close()


def test_it_is_a_session(sandbox: BaseSandbox) -> None:
    check_session(lambda: PythonSession(sandbox), "print({})")


def test_names_definitions_and_imports_carry_over(session: PythonSession) -> None:
    session.run("import math\ndef area(r):\n    return math.pi * r ** 2\n", 60)
    session.run("r = 2", 60)
    result = session.run("round(area(r), 2)", 60)
    assert (result.output, result.exit_code) == ("12.57\n", 0)
    assert session.run("_ + 1", 60).output == "13.57\n"


def test_the_output_is_that_of_a_prompt(session: PythonSession) -> None:
    """Both streams in the order of writing, and the last value; nothing for None or a statement."""
    code = "import sys\nprint('a')\nprint('b', file=sys.stderr)\nprint('c')\n'é\\n'"
    assert session.run(code, 60).output == "a\nb\nc\n'é\\n'\n"
    assert session.run("for i in range(3): i", 60).output == ""
    assert session.run("None", 60).output == ""
    assert session.run("print('no end', end='')", 60).output == "no end"


def test_a_traceback_shows_the_agents_lines_and_no_others(session: PythonSession) -> None:
    session.run("def half(x):\n    return x / 0\n", 60)
    result = session.run("y = 1\nhalf(y)", 60)
    assert result.exit_code == 1
    assert result.output == (
        "Traceback (most recent call last):\n"
        '  File "<action 2>", line 2, in <module>\n    half(y)\n'
        '  File "<action 1>", line 2, in half\n    return x / 0\n'
        "ZeroDivisionError: division by zero\n"
    )
    frozen = (
        "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass E(Exception): n: int"
    )
    assert session.run(f"{frozen}\nraise E(3)", 60).output.endswith(
        "in <module>\n    raise E(3)\nE: 3\n"
    )
    chained = session.run(
        "try:\n    half(1)\nexcept ZeroDivisionError as e:\n    raise KeyError('k') from e", 5
    )
    assert "direct cause" in chained.output
    assert chained.output.endswith("KeyError: 'k'\n")
    assert "<intercode>" not in chained.output
    deep = session.run("def f(n): return f(n + 1)\nf(0)", 60).output
    assert "more times]" in deep
    assert deep.endswith("RecursionError: maximum recursion depth exceeded\n")


def test_a_syntax_error_marks_the_column(session: PythonSession) -> None:
    shown = session.run("x = 1\ny = (2", 60).output
    assert shown.startswith('  File "<action 1>", line 2\n    y = (2\n        ^\nSyntaxError: ')
    assert session.run("x", 60).output.endswith("NameError: name 'x' is not defined\n")


def test_definitions_before_an_exception_stay(session: PythonSession) -> None:
    session.run("def f(): return 7\nassert f() == 8", 60)
    assert session.run("f()", 60).output == "7\n"


def test_input_ends_at_once(session: PythonSession) -> None:
    assert session.run("input('name? ')", 60).output.endswith("EOF when reading a line\n")


@pytest.mark.parametrize(
    "code",
    [
        "import os; os._exit(0)",
        "import os; os.kill(os.getpid(), 9)",
        "import os; os.closerange(0, 100); print('x')",
        "import os\nfor n in range(3, 99):\n    try: os.write(n, b'0 /\\0')\n    except OSError: 0",
        "import ctypes; ctypes.string_at(0)",
        "import os; os.execv('/bin/true', ['true'])",
        "import sys; sys._getframe(1).f_globals['h'].send = None",
        "import gc\nfor o in gc.get_objects():\n"
        "    if type(o).__name__ == 'Server': o.socket = None",
    ],
)
def test_an_action_that_ends_the_interpreter_loses_its_own_effects_only(
    session: PythonSession, code: str
) -> None:
    session.run("kept = [1]", 60)
    result = session.run(code, 60)
    if result.exit_code != 0 or result.note:
        note = result.note.replace(FAULT, "") if "ctypes" in code else result.note
        assert note == "[the interpreter ended: it was restored to its state before this action]\n"
    assert session.run("kept", 60).output == "[1]\n"
    assert session.run("print('out')", 60).output == "out\n"


@pytest.mark.parametrize(
    "code",
    [
        "import sys; sys.stdout = None; sys.stderr = None",
        "import sys; sys.stdout.close()",
        "import os; os.close(1); os.close(2)",
        "import os; os.dup2(os.open('/dev/null', 1), 1)",
        "import sys; sys.settrace(lambda *a: 1 / 0)",
        "import sys; sys.exit(3)",
        "exit()",
        "import os\nif os.fork() == 0: x = 'child'",
        "import builtins; builtins.repr = builtins.compile = None; del builtins.print",
        "import sys; sys.setrecursionlimit(50)",
        "import sys; sys.displayhook = sys.excepthook = None",
        "import sys; sys.stdout.detach()",
        "import os; os.close(61)",
        "import os; os.close(0); input()",
        "import sys; sys.addaudithook(lambda name, given: 1 / 0)",
        "import builtins; builtins.BaseException = builtins.exec = builtins.type = None; 1 / 0",
        "class C:\n    def __str__(self): raise ValueError\nraise SystemExit(C())",
        "class C(int):\n    def __and__(self, other): return 'x'\nraise SystemExit(C(3))",
        "import sys; del sys.stdout",
        "import sys; sys.settrace = sys.setprofile = None",
        "import sys\nclass C:\n    def flush(self): raise SystemExit\nsys.stdout = C()",
    ],
)
def test_damage_to_the_interpreter_does_not_outlast_the_action(
    session: PythonSession, code: str
) -> None:
    session.run("from builtins import print as say; kept = 1", 60)
    assert not session.run(code, 60).timed_out
    assert session.run("import os; os.close(1)", 60).note == ""
    assert session.run("say(kept + 1)", 60).output == "2\n"


@pytest.mark.parametrize(
    ("code", "later", "output"),
    [
        ("sys.settrace(lambda f, e, a: seen.add(f.f_code.co_filename))\n1", "seen", "set()"),
        ("sys.settrace(lambda f, e, a: seen.add(f.f_code.co_filename))\n1 / 0", "seen", "set()"),
        (
            "sys.setprofile(lambda f, e, a: seen.add((f.f_code.co_filename, e)))\n1 / 0",
            "seen",
            "{('<action 1>', 'return')}",
        ),
        ("import traceback; seen = traceback.extract_stack()[1:]", "len(seen)", "1"),
        (
            "seen = sys.argv, repr(exit)",
            "seen",
            "([''], 'Use exit() or Ctrl-D (i.e. EOF) to exit')",
        ),
        ("sys.stdout = None; sys.stdout = sys.__stdout__; seen = print(1)", "seen is None", "True"),
        ("help(len)", "seen", "set()"),
    ],
)
def test_actions_observe_nothing_of_the_session(
    session: PythonSession, code: str, later: str, output: str
) -> None:
    shown = session.run(f"import sys; seen = set()\n{code}", 60)
    assert "<intercode>" not in shown.output and "NameError" not in shown.output
    assert session.run(later, 60).output == f"{output}\n"


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("exit(7)", 7),
        ("1 / 0", 1),
        ("pass", 0),
        ("import atexit; atexit.register(os._exit, 5)", 5),
        ("os.closerange(0, 99); import atexit; atexit.register(os._exit, 5)", 5),
    ],
)
def test_a_process_that_an_action_forks_ends_as_a_script_does(
    session: PythonSession, code: str, status: int
) -> None:
    child = f"import os\npid = os.fork()\nif pid == 0:\n    {code}"
    shown = session.run(f"{child}\nelse:\n    print(os.waitpid(pid, 0)[1] >> 8)", 60)
    assert shown.output.endswith(f"{status}\n")


def test_a_signal_between_two_actions_has_its_effect_in_the_later_one(
    session: PythonSession,
) -> None:
    session.run("import signal\ndef late(*given): raise KeyError('late')\nkept = 1", 60)
    session.run("signal.signal(signal.SIGALRM, late)", 60)
    session._sandbox.signal(session.interpreter().pid, signal.SIGALRM)
    shown = session.run("print(kept)", 60)
    assert (shown.output[-16:], shown.exit_code) == ("KeyError: 'late'\n"[-16:], 1)
    assert session.run("print(kept)", 60).output == "1\n"
    status = "open('/proc/self/status').read().split('SigBlk:')[1].split()[0].strip('0')"
    assert session.run(status, 60).output == "''\n"


def test_the_mask_of_signals_is_as_the_action_before_left_it(session: PythonSession) -> None:
    session.run("import os, signal; signal.pthread_sigmask(signal.SIG_BLOCK, {10})", 60)
    session.run("os.kill(os.getpid(), 10)", 60)
    session.run("signal.sigwait({10}) == 10", 60)
    mask = "sorted(map(int, signal.pthread_sigmask(signal.SIG_SETMASK, {12})))"
    assert session.run(mask, 60).output == "[10]\n"
    assert session.run(mask, 60).output == "[12]\n"


def test_a_program_that_replaces_the_interpreter_runs_to_its_end(session: PythonSession) -> None:
    program = ["sh", "-c", "echo end; exit 4"]
    result = session.run(f"import os; os.execvp('sh', {program})", 60)
    assert (result.output, result.exit_code) == ("end\n", 4)


def test_programs_that_it_starts_do_not_hold_its_connection(session: PythonSession) -> None:
    kinds = (
        "import os, stat\n"
        "for fd in range(256):\n"
        "    try: mode = os.fstat(fd).st_mode\n"
        "    except OSError: continue\n"
        "    print('socket' if stat.S_ISSOCK(mode) else 'pipe' if stat.S_ISFIFO(mode) else 'file')"
    )
    session.run(f"import os, sys; kinds = {kinds!r}", 60)
    shown = session.run("os.spawnl(os.P_WAIT, sys.executable, 'python', '-c', kinds)", 60)
    assert "pipe\n" in shown.output and "socket\n" not in shown.output


def test_the_exit_status_of_sys_exit_is_reported(session: PythonSession) -> None:
    assert session.run("import sys; sys.exit(3)", 60).exit_code == 3
    result = session.run("raise SystemExit('bye')", 60)
    assert (result.output, result.exit_code) == ("bye\n", 1)
    assert session.run("import os; os._exit(5)", 60).exit_code == 5


def test_without_a_backup_a_new_interpreter_is_started_and_a_note_says_so(
    session: PythonSession,
) -> None:
    session.run(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()", 5
    )
    result = session.run("x = 1\nimport os; os._exit(1)", 60)
    assert result.note == "[the interpreter ended: a new one was started, without its variables]\n"
    assert "NameError" in session.run("x", 60).output


def test_the_memory_limit_is_reported(sandbox: BaseSandbox) -> None:
    session = PythonSession(sandbox)
    result = session.run("x = bytearray(20 << 30)", 60)
    assert "MemoryError" in result.output and "of memory that a process may map" in result.note
    assert session.run("1", 60).output == "1\n"
    session.close()


@pytest.mark.parametrize(
    "code", ["-" * 100_000 + "1", "eval('-' * 10**5 + '1')", "import ast; ast.parse('-' * 10**5)"]
)
def test_code_that_is_too_deep_for_the_parser_meets_no_limit(
    session: PythonSession, code: str
) -> None:
    result = session.run(code, 60)
    assert "Error" in result.output.splitlines()[-1] and result.note == ""


def test_a_recursion_that_ends_the_interpreter_is_named(session: PythonSession) -> None:
    code = (
        "import sys; sys.setrecursionlimit(10**9); a = []\nfor _ in range(10**6): a = [a]\nrepr(a)"
    )
    assert session.run(code, 60).note == (
        f"[the interpreter ended{FAULT}: it was restored to its state before this action]\n"
    )
    assert session.run("1", 60).output == "1\n"


def test_a_directory_carries_over_even_when_it_goes(session: PythonSession) -> None:
    session.run("import os; os.mkdir('/tmp/d'); os.chdir('/tmp/d')", 60)
    assert session.cwd == "/tmp/d"
    session.run("os.rmdir('/tmp/d')", 60)
    assert session.run("1 + 1", 60).output == "2\n"
    assert session.cwd == "/tmp/d"
    session.run("os.chdir('..')", 60)
    assert session.cwd == "/tmp"


def test_modules_beside_the_standard_library_are_found(sandbox: BaseSandbox) -> None:
    sandbox.write("/tmp/lib/mine.py", b"answer = 42\n")
    session = PythonSession(sandbox, cwd="/tmp/lib")
    assert session.run("import mine; mine.answer", 60).output == "42\n"
    assert "No module named 'nothing_like_it'" in session.run("import nothing_like_it", 60).output
    assert "/tmp/lib/__pycache__" not in sandbox.changed_paths()
    session.close()


def test_future_statements_hold_for_later_actions(session: PythonSession) -> None:
    session.run("from __future__ import annotations", 60)
    assert (
        session.run("def f(x: nowhere): pass\nf.__annotations__", 60).output == "{'x': 'nowhere'}\n"
    )


def test_a_fork_continues_with_the_same_random_state(session: PythonSession) -> None:
    session.run("import random; random.seed(1); x = [1]", 60)
    copy = session.interpreter().fork("snapshot", 5)
    ours = session.run("x.append(2); random.random()", 60).output
    session.close()
    session._current = copy
    assert session.run("random.random()", 60).output == ours
    assert session.run("x", 60).output == "[1]\n"


def test_a_fork_is_refused_with_the_reason(session: PythonSession) -> None:
    session.run("f = open('/tmp/held', 'w')", 60)
    with pytest.raises(InterpreterRefusedError, match="/tmp/held is open for writing"):
        session.interpreter().fork("snapshot", 5)
    session.run(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()", 5
    )
    with pytest.raises(InterpreterRefusedError, match="1 more threads"):
        session.interpreter().fork("backup", 5)


def test_the_state_text_holds_the_namespace_and_nothing_random(sandbox: BaseSandbox) -> None:
    texts = []
    for _ in range(2):
        session = PythonSession(sandbox)
        session.run("x = {1: 'a'}\ndef f(): return object()\no = f()", 60)
        texts.append(session.state_text())
        session.close()
    assert texts[0] == texts[1]
    assert "x " in texts[0]


def test_nothing_is_left_when_it_is_closed() -> None:
    with open_test_sandbox() as sandbox:
        session = PythonSession(sandbox)
        session.run("import os; os.getpid()", 60)
        session.close()
        eventually(lambda: sandbox.processes() == (), "the interpreter has ended")
        with pytest.raises(InterpreterEndedError):
            session.interpreter()


def test_a_missing_interpreter_is_named() -> None:
    with (
        open_test_sandbox() as sandbox,
        pytest.raises(SandboxError, match=r"no usable Python: .*no-such-python"),
    ):
        PythonSession(sandbox, program="no-such-python")


@pytest.mark.parametrize("code", ["os._exit(1)", "os.kill(1, 9)", "import ctypes", "10 ** 9"])
def test_code_that_may_end_the_interpreter_is_detected(code: str) -> None:
    assert may_end_interpreter(code)
    assert not may_end_interpreter("def f(x):\n    return sorted(x)[0]")


@pytest.mark.parametrize(
    ("removal", "before", "after"),
    [
        ("os.rmdir('/tmp/d')", "/tmp/d", "/"),
        ("os.rename('/tmp/d', '/tmp/e')", "/tmp/e", "/tmp/e"),
        ("os.rmdir('/tmp/d'); os.mkdir('/tmp/d')", "/tmp/d", "/"),
    ],
)
def test_the_directory_is_the_one_in_which_the_kernel_has_the_interpreter(
    session: PythonSession, removal: str, before: str, after: str
) -> None:
    session.run("import os; os.mkdir('/tmp/d'); os.chdir('/tmp/d'); x = 1", 60)
    session.run(removal, 60)
    assert session.cwd == before
    kept = session.run("os.chdir('.'); print(x)", 60)
    assert session.cwd == before or not kept.ok
    assert "restored" in session.run("os._exit(3)", 60).note
    assert session.cwd == after
    assert session.run("print(x, os.getcwd(), os.readlink('/proc/self/cwd'))", 60).output == (
        f"1 {after} {after}\n"
    )


def test_an_action_that_removes_its_directory_and_ends_the_interpreter(
    session: PythonSession,
) -> None:
    session.run("import os; os.mkdir('/tmp/d'); os.chdir('/tmp/d')", 60)
    session.run("os.rmdir('/tmp/d'); os._exit(3)", 60)
    assert session.cwd == "/"
    assert session.run("print(os.getcwd())", 60).output == "/\n"
