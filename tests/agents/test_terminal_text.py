"""Code in texts from a terminal, and lines of texts from elsewhere."""

from __future__ import annotations

import subprocess

import pytest

from intercode.agents.parsing import parse_answer, split_sections, typed_code
from intercode.datasets.payloads import PythonPayload
from intercode.environments.languages.recognition import is_shell
from intercode.environments.languages.shell_lines import is_open_command
from intercode_sandbox.lines import split_lines
from support.descriptions import language_of

_COMMANDS = [
    "ls",
    "ls |",
    "ls &&",
    "ls ||",
    "ls &",
    "echo 'a",
    "echo 'a'",
    'echo "a',
    'echo "a\\"',
    "echo \\'",
    "if true; then",
    "if true; then ls; fi",
    "for i in 1 2; do",
    "for i in 1 2",
    "while :; do ls; done",
    "case x in",
    "case x in x) ls;; esac",
    "f() {",
    "f() { ls; }",
    "(ls",
    "(ls)",
    "echo $(ls",
    "echo if",
    "echo `ls",
    "echo `ls`",
    "cat <<E",
    "cat <<E\na\nE",
    "cat <<'E' | wc\n'\nE",
    "cat <<A - <<B\nA\nb",
    "cat <<A - <<B\nA\nb\nB",
    "cat <<-E\na\n\tE",
    "cat <<E\na\n\tE",
    "cat <<\\E\n$(\nE",
    "echo \"$(cat <<'E'\n\"\n",
    'echo "$(cat <<\'E\'\n"\nE\n)"',
    "cat <<< a",
    "echo $((1<<2))",
    "(( x = (1 << n) ))",
    "echo 'a << b'",
    "# a <<E",
    "ls \\",
    "# it's",
    "ls # it's",
    "echo a#b",
    "echo {a,b}",
    "for f in *; do if true; then ls; fi",
    "echo done",
    "[[ a ]] &&",
    "echo $'it\\'s'",
    "echo $'it\\'s'; cat <<'E'\na",
    "echo \"it's $(date)\"; cat <<'E'\na",
    "echo \"don't `date`\"; cat <<'E'\na",
    "echo \"can't $(wc -l < f (a) 'b' \"c's\") $((1+2))\"; cat <<'E'\na",
    "sed -i \"s/'/$(cat <<< q)/\" f; cat <<'E'\na",
]


@pytest.mark.parametrize("command", _COMMANDS)
def test_a_command_is_open_if_bash_finds_it_incomplete(command: str) -> None:
    done = subprocess.run(
        ["bash", "-n"], input=command, capture_output=True, text=True, check=False
    )
    is_cut = command.endswith("\\")  # bash accepts the end of its input there
    assert is_open_command(command) == (done.returncode != 0 or bool(done.stderr) or is_cut)


@pytest.mark.parametrize(
    ("tag", "text", "expected"),
    [
        (
            "python",
            ">>> x = 1\n>>> for i in (1, 2):\n...     print(i)\n...\n1\n2\n>>> x\n1",
            "x = 1\nfor i in (1, 2):\n    print(i)\n\nx",
        ),
        ("sql", "mysql> SELECT 1\n    -> FROM t;\n+---+\n| 1 |\n+---+", "SELECT 1\nFROM t;"),
        ("python", "x = 1\n>>> x", None),
    ],
)
def test_what_was_typed_in_other_languages(tag: str, text: str, expected: str | None) -> None:
    terminal = language_of(tag).terminal
    assert terminal is not None
    assert typed_code(text, terminal) == expected


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"])
def test_a_line_ends_where_other_programs_end_it(separator: str) -> None:
    text = f"a{separator}Action: b"
    assert split_lines(f"{text}\r\nc\rd\n\ne") == [text, "c", "d", "", "e"]
    assert split_lines("") == [] and split_lines("a\n") == ["a"]
    assert [s.label for s in split_sections(text)] == [""]
    assert not is_shell(f"The list{separator}ls is what you want here.")
    assert (
        parse_answer(f"```bash\necho '{text}'\n```", language_of("bash")).code == f"echo '{text}'"
    )
    row = {"tests": f"assert f() == '{text}'"}
    assert len(PythonPayload.columns(row, "row 1", "def f(): ...")["tests"]) == 1
