"""The Bash environment in the authors' profile."""

from __future__ import annotations

import shutil

import pytest

import intercode
from intercode.core.types import Dataset, Task
from intercode.evaluation import check_env
from intercode.paper.bash.session import OriginalBashSession
from intercode.sessions import check_session
from support.sandboxes import open_test_sandbox

pytestmark = pytest.mark.sandbox


TASKS = (
    Task("mine/print", "Print five.", gold="echo five", also=("echo FIVE",)),
    Task("mine/write", "Write x into /work/f.", gold="mkdir -p /work && echo x > /work/f"),
    Task("mine/there", "Say where you are.", gold="pwd; echo $x", cwd="/usr", setup="x=set"),
)


MINE = Dataset("mine", "bash", TASKS)


needs_git = pytest.mark.skipif(
    shutil.which("git", path="/usr/bin") is None,
    reason="the original profile needs git in the image, and `host` has none: apt install git",
)


@pytest.mark.slow
@needs_git
def test_the_contract_in_the_original_profile() -> None:
    check_env(intercode.make("bash", dataset=MINE, profile="original"))


@needs_git
def test_the_original_profile_sees_the_changes_that_git_sees() -> None:
    with intercode.make("bash", dataset=MINE, profile="original") as env:
        env.reset(options={"task": "mine/write"})
        nothing = env.score()
        assert nothing.parts["file_diff"] == 0.05
        env.step("mkdir -p /work/none /usr/none; x=1")
        assert env.score().value == nothing.value  # git does not report an empty directory
        assert env.step("echo $x")[0] == "\n"
        env.step("echo x > /work/f")
        score = env.score()
        assert score.parts["file_diff"] == 0.33 and score.details["missed"] == []
        assert env.step("git -C / status --short")[0] == "?? work/\n"


def test_the_contract_of_the_authors_session() -> None:
    with open_test_sandbox() as sandbox:
        check_session(lambda: OriginalBashSession(sandbox))
