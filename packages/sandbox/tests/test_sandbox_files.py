"""Reading and writing files of a sandbox from outside, whatever the sandbox does to prevent it."""

from __future__ import annotations

import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from intercode_sandbox.contract import BaseSandbox
from support.sandboxes import eventually

pytestmark = pytest.mark.sandbox


def sh(sandbox: BaseSandbox, code: str) -> None:
    result = sandbox.run(["bash", "-c", code])
    assert result.ok, result.output


def test_a_file_reads_as_it_was_written(sandbox: BaseSandbox) -> None:
    data = bytes(range(256)) * 5000
    sandbox.write("/made/on the/way/f", data, mode=0o751)
    assert sandbox.read("/made/on the/way/f") == data
    assert sandbox.changes()["/made/on the/way/f"].mode == 0o751
    sandbox.write("/made/on the/way/f", b"")
    assert sandbox.read("/made/on the/way/f") == b""


def test_names_of_any_bytes(sandbox: BaseSandbox) -> None:
    sh(sandbox, r"echo hi > $'/tmp/\xff\n'")
    assert sandbox.read("/tmp/\udcff\n") == b"hi\n"


def test_other_kinds_of_files_are_refused(sandbox: BaseSandbox) -> None:
    sh(sandbox, "mkfifo /tmp/p; ln -s loop /tmp/loop; mkdir /tmp/d; ln -s /proc/self/fd/0 /tmp/m")
    with pytest.raises(FileNotFoundError):
        sandbox.read("/tmp/none")
    with pytest.raises(IsADirectoryError):
        sandbox.read("/tmp/d")
    for path in ("/tmp/p", "/tmp/loop", "/dev/zero", "/dev/tty", "/tmp/p/x", "/tmp/m"):
        with pytest.raises(OSError):
            sandbox.read(path)
        with pytest.raises(OSError):
            sandbox.write(path, b"x")
    assert sandbox.run(["echo", "on"]).output == "on\n"


def test_reading_is_limited(sandbox: BaseSandbox) -> None:
    sh(sandbox, "truncate -s 200M /tmp/big")
    with pytest.raises(OSError, match="larger than 1000 bytes"):
        sandbox.read("/tmp/big", limit=1000)
    with pytest.raises(OSError, match="larger"):
        sandbox.read("/tmp/big")


@pytest.mark.parametrize("target", ["{there}", "../../../../../..{there}"])
def test_links_stay_inside(sandbox: BaseSandbox, tmp_path: Path, target: str) -> None:
    """A link to a path of the machine leads to that path of the sandbox."""
    there = tmp_path / uuid.uuid4().hex
    there.write_text("the machine's")
    sh(sandbox, f"ln -s {target.format(there=there)} /tmp/link; ln -s {there.parent} /tmp/dir")
    for path in ("/tmp/link", f"/tmp/dir/{there.name}", f"/../../..{there}"):
        with pytest.raises(FileNotFoundError):
            sandbox.read(path)
    sh(sandbox, f"mkdir -p {there.parent}")
    sandbox.write("/tmp/link", b"the sandbox's")
    assert sandbox.read(str(there)) == b"the sandbox's"
    assert there.read_text() == "the machine's"


def test_a_link_swapped_during_reads_and_writes(sandbox: BaseSandbox, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("outside")
    swap = f"while :; do ln -sfn {tmp_path} /tmp/d; rm /tmp/d; mkdir /tmp/d; rmdir /tmp/d; done"
    sandbox.spawn(["bash", "-c", swap])
    for _ in range(300):
        for attempt in (
            lambda: sandbox.read("/tmp/d/outside"),
            lambda: sandbox.write("/tmp/d/outside", b"x"),
        ):
            try:
                assert attempt() in (None, b"", b"x")
            except OSError:
                pass  # the file may have either content at that moment
    assert outside.read_text() == "outside"


def test_files_with_forbidding_modes_are_read_and_written(sandbox: BaseSandbox) -> None:
    sh(
        sandbox,
        "mkdir -p /tmp/a/b; cd /tmp/a/b; echo x > f; ln -s ../b/f l; chmod 0 f /tmp/a/b /tmp/a",
    )
    assert sandbox.read("/tmp/a/b/f") == sandbox.read("/tmp/a/b/l") == b"x\n"
    assert {sandbox.changes()[path].mode for path in ("/tmp/a", "/tmp/a/b", "/tmp/a/b/f")} == {0}
    sandbox.write("/tmp/a/b/f", b"y", mode=0o400)
    sandbox.write("/tmp/a/b/c/d", b"z")
    sandbox.write("/tmp/a/b/f", b"yy", mode=0o200)
    rows = sandbox.changes()
    modes = {path: rows[f"/tmp/a{path}"].mode for path in ("", "/b", "/b/f", "/b/c", "/b/c/d")}
    assert modes == {"": 0, "/b": 0, "/b/f": 0o200, "/b/c": 0o755, "/b/c/d": 0o644}
    assert [sandbox.read(f"/tmp/a/b/{path}") for path in ("l", "c/d")] == [b"yy", b"z"]


def test_paths_are_followed_while_other_programs_rename_files(
    sandbox: BaseSandbox, tmp_path: Path
) -> None:
    sh(sandbox, "mkdir -p /tmp/a/b; cd /tmp/a/b; echo x > f; ln -s ../b/f l")
    renames = "import os\nopen('a', 'w')\nwhile 1: os.rename('a', 'b'); os.rename('b', 'a')"
    other = subprocess.Popen([sys.executable, "-c", renames], cwd=tmp_path)
    try:
        eventually(lambda: any(tmp_path.iterdir()), "the other program runs")
        for _ in range(2000):
            assert sandbox.read("/tmp/a/b/l") == b"x\n"
    finally:
        other.kill()
        other.wait()


def test_a_nul_byte_in_a_path_is_refused(sandbox: BaseSandbox) -> None:
    with pytest.raises((OSError, ValueError)):
        sandbox.write("/tmp/a\0b", b"x")
    assert sandbox.changes() == {}


def test_a_very_deep_path_does_not_end_the_sandbox(sandbox: BaseSandbox) -> None:
    path = "/tmp/" + "d/" * 1500 + "f"
    try:
        sandbox.write(path, b"x")
    except OSError:
        pass  # a refusal is possible as well
    assert sandbox.run(["echo", "on"]).output == "on\n"
