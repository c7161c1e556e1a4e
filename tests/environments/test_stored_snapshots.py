"""Snapshots that are written to a directory and restored by another process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import intercode
from intercode.core.errors import DataError, UsageError

pytestmark = pytest.mark.sandbox

CONTINUE = """
import sys, intercode
with intercode.make(sys.argv[1]) as env:
    snapshot = env.load_snapshot(sys.argv[2])
    env.restore(snapshot)
    for action in sys.argv[3:]:
        print(env.step(action)[0], end="")
    print(env.index, env.task.id, env.task_seed)
"""


def run_in_another_process(environment: str, directory: Path, *actions: str) -> list[str]:
    """Return the output of another process that continues from a snapshot."""
    argv = [sys.executable, "-c", CONTINUE, environment, str(directory), *actions]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_another_process_continues_with_shell_and_files(tmp_path: Path) -> None:
    with intercode.make("bash") as env:
        env.reset(options={"task": 3})
        env.step("cd /tmp; x=(1 'a b'); f() { echo \"f $1\"; }; umask 077; shopt -s nullglob")
        env.step("echo new > n; ln -s n l; mkdir -p d/e; chmod 700 d; rm -r /usr/local/share 2>&1")
        env.step(
            "cd /; for d in */; do if rmdir $d 2>/dev/null; then echo $d > /tmp/gone; fi; done"
        )
        gone = env.step("cd /tmp; cat gone; ls / | wc -l")[0]
        with env.snapshot() as snapshot:
            env.save_snapshot(snapshot, tmp_path / "s")
        env.step("rm -r /tmp/*")
    printed = run_in_another_process(
        "bash", tmp_path / "s", "f \"${x[1]}\"; cat l; stat -c %a d; umask; pwd",
        "cat gone; ls / | wc -l",
    )  # fmt: skip
    assert printed[:5] == ["f a b", "new", "700", "0077", "/tmp"]
    assert printed[5:-1] == gone.splitlines()
    assert printed[-1].startswith("3 starter/bash/")


@pytest.mark.slow
def test_a_sealed_snapshot_is_written_with_all_its_files(tmp_path: Path) -> None:
    with intercode.make("bash") as env:
        env.reset(options={"task": 0})
        env.step("cd /tmp; for i in {1..150}; do echo $i > f$i; done")
        with env.snapshot() as first:
            env.step("rm f1; echo more > f2")
            with env.snapshot() as second:
                env.save_snapshot(second, tmp_path / "second")
            env.save_snapshot(first, tmp_path / "first")
    counting = "cd /tmp; ls f* | wc -l; cat f2"
    assert run_in_another_process("bash", tmp_path / "second", counting)[:2] == ["149", "more"]
    assert run_in_another_process("bash", tmp_path / "first", counting)[:2] == ["150", "2"]


@pytest.mark.slow
def test_a_python_interpreter_runs_its_actions_again(tmp_path: Path) -> None:
    with intercode.make("python") as env:
        env.reset(options={"task": 1})
        env.step("import os; os.chdir('/tmp'); runs = open('f', 'a').write('once')")
        env.step("def twice(x): return 2 * x")
        with env.snapshot() as snapshot:
            env.save_snapshot(snapshot, tmp_path / "s")
    printed = run_in_another_process(
        "python", tmp_path / "s", "twice(21), os.getcwd(), open('f').read()"
    )
    assert printed[0] == "(42, '/tmp', 'once')"


def test_an_instantiated_task_is_restored(tmp_path: Path) -> None:
    with intercode.make("ctf") as env:
        env.reset(seed=5, options={"task": 2})
        env.step("ls -lR . | md5sum > /tmp/sum; cp -r . /tmp/all")
        with env.snapshot() as snapshot:
            env.save_snapshot(snapshot, tmp_path / "s")
        flag = env.task.flag
        loaded = env.load_snapshot(tmp_path / "s")
        env.reset(seed=6, options={"task": 1})
        env.restore(loaded)
        assert env.task.flag == flag and env.task_seed == 5
        assert env.step("diff -r . /tmp/all && echo same")[0] == "same\n"
        assert env.submit(flag)[1] == 1.0


def test_a_snapshot_of_another_environment_is_refused(tmp_path: Path) -> None:
    with intercode.make("bash") as env:
        env.reset(options={"task": 0})
        with env.snapshot() as snapshot:
            env.save_snapshot(snapshot, tmp_path / "s")
            with pytest.raises(UsageError, match="is not empty"):
                env.save_snapshot(snapshot, tmp_path / "s")
        loaded = env.load_snapshot(tmp_path / "s")
        with pytest.raises(UsageError, match="already: copy that"):
            env.save_snapshot(loaded, tmp_path / "t")
        with pytest.raises(DataError, match="holds no snapshot"):
            env.load_snapshot(tmp_path / "nowhere")
        metadata = tmp_path / "s" / "snapshot.json"
        values = json.loads(metadata.read_text())
        metadata.write_text("{")
        with pytest.raises(DataError, match="is no snapshot"):
            env.load_snapshot(tmp_path / "s")
        metadata.write_text(json.dumps({**values, "v": 9}))
        with pytest.raises(DataError, match="version 9"):
            env.load_snapshot(tmp_path / "s")
        metadata.write_text(json.dumps(values))
    with intercode.make("ctf") as other, pytest.raises(UsageError, match="another environment"):
        other.load_snapshot(tmp_path / "s")
    original = intercode.make("bash", profile="original")
    with original, pytest.raises(UsageError, match="another profile: 'standard'"):
        original.load_snapshot(tmp_path / "s")
