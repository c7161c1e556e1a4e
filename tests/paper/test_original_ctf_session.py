"""How the authors' CTF environment passes an action to the container."""

from __future__ import annotations

import pytest

from intercode.paper.bash.session import MALFORMED, OriginalBashSession, wrap_ctf_action
from support.sandboxes import open_test_sandbox


@pytest.mark.parametrize(
    ("action", "argv"),
    [
        ("  echo 'a b' \"$x\"\n", ["/bin/bash", "-c", "echo 'a b' \"$x\""]),
        ("it's", ["/bin/bash", "-c", "it's"]),
        ("python3 -c 'print(1)' | cat", ["python3", "-c", "print(1)", "|", "cat"]),
        (' python -c "print(\\"x\\")"', ["python", "-c", 'print("x")']),
        ("python3 x.py -c 'a'", ["/bin/bash", "-c", "python3 x.py -c 'a'"]),
    ],
)
def test_wrapping(action: str, argv: list[str]) -> None:
    assert wrap_ctf_action(action) == argv


@pytest.mark.sandbox
def test_actions_that_cannot_be_split_or_found() -> None:
    with open_test_sandbox() as sandbox:
        session = OriginalBashSession(sandbox, "/", wrap_ctf_action)
        assert session.run("python3 -c 'oh", 60).output == MALFORMED
        assert session.run("echo 'oh", 60).exit_code == 2
        result = session.execute_argv(["no-such-program"], "/", 10)
        assert result.exit_code == 126
        assert result.output.endswith(
            '"no-such-program": executable file not found in $PATH: unknown\r\n'
        )
        assert session.run("cd /usr", 60).ok and session.cwd == "/usr"
