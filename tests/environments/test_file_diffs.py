"""Diffs of changed files in records, in real sandboxes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import intercode
from intercode.agents import open_agent
from intercode.core.types import Dataset, Task
from intercode.environments.base.diffs.file_diffs import (
    MAX_DIFF_BYTES,
    MAX_PATHS,
    OMITTED_PATHS_KEY,
)
from intercode.environments.base.env import InterCodeEnv
from intercode.evaluation.rollout import rollout
from support.python_tasks import ADD

pytestmark = pytest.mark.sandbox
SETUP = Dataset(
    "mine", "bash", (Task("mine/0", "Write 5 to /five", gold="echo 5 > /five", setup="echo 1 >/s"),)
)


@pytest.fixture(scope="module")
def shell() -> Iterator[InterCodeEnv]:
    with intercode.make("bash", record_diffs=True) as env:
        yield env


def after(env: InterCodeEnv, action: str) -> dict[str, str]:
    result = env.execute(action)
    assert "diffs" not in result.info
    return dict(result.diffs)


def test_every_kind_of_change_over_two_turns(shell: InterCodeEnv) -> None:
    shell.reset(options={"task": "starter/bash/count-csv"})
    big = "head -c 70000 /dev/zero | tr '\\0' x > /tmp/big"
    first = after(shell, f"cd /tmp; echo hi > n; printf 'a\\0' > bin; ln -s n l; mkdir d; {big}")
    assert first == {
        "/tmp/big": "new file\ntoo large: 70000 bytes; up to 65536 are compared",
        "/tmp/bin": "new file\nbinary, 2 bytes",
        "/tmp/d": "new directory",
        "/tmp/l": "new symbolic link to 'n'",
        "/tmp/n": "new file\n@@ -0,0 +1 @@\n+hi",
    }
    assert after(shell, "cat n") == {}
    second = after(
        shell, "echo ho >> n; chmod 600 n; mv bin bin2; ln -sfn x l; rmdir d; echo >>big"
    )
    assert second == {
        "/tmp/big": "too large: 70001 bytes, 70000 before; up to 65536 are compared",
        "/tmp/bin": "deleted: file of 2 bytes",
        "/tmp/bin2": "new file\nbinary, 2 bytes",
        "/tmp/d": "deleted: directory and all that was in it",
        "/tmp/l": "symbolic link to 'n', now to 'x'",
        "/tmp/n": "mode 644, now 600\n@@ -1 +1,2 @@\n hi\n+ho",
    }
    assert after(shell, "chmod 644 n") == {"/tmp/n": "mode 600, now 644"}
    assert after(shell, "rm n") == {"/tmp/n": "deleted: file of 6 bytes"}


def test_a_layer_has_the_state_before_the_episode(shell: InterCodeEnv) -> None:
    shell.reset(options={"task": "starter/bash/count-csv"})
    readme = "/srv/quaywheel/README.md"
    line = shell.step(f"cp -p {readme} /tmp/kept; head -1 {readme}")[0].rstrip("\n")
    diff = after(shell, f"sed -i '1s/.*/Mine/' {readme}")[readme].split("\n")
    assert diff[0].startswith("@@ -1,4 +1,4 @@") and diff[1:3] == [f"-{line}", "+Mine"]
    back = after(shell, f"cp -p /tmp/kept {readme}")[readme].split("\n")
    assert back[1:3] == ["-Mine", f"+{line}"]
    assert after(shell, f"rm {readme}")[readme].startswith("deleted: file of ")


def test_a_deleted_directory_includes_its_content(shell: InterCodeEnv) -> None:
    shell.reset(options={"task": "starter/bash/count-csv"})
    after(shell, "mkdir -p /tmp/d/e; touch /tmp/d/e/f /tmp/d/g /tmp/h")
    gone = "deleted: directory and all that was in it"
    assert after(shell, "rm -r /tmp/d /tmp/h /srv/quaywheel") == {
        "/srv/quaywheel": gone,
        "/tmp/d": gone,
        "/tmp/h": "deleted: file of 0 bytes",
    }
    assert after(shell, "mkdir /tmp/d; echo 1 > /tmp/d/g") == {
        "/tmp/d": "new directory",
        "/tmp/d/g": "new file\n@@ -0,0 +1 @@\n+1",
    }


def test_diffs_refer_to_the_restored_state(shell: InterCodeEnv) -> None:
    shell.reset(options={"task": 0})
    after(shell, "echo 1 > /tmp/f")
    with shell.snapshot() as snapshot:
        assert after(shell, "echo 2 > /tmp/f")["/tmp/f"].endswith("\n-1\n+2")
        shell.restore(snapshot)
        assert after(shell, "echo 3 > /tmp/f")["/tmp/f"].endswith("\n-1\n+3")
    with shell.fork()[0] as child:
        assert after(child, "echo 4 > /tmp/f")["/tmp/f"].endswith("\n-3\n+4")
    assert after(shell, "echo 5 >> /tmp/f")["/tmp/f"].endswith("\n 3\n+5")


@pytest.mark.namespace_only("containers are copied, never sealed")
def test_a_sealed_snapshot_changes_no_diff(shell: InterCodeEnv) -> None:
    shell.reset(options={"task": 0})
    after(shell, "mkdir /tmp/m; for i in $(seq 150); do echo $i > /tmp/m/$i; done")
    with shell.snapshot() as snapshot:
        assert after(shell, "echo x >> /tmp/m/7") == {"/tmp/m/7": "@@ -1 +1,2 @@\n 7\n+x"}
        shell.restore(snapshot)
        assert after(shell, "echo y > /tmp/m/7") == {"/tmp/m/7": "@@ -1 +1 @@\n-7\n+y"}


def test_limits_of_a_turn(shell: InterCodeEnv) -> None:
    shell.reset(options={"task": 0})
    many = after(shell, "for i in $(seq 101 130); do seq 9000 > /tmp/f$i; done")
    assert len(many) == MAX_PATHS + 1 and many[OMITTED_PATHS_KEY] == "and 10 more files"
    assert sum(len(text) for text in many.values()) < MAX_DIFF_BYTES + MAX_PATHS * 100
    assert many["/tmp/f101"].endswith("\n+9000")
    assert many["/tmp/f102"].startswith("too large: a diff of ")
    assert after(shell, "echo x >> /tmp/f130")["/tmp/f130"].endswith("; what it held was not kept")


def test_setup_and_refused_actions_have_no_diff() -> None:
    rules = {"deny": ["pattern:secret"]}
    with intercode.make("bash", dataset=SETUP, record_diffs=True, policy=rules) as env:
        env.reset()
        assert after(env, "echo secret > /x") == {}
        assert after(env, "echo 2 >> /s") == {"/s": "@@ -1 +1,2 @@\n 1\n+2"}
        env.reset()
        assert after(env, "true") == {}


def test_files_of_python_episodes() -> None:
    with intercode.make(
        "python", dataset=Dataset("own", "python", (ADD,)), record_diffs=True
    ) as env:
        env.reset()
        assert after(env, "open('/tmp/a.txt', 'w').write('one\\n')")["/tmp/a.txt"].endswith("+one")
        with env.snapshot() as snapshot:
            after(env, "open('/tmp/a.txt', 'a').write('two\\n')")
            env.restore(snapshot)
            assert after(env, "open('/tmp/a.txt', 'a').write('2\\n')") == {
                "/tmp/a.txt": "@@ -1 +1,2 @@\n one\n+2"
            }


def test_records_have_diffs_only_with_the_setting() -> None:
    for enabled in (False, True):
        with intercode.make("bash", dataset=SETUP, record_diffs=enabled) as env:
            golds = {"mine/0": ["echo 5 > /five"]}
            wrote, submitted = rollout(open_agent("gold", golds=golds), env, 0).steps
        made = {"/five": "new file\n@@ -0,0 +1 @@\n+5"}
        assert (wrote.diffs, submitted.diffs) == (made if enabled else {}, {})
