"""Snapshots that are written to a directory and restored by another process."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
        "bash",
        tmp_path / "s",
        'f "${x[1]}"; cat l; stat -c %a d; umask; pwd',
        "cat gone; ls / | wc -l",
    )
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


@pytest.mark.paper
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
        with pytest.raises(DataError, match=r"snapshot\.json, line 1, column 2: broken JSON"):
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


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Path]]:
    """An environment, and the directory of a snapshot of it."""
    directory = tmp_path_factory.mktemp("stored") / "s"
    with intercode.make("bash") as env:
        env.reset(options={"task": 0})
        env.step("echo x > /tmp/x")
        with env.snapshot() as snapshot:
            env.save_snapshot(snapshot, directory)
        yield env, directory


_FORGED = [
    ("last_result", {"output": ["x"], "exit_code": 0}, r"last_result\.output"),
    ("last_result", {"output": "x", "exit_code": "y"}, r"last_result\.exit_code"),
    ("last_result", {"output": "x", "exit_code": 0, "more": 1}, "last_result\\.more' is unknown"),
    ("last_result", {"output": "x"}, "last_result.*'exit_code'"),
    ("last_result", 5, "last_result"),
    ("turns", "many", "turns"),
    ("turns", True, "turns"),
    ("turns", -1, "turns"),
    ("transcript", 5, "transcript"),
    ("transcript", ["a", 5], r"transcript\[1\]"),
    ("random_state", "os.system", "random_state"),
    ("random_state", {"bit_generator": "PCG64", "state": {"state": "x"}}, "random_state"),
    ("random_state", {}, "random_state"),
    ("state", 7, "state"),
    ("state", {"cwd": "../../..", "text": ""}, r"state\.cwd"),
    ("state", {"cwd": "/a\0b", "text": ""}, r"state\.cwd"),
    ("state", {"cwd": "/", "text": 5}, "state: 'text' must be a text"),
    ("state", {"text": ""}, "state.*'cwd'"),
    ("kind", "pickle", "kind"),
    ("kind", ["shell"], "kind"),
    ("task", 5, "task"),
    ("task_seed", "x", "task_seed"),
    ("task_seed", -1, "task_seed"),
    ("omitted", 7, "omitted"),
    ("previous_score", "nan", "previous_score"),
    ("previous_score", float("inf"), "previous_score"),
    ("previous_score", float("nan"), "previous_score"),
    ("previous_score", 10**400, "previous_score"),
]


@pytest.mark.parametrize(("field", "value", "message"), _FORGED)
def test_a_forged_field_is_named(
    stored: tuple[Any, Path], field: str, value: object, message: str
) -> None:
    env, directory = stored
    path = directory / "snapshot.json"
    text = path.read_text()
    try:
        path.write_text(json.dumps(json.loads(text) | {field: value}))
        with pytest.raises(DataError, match=f"snapshot.json: .*{message}"):
            env.load_snapshot(directory)
    finally:
        path.write_text(text)


@pytest.mark.parametrize("field", ["turns", "state", "kind", "profile", "transcript"])
def test_a_missing_field_is_named(stored: tuple[Any, Path], field: str) -> None:
    env, directory = stored
    path = directory / "snapshot.json"
    text = path.read_text()
    try:
        path.write_text(json.dumps({k: v for k, v in json.loads(text).items() if k != field}))
        with pytest.raises(DataError, match=f"snapshot.json: no '{field}'"):
            env.load_snapshot(directory)
    finally:
        path.write_text(text)


@pytest.mark.parametrize("text", ["[]", "5", "[" * 100_000, "9" * 5000, '{"v": 2, "v": 2}', ""])
def test_json_that_is_no_snapshot_is_a_data_error(stored: tuple[Any, Path], text: str) -> None:
    env, directory = stored
    path = directory / "snapshot.json"
    genuine = path.read_text()
    try:
        path.write_text(text)
        with pytest.raises(DataError, match=r"snapshot\.json"):
            env.load_snapshot(directory)
    finally:
        path.write_text(genuine)


@pytest.mark.parametrize("part", ["files", "snapshot.json"])
def test_no_part_of_a_snapshot_is_a_link_that_leads_out(
    stored: tuple[Any, Path], tmp_path: Path, part: str
) -> None:
    env, directory = stored
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("files", "snapshot.json"):
        target = directory / name
        if name == part:
            (copy / name).symlink_to(target)
        elif target.is_dir():
            (copy / name).mkdir()
        else:
            (copy / name).write_text(target.read_text())
    with pytest.raises(DataError, match=f"copy/{part} leads out of {copy}, to {directory / part}"):
        env.load_snapshot(copy)


def test_links_in_the_files_of_a_snapshot_stay_in_the_sandbox(tmp_path: Path) -> None:
    """A link of a sandbox is a part of its files, and leads to files of the sandbox only."""
    private = tmp_path / "private"
    private.write_text("of-the-host")
    with intercode.make("bash") as env:
        env.reset(options={"task": 0})
        env.step(f"ln -s {private} /tmp/link; ln -s /etc/passwd /tmp/passwd")
        with env.snapshot() as snapshot:
            env.save_snapshot(snapshot, tmp_path / "s")
        env.restore(env.load_snapshot(tmp_path / "s"))
        seen = env.step("readlink /tmp/link; cat /tmp/link; cat /tmp/passwd | wc -l")[0]
    assert str(private) in seen and "of-the-host" not in seen


def _put_attribute(path: Path, name: str, value: bytes) -> None:
    try:
        os.setxattr(path, name, value)
    except OSError as e:
        if e.errno not in (errno.EPERM, errno.EOPNOTSUPP):
            raise
        pytest.skip(f"the temporary directory does not take the attribute {name}")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("user.overlay.redirect", b"/../../../../../root"),
        ("user.overlay.metacopy", b""),
        ("user.overlay.opaque", b"x"),
        ("user.overlay.whiteout", b"y"),
        ("trusted.overlay.redirect", b"/root"),
        ("trusted.overlay.opaque", b"y"),
    ],
)
def test_a_forged_mark_of_the_overlay_is_named(
    stored: tuple[Any, Path], tmp_path: Path, name: str, value: bytes
) -> None:
    env, directory = stored
    shutil.copytree(directory, tmp_path / "copy", symlinks=True)
    forged = tmp_path / "copy" / "files" / "a" / "b"
    forged.mkdir(parents=True)
    _put_attribute(forged, name, value)
    with pytest.raises(DataError, match=rf"copy/files/a/b has the attribute {name}"):
        env.load_snapshot(tmp_path / "copy")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
@pytest.mark.parametrize("kind", [stat.S_IFCHR, stat.S_IFBLK])
def test_a_device_in_a_snapshot_is_named(
    stored: tuple[Any, Path], tmp_path: Path, kind: int
) -> None:
    env, directory = stored
    shutil.copytree(directory, tmp_path / "copy", symlinks=True)
    os.mknod(tmp_path / "copy" / "files" / "disk", kind | 0o666, os.makedev(1, 3))
    with pytest.raises(DataError, match="copy/files/disk is a device"):
        env.load_snapshot(tmp_path / "copy")


def test_marks_that_a_sandbox_can_have_are_harmless(
    stored: tuple[Any, Path], tmp_path: Path
) -> None:
    """Whiteouts and opaque directories hide files of the sandbox. An origin and a name that begins
    with ``.wh.`` show nothing else either."""
    env, directory = stored
    shutil.copytree(directory, tmp_path / "copy", symlinks=True)
    files = tmp_path / "copy" / "files"
    (files / "forged").mkdir()
    (files / "forged" / "file").write_text("its own content")
    (files / "forged" / ".wh.passwd").write_text("a name")
    _put_attribute(files / "forged" / "file", "user.overlay.origin", bytes.fromhex("00fb1d0001"))
    _put_attribute(files / "forged", "user.overlay.opaque", b"y")
    subprocess.run(["chmod", "-R", "a+rX", tmp_path / "copy"], check=True)
    with env.load_snapshot(tmp_path / "copy") as snapshot:
        env.restore(snapshot)
    seen = env.step("cat /forged/file /forged/.wh.passwd; ls -A /forged; wc -l < /etc/passwd")[0]
    assert seen.startswith("its own contenta name.wh.passwd\nfile\n")
    assert int(seen.split()[-1]) > 0
