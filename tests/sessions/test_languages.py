"""Live interpreters and programs of the table's languages, in real sandboxes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from intercode.core.errors import SandboxError, UnknownNameError, UsageError
from intercode.core.languages import (
    JAVA,
    JAVASCRIPT,
    LANGUAGES,
    PROGRAM_DIRECTORY,
    C,
    load_language,
)
from intercode.sessions import check_session
from intercode.sessions.programs.program import ProgramSession
from intercode.sessions.programs.repl import ReplSession
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.long_output import Collector
from support.languages import ABSENT, C_SUM, JAVA_SUM, PERL, needs
from support.sandboxes import PATIENCE
from support.time_limits import limit_at

pytestmark = pytest.mark.sandbox


@pytest.fixture
def node(sandbox: BaseSandbox) -> Iterator[ReplSession]:
    needs("node")
    session = ReplSession(sandbox, JAVASCRIPT)
    yield session
    session.close()


def shown(session: ReplSession | ProgramSession, code: str, timeout: float = PATIENCE) -> str:
    return session.run(code, timeout).observation


# ------------------------------------------------------------- live interpreters
def test_a_live_interpreter_is_a_session(sandbox: BaseSandbox) -> None:
    needs("node")
    check_session(lambda: ReplSession(sandbox, JAVASCRIPT), "console.log({})")


def test_it_answers_as_at_a_prompt(node: ReplSession) -> None:
    assert shown(node, "const x = 1") == ""
    assert shown(node, "const x = 2; x + 1") == "3\n"
    assert shown(node, "class A {}") == ""
    assert shown(node, "'a'") == "'a'\n"
    assert shown(node, "[10n ** 20n, -0, NaN, undefined]") == (
        "[ 100000000000000000000n, -0, NaN, undefined ]\n"
    )
    assert shown(
        node, "await new Promise(done => setTimeout(() => done(new Map([[1, x]])), 5))"
    ) == ("Map(1) { 1 => 2 }\n")
    assert shown(node, "console.log('a'); console.error('b'); process.stdout.write('c'); 0") == (
        "a\nb\nc0\n"
    )
    assert shown(node, "require('path').basename('/a/b')") == "'b'\n"


def test_errors_are_shown_without_the_driver_s_frames(node: ReplSession) -> None:
    result = node.run("function f() { throw new TypeError('no') }\nf()", PATIENCE)
    assert result.exit_code == 1
    assert result.output == (
        "Uncaught TypeError: no\n    at f (<anonymous>:1:22)\n    at <anonymous>:2:1\n"
    )
    assert shown(node, "1 +") == "Uncaught SyntaxError: Unexpected end of input\n"
    assert shown(node, "throw undefined") == "Uncaught undefined\n"
    assert shown(node, "nowhere").startswith("Uncaught ReferenceError: nowhere is not defined\n")
    assert "Uncaught 5" in shown(
        node, "setTimeout(() => { throw 5 }, 1); await new Promise(go => setTimeout(go, 50))"
    )


def test_the_driver_leaves_no_names(node: ReplSession) -> None:
    names = "Object.getOwnPropertyNames(globalThis).filter(n => /^(h[eo]ld|link|answers)$/.test(n))"
    assert (
        shown(node, f"{names}.length + typeof answers + typeof held") == "'0undefinedundefined'\n"
    )


def test_its_directory_is_the_session_s(node: ReplSession) -> None:
    shown(node, "process.chdir('/tmp')")
    assert node.cwd == "/tmp"


@pytest.mark.parametrize("end", ["while (true) {}", "process.exit(3)", "process.kill(process.pid)"])
def test_an_action_that_does_not_end_is_undone(node: ReplSession, end: str) -> None:
    shown(node, "let kept = 1; function twice (n) { return 2 * n }")
    with limit_at("on my way" if "while" in end else "never"):
        result = node.run(f"kept = 2; console.log('on my way');\n{end}", PATIENCE)
    assert result.output == "on my way\n"
    assert "a new one ran the actions before this one again" in result.note
    assert result.timed_out == ("while" in end)
    assert shown(node, "twice(kept)") == "2\n"
    assert len(node.actions) == 2


def test_an_interpreter_that_forges_an_answer_is_replaced(node: ReplSession) -> None:
    """An answer without the token of the request is ignored."""
    shown(node, "let kept = 1")
    forged = (
        "require('fs').writeSync(3, JSON.stringify({ token: '0', cwd: '/', ok: true }) + '\\n')"
    )
    assert "the interpreter ended" in shown(node, forged)
    assert shown(node, "kept") == "1\n"
    assert "the interpreter ended" in shown(node, "require('fs').closeSync(3)")
    assert shown(node, "kept") == "1\n"


def test_a_note_reports_actions_that_cannot_run_again(node: ReplSession) -> None:
    shown(node, "let n = 1; if (require('fs').existsSync('/tmp/f')) process.exit()")
    shown(node, "require('fs').writeFileSync('/tmp/f', '')")
    assert "without its variables" in shown(node, "process.exit()")
    assert (shown(node, "typeof n"), node.actions) == ("'undefined'\n", ("typeof n",))


def test_calls_give_plain_values_or_say_why_not(node: ReplSession) -> None:
    code = (
        "function pair (a) { return { a, b: [a, null, undefined].slice(0, 2), c: undefined } }\n"
        "const later = async n => n + 1, map = () => new Map(), nan = () => [NaN]\n"
        "const fails = () => { throw new RangeError('far') }, none = () => {}"
    )
    shown(node, code)

    def called(entry: str, *arguments: object) -> object:
        answer = node.call(entry, list(arguments), Collector(100), PATIENCE)
        assert answer is not None
        return answer.get("value", answer.get("error"))

    assert called("pair", "é") == '{"a":"é","b":["é",null]}'
    assert called("later", 1) == "2"
    assert called("map") == "TypeError: no plain value: Map(0) {}"
    assert called("nan") == "TypeError: no plain value: NaN"
    assert called("none") == "TypeError: no plain value: undefined"
    assert called("fails") == "RangeError: far"
    assert called("absent") == "ReferenceError: absent is not defined"
    assert called("code = 1") == "code = 1 is no function"


def test_a_state_is_restored_by_running_its_actions(
    sandbox: BaseSandbox, node: ReplSession
) -> None:
    shown(node, "let a = [1]; process.chdir('/tmp')")
    shown(node, "a.push(2)")
    other = ReplSession(sandbox, JAVASCRIPT, state=node.state())
    assert other.state_text() == node.state_text()
    assert (shown(other, "a"), other.cwd) == ("[ 1, 2 ]\n", "/tmp")
    other.close()


# --------------------------------------------------------------------- programs
PRINTS_A_NUMBER = {
    "c": '#include <stdio.h>\nint main(void) {{ puts("{}"); }}',
    "java": "class Main {{ public static void main(String[] a) {{ System.out.println({}); }} }}",
    "javascript": "console.log({})",
}
"""A program in each language of the table, as ``str.format`` fills it in."""


SLOW = {"java"}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in PRINTS_A_NUMBER]
)
def test_programs_of_a_language_are_a_session(sandbox: BaseSandbox, name: str) -> None:
    language = load_language(name)
    needs((language.compile or language.run)[0])
    check_session(lambda: ProgramSession(sandbox, language), PRINTS_A_NUMBER[name])


def test_a_program_is_compiled_and_reads_its_input(sandbox: BaseSandbox) -> None:
    needs("gcc")
    session = ProgramSession(sandbox, C, "/tmp", "1 2\n")
    assert shown(session, str(C_SUM.gold)) == "3\n"
    assert shown(session, "run\n40 2\n") == "42\n"
    result = session.run("int main(void) { return nothing; }", PATIENCE)
    assert result.exit_code == 1 and "main.c:1:25: error: 'nothing' undeclared" in result.output
    assert session.program == "int main(void) { return nothing; }"
    assert shown(session, "int main(void) { int x; return 0; }").startswith("main.c: In function")
    assert session.run("int main(void) { for (;;); }", 0.5 + 1.0).timed_out
    assert session.run("#include <stdlib.h>\nint main(void) { abort(); }", PATIENCE).exit_code == -6
    assert all(path.startswith(PROGRAM_DIRECTORY) for path in sandbox.changed_paths())


@pytest.mark.slow
def test_java_too(sandbox: BaseSandbox) -> None:
    needs("javac")
    session = ProgramSession(sandbox, JAVA, "/tmp", "1 2\n")
    assert shown(session, str(JAVA_SUM.gold)) == "3\n"
    assert "Main.java:1: error" in shown(session, "class Main {")
    # the class of the program before does not exist any more
    assert "find or load main class" in shown(session, "class Other {}")
    assert "find or load main class" in shown(session, "run\n1 2\n")


def test_a_language_without_a_compiler(sandbox: BaseSandbox) -> None:
    needs("perl")
    check_session(lambda: ProgramSession(sandbox, PERL), 'print "{}\\n";')
    session = ProgramSession(sandbox, PERL, "/tmp", "given")
    assert shown(session, "run\nx") == "there is no program yet: write one first\n"
    assert shown(session, "print <STDIN>, $ARGV[0] // 'none', qx(pwd);") == "givennone/tmp\n"


def test_nothing_of_a_program_runs_on(sandbox: BaseSandbox) -> None:
    needs("perl")
    session = ProgramSession(sandbox, PERL)
    assert shown(session, "exit if fork; setpgrp; sleep 600;") == ""
    assert sandbox.processes() == ()


def test_an_image_without_the_language_is_named(sandbox: BaseSandbox) -> None:
    with pytest.raises(SandboxError, match=r"cannot run Nothing .*no-such-program") as refused:
        ProgramSession(sandbox, ABSENT).run("anything", PATIENCE)
    assert "recipe:code" not in str(refused.value)  # it has no such language
    with_node = replace(ABSENT, packages=JAVASCRIPT.packages)
    with pytest.raises(SandboxError, match=r"use one that has nodejs .* such as recipe:code"):
        ProgramSession(sandbox, with_node).run("anything", PATIENCE)


# -------------------------------------------------------------------- the table
def test_a_language_has_a_name() -> None:
    built_in = {name for name in LANGUAGES if LANGUAGES.is_built_in(name)}
    assert PRINTS_A_NUMBER.keys() == built_in
    assert load_language("support.languages:PERL") is PERL
    with pytest.raises(UnknownNameError, match="did you mean 'javascript'"):
        load_language("javscript")
    with pytest.raises(UsageError, match="is Task, not a Language"):
        load_language("support.languages:C_SUM")
