"""Files and processes of remote sandboxes that outlive them: saved files and checkpoints."""

from __future__ import annotations

import errno
import os
import platform
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

import intercode
from intercode_sandbox import SandboxSpec, check_sandbox, open_sandbox, resolve_image
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.errors import DataError, SandboxError
from intercode_sandbox.remote import files
from intercode_sandbox.remote.files import pack_files, unpack_files
from intercode_sandbox.types import Layer
from support.sandbox_server import ServerProcess, serving_sandboxes
from support.sandboxes import eventually

pytestmark = [pytest.mark.sandbox, pytest.mark.namespace_only]
needs_checkpoints = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="checkpoints need x86-64"
)
CHANGES = """
cd /data
rm file && rm -r dir && mkdir dir && echo new > dir/new
mkdir -m 750 made && echo text > made/a && ln made/a made/b && ln -s a made/c && mkfifo made/d
chmod 600 made/a && touch -d @1234567890.5 made/a && touch "$(printf '\\377')"
"""


def test_saved_files_are_opened_here_and_there(
    remote: ServerProcess, tree: Layer, tmp_path: Path
) -> None:
    spec = SandboxSpec(resolve_image("host", remote.kind), (tree,))
    saved, here = tmp_path / "remote", tmp_path / "here"
    saved.mkdir()
    here.mkdir()
    with open_sandbox(spec, remote.kind) as sandbox:
        assert sandbox.run(CHANGES).ok
        changes = sandbox.changes()
        assert {"/data/file", "/data/dir/a", "/data/made/d"} < changes.keys()
        sandbox.save(saved)
    local = SandboxSpec(resolve_image("host"), (tree,))
    with open_sandbox(spec, remote.kind, saved) as there:
        assert there.changes() == changes
        assert there.run("stat -c %y /data/made/a").output.startswith("2009-02-13 23:31:30.5")
    with open_sandbox(local, "namespace", saved) as opened:
        assert opened.changes() == changes
        opened.save(here)
    with open_sandbox(spec, remote.kind, here) as there:
        assert there.changes() == changes


def test_a_snapshot_on_disk_is_played_on_at_a_server(remote: ServerProcess, tmp_path: Path) -> None:
    for name, code, shown in (
        ("bash", "x=kept; echo y > /tmp/f", "echo $x; cat /tmp/f"),
        ("python", "x = 'kept'; open('/tmp/f', 'w').write('y')", "x, open('/tmp/f').read()"),
    ):
        with intercode.make(name, "starter", backend=remote.kind) as env:
            env.reset(seed=1, options={"task": 0})
            env.step(code)
            with env.snapshot() as snapshot:
                env.save_snapshot(snapshot, tmp_path / name)
            expected = env.step(shown)[0]
            env.restore(env.load_snapshot(tmp_path / name))
            assert env.step(shown)[0] == expected and "kept" in expected


def test_the_files_that_are_sent_are_bounded(remote: ServerProcess, tmp_path: Path) -> None:
    with BaseSandbox.open("host", remote.kind) as sandbox:
        for code, reason in (
            ("truncate -s 200M /tmp/large", "the most that are sent"),
            ("rm /tmp/large; touch /tmp/.wh.x", "mean deleted files"),
        ):
            assert sandbox.run(code).ok
            with pytest.raises(SandboxError, match=reason):
                sandbox.save(tmp_path)
        assert list(tmp_path.iterdir()) == []
        assert sandbox.run("echo again").output == "again\n"


def _archive(*entries: tuple[tarfile.TarInfo, bytes], mode: str = "w") -> bytes:
    out = BytesIO()
    with tarfile.open(fileobj=out, mode=mode, format=tarfile.PAX_FORMAT) as archive:  # type: ignore[call-overload]
        for entry, data in entries:
            entry.size = len(data)
            archive.addfile(entry, BytesIO(data))
    return out.getvalue()


def _entry(name: str, **fields: object) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    for field, value in fields.items():
        setattr(entry, field, value)
    return entry


def test_a_hostile_archive_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = _entry("up", type=tarfile.SYMTYPE, linkname="..")
    holes = {"GNU.sparse.map": "0,1", "GNU.sparse.size": str(8 << 20)}
    for number, data in enumerate(
        (
            _archive((_entry("../x"), b"")),
            _archive((link, b""), (_entry("up/x"), b"")),
            _archive((link, b""), (_entry("up/.wh.x"), b"")),
            _archive((_entry(".wh..."), b"")),
            _archive((_entry("holes", pax_headers=holes), b"x")),
            _archive((_entry("x"), b"x"), mode="w:gz"),
            b"no archive",
        )
    ):
        target = tmp_path / str(number) / "inner"
        target.mkdir(parents=True)
        with pytest.raises(DataError):
            unpack_files(data, target)
        assert [path.name for path in target.parent.iterdir()] == ["inner"]
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "f").write_bytes(b"x" * 20_000)
    monkeypatch.setattr(files, "MAX_BODY", 20_000)
    with pytest.raises(SandboxError, match="more than 20000 bytes"):
        pack_files(tmp_path / "files")


@needs_checkpoints
def test_a_live_interpreter_continues_in_another_sandbox(remote: ServerProcess) -> None:
    """The actions would give another random value if they ran again."""
    with intercode.make("python", "starter", backend=remote.kind) as env:
        env.reset(seed=1, options={"task": 0})
        env.step("import os\nvalue = os.urandom(8)")
        expected = env.step("value")[0]
        for copy in env.fork(2):
            with copy:
                assert copy.step("value")[0] == expected


@needs_checkpoints
def test_a_server_keeps_one_checkpoint_of_a_sandbox(remote: ServerProcess) -> None:
    with (
        BaseSandbox.open("host", remote.kind) as sandbox,
        BaseSandbox.open("host", remote.kind) as other,
    ):
        process = sandbox.spawn(["sleep", "600"])
        state = f"cut -d ' ' -f 2,3 /proc/{process.pid}/stat"
        eventually(lambda: sandbox.run(state).output == "(sleep) S\n", "it sleeps")
        first = sandbox.checkpoint(process.pid, ())
        with pytest.raises(OSError) as caught:
            sandbox.checkpoint(process.pid, ())
        assert caught.value.errno == errno.EAGAIN
        first.close()
        sandbox.checkpoint(process.pid, ())
        sandbox.close(wait=True)
        with pytest.raises(SandboxError):
            other.spawn(["sleep", "600"], checkpoint=first)
        assert other.run("echo again").output == "again\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="the tier chroot needs root")
@pytest.mark.slow("long")
def test_a_server_whose_programs_cannot_open_descriptors() -> None:
    with serving_sandboxes("--backend=chroot") as server:
        spec = SandboxSpec(resolve_image("host", server.kind))
        check_sandbox(lambda: open_sandbox(spec, server.kind))
        for environment in ("bash", "python"):
            with intercode.make(environment, "starter", backend=server.kind) as env:
                for task in range(3):
                    env.reset(seed=1, options={"task": task})
                    env.step(env.task.solution)
                    assert env.score().value == 1, env.task.id
