"""Users of a sandbox besides root: what they may do, their files, and that they cannot get out."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from intercode_sandbox import Sandbox, SandboxPool, SandboxSpec, check_sandbox, images, open_sandbox
from intercode_sandbox.errors import SandboxUnavailableError, UsageError
from intercode_sandbox.images.archives.directory import walk_entries
from intercode_sandbox.images.build import built_images
from intercode_sandbox.images.build.on_demand import resolve_or_build
from intercode_sandbox.images.cache import set_user_id_trees
from intercode_sandbox.namespace.launcher import Launcher
from intercode_sandbox.namespace.sandbox import NamespaceSandbox
from intercode_sandbox.platforms.paths import cache_root
from intercode_sandbox.supervisor.runtime.user_ids import FIRST_RANGE, RANGE_SIZE
from support.ordinary_user import run_as_ordinary_user
from support.sandboxes import eventually
from support.users import has_set_user_id

pytestmark = [pytest.mark.sandbox, pytest.mark.namespace_only("other back ends have one user")]

NOBODY = 65534


@pytest.fixture(scope="module", autouse=True)
def _need_users() -> None:
    try:
        Launcher.get(users=True)
    except SandboxUnavailableError as e:
        pytest.skip(f"sandboxes have one user: {e}")


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox("host", users=True) as opened:
        yield opened


def open_with_users() -> NamespaceSandbox:
    return NamespaceSandbox(SandboxSpec(images.resolve("host"), users=True))


def test_it_satisfies_the_contract() -> None:
    check_sandbox(open_with_users)


def test_a_user_is_named_by_the_files_of_the_sandbox(sandbox: Sandbox) -> None:
    sandbox.run("echo 'bob:x:1234:1235::/home/bob:/bin/sh' >> /etc/passwd")
    sandbox.run("printf 'bob:x:1235:\\nweb:x:44:alice,bob\\n' >> /etc/group")
    code = "id -u; id -G; echo $HOME $USER"
    expected = "1234\n1235 44\n/home/bob bob\n"
    assert sandbox.run(code, user="bob").output == expected
    assert sandbox.run(code, user=1234).output == expected
    assert sandbox.run(code, user=777).output == "777\n777\n/ 777\n"
    assert sandbox.run("id -u; id -G", user="bob:web").output == "1234\n44\n"
    assert sandbox.run("id -u; id -G", user="1000:2000").output == "1000\n2000\n"
    assert sandbox.run("echo $HOME", user="bob", env={"HOME": "/x"}).output == "/x\n"
    for unknown in ("carol", 65536, "-1", "bob:none"):
        with pytest.raises(UsageError, match=f"no user '{unknown}'"):
            sandbox.run("true", user=unknown)
    with sandbox.spawn("tty -s && id -u", user="bob", terminal=True) as process:
        assert "".join(text for text, _ in process.output(60)) == "1234\r\n"


def test_modes_and_owners_bind_a_user(sandbox: Sandbox) -> None:
    """And what it reads is its own: `chown` has an effect in a sandbox with users."""
    sandbox.write("/work/secret", "root's", mode=0o600)
    sandbox.write("/work/given", "nobody's", mode=0o600)
    sandbox.run("chown nobody /work/given; sleep 600 > /dev/null 2>&1 & echo $! > /work/pid")
    code = "cat given secret; touch new; kill $(cat pid); kill -STOP 1; echo > /dev/stdout"
    result = sandbox.run(code, cwd="/work", user="nobody")
    assert result.stdout == "nobody's\n"
    assert result.stderr.count("Permission denied") == 2
    assert result.stderr.count("Operation not permitted") == 2
    assert len(sandbox.base.processes()) == 1


def test_files_are_read_and_written_with_the_rights_of_a_user(sandbox: Sandbox) -> None:
    sandbox.run("mkdir -m 777 /shared; mkfifo -m 666 /shared/pipe")
    sandbox.write("/shared/roots", "root's", mode=0o600)
    sandbox.write("/shared/open", "old", mode=0o666)
    big = bytes(3 << 20)
    sandbox.write("/shared/new/own", big, mode=0o640, user="nobody")
    sandbox.write("/shared/open", "new", user="nobody")
    shown = sandbox.run("stat -c '%U %a' new new/own open", cwd="/shared").stdout
    assert shown.splitlines() == ["nobody 755", "nobody 640", "root 666"]
    assert sandbox.read("/shared/new/own", user="nobody") == big
    assert sandbox.read("/shared/open", user=NOBODY) == b"new"
    for path, error in (
        ("/shared/roots", PermissionError),
        ("/shared", IsADirectoryError),
        ("/shared/none", FileNotFoundError),
        ("/shared/pipe", OSError),
    ):
        with pytest.raises(error, match=path):
            sandbox.read(path, user="nobody")
    with pytest.raises(OSError, match="larger than 2 bytes"):
        sandbox.read("/shared/open", 2, user="nobody")
    for path, error in (
        ("/shared/roots", PermissionError),
        ("/own/file", PermissionError),
        ("/shared", IsADirectoryError),
    ):
        with pytest.raises(error, match=path):
            sandbox.write(path, "x", user="nobody")
    assert sandbox.read("/shared/roots") == b"root's"


def test_a_program_of_the_sandbox_that_writes_without_end_is_stopped() -> None:
    with Sandbox("host", users=True, env={"PATH": "/own:/usr/bin:/bin"}) as sandbox:
        sandbox.write("/work/small", "small", 0o644)
        assert sandbox.read("/work/small", 100, user="nobody") == b"small"
        sandbox.write("/own/head", "#!/bin/sh\nexec yes\n", 0o755)
        with pytest.raises(PermissionError):
            sandbox.read("/work/small", 100, user="nobody")


def test_root_changes_to_other_users_and_they_to_nobody(sandbox: Sandbox) -> None:
    """Only where a control group limits all users together."""
    code = "import os\nfor n in (1000, 65536, 0):\n try: os.setresuid(n, n, 0)\n"
    code += " except OSError as e: print(type(e).__name__)\n else: print(os.getuid())"
    is_bounded = sandbox.tier == "namespace/1"
    changed = "1000\nOSError\n0\n" if is_bounded else "PermissionError\nOSError\n0\n"
    assert sandbox.run(["python3", "-c", code]).output == changed
    result = sandbox.run(["python3", "-c", code], user="nobody")
    assert result.output == "PermissionError\nOSError\nPermissionError\n"
    become = "setpriv --reuid=7 --regid=8 --groups=9 --"
    done = sandbox.run(f"{become} sh -c 'id -u; id -G; touch /tmp/x'")
    owned = sandbox.run("stat -c '%u %g' /tmp/x").stdout
    assert (done.stdout, owned) == (("7\n8 9\n", "7 8\n") if is_bounded else ("", ""))


def test_a_set_user_id_program_has_an_effect_where_root_can_change_the_user(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    """In sandboxes that root opens with a control group. Copies in a sandbox keep the bit, and
    copies on the machine, which belong to the user of this process, do not."""
    is_effective = has_set_user_id(sandbox.tier)
    program = "cp /bin/bash /tmp/set-id && chown 1000:1000 /tmp/set-id && chmod 6755 /tmp/set-id"
    assert sandbox.run(program).ok
    code = [
        "/tmp/set-id",
        "-p",
        "-c",
        "echo $EUID; grep -E 'NoNewPrivs|Seccomp:' /proc/self/status",
    ]
    with sandbox.snapshot() as snapshot, Sandbox.from_snapshot(snapshot) as copy:
        for place, user in ((sandbox, None), (sandbox, "nobody"), (copy, "nobody")):
            own = NOBODY if user else 0
            words = place.run(code, user=user).stdout.split()
            expected = ["1000", "0"] if is_effective else [str(own), "1"]
            assert words == [expected[0], "NoNewPrivs:", expected[1], "Seccomp:", "2"], user
    sandbox.base.save(tmp_path)
    assert stat.S_IMODE((tmp_path / "tmp" / "set-id").stat().st_mode) == 0o755
    sandbox.save(tmp_path / "saved")
    with Sandbox.load(tmp_path / "saved", users=True) as loaded:
        assert loaded.run("stat -c %a:%u /tmp/set-id").output == "755:0\n"


def test_set_user_id_programs_of_an_image(tmp_path: Path) -> None:
    """Everybody could run them with the rights of their owner, so the stored files lack the bit.
    Those that have it lie in a directory of the user of this process alone."""
    (tmp_path / "Dockerfile").write_text(
        "FROM host AS first\n"
        "RUN mkdir -p /opt/a && for name in kept replaced; do\\\n"
        "  cp /bin/bash /opt/a/$name && chmod 4755 /opt/a/$name; done\n"
        "FROM host\n"
        "COPY --from=first /opt/a /opt/a\n"
        "COPY --chmod=4755 script /opt/a/script\n"
        "RUN rm /opt/a/replaced && cp /bin/bash /opt/a/replaced && mv /opt/a/script /opt/a/moved\n"
        + "COPY script /opt/\n"
        * 12
    )
    (tmp_path / "script").write_text("#!/bin/sh\n")
    image = resolve_or_build(f"dockerfile:{tmp_path}")
    try:
        with Sandbox.from_base(NamespaceSandbox(SandboxSpec(image, users=True))) as sandbox:
            modes = sandbox.run("stat -c '%a %n' *", cwd="/opt/a").output
            assert modes == "4755 kept\n4755 moved\n755 replaced\n"
            for name, expected in (("kept", 0), ("replaced", NOBODY)):
                shown = sandbox.run([f"/opt/a/{name}", "-p", "-c", "echo $EUID"], user="nobody")
                is_effective = has_set_user_id(sandbox.tier)
                assert shown.output == f"{expected if is_effective else NOBODY}\n", name
            assert not sandbox.changes()
        with Sandbox.from_base(NamespaceSandbox(SandboxSpec(image))) as sandbox:
            assert sandbox.run("stat -c %a /opt/a/kept").output == "755\n"
        layers = [layer.root for layer in image.layers]
        for layer in layers:
            assert all(not info.st_mode & stat.S_ISUID for _, info in walk_entries(layer))
        trees = [tree for tree in set_user_id_trees.insert_programs(layers) if tree not in layers]
        assert {stat.S_IMODE(tree.parent.stat().st_mode) for tree in trees} == {0o700}
    finally:
        for record in built_images.built_images():
            if record.spec == image.name:
                built_images.delete_built_image(record)


def test_no_file_of_the_machine_is_a_set_user_id_program(sandbox: Sandbox, tmp_path: Path) -> None:
    """Neither one that the sandbox shows, nor what an upload or download carries over."""
    mounts = [line.split() for line in sandbox.run("cat /proc/mounts").stdout.splitlines()]

    can_set = {where for _, where, _, options, *_ in mounts if "nosuid" not in options.split(",")}
    files = {where for where in can_set if not where.startswith("/proc/")}
    assert len(mounts) > 5 and files == ({"/"} if has_set_user_id(sandbox.tier) else set())
    (tmp_path / "up").mkdir()
    (tmp_path / "up" / "program").write_text("#!/bin/sh\n")
    (tmp_path / "up" / "program").chmod(0o4755)
    sandbox.upload(tmp_path / "up", "/srv/up")
    assert sandbox.run("stat -c %a /srv/up/program; chmod 4755 /srv/up/program").output == "755\n"
    sandbox.download("/srv/up", tmp_path / "down")
    downloaded = tmp_path / "down" / "program"
    assert stat.S_IMODE(downloaded.stat().st_mode) == 0o755 and not os.listxattr(downloaded)


def test_a_cache_that_is_read_only_has_no_set_user_id_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tree of a layer that the cache does not have; the failing function is a mock."""

    def fail(*_: object) -> Path:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(set_user_id_trees, "cached_tree", fail)
    layer = cache_root() / "layers" / tmp_path.name
    layer.mkdir(parents=True)
    try:
        assert set_user_id_trees.insert_programs([layer, tmp_path]) == [layer, tmp_path]
    finally:
        layer.rmdir()


def test_sandboxes_have_different_ids() -> None:
    """Where root opens them; those of an ordinary user have the same ones."""
    with open_with_users() as one, open_with_users() as other:
        if os.geteuid() != 0:
            assert one.user_id == other.user_id == os.geteuid()
            return
        firsts = {one.user_id, other.user_id}
        assert len(firsts) == 2
        assert all(first >= FIRST_RANGE and first % RANGE_SIZE == 0 for first in firsts)
        for sandbox in (one, other):
            inside = sandbox.run(["cat", "/proc/self/uid_map"]).output.split()
            assert inside == ["0", "0", "1", "1", "1", "65535"]  # not the ids of the machine
            maps = Path(f"/proc/{sandbox.supervisor_pid}")
            rows = [(maps / name).read_text().split() for name in ("uid_map", "gid_map")]
            first = sandbox.user_id
            assert rows == [["0", str(first), "1", "1", str(first + 1), str(RANGE_SIZE - 1)]] * 2


def test_files_keep_their_owners_and_can_be_reverted(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.run("mkdir -m 700 dir && touch dir/file && ln -s x dir/link", user="nobody", cwd="/tmp")
    owners = "find /tmp -mindepth 1 -printf '%U %m %f\\n' | sort"
    expected = f"{NOBODY} 644 file\n{NOBODY} 700 dir\n{NOBODY} 777 link\n"
    assert sandbox.run(owners).output == expected
    with sandbox.snapshot() as snapshot:
        sandbox.run("rm -r dir; touch later", user="nobody", cwd="/tmp")
        sandbox.restore(snapshot)
        assert sandbox.run(owners).output == expected
        with Sandbox.from_snapshot(snapshot) as opened:
            assert opened.run(owners).output == expected
            assert opened.run("ls /tmp/dir", user="nobody").output == "file\nlink\n"
    assert sandbox.read("/tmp/dir/file") == b"" and "/tmp/dir/file" in sandbox.changes()
    sandbox.save(tmp_path / "saved")
    with Sandbox.load(tmp_path / "saved", users=True) as loaded:
        assert loaded.run(owners).output == expected.replace(str(NOBODY), "0")
        assert loaded.run("id -u", user="nobody").output == f"{NOBODY}\n"
    sealed = sandbox.release().seal()
    with Sandbox.from_base(sealed.open()) as reopened:
        assert reopened.run(owners).output == expected
        assert reopened.run("echo > /tmp/dir/file && cat /tmp/dir/file", user="nobody").ok
    sealed.close()


def test_a_recycled_sandbox_has_nothing_of_its_users() -> None:
    with SandboxPool("host", size=1, recycle=True, users=True) as pool:
        with pool.sandbox() as sandbox:
            pid = sandbox.base.supervisor_pid  # type: ignore[attr-defined]
            sandbox.spawn("touch /tmp/x /dev/shm/y; sleep 600", user="nobody")
            eventually(lambda: sandbox.run("test -e /dev/shm/y").ok, "the user has begun")
        with pool.sandbox() as again:
            assert again.base.supervisor_pid == pid  # type: ignore[attr-defined]
            assert again.run("ls /tmp /dev/shm").output == "/dev/shm:\n\n/tmp:\n"
            assert again.base.processes() == () and not again.changes()


def test_a_user_that_forks_without_end_is_killed(sandbox: Sandbox) -> None:
    result = sandbox.run("f() { f | f & }; f & exec sleep 600", user="nobody", timeout=0.5)
    assert result.timed_out and sandbox.base.processes() == ()
    assert sandbox.run("id -u", user="nobody").output == f"{NOBODY}\n"


def test_what_has_one_user_says_so(tmp_path: Path) -> None:
    module = tmp_path / "own.py"
    module.write_text(
        "from dataclasses import replace\n"
        "from intercode_sandbox.namespace.sandbox import NamespaceSandbox\n"
        "def open(spec): return NamespaceSandbox(replace(spec, users=False))\n"
    )
    spec = SandboxSpec(images.resolve("host"), users=True)
    with pytest.raises(SandboxUnavailableError, match="has one user, root: use the back end"):
        open_sandbox(spec, f"{module}:open")
    with pytest.raises(SandboxUnavailableError, match="no users besides root if it keeps files"):
        NamespaceSandbox(spec, own_user=False)


@pytest.mark.slow
def test_an_ordinary_user_with_subordinate_ids() -> None:
    """All of this, and the hostile cases, as a user of the machine other than root."""
    root = Path(__file__).parents[3]
    files = [__file__, str(root / "tests/hostile/test_other_users.py")]
    pytest_ = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir"]
    done = run_as_ordinary_user([*pytest_, str(root), *files])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "21 passed, 6 skipped" in done.stdout, done.stdout


def test_an_ordinary_user_without_them_reads_the_remedy() -> None:
    code = "from intercode_sandbox import Sandbox\nSandbox('host', users=True)"
    done = run_as_ordinary_user([sys.executable, "-c", code], ids=1000)
    assert "the user ordinary has no range of 65535 or more ids" in done.stderr, done.stderr
    assert "usermod --add-subuids 100000-165535" in done.stderr
