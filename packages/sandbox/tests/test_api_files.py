"""``intercode.Sandbox``: files, snapshots, saved sandboxes and images, on the tested back end."""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
import tarfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from intercode_sandbox import Limits, Sandbox
from intercode_sandbox.api import snapshots, transfer
from intercode_sandbox.backends import resolve_image
from intercode_sandbox.errors import DataError, SandboxError, SandboxLostError, UsageError
from intercode_sandbox.images.archives.tar import has_more_entries
from intercode_sandbox.images.archives.tree_writer import TreeWriter
from intercode_sandbox.platforms.paths import cache_root
from support import backend
from support.sandboxes import PATIENCE, layer_of, open_one
from support.time_limits import limit_at

pytestmark = pytest.mark.sandbox


def test_the_time_limit_of_a_command_does_not_end_a_download(tmp_path: Path) -> None:
    with open_one(env={"PATH": "/slow:/usr/bin:/bin"}) as sandbox:
        wait = "until [ -e {} ]; do sleep 0.05; done"
        tar = f'#!/bin/sh\n: > /begun\n{wait.format("/go")}\nPATH=/usr/bin:/bin\nexec tar "$@"\n'
        sandbox.write("/slow/tar", tar, 0o755)
        sandbox.write("/work/a", "a")
        code, started = f"echo; {wait.format('/begun')}; echo now; sleep 620", threading.Event()
        with ThreadPoolExecutor(2) as threads, limit_at("now"):
            command = threads.submit(
                sandbox.run, code, timeout=PATIENCE, on_output=lambda *_: started.set()
            )
            assert started.wait(PATIENCE)
            download = threads.submit(sandbox.download, "/work", tmp_path / "copy")
            assert command.result().timed_out
            sandbox.write("/go", "")
            assert download.result() == [] and (tmp_path / "copy" / "a").read_text() == "a"


def test_trees_are_copied_in_and_out(shared: Sandbox, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "sub" / "empty").mkdir(parents=True)
    (source / "dev").mkdir()
    (source / "dev" / "null").write_text("a file")
    (source / "sub" / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (source / "sub" / "run.sh").chmod(0o755)
    (source / "link").symlink_to("sub/run.sh")
    shared.upload(source, "/work/a b")
    assert shared.run(["/work/a b/link"]).stdout == "ran\n"
    shared.run("mkfifo pipe; ln -s /etc/passwd away; ln sub/run.sh hard", cwd="/work/a b")
    assert shared.download("/work/a b", tmp_path / "copy") == ["away", "pipe"]
    copied = {p.relative_to(tmp_path / "copy").as_posix() for p in (tmp_path / "copy").rglob("*")}
    assert copied == {"dev", "dev/null", "sub", "sub/empty", "sub/run.sh", "hard", "link"}
    assert os.readlink(tmp_path / "copy" / "link") == "sub/run.sh"
    assert (tmp_path / "copy" / "hard").read_text() == "#!/bin/sh\necho ran\n"
    assert os.access(tmp_path / "copy" / "sub" / "run.sh", os.X_OK)
    shared.upload(source / "sub" / "run.sh", "/work/one")
    assert shared.run(["/work/one"]).ok
    assert shared.download("/work/one", tmp_path / "one") == []
    assert (tmp_path / "one").read_bytes() == (source / "sub" / "run.sh").read_bytes()
    with pytest.raises(UsageError, match="is not empty"):
        shared.download("/work/a b", tmp_path / "copy")
    with pytest.raises(DataError, match="more than 10 bytes"):
        shared.download("/work/a b", tmp_path / "small", limit=10)


def test_links_inside_of_a_tree_are_copied_and_others_left_out(
    shared: Sandbox, tmp_path: Path
) -> None:
    inside = {
        "d/up": "../f",
        "d/e/top": "../../",
        "to-d": "d",
        "gone": "no/such/file",
        "self": ".",
        "through": "to-d/e/../../f",
        "d/loud": "./e//x",
    }
    outside = {
        "abs": "/etc/passwd",
        "back": "/work/links/f",
        "out": "../x",
        "d/far": "../../x",
        "d/e/by-top": "top/../x",
        "by-out": "out/y",
        "loop": "loop",
        "by-self": "d/../self/../x",
    }
    made = "mkdir -p d/e; echo 1 > f; echo 2 > d/e/x; " + "; ".join(
        f"ln -s '{target}' '{name}'" for name, target in {**inside, **outside}.items()
    )
    assert shared.run(f"mkdir -p /work/links && cd /work/links && {{ {made}; ln to-d hard; }}").ok
    out = tmp_path / "links"
    assert shared.download("/work/links", out) == sorted(outside)
    found = {
        p.relative_to(out).as_posix(): os.readlink(p) for p in out.rglob("*") if p.is_symlink()
    }
    assert found == {**inside, "hard": "d"}
    assert (out / "through").read_text() == "1\n"
    assert (out / "d/loud").read_text() == "2\n"
    assert all(p.resolve().is_relative_to(out.resolve()) for p in out.rglob("*"))


@pytest.mark.parametrize(
    "case", ["outside", "absolute", "through a link", "sparse", "garbage", "cut"]
)
def test_a_hostile_tar_in_the_sandbox_writes_nothing_outside(tmp_path: Path, case: str) -> None:
    """The sandbox's own tar is replaced by one that prints an archive of the attacker."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        if case == "through a link":
            link = tarfile.TarInfo("a")
            link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
            archive.addfile(link)
        outside = f"/tmp/{tmp_path.name}-x"
        name = {"outside": "../x", "absolute": outside, "through a link": "a/x"}.get(case, "x")
        entry = tarfile.TarInfo(name)
        entry.size = 3
        archive.addfile(entry, io.BytesIO(b"bad"))
        if case == "sparse":
            entry = tarfile.TarInfo("hole")
            entry.pax_headers = {"GNU.sparse.size": str(1 << 50), "GNU.sparse.map": "0,1"}
            entry.size = 1
            archive.addfile(entry, io.BytesIO(b"x"))
    data = b"\xff" * 5000 if case == "garbage" else made.getvalue()
    with open_one(env={"PATH": "/evil:/usr/bin:/bin"}) as sandbox:
        end = "exit 2" if case == "cut" else ""
        sandbox.write("/evil/tar", f"#!/bin/sh\ncat /evil/archive\n{end}\n", mode=0o755)
        sandbox.write("/evil/archive", data)
        sandbox.run("mkdir /work")
        target = tmp_path / "target"
        if case == "through a link":  # the link is left out, so that `a` is a directory
            assert sandbox.download("/work", target) == ["a"]
            assert (target / "a" / "x").read_bytes() == b"bad"
        else:
            with pytest.raises(SandboxError if case == "cut" else DataError):
                sandbox.download("/work", target)
        assert [p.name for p in tmp_path.iterdir()] in (["target"], [])
        assert not Path(outside).exists()


def test_snapshots_restore_and_open_and_forks_share_nothing() -> None:
    with open_one(env={"NAME": "value"}) as sandbox:
        sandbox.run("mkdir /work; echo 1 > /work/n")
        with sandbox.snapshot() as snapshot:
            sandbox.run("echo 2 > /work/n; echo 3 > /work/other")
            assert list(sandbox.changes()) == ["/work", "/work/n", "/work/other"]
            with Sandbox.from_snapshot(snapshot) as other:
                assert other.run("cat n; echo $NAME", cwd="/work").stdout == "1\nvalue\n"
            sandbox.restore(snapshot)
            size = snapshot.files.source.size()  # type: ignore[union-attr]
            files = f", {size[0]} bytes in {size[1]} files" if size else ""
            assert repr(snapshot) == f"<Snapshot of host, {sandbox.tier}{files}>"
        assert repr(snapshot) == "<Snapshot, closed>"
        assert list(sandbox.changes()) == ["/work", "/work/n"]
        forks = sandbox.fork(3)
        for i, fork in enumerate(forks):
            fork.write("/work/n", f"fork {i}")
        assert [fork.read("/work/n") for fork in forks] == [b"fork 0", b"fork 1", b"fork 2"]
        assert sandbox.read("/work/n") == b"1\n"
        for fork in forks:
            fork.close()
            fork.close()
            with pytest.raises(SandboxLostError):
                fork.run("true")


def test_a_saved_sandbox_is_loaded_with_what_it_changed_and_deleted(tmp_path: Path) -> None:
    path = tmp_path / "work.tar"
    with open_one() as sandbox:
        assert sandbox.run(
            "mkdir -p /work/d; seq 3 > /work/d/n; ln -s d /work/l; rm /etc/passwd"
        ).ok
        changes = sandbox.changes()
        sandbox.save(path)
        with pytest.raises(UsageError, match="exists already"):
            sandbox.save(path)
    with Sandbox.load(path, backend=backend.chosen()) as loaded:
        assert loaded.changes() == changes
        assert loaded.run("cat /work/l/n").stdout == "1\n2\n3\n"
        assert loaded.run("test -e /etc/passwd").exit_code == 1
        assert loaded.run("echo more >> /work/d/n").ok


@pytest.mark.parametrize("kind", ["directories", "links"])
def test_a_listing_without_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The program that lists the files of a download is one of the sandbox."""
    monkeypatch.setattr(transfer, "MAX_ENTRIES", 100)
    listing = io.BytesIO()
    with tarfile.open(fileobj=listing, mode="w") as archive:
        for number in range(200):
            entry = tarfile.TarInfo(f"d{number}")
            entry.type = tarfile.DIRTYPE if kind == "directories" else tarfile.SYMTYPE
            entry.linkname = "" if kind == "directories" else "target"
            archive.addfile(entry)
    with open_one(env={"PATH": "/own:/usr/bin:/bin"}) as sandbox:
        sandbox.write("/work/many", listing.getvalue())
        sandbox.write("/own/tar", "#!/bin/sh\nexec cat /work/many\n", 0o755)
        with pytest.raises(DataError, match="more than 100 entries: download parts of it"):
            sandbox.download("/work", tmp_path / "got")


def test_a_process_that_is_killed_while_it_saves_leaves_no_file(tmp_path: Path) -> None:
    code = (
        "import os, sys; from intercode_sandbox import Sandbox\n"
        "from intercode_sandbox.api import snapshots\n"
        "def write(base, out, text, _): out.write(text); out.flush(); os.kill(os.getpid(), 9)\n"
        "snapshots._write = write\n"
        "Sandbox(backend=sys.argv[2]).save(sys.argv[1] + '/saved')"
    )
    command = [sys.executable, "-c", code, str(tmp_path), backend.chosen()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, os.listdir(tmp_path)) == (-9, []), done.stderr


def test_a_file_that_appears_meanwhile_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, write, opened = tmp_path / "saved", snapshots._write, os.open

    def without_unnamed(file: Any, flags: int, *rest: Any, **more: Any) -> int:
        if file == tmp_path and flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
        return opened(file, flags, *rest, **more)

    def make_another(base: Any, out: Any, *more: Any) -> None:
        write(base, out, *more)
        path.write_text("another")

    with open_one() as sandbox:
        with monkeypatch.context() as here:
            here.setattr(snapshots, "_write", make_another)
            with pytest.raises(SandboxError, match="File exists"):
                sandbox.save(path)
        assert path.read_text() == "another" and os.listdir(tmp_path) == ["saved"]
        monkeypatch.setattr(os, "open", without_unnamed)
        sandbox.save(tmp_path / "more")
        assert sorted(os.listdir(tmp_path)) == ["more", "saved"]


@pytest.mark.namespace_only("elsewhere no file system limits a sandbox: it is measured")
def test_a_file_stays_as_it_was_if_the_disk_has_no_room_for_its_new_content() -> None:
    with open_one(limits=Limits(disk=8 << 20)) as sandbox:
        sandbox.write("/d/kept", "old content")
        assert sandbox.run("ln /d/kept /d/linked; stat -c %b /d/kept > /d/blocks").ok
        with pytest.raises(OSError, match="No space left"):
            sandbox.write("/d/kept", bytes(20 << 20))
        assert sandbox.read("/d/kept") == b"old content"
        assert sandbox.run("stat -c %b /d/kept | cmp - /d/blocks").ok
        sandbox.write("/d/kept", "new")
        assert sandbox.read("/d/linked") == b"new"


def test_what_a_sandbox_saves_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "work.tar"
    sparse = "truncate -s 20M /tmp/a /tmp/b"
    with open_one(limits=Limits(disk=16 << 20)) as sandbox, sandbox.snapshot() as empty:
        assert sandbox.run(sparse).ok
        with sandbox.snapshot() as snapshot:
            for saves in (sandbox.save, snapshot.save):
                with pytest.raises(DataError, match="a larger `limit`"):
                    saves(path)
                assert os.listdir(tmp_path) == []
            snapshot.save(path, limit=40 << 20)
        changes = sandbox.changes()
        sandbox.restore(empty)
        sandbox.save(tmp_path / "empty", limit=0)
    with Sandbox.load(path, backend=backend.chosen()) as loaded:
        assert loaded.changes() == changes


def test_a_saved_sandbox_of_too_many_files_is_refused_before_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    make = TreeWriter.file

    def note(self: TreeWriter, name: str, *rest: Any) -> None:
        make(self, name, *rest)
        written.append(name)

    with open_one() as sandbox:
        sandbox.run("mkdir -p /work/many && cd /work/many && touch $(seq 500)")
        sandbox.save(tmp_path / "saved")
    monkeypatch.setattr(TreeWriter, "file", note)
    with pytest.raises(DataError, match=r"more than 100 entries: .*=Limits\(inodes=200\)"):
        Sandbox.load(tmp_path / "saved", backend=backend.chosen(), limits=Limits(inodes=100))
    assert written == []


def test_entries_are_counted_only_where_the_headers_tell_their_sizes() -> None:
    def archive(entries: int, **headers: str) -> bytes:
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for number in range(entries):
                entry = tarfile.TarInfo(f"f{number}")
                entry.size, entry.pax_headers = 700, headers
                tar.addfile(entry, io.BytesIO(b"x" * 700))
        return out.getvalue()

    for headers in ({}, {"mtime": "1.5"}, {"comment": "x" * 2000}):
        assert has_more_entries(io.BytesIO(archive(5, **headers)), 4)
        assert not has_more_entries(io.BytesIO(archive(5, **headers)), 5)
    for headers in ({"size": "700"}, {"GNU.sparse.major": "1"}):
        assert not has_more_entries(io.BytesIO(archive(5, **headers)), 4)
    assert not has_more_entries(io.BytesIO(b"\xff" * 2000), 0)


def test_a_save_that_fails_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(out: Any, _: Path) -> None:
        out.write(b"x" * 100_000)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with open_one() as sandbox:
        with pytest.raises(UsageError, match=r"none/a.*No such file"):
            sandbox.save(tmp_path / "none" / "a")
        monkeypatch.setattr(snapshots, "write_layer", fill)
        with pytest.raises(SandboxError, match=r"not saved to .*full\.tar: .*No space"):
            sandbox.save(tmp_path / "full.tar")
        assert not list(tmp_path.iterdir())
        (tmp_path / "old").write_text("old")
        with pytest.raises(UsageError, match="exists already"):
            sandbox.save(tmp_path / "old")


def hostile(path: Path, digest: str, *entries: tarfile.TarInfo, metadata: bytes = b"") -> Path:
    """Write a saved file whose layer has these entries."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as inner:
        for entry in entries:
            inner.addfile(entry, io.BytesIO(b"x" * entry.size))
    text = metadata or json.dumps({"v": 1, "image": "host", "image_digest": digest}).encode()
    with tarfile.open(path, "w") as archive:
        for name, data in (("sandbox.json", text), ("files.tar", layer.getvalue())):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


def entry_of(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, target
    return entry


def test_a_saved_file_of_an_attacker_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = resolve_image("host").digest
    monkeypatch.setenv("INTERCODE_CACHE", str(tmp_path / "cache"))  # other tests save files too
    link = entry_of("a", tarfile.SYMTYPE, str(tmp_path))
    assert cache_root() == tmp_path / "cache"
    before = os.listxattr(tmp_path)
    refused = {
        "outside the tree": [entry_of("../x")],
        "goes through 'a'": [link, entry_of("a/x")],
        "'a', which": [link, entry_of("a/.wh..wh..opq")],
        "not a directory": [link, entry_of("a/.wh.x")],
        "marks no name": [entry_of("b", tarfile.DIRTYPE), entry_of("b/.wh...")],
        "not an earlier file": [entry_of("b", tarfile.LNKTYPE, "etc/passwd")],
    }
    for number, (message, entries) in enumerate(refused.items()):
        with pytest.raises(DataError, match=message):
            Sandbox.load(hostile(tmp_path / f"{number}.tar", digest, *entries))
    for metadata, message in [
        (b"{", "is not JSON"),
        (b"[" * 60000, "is not JSON"),
        (b"[]", "is not an object"),
        (b'{"v": 9}', "format version '9'"),
        (b" " * 100_000, "has 100000 bytes"),
    ]:
        path = hostile(tmp_path / f"m{len(metadata)}.tar", digest, metadata=metadata)
        with pytest.raises(DataError, match=message):
            Sandbox.load(path)
    with pytest.raises(UsageError, match="changes of the image 'host' with the digest 'other'"):
        Sandbox.load(hostile(tmp_path / "other.tar", "other"))
    with pytest.raises(UsageError, match="there is no file"):
        Sandbox.load(tmp_path / "none.tar")
    (tmp_path / "garbage").write_bytes(b"\xff" * 2000)
    with pytest.raises(DataError, match="is no saved sandbox"):
        Sandbox.load(tmp_path / "garbage")
    assert os.listxattr(tmp_path) == before
    assert not list(cache_root().glob("saved-*"))


def test_an_image_is_built_from_a_dockerfile(tmp_path: Path) -> None:
    (tmp_path / "greeting").write_text("hello\n")
    (tmp_path / "Dockerfile").write_text(
        "FROM host\nCOPY greeting /srv/\nENV NAME=value\nWORKDIR /srv\nRUN echo ran > made\n"
    )
    kind = backend.chosen()
    with Sandbox(f"dockerfile:{tmp_path}", backend=kind) as sandbox:
        assert (
            sandbox.run("pwd; echo $NAME; cat greeting made").output == "/srv\nvalue\nhello\nran\n"
        )
        assert not sandbox.changes()


def test_files_are_described_listed_and_removed_without_a_shell() -> None:
    with open_one() as sandbox:
        sandbox.write("/work/é\n", "four", 0o640)
        sandbox.run("cd /work; mkdir -m 0 closed; ln -s 'é\n' link; ln -s none broken; mkfifo pipe")
        found = sandbox.list_files("/work/../work/")
        assert {name: info.kind for name, info in found.items()} == {
            "broken": "link",
            "closed": "dir",
            "link": "link",
            "pipe": "fifo",
            "é\n": "file",
        }
        info = sandbox.stat("/work/link")
        assert (info.kind, info.mode, info.size) == ("file", 0o640, 4)
        assert info == found["é\n"]
        assert sandbox.stat("/work/link", follow=False).target == "é\n"
        assert sandbox.exists("/work/link") and not sandbox.exists("/work/broken")
        assert not sandbox.exists("/work/link/below")
        assert sandbox.list_files("/work/closed") == {}
        assert sandbox.stat("/work/closed").mode == 0  # not changed by having been listed
        for path, error in (("/none", FileNotFoundError), ("/work/pipe", NotADirectoryError)):
            with pytest.raises(error, match=path):
                sandbox.list_files(path)
        with pytest.raises(IsADirectoryError, match="recursive=True"):
            sandbox.remove("/work/closed")
        with pytest.raises(FileNotFoundError, match="/work/none"):
            sandbox.remove("/work/none")
        sandbox.remove("/work/link")
        sandbox.remove("/work/é\n")
        sandbox.remove("/work", recursive=True)
        assert not sandbox.exists("/work")
        with pytest.raises(UsageError, match="absolute"):
            sandbox.exists("work")


def test_a_directory_that_changes_meanwhile_is_listed(shared: Sandbox) -> None:
    change = "while :; do for i in 1 2 3 4; do : > c$i; rm c$i; ln -s /etc c$i; rm c$i; done; done"
    with shared.spawn(change, cwd="/tmp") as process:
        for _ in range(200):
            for name, info in shared.list_files("/tmp").items():
                assert info.kind in ("file", "link") or not name.startswith("c")
        assert process.wait(0) is None


def test_removing_needs_no_rm_and_does_not_believe_one() -> None:
    with open_one(env={"PATH": "/own:/usr/bin:/bin"}) as sandbox:
        sandbox.write("/own/rm", "#!/bin/sh\nexit 0\n", 0o755)
        sandbox.write("/work/deep/a", "a")
        with pytest.raises(PermissionError, match="still there"):
            sandbox.remove("/work", recursive=True, user="root")
        sandbox.write("/own/rm", "#!/nothing\n", 0o755)
        with pytest.raises(SandboxError, match="no program rm"):
            sandbox.remove("/work/deep/a", user="root")
        sandbox.remove("/work/deep/a")
        sandbox.remove("/work", recursive=True)
        assert not sandbox.exists("/work")
        with pytest.raises(UsageError, match="root directory"):
            sandbox.remove("//", recursive=True)


def test_removing_stays_in_the_sandbox_and_leaves_its_mounts(shared: Sandbox) -> None:
    shared.run("mkdir -p /mine/tree /kept; echo a > /kept/a; ln -s /kept /mine/tree/link")
    shared.run("ln -s /proc /mine/proc; ln -s /mine /mine/tree/up; ln /kept/a /mine/tree/a")
    deep = f"cd /mine/tree; for i in $(seq 300); do mkdir {'d' * 40}; cd {'d' * 40}; done"
    assert shared.run(["/bin/bash", "-c", deep]).ok
    shared.remove("/mine/tree/", recursive=True)
    assert list(shared.list_files("/mine")) == ["proc"] and shared.read("/kept/a") == b"a\n"
    paths = ["/proc/1", "/mine/proc/sys", "/dev", "/mine/..", "/mine/."]
    if backend.chosen() != "chroot":  # there these are empty directories of the sandbox
        paths += ["/proc", "/sys"]
    for path in paths:
        with pytest.raises(OSError):
            shared.remove(path, recursive=True)
    assert shared.run("echo $$ > /dev/null; test -d /proc -a -c /dev/zero -a -d /dev/shm").ok
    shared.write("/dev/shm/a", "a")
    shared.remove("/dev/shm/a")
    shared.remove("/mine/proc")
    assert not shared.exists("/mine/proc")


def test_a_deep_directory_of_the_image_is_removed(tmp_path: Path) -> None:
    deep = tmp_path / "layer" / "deep"
    deep.joinpath(*["d"] * 100).mkdir(parents=True)
    (deep / "a").touch()
    with open_one(layers=(layer_of(tmp_path / "layer"),)) as sandbox:
        sandbox.remove("/deep", recursive=True)
        assert not sandbox.exists("/deep")


def test_removing_changes_no_other_mode_and_follows_no_link(shared: Sandbox) -> None:
    shared.run("mkdir -p /modes/closed /modes/dir; echo a > /modes/file; chmod 400 /modes/file")
    shared.run("cd /modes/closed; ln ../file hard; ln -s ../file link; ln -s ../dir dir")
    shared.run("chmod 0 /modes/closed")
    shared.remove("/modes/closed/hard")
    shared.remove("/modes/closed/link")
    with pytest.raises(NotADirectoryError):
        shared.remove("/modes/closed/dir/", recursive=True)
    assert shared.stat("/modes/file").mode == 0o400 and shared.stat("/modes/closed").mode == 0
    assert shared.stat("/modes/closed/dir", follow=False).kind == "link"
    shared.remove("/modes", recursive=True)
    assert not shared.exists("/modes")


def test_what_is_removed_by_others_meanwhile_is_no_error(shared: Sandbox) -> None:
    code = """
import os
while True:
    for change in (os.mkdir, os.rmdir):
        for i in range(60):
            try: change(f"/gone/a/{i}")
            except OSError: pass
"""
    shared.run("mkdir /gone")
    with shared.spawn(["python3", "-c", code]) as process:
        for _ in range(60):
            shared.run("mkdir -p /gone/a")
            try:
                shared.remove("/gone/a", recursive=True)
            except OSError as e:
                assert e.errno == errno.ENOTEMPTY, e
        assert process.wait(0) is None


def test_a_directory_that_is_swapped_for_a_link_is_not_removed_through_it(shared: Sandbox) -> None:
    swap = "while :; do mkdir d; touch d/x; rm -r d; ln -s /kept d; rm d; done 2>/dev/null"
    shared.run("mkdir -p /race /kept; echo a > /kept/a")
    with shared.spawn(swap, cwd="/race") as process:
        for _ in range(300):
            with suppress(OSError):
                shared.remove("/race/d", recursive=True)
        assert process.wait(0) is None
    assert shared.read("/kept/a") == b"a\n"


def test_a_time_beyond_nanoseconds_is_told(shared: Sandbox) -> None:
    shared.run("touch -d @99999999999 /tmp/late")
    assert shared.stat("/tmp/late").modified > 2e9
