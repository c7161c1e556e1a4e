"""How the authors run an action: expected argument vectors, directories and error texts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from intercode.paper.bash.session import (
    MALFORMED,
    TIMED_OUT,
    OriginalBashSession,
    resolve_directory,
    wrap_action,
)
from intercode_sandbox.contract import BaseSandbox
from support.sandboxes import open_test_sandbox

BASH = ["/bin/bash", "-c"]


@pytest.mark.parametrize(
    ("action", "words"),
    [
        ("ls -l", ["ls -l"]),
        ("  ls \n", ["ls"]),
        ("", [""]),
        ('echo "a b"', ["echo a", "b"]),
        ('echo "a"', ["echo a"]),
        ('grep "x" f | wc', ["grep x f | wc"]),
        ('a "b c" "d e"', ["a b", "c d", "e"]),
        ("echo 'a b'", ["echo 'a b'"]),
        ("echo \"'a b'\"", ["echo a b"]),
        (r"find . -name \*.c -exec rm {} \;", [r"find . -name \*.c -exec rm {} \;"]),
        (r"echo a\\b", [r"echo a\b"]),
        (r"echo \"a b\"", ['echo "a b"']),
        (r"echo \$x $y", [r"echo \$x $y"]),
        ("echo a # b", ["echo a # b"]),
        ('awk "{print $1}" f', ["awk {print", "$1} f"]),
        ("a\nb", ["a\nb"]),
    ],
)
def test_the_argument_vector_of_an_action(action: str, words: list[str]) -> None:
    assert wrap_action(action) == BASH + words


@pytest.mark.parametrize("action", ['echo "', 'echo "it\'s"', 'a "b\' c"', "x\\"])
def test_an_action_that_cannot_be_split(action: str) -> None:
    with pytest.raises(ValueError, match=r"[Nn]o (closing quotation|escaped character)"):
        wrap_action(action)


@pytest.mark.parametrize(
    ("current", "argument", "target"),
    [
        ("/", "a", "/a"),
        ("/a/b", "..", "/a"),
        ("/a/b", "../../../..", "/"),
        ("/a", "/b/./c//d/", "/b/c/d"),
        ("/a", ".", "/a"),
        ("/a", "", "/a"),
        ("/a", "b/../c", "/a/c"),
        ("/a", "~", "/a/~"),
        ("/a", "b && ls", "/a/b && ls"),
        ("/a/b", "-", "/a/b/-"),
    ],
)
def test_the_directory_after_cd(current: str, argument: str, target: str) -> None:
    assert resolve_directory(current, argument) == target


@pytest.fixture(scope="module")
def sandbox() -> Iterator[BaseSandbox]:
    with open_test_sandbox() as opened:
        yield opened


@pytest.fixture
def shell(sandbox: BaseSandbox) -> OriginalBashSession:
    return OriginalBashSession(sandbox)


@pytest.mark.sandbox
def test_nothing_but_the_directory_carries_over(shell: OriginalBashSession) -> None:
    assert shell.run("x=1; cd /usr", 60).ok
    assert shell.run("echo $x; pwd", 60).output == "\n/\n"
    assert shell.run("cd /usr", 60).output == ""
    assert (shell.cwd, shell.run("pwd", 60).output) == ("/usr", "/usr\n")
    assert shell.run("cd lib/../share", 60).ok
    assert shell.run("pwd", 60).output == "/usr/share\n"


@pytest.mark.sandbox
def test_cd_to_a_missing_directory_stays(shell: OriginalBashSession) -> None:
    result = shell.run("cd /nowhere", 60)
    assert (result.exit_code, shell.cwd) == (1, "/")
    assert "/nowhere: No such file or directory" in result.output


@pytest.mark.sandbox
def test_a_directory_however_odd_is_tracked_and_then_fails(shell: OriginalBashSession) -> None:
    result = shell.run("cd /tmp && echo there", 60)
    assert (result.output, shell.cwd) == ("there\n", "/tmp && echo there")
    result = shell.run("ls", 60)
    assert result.exit_code == 126 and result.output == (
        "OCI runtime exec failed: exec failed: unable to start container process: chdir to cwd "
        '("/tmp && echo there") set in config.json failed: no such file or directory: unknown'
    )


@pytest.mark.sandbox
@pytest.mark.parametrize("action", ["cd", "cd/", "cdx", 'echo "', "printf '\\377'"])
def test_malformed(shell: OriginalBashSession, action: str) -> None:
    result = shell.run(action, 60)
    assert (result.output, result.exit_code, result.timed_out) == (MALFORMED, None, False)
    assert shell.cwd == "/"


@pytest.mark.sandbox
def test_a_nul_byte_is_malformed(shell: OriginalBashSession) -> None:
    assert shell.run("echo a\0b", 60).output == MALFORMED


@pytest.mark.sandbox
def test_words_after_the_command_become_positional(shell: OriginalBashSession) -> None:
    """The inner quotes end the outer ones: ``bash -c 'echo $0-$1;' first second``."""
    assert shell.run('echo $0-$1;" first "second', 60).output == "first-second\n"


@pytest.mark.sandbox
def test_streams_are_merged_and_the_status_is_known(shell: OriginalBashSession) -> None:
    result = shell.run("echo a; echo b >&2; echo c; exit 3", 60)
    assert (result.output, result.exit_code) == ("a\nb\nc\n", 3)


@pytest.mark.sandbox
def test_time_out(shell: OriginalBashSession) -> None:
    result = shell.run("echo lost; sleep 600", 0.4)
    assert (result.output, result.exit_code, result.timed_out) == (TIMED_OUT, None, True)


@pytest.mark.sandbox
def test_a_command_lasts_until_nothing_holds_its_output(shell: OriginalBashSession) -> None:
    assert shell.run("(sleep 0.3; echo late) & echo early", 60).output == "early\nlate\n"
    assert shell.run("sleep 600 & echo early", 0.4).output == TIMED_OUT
