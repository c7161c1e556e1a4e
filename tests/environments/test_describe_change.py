"""Descriptions of changed paths, and reading paths in lower layers, without a sandbox."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from intercode.core.types import FileEntry
from intercode.environments.base.diffs.file_diffs import (
    UNKNOWN_STATE,
    describe_change,
    unified_hunks,
)
from intercode.environments.base.diffs.lower_layers import MAX_FILE_BYTES, PathState, read_lower


def file(data: bytes, mode: int = 0o644) -> PathState:
    digest = hashlib.sha256(data).hexdigest()
    return PathState(
        FileEntry("file", mode, len(data), digest), data if len(data) <= MAX_FILE_BYTES else None
    )


@pytest.mark.skipif(not shutil.which("patch"), reason="needs the program patch")
def test_patch_accepts_the_hunks(tmp_path: Path) -> None:
    rng = random.Random(3)
    for _ in range(60):
        old = [rng.choice("abcdef") for _ in range(rng.choice([0, 1, 5, 20, 60]))]
        new = list(old)
        for _ in range(rng.randint(0, 4)):
            at = rng.randrange(len(new) + 1)
            new[at : at + rng.randint(0, 1)] = rng.choice([[], ["x"], ["a", "y"]])
        before, after = ("\n".join(x) + rng.choice(["", "\n"]) for x in (old, new))
        (tmp_path / "f").write_text(before)
        text = f"--- f\n+++ f\n{unified_hunks(before, after)}\n"
        if before != after:
            subprocess.run(
                ["patch", "-s", "-o", "g", "f"], input=text, text=True, check=True, cwd=tmp_path
            )
            patched = tmp_path / "g"
            assert (patched.read_text() if patched.exists() else "") == after
            patched.unlink(missing_ok=True)


def test_lines_end_at_newlines_only_and_a_missing_one_is_noted() -> None:
    assert (
        unified_hunks("a\x0bb\u2028c\n", "a\x0bb\u2028d\n")
        == "@@ -1 +1 @@\n-a\x0bb\u2028c\n+a\x0bb\u2028d"
    )
    marker = "\\ No newline at end of file"
    assert unified_hunks("a", "a\n") == f"@@ -1 +1 @@\n-a\n{marker}\n+a"
    assert unified_hunks("", "") == "" and unified_hunks("a\n", "a\n") == ""


def test_texts_that_are_too_long_to_match_give_a_correct_diff() -> None:
    old = "head\n" + "a\n" * 5000 + "tail\n"
    new = "head\n" + "b\n" * 4000 + "tail\n"
    lines = unified_hunks(old, new).split("\n")
    assert lines[:3] == ["@@ -1,5002 +1,4002 @@", " head", "-a"] and lines[-1] == " tail"
    assert lines.count("-a") == 5000 and lines.count("+b") == 4000


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (None, file(b"x\n"), "new file\n@@ -0,0 +1 @@\n+x"),
        (file(b"x"), None, "deleted: file of 1 byte"),
        (None, None, ""),
        (file(b"x"), file(b"x"), ""),
        (file(b"x"), file(b"x", 0o755), "mode 644, now 755"),
        (file(b"x\n"), file(b"y\n", 0o600), "mode 644, now 600\n@@ -1 +1 @@\n-x\n+y"),
        (file(b"a\0"), file(b"abc"), "binary, 3 bytes, 2 before"),
        (None, file(b"\xff\xfe"), "new file\nbinary, 2 bytes"),
        (
            file(b"a" * 65537),
            file(b"b"),
            "too large: 1 byte, 65537 before; up to 65536 are compared",
        ),
        (file(b"a" * 65537), file(b"a" * 65537, 0o600), "mode 644, now 600"),
        (UNKNOWN_STATE, file(b"b"), "changed; what it was before is not known here"),
        (UNKNOWN_STATE, None, "deleted: something not known here"),
        (file(b"b"), UNKNOWN_STATE, "as before the episode; what that was is not known here"),
        (file(b"b"), PathState(FileEntry("dir")), "file of 1 byte, now directory"),
        (
            PathState(FileEntry("link", target="a")),
            PathState(FileEntry("link", target="b\n")),
            "symbolic link to 'a', now to 'b\\n'",
        ),
        (None, PathState(FileEntry("fifo")), "new fifo"),
    ],
)
def test_descriptions(before: PathState | None, after: PathState | None, text: str) -> None:
    assert describe_change(before, after) == text


def test_lower_layers_are_read_without_following_links(tmp_path: Path) -> None:
    top, bottom, secret = (tmp_path / name for name in ("top", "bottom", "secret"))
    for path, text in (
        (top / "a/f", "top"),
        (bottom / "a/f", "bottom"),
        (bottom / "a/g", "g"),
        (secret / "f", "secret"),
        (bottom / "b/f", "hidden"),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (top / "b").symlink_to(secret)
    (bottom / "l").symlink_to(secret / "f")
    roots = [str(top), str(bottom)]
    for path, data in (("/a/f", b"top"), ("/a/g", b"g")):
        found = read_lower(roots, path)
        assert found is not None and found.data == data
    assert read_lower(roots, "/b/f") is None and read_lower(roots, "/none/x") is None
    link, folder = read_lower(roots, "/l"), read_lower(roots, "/a")
    assert link is not None and link.entry.target == str(secret / "f") and link.data is None
    assert folder is not None and folder.entry.kind == "dir"


def test_an_opaque_directory_hides_lower_layers(tmp_path: Path) -> None:
    for name in ("top/a", "bottom/a"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "bottom/a/f").write_text("x")
    roots = [str(tmp_path / "top"), str(tmp_path / "bottom")]
    assert read_lower(roots, "/a/f") is not None
    try:
        os.setxattr(tmp_path / "top/a", "user.overlay.opaque", b"y")
    except OSError as e:
        pytest.skip(f"needs a file system with user attributes: {e}")
    assert read_lower(roots, "/a/f") is None
