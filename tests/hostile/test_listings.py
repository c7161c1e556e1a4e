"""Lists of changes that an agent makes as long as it can: bounded in bytes, and never worth it."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

import intercode
from hostile.cases import python
from intercode.core.errors import GoldError
from intercode.core.types import TRUNCATED_CHANGES, Dataset, Task
from intercode.evaluation.check.dataset import check
from intercode_sandbox.contract import BaseSandbox
from support.sandboxes import open_test_sandbox

pytestmark = pytest.mark.sandbox
MIB = 1 << 20
MANY_LINKS = python("""import os
os.chdir('/tmp')
for n in range(12000): os.symlink('\\x01' * 4000, str(n))""")
DEEP_FILES = python("""import os
os.chdir('/tmp')
for _ in range(90): os.mkdir('d' * 250); os.chdir('d' * 250)
for n in range(9000): open(str(n), 'w').close()""")
WIDE_TEXTS = python("""import os
os.chdir('/tmp')
for n in range(12000): os.symlink('\\U0001F600' + 'x' * 4000, str(n))""")


def peak_of_supervisor(sandbox: BaseSandbox) -> int:
    """Return the most memory in bytes that a sandbox's supervisor has taken."""
    text = Path(f"/proc/{sandbox.supervisor_pid}/status").read_text()  # type: ignore[attr-defined]
    return int(text.partition("VmHWM:")[2].split()[0]) << 10


@pytest.mark.parametrize(
    "code", [MANY_LINKS, DEEP_FILES, WIDE_TEXTS], ids=["links", "deep", "wide"]
)
def test_a_long_list_costs_neither_owner_nor_supervisor_much(code: str) -> None:
    with open_test_sandbox() as sandbox:
        sandbox.run(["bash", "-c", code], timeout=60)
        tracemalloc.start()
        try:
            paths, changes = sandbox.changed_paths(), sandbox.changes()
            assert tracemalloc.get_traced_memory()[1] < 100 * MIB
        finally:
            tracemalloc.stop()
        assert peak_of_supervisor(sandbox) < 80 * MIB
        assert list(changes)[-1] == TRUNCATED_CHANGES and len(paths) > 100
        assert sandbox.run(["echo", "on"]).output == "on\n"


def test_a_list_of_an_honest_size_is_complete() -> None:
    with open_test_sandbox() as sandbox:
        made = "mkdir -p /tmp/a/b; cd /tmp/a/b; for i in {1..15000}; do echo $i > f$i; done"
        assert sandbox.run(["bash", "-c", made], timeout=60).ok
        expected = sorted(["/tmp/a", "/tmp/a/b", *(f"/tmp/a/b/f{i}" for i in range(1, 15001))])
        changes = sandbox.changes()
        assert list(changes) == expected == sandbox.changed_paths()
        assert changes["/tmp/a/b/f77"].size == 3 and len(changes["/tmp/a/b/f77"].digest) == 64


def test_a_list_is_complete_while_directories_are_replaced() -> None:
    swap = "cd /tmp; while :; do mkdir d; touch d/{1..50}; mv d e; echo > d; rm -r d e; done"
    with open_test_sandbox() as sandbox:
        sandbox.run(["bash", "-c", "mkdir /tmp/z; touch /tmp/z/{1..3000}"], timeout=60)
        sandbox.spawn(["bash", "-c", swap])
        for _ in range(20):
            paths = sandbox.changed_paths()
            assert paths == sorted(set(paths))
            assert len([p for p in paths if p.startswith("/tmp/z")]) == 3001


@pytest.mark.parametrize("profile", ["standard", pytest.param("original", marks=pytest.mark.paper)])
def test_a_state_that_cannot_be_listed_scores_and_gains_nothing(profile: str) -> None:
    """The gold makes two files. The agent makes one of them wrongly, and hides that."""
    task = Task("two", "Make two files.", gold="echo a > /etc/a; echo b > /var/b")
    with intercode.make("bash", dataset=Dataset("two", "bash", (task,)), profile=profile) as env:
        env.reset(options={"task": 0})
        env.execute("echo a > /etc/a; echo WRONG > /var/b")
        honest = env.score()
        env.execute(DEEP_FILES.replace("/tmp", "/home"))
        hidden = env.finish()
    assert hidden.terminated and hidden.score is not None
    if profile == "standard":  # git ignores these directories
        assert hidden.score.value < honest.value
        assert hidden.score.value == 0


LARGE = "mkdir /work; cd /work; for i in 1 2 3 4 5; do truncate -s 256M $i; {}; done; echo 10 > z"


def _task(each: str) -> Dataset:
    """Return a task to write 42 to a file beside large ones, for each of which code runs."""
    task = Task("t", "Write 42.", gold="echo 42 > /work/z", setup=LARGE.format(each), cwd="/work")
    return Dataset("large", "bash", (task,), comparable=False)


def test_large_files_of_a_setup_hide_no_wrong_answer() -> None:
    with intercode.make("bash", dataset=_task(":")) as env:
        for answer, value in ((42, 1.0), (13, 0.0)):
            env.reset()
            env.step(f"echo {answer} > z")
            assert env.score().value == value


def test_large_files_of_an_agent_hide_no_wrong_answer() -> None:
    task = Task("t", "Write 42.", gold=f"{LARGE.format(':')}; echo 42 > z")
    with intercode.make("bash", dataset=Dataset("large", "bash", (task,))) as env:
        for answer, value in ((42, 1.0), (13, 0.8)):
            env.reset()
            env.step(f"{LARGE.format(':')}; echo {answer} > z")
            assert env.score().value == pytest.approx(value, abs=0.1)


def test_what_is_unread_is_equal_to_nothing() -> None:
    with intercode.make("bash", dataset=_task("printf a | dd of=$i conv=notrunc")) as env:
        env.reset()
        env.step("echo 42 > z")
        with pytest.raises(GoldError, match="/work/3: put large files into the image"):
            env.score()
    [fault] = check(_task("printf a | dd of=$i conv=notrunc")).faults
    assert fault.kind == "fails"
    with intercode.make("bash", dataset=_task(":")) as env:
        env.reset()
        env.step("for i in 1 2 3 4 5; do printf a | dd of=$i conv=notrunc; done; echo 42 > z")
        score = env.score()
        assert score.value < 1 and score.details["unread"] == ["/work/3", "/work/4", "/work/5"]
