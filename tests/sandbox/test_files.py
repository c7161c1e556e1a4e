"""Reading and writing a box's files from outside, whatever the box has put in the way."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from intercode.sandbox.supervisor.client import SupervisedSandbox

pytestmark = pytest.mark.sandbox


def sh(box: SupervisedSandbox, code: str) -> None:
    result = box.run(["bash", "-c", code])
    assert result.ok, result.output


def test_there_and_back(box: SupervisedSandbox) -> None:
    data = bytes(range(256)) * 5000
    box.write_file("/made/on the/way/f", data, mode=0o751)
    assert box.read_file("/made/on the/way/f") == data
    assert box.changes()["/made/on the/way/f"].mode == 0o751
    box.write_file("/made/on the/way/f", b"")
    assert box.read_file("/made/on the/way/f") == b""


def test_names_of_any_bytes(box: SupervisedSandbox) -> None:
    sh(box, r"echo hi > $'/tmp/\xff\n'")
    assert box.read_file("/tmp/\udcff\n") == b"hi\n"


def test_what_is_no_regular_file(box: SupervisedSandbox) -> None:
    sh(box, "mkfifo /tmp/p; ln -s loop /tmp/loop; mkdir /tmp/d; ln -s /proc/self/fd/0 /tmp/m")
    with pytest.raises(FileNotFoundError):
        box.read_file("/tmp/none")
    with pytest.raises(IsADirectoryError):
        box.read_file("/tmp/d")
    for path in ("/tmp/p", "/tmp/loop", "/dev/zero", "/dev/tty", "/tmp/p/x", "/tmp/m"):
        with pytest.raises(OSError):
            box.read_file(path)
        with pytest.raises(OSError):
            box.write_file(path, b"x")
    assert box.run(["echo", "on"]).output == "on\n"


def test_a_bound_on_what_is_read(box: SupervisedSandbox) -> None:
    sh(box, "truncate -s 200M /tmp/big")
    with pytest.raises(OSError, match="larger than 1000 bytes"):
        box.read_file("/tmp/big", limit=1000)
    with pytest.raises(OSError, match="larger"):
        box.read_file("/tmp/big")


@pytest.mark.parametrize("target", ["{there}", "../../../../../..{there}"])
def test_links_stay_inside(box: SupervisedSandbox, tmp_path: Path, target: str) -> None:
    """A link to a path of the machine leads to that path of the box."""
    there = tmp_path / uuid.uuid4().hex
    there.write_text("the machine's")
    sh(box, f"ln -s {target.format(there=there)} /tmp/link; ln -s {there.parent} /tmp/dir")
    for path in ("/tmp/link", f"/tmp/dir/{there.name}", f"/../../..{there}"):
        with pytest.raises(FileNotFoundError):
            box.read_file(path)
    sh(box, f"mkdir -p {there.parent}")
    box.write_file("/tmp/link", b"the box's")
    assert box.read_file(str(there)) == b"the box's"
    assert there.read_text() == "the machine's"


def test_a_link_swapped_during_reads_and_writes(box: SupervisedSandbox, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("outside")
    swap = f"while :; do ln -sfn {tmp_path} /tmp/d; rm /tmp/d; mkdir /tmp/d; rmdir /tmp/d; done"
    box.spawn(["bash", "-c", swap])
    for _ in range(300):
        for attempt in (
            lambda: box.read_file("/tmp/d/outside"),
            lambda: box.write_file("/tmp/d/outside", b"x"),
        ):
            try:
                assert attempt() in (None, b"", b"x")
            except OSError:
                pass  # whatever lay there at that moment
    assert outside.read_text() == "outside"


def test_what_its_owner_may_not_enter_read_or_write(box: SupervisedSandbox) -> None:
    sh(box, "mkdir -p /tmp/a/b; cd /tmp/a/b; echo x > f; ln -s ../b/f l; chmod 0 f /tmp/a/b /tmp/a")
    assert box.read_file("/tmp/a/b/f") == box.read_file("/tmp/a/b/l") == b"x\n"
    assert {box.changes()[path].mode for path in ("/tmp/a", "/tmp/a/b", "/tmp/a/b/f")} == {0}
    box.write_file("/tmp/a/b/f", b"y", mode=0o400)
    box.write_file("/tmp/a/b/c/d", b"z")
    box.write_file("/tmp/a/b/f", b"yy", mode=0o200)
    rows = box.changes()
    modes = {path: rows[f"/tmp/a{path}"].mode for path in ("", "/b", "/b/f", "/b/c", "/b/c/d")}
    assert modes == {"": 0, "/b": 0, "/b/f": 0o200, "/b/c": 0o755, "/b/c/d": 0o644}
    assert [box.read_file(f"/tmp/a/b/{path}") for path in ("l", "c/d")] == [b"yy", b"z"]


def test_a_nul_byte_in_a_path_is_no_end_of_it(box: SupervisedSandbox) -> None:
    with pytest.raises((OSError, ValueError)):
        box.write_file("/tmp/a\0b", b"x")
    assert box.changes() == {}


def test_a_path_of_many_directories_does_not_cost_the_box(box: SupervisedSandbox) -> None:
    path = "/tmp/" + "d/" * 1500 + "f"
    try:
        box.write_file(path, b"x")
    except OSError:
        pass  # refused, as may be
    assert box.run(["echo", "on"]).output == "on\n"
