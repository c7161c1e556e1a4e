"""Changes of a sandbox, and its clones."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from intercode_sandbox import SandboxSpec, images, open_sandbox
from intercode_sandbox.contract import BaseSandbox, Limits
from intercode_sandbox.platforms.paths import sandbox_uid
from intercode_sandbox.types import FileEntry, Layer
from support import backend
from support.sandboxes import eventually, layer_of, open_test_sandbox
from support.shells import shell

pytestmark = pytest.mark.sandbox


def after(sandbox: BaseSandbox, code: str) -> dict[str, FileEntry]:
    result = sandbox.run(["bash", "-c", f"set -e; cd /data; {code}"], timeout=30)
    assert result.ok, result.output
    return sandbox.changes()


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


NEW_FILE = FileEntry("file", 0o644, 2, sha("x\n"))
GONE = FileEntry("gone", new=False)
CASES = {
    "nothing": ("ls -R . >/dev/null; cat file", {}),
    "touched only": ("touch file dir dir/a; chmod 644 file", {}),
    "rewritten as it was": ("echo old > t; mv t file", {}),
    "new file": ("echo x > new", {"/data/new": NEW_FILE}),
    "new, removed again": ("echo x > new; rm new; mkdir n; rmdir n", {}),
    "new directory": ("mkdir -m 700 d", {"/data/d": FileEntry("dir", 0o700)}),
    "new link": ("ln -s /nowhere l", {"/data/l": FileEntry("link", 0o777, target="/nowhere")}),
    "link of another target": (
        "ln -sfn empty link",
        {"/data/link": FileEntry("link", 0o777, target="empty", new=False)},
    ),
    "new fifo": ("mkfifo -m 600 p", {"/data/p": FileEntry("fifo", 0o600)}),
    "modified": (
        "echo x > file",
        {"/data/file": FileEntry("file", 0o644, 2, sha("x\n"), "", False)},
    ),
    "same size, other content": (
        "echo odd > file",
        {"/data/file": FileEntry("file", 0o644, 4, sha("odd\n"), "", False)},
    ),
    "permissions of a file": (
        "chmod 4755 file",
        {"/data/file": FileEntry("file", 0o4755, 4, sha("old\n"), "", False)},
    ),
    "permissions of a directory": (
        "chmod 1777 dir",
        {"/data/dir": FileEntry("dir", 0o1777, new=False)},
    ),
    "file removed": ("rm file", {"/data/file": GONE}),
    "tree removed": ("rm -r dir", {"/data/dir": GONE, "/data/dir/a": GONE, "/data/dir/b": GONE}),
    "directory emptied and made again": (
        "rm -r dir; mkdir dir; echo a > dir/a",
        {"/data/dir/b": GONE},
    ),
    "file becomes directory": (
        "rm file; mkdir file; echo x > file/in",
        {"/data/file": FileEntry("dir", 0o755, new=False), "/data/file/in": NEW_FILE},
    ),
    "directory becomes file": (
        "rm -r dir; echo x > dir",
        {
            "/data/dir": FileEntry("file", 0o644, 2, sha("x\n"), "", False),
            "/data/dir/a": GONE,
            "/data/dir/b": GONE,
        },
    ),
    "lower directory renamed": (
        "mv dir moved",
        {
            "/data/dir": GONE,
            "/data/dir/a": GONE,
            "/data/dir/b": GONE,
            "/data/moved": FileEntry("dir", 0o755),
            "/data/moved/a": FileEntry("file", 0o644, 2, sha("a\n")),
            "/data/moved/b": FileEntry("file", 0o644, 2, sha("b\n")),
        },
    ),
    "blanks and newlines in names": (
        "echo x > $'a  b'; echo x > $'c\\nd'",
        {"/data/a  b": NEW_FILE, "/data/c\nd": NEW_FILE},
    ),
}


@pytest.mark.parametrize(("code", "expected"), CASES.values(), ids=CASES)
def test_every_kind_of_change(
    treed: BaseSandbox, code: str, expected: dict[str, FileEntry]
) -> None:
    assert after(treed, code) == expected


def test_names_that_are_not_utf8(treed: BaseSandbox) -> None:
    assert after(treed, r"echo x > $'\xff'") == {os.fsdecode(b"/data/\xff"): NEW_FILE}


def test_a_link_that_became_a_directory_holds_new_files(treed: BaseSandbox) -> None:
    changed = after(treed, "rm link away; cp -r dir link; cp -r dir away")
    assert {"/data/link/a", "/data/link/b", "/data/away/a", "/data/away/b"} <= changed.keys()


def test_a_very_deep_tree_does_not_end_the_sandbox(sandbox: BaseSandbox) -> None:
    code = "import os\nos.chdir('/tmp')\nfor i in range(3000):\n os.mkdir('d'); os.chdir('d')"
    assert sandbox.run(["python3", "-c", code], timeout=30).ok
    assert len(sandbox.changes()) > 0
    assert sandbox.run(["echo", "on"]).output == "on\n"


def test_overlay_attributes_cannot_be_forged(treed: BaseSandbox) -> None:
    code = (
        "import os\n"
        "for name, value in (('opaque', b'y'), ('whiteout', b'y'), ('redirect', b'/etc')):\n"
        "    for path in ('/data/dir', '/data/dir/a'):\n"
        "        try: os.setxattr(path, 'user.overlay.' + name, value)\n"
        "        except OSError: pass\n"
    )
    assert treed.run(["python3", "-c", code]).ok
    assert treed.changes() == {}
    assert treed.run(["ls", "/data/dir"]).output == "a\nb\n"


def test_changes_over_several_layers(tree: Layer, tmp_path: Path) -> None:
    root = tmp_path / "layer"
    (root / "data" / "dir").mkdir(parents=True)
    (root / "data" / "dir" / "a").write_text("upper\n")
    for path in (root, root / "data", root / "data" / "dir"):
        path.chmod(0o755)
    with open_test_sandbox(layers=(tree, layer_of(root))) as sandbox:
        assert sandbox.run(["cat", "/data/dir/a", "/data/dir/b"]).output == "upper\nb\n"
        assert sandbox.changes() == {}
        assert after(sandbox, "rm dir/a") == {"/data/dir/a": GONE}


def test_a_clone_is_independent_and_equal(treed: BaseSandbox) -> None:
    code = (
        "rm file; rm -r dir; mkdir dir; echo s > dir/s; chmod 400 dir/s; ln -s s dir/l; mkfifo p;"
        "mkdir closed; echo k > closed/k; chmod 0 closed/k closed; touch -d @7 dir/s"
    )
    before = after(treed, code)
    with treed.fork() as copy:
        assert copy.changes() == before
        assert copy.run(["stat", "-c", "%Y", "/data/dir/s"]).output == "7\n"
        copy.run(["rm", "-rf", "/data/dir"])
        treed.run(["rm", "/data/p"])
        assert "/data/p" in copy.changes() and "/data/p" not in treed.changes()
        assert treed.run(["cat", "/data/dir/s"]).output == "s\n"


def test_background_jobs_survive_a_clone(sandbox: BaseSandbox) -> None:
    job = sandbox.spawn(
        ["bash", "-c", "until test -e /tmp/go; do sleep 0.02; done; touch /tmp/went"]
    )
    with sandbox.fork() as copy:
        assert "sleep" not in copy.run(["bash", "-c", "cat /proc/[0-9]*/comm"]).output
    assert job.wait(0) is None
    sandbox.write("/tmp/go", b"")
    assert job.wait(20) == 0
    assert "/tmp/went" in sandbox.changes()


def test_a_new_sandbox_can_be_cloned_at_once() -> None:
    """The launcher is in a sandbox's group until it has forked it, and must not be frozen with
    it."""
    for _ in range(10):
        with shell(backend.tiers()[0]) as (sandbox, _), sandbox.fork() as copy:
            assert copy.run(["echo", "on"]).output == "on\n"


def test_a_clone_is_taken_while_processes_are_paused() -> None:
    count = "i=0; while :; do i=$((i+1)); echo $i > /tmp/a; echo $i > /tmp/b; done"
    with shell(backend.tiers()[0]) as (sandbox, session):
        session.run(f"({count}) > /dev/null 2>&1 &", 60)
        eventually(lambda: sandbox.run(["cat", "/tmp/b"]).ok, "it counts")
        for _ in range(5):
            with sandbox.fork() as copy:
                first, second = (copy.run(["cat", f"/tmp/{n}"]).output.strip() for n in "ab")
                assert int(first or second) - int(second or first) in (0, 1)
        before = sandbox.run(["cat", "/tmp/b"]).output
        eventually(lambda: sandbox.run(["cat", "/tmp/b"]).output != before, "it continues to count")


def test_a_very_deep_tree_can_be_cloned(sandbox: BaseSandbox) -> None:
    code = "import os\nos.chdir('/tmp')\nfor i in range(3000):\n os.mkdir('d'); os.chdir('d')"
    assert sandbox.run(["python3", "-c", code], timeout=30).ok
    with sandbox.fork() as copy:
        assert copy.changes() == sandbox.changes()


def test_sparse_files_can_be_cloned(sandbox: BaseSandbox) -> None:
    assert sandbox.run(["bash", "-c", "for i in {1..6}; do truncate -s 200M /tmp/$i; done"]).ok
    with sandbox.fork() as copy:
        assert copy.run(["stat", "-c", "%s", "/tmp/6"]).output == f"{200 << 20}\n"


SWAPS = r"""
import os, shutil
while True:
    for make in (lambda: open("t", "w"), lambda: os.symlink("/etc/passwd", "t"),
                 lambda: os.mkdir("t"), lambda: os.mkfifo("t")):
        make()
        try:
            os.unlink("a")
        except IsADirectoryError:
            os.rmdir("a")
        except FileNotFoundError:
            pass
        os.rename("t", "a")
"""


def test_a_path_that_keeps_changing_its_kind_does_not_fail_changes() -> None:
    with open_test_sandbox() as sandbox:
        sandbox.write("/tmp/swaps.py", SWAPS.encode())
        start = "mkdir /tmp/s; cd /tmp/s; python3 /tmp/swaps.py >/dev/null 2>&1 &"
        assert sandbox.run(["bash", "-c", start], timeout=10).ok
        seen: set[str] = set()
        for _ in range(2000):
            found = sandbox.changes().get("/tmp/s/a")
            seen |= {found.kind} if found else set()
        assert len(seen) > 1, f"nothing was swapped: {seen}"


SPARSE = """set -e; cd /tmp; truncate -s 2G 1
for i in 2 3 4 5 6; do truncate -s 256M $i; printf end >> $i; done; echo A > z"""
REWRITE = "cd /tmp; printf END | dd of=6 bs=1 seek=268435456 conv=notrunc; echo B > z"


def test_a_small_file_is_read_however_large_those_before_it_are() -> None:
    zeros = hashlib.sha256()
    for _ in range(256):
        zeros.update(bytes(1 << 20))
    ends = {text: zeros.copy() for text in ("end", "END")}
    for text, end in ends.items():
        end.update(text.encode())
    with open_test_sandbox(limits=Limits(file_size=1 << 32)) as sandbox:
        assert sandbox.run(["bash", "-c", SPARSE]).ok
        before = sandbox.changes()
        assert sandbox.run(["bash", "-c", REWRITE]).ok
        after = sandbox.changes()
    assert [path for path, entry in before.items() if entry.is_unread] == ["/tmp/1"]
    assert {before[f"/tmp/{i}"].digest for i in range(2, 7)} == {ends["end"].hexdigest()}
    assert (before["/tmp/z"].digest, after["/tmp/z"].digest) == (sha("A\n"), sha("B\n"))
    assert after["/tmp/6"].digest == ends["END"].hexdigest()


@pytest.mark.skipif(backend.is_container(), reason="a copy of the layer would not be sparse")
def test_a_file_of_the_image_that_is_unread_counts_as_changed(tmp_path: Path) -> None:
    root = tmp_path / "layer"
    large = root / "data" / "large"
    large.parent.mkdir(parents=True)
    root.chmod(0o755)
    large.touch(mode=0o644)
    os.truncate(large, 2 << 30)
    for path in (root, large.parent, large):
        os.chown(path, sandbox_uid(), sandbox_uid())
    layer = Layer(root, "large")  # as it is, because a copy would not be sparse
    spec = SandboxSpec(images.resolve("host"), layers=(layer,), limits=Limits(file_size=1 << 32))
    with open_sandbox(spec, "namespace") as sandbox:
        assert sandbox.changes() == {}
        changes = after(sandbox, "rm large; truncate -s 2G large")
    assert changes["/data/large"].is_unread and not changes["/data/large"].new
