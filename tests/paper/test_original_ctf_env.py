"""The CTF environment in the authors' profile."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import intercode
from intercode.core.types import Dataset, LayerSpec, Task, TreeEntry
from intercode.evaluation import check_env
from intercode.paper.bash.session import OriginalBashSession, wrap_ctf_action
from intercode.sessions import check_session
from support.sandboxes import open_test_sandbox

pytestmark = pytest.mark.sandbox


FLAG = "flag{Two Words}"


needs_git = pytest.mark.skipif(
    shutil.which("git", path="/usr/bin") is None,
    reason="the original profile needs git in the image, and `host` has none: apt install git",
)


def _draw(task: Task, seed: int) -> Task:
    flag = f"flag{{{seed}}}"
    files = (
        TreeEntry("file", "/ctf/task/f", 0o640, None, flag.encode()),
        TreeEntry("file", "/ctf/task/d/run.sh", 0o755, None, b"echo x\n"),
    )
    return replace(task, flag=flag, initial_files=files, instantiate=None)


@pytest.fixture
def mine(tmp_path: Path) -> Dataset:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "secret").write_text(FLAG)
    layer = LayerSpec("dir", tmp_path / "a", destination="/ctf/task")
    base = Task("mine/0", "Find it.", f"submit {FLAG}", files=(layer,), cwd="/ctf/task", flag=FLAG)
    instantiated = replace(base, id="mine/drawn", gold="cat f", flag=None, instantiate=_draw)
    return Dataset("mine", "ctf", (base, instantiated))


@needs_git
def test_the_contract_in_the_original_profile(mine: Dataset) -> None:
    check_env(intercode.make("ctf", mine, profile="original"))


def test_the_contract_of_the_authors_session() -> None:
    with open_test_sandbox() as sandbox:
        check_session(lambda: OriginalBashSession(sandbox, "/", wrap_ctf_action))


@needs_git
def test_the_authors_flow(mine: Dataset) -> None:
    with intercode.make("ctf", mine, profile="original") as env:
        env.reset(options={"task": 0})
        assert env.step("x=1; echo '\"a  b\"'; pwd")[0] == '"a  b"\n/ctf/task\n'
        assert env.step("echo [$x]")[0] == "[]\n"
        assert env.step("python3 -c 'print(1)' && echo more")[0] == "1\n"
        observation, *_, info = env.step("python -c 'print(1)'")
        if not info["valid"]:
            assert 'exec: "python": executable file not found in $PATH' in observation
        printed, _, ended, _, info = env.step("submit flag{no}")
        assert not ended and info["valid"] and printed.startswith("Submitted flag is incorrect")
        assert env.step(f"submit {FLAG.split()[0].upper()}")[1] == 0.0
    single = Dataset("one", "ctf", (replace(mine.tasks[0], flag="flag{A}"),))
    with intercode.make("ctf", single, profile="original") as env:
        env.reset()
        assert env.step("submit FLAG{a} or so")[1:3] == (1.0, True)
