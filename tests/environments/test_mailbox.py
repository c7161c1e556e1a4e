"""Mailboxes: services outside of the sandbox that answer a file after each action."""

from __future__ import annotations

import pytest

import intercode
from intercode.core.types import Dataset, Mailbox, Task
from intercode.environments.base.mailbox import MAX_REQUEST_BYTES

pytestmark = pytest.mark.sandbox
DATASET = Dataset(
    "made", "bash",
    (Task("t", "q", "true", setup="mkdir /work", cwd="/",
          mailbox=Mailbox("/work/in", "/work/out", lambda text: f"<{text.strip()}>\n")),),
)  # fmt: skip


def test_a_request_is_answered_after_its_action_and_once() -> None:
    with intercode.make("bash", DATASET) as env:
        env.reset()
        env.step("cd /work")
        assert env.step("echo one > in; cat out")[0] == "cat: out: No such file or directory\n"
        assert env.step("cat out; wc -c < in; rm out")[0] == "<one>\n0\n"
        assert env.step("ls")[0] == "in\n"
        assert env.step("printf '\\377' > in")[0] == ""
        assert env.step("cat out")[0] == "<\ufffd>\n"


@pytest.mark.parametrize(
    "request_file",
    [
        "mkfifo in",
        "mkdir in",
        "ln -s /dev/zero in",
        "ln -s in in",
        f"head -c {MAX_REQUEST_BYTES + 1} /dev/zero | tr '\\0' x > in",
        "echo one > in; mkdir out",
    ],
)
def test_other_files_are_left_alone_and_hold_nothing_up(request_file: str) -> None:
    with intercode.make("bash", DATASET) as env:
        env.reset()
        env.step("cd /work")
        env.step(request_file)
        assert env.step("cat out 2>&1 | head -c 4")[0] == "cat:"
        env.step("rm -rf in out; echo two > in")
        assert env.step("cat out")[0] == "<two>\n"


def test_a_fork_asks_for_itself() -> None:
    with intercode.make("bash", DATASET) as env:
        env.reset()
        env.step("cd /work")
        env.step("echo one > in")
        (other,) = env.fork(1)
        with other:
            other.step("echo two > in")
            assert other.step("cat out")[0] == "<two>\n"
        assert env.step("cat out")[0] == "<one>\n"
