"""Which code is complete, so that a line can follow it in the same file."""

from __future__ import annotations

import random
import subprocess

import pytest

from intercode.sessions.bash.plain_code import is_complete, runs_nothing

_COMPLETE = [
    "",
    "# it's",
    "ls",
    'echo "a $(echo "b c") d"',
    "cat <<E\nit's\nE",
    "cat <<'E' | wc\n\"\nE\nls",
    "if true; then echo fi; fi",
    "case a in a) echo x;; (b) ls;; esac",
    "ls &",
    "[[ -f x && ( a == b ) ]] && ls",
    "f() { ls; }",
    "a=(1 2 'x')",
    "echo ${x:-'a}'}",
    "{ ls; }",
    'echo "${x:-"b}"}"',
    "echo $((1+2)) ${#x} $# # it's",
    "echo a#'b'",
    "ls \\\n-l",
    "(ls)",
    "for ((i=0;i<3;i++)); do ls; done",
    "diff <(ls) <(ls)",
    "echo `ls`",
    "cat <<-E\n\ta\n\tE",
    "while read l; do echo $l; done < f",
    "echo $'it\\'s'",
    'echo "$\'"',
    "cat <<< 'a'",
    "! ls",
    "find . -name '*.c' -exec grep x {} \\;",
    "x=$(cat <<E\na\nE\n)",
    "echo \\ #x",
]
_OPEN = [
    "echo 'it",
    "cat <<E\nx",
    "if true; then echo fi",
    "case a in a) echo x;;",
    "[[ -f x",
    "f()",
    "f() {",
    "ls |",
    "ls &&",
    "a=(1",
    "ls \\",
    "for i in a; do ls",
    "echo `ls",
    "(ls",
    "{ ls",
    'echo "open $(',
    'echo "${x:-$(',
    "echo $'abc",
    "((1+",
    'x="$(',
    "echo \\ #'",
    "cat <<E\n E",
]
_PARTS = [
    "'",
    '"',
    "`",
    "$(",
    "${x",
    "}",
    ")",
    "(",
    "[[ a",
    "]]",
    "<<E",
    "\nE\n",
    "\n",
    "if true; then",
    "fi",
    "for i in a",
    "do",
    "done",
    "case x in",
    "a)",
    ";;",
    "esac",
    "{ ls",
    "; }",
    "echo a",
    "#c'",
    "\\",
    "|",
    "&&",
    "&",
    ";",
    "$'",
    '$"',
    "$((",
    "))",
    "<<<",
    "x=(",
    "f()",
    "ls",
    "! ",
    "<(",
    ">",
]


@pytest.mark.parametrize("code", _COMPLETE)
def test_complete_code(code: str) -> None:
    assert is_complete(code)


@pytest.mark.parametrize("code", _OPEN)
def test_code_that_goes_on(code: str) -> None:
    assert not is_complete(code)


def test_bash_waits_for_no_more_after_code_that_is_taken_for_complete() -> None:
    chosen = random.Random(5)
    made = (
        "".join(chosen.choice(_PARTS) + chosen.choice(["", " ", "; "]) for _ in range(length))
        for length in random.Random(6).choices(range(1, 8), k=1500)
    )
    complete = {code for code in made if is_complete(code)}
    assert len(complete) > 50
    for code in sorted(complete):
        run = subprocess.run(
            ["/bin/bash", "-n"],
            input=f"{code}\n",
            text=True,
            capture_output=True,
            check=False,
            env={"LC_ALL": "C"},
        )
        waits = ("unexpected EOF", "unexpected end of file", "here-document")
        assert not any(words in run.stderr for words in waits), (code, run.stderr)


def test_code_of_comments_and_blank_lines_runs_nothing() -> None:
    assert all(map(runs_nothing, ("", "  ", "# it's", "\n# a\n\t# b\n")))
    assert not any(map(runs_nothing, ("ls", "# a\nls", "echo # a")))
