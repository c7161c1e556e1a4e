"""A container of a small image whose PID 1 is the supervisor, used through its protocol."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import struct
import subprocess
import tarfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from intercode_sandbox.contract import Limits
from intercode_sandbox.platforms.paths import sandbox_uid
from intercode_sandbox.supervisor import build, programs
from intercode_sandbox.supervisor.runtime import protocol, seccomp
from support import backend, requirements

LIMITS = Limits(disk=64 << 20, inodes=2000, file_size=1 << 40)
"""The size of a file is not limited here. The kernel would enforce that limit before the supervisor
notices the full disk on a busy machine."""
_TREES = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_SECONDS = 60.0
_UNDER_WAY = 109  # ETOOMANYREFS: other sandboxes of this user have too many descriptors in flight


def require_engine() -> str:
    """Return the engine of the tests. Skips the test if it does not answer."""
    name = backend.chosen() if backend.chosen() in ("docker", "podman") else "docker"
    requirements.require(name)
    return name


def _run_engine(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


class SmallImage:
    """Return an image of a few files that belong to the sandboxes' user; the machine's programs are
    mounted."""

    def __init__(self, engine: str, home: Path) -> None:
        self.engine, self.home = engine, home
        self.tree = home / "tree"
        self.name = f"intercode-test-supervisor-{os.getpid()}:latest"
        self.mounts = [f"--volume={tree}:{tree}:ro" for tree in ("/usr", *_real_trees())]
        self._write()
        archive = home / "image.tar"
        with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as tar:
            tar.add(self.tree, ".", filter=_owned)
        done = _run_engine(engine, "import", str(archive), self.name)
        assert done.returncode == 0, done.stderr

    def _write(self) -> None:
        uid, tree = sandbox_uid(), self.tree
        for name in ("tmp", "etc", "proc", "sys", "dev", "usr", "root", "data/in/deep", "data/old"):
            (tree / name).mkdir(parents=True, exist_ok=True)
        for name in _TREES:
            real = Path("/", name)
            if real.is_symlink():
                (tree / name).symlink_to(os.readlink(real))
            elif real.is_dir():
                (tree / name).mkdir()
        (tree / "etc/passwd").write_text(f"root:x:{uid}:{uid}:root:/root:/bin/bash\n")
        (tree / "etc/group").write_text(f"root:x:{uid}:\n")
        for i in range(8):
            (tree / f"data/f{i}").write_text(f"file {i}\n" * 50)
        (tree / "data/in/deep/x").write_text("deep\n")
        (tree / "data/link").symlink_to("in/deep")
        (tree / "data/closed").mkdir()
        (tree / "data/closed/z").write_text("z\n")
        (tree / "data/closed").chmod(0o555)
        (tree / "tmp").chmod(0o1777)
        for path in (tree, *tree.rglob("*")):
            os.utime(path, (1_600_000_000, 1_600_000_000), follow_symlinks=False)
            if os.geteuid() == 0:
                os.lchown(path, uid, uid)

    def remove(self) -> None:
        _run_engine(self.engine, "rmi", "--force", self.name)


def _real_trees() -> list[str]:
    return [
        f"/{name}"
        for name in _TREES
        if not Path("/", name).is_symlink() and Path("/", name).is_dir()
    ]


def _owned(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = sandbox_uid()
    member.uname = member.gname = ""
    return member


class SupervisedContainer:
    """A running container and the connection to its supervisor."""

    def __init__(self, image: SmallImage) -> None:
        self.image = image
        self.name = f"intercode-test-{os.getpid()}-{secrets.token_hex(4)}"
        home = image.home / self.name
        home.mkdir(mode=0o755)
        shutil.copy(programs.find_program(build.SUPERVISOR), home / "supervisor")
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(home / "s"))
            (home / "s").chmod(0o777)
            listening.listen(1)
            listening.settimeout(_SECONDS)
            self._start(home)
            self.connection, _ = listening.accept()
        self.connection.settimeout(_SECONDS)
        self.welcome = self._greet()

    def _start(self, home: Path) -> None:
        done = _run_engine(
            self.image.engine,
            "run",
            "--detach",
            "--rm",
            f"--name={self.name}",
            "--network=none",
            "--user=0:0",
            "--cap-drop=ALL",
            "--cap-add=CHOWN",
            "--cap-add=SETUID",
            "--cap-add=SETGID",
            "--security-opt=no-new-privileges",
            "--pids-limit=100",
            "--memory=256m",
            f"--volume={home}:/dev/intercode:ro",
            *self.image.mounts,
            self.image.name,
            "/dev/intercode/supervisor",
            "/dev/intercode/s",
        )
        assert done.returncode == 0, done.stderr

    def _greet(self) -> dict[str, Any]:
        tree = os.open(self.image.tree, os.O_RDONLY | os.O_DIRECTORY)
        message = {
            "limits": asdict(LIMITS),
            "env": {},
            "deterministic": False,
            "own_network": True,
            "lowers": 1,
            "copies": 0,
            "uid": sandbox_uid(),
            "filter": seccomp.build_filter(os.uname().machine, secrets.randbits(64)).hex(),
        }
        protocol.send(self.connection, message, [tree])
        os.close(tree)
        return protocol.receive(self.connection)[0]

    def given(
        self, do: str, fds: Sequence[int] = (), **message: Any
    ) -> tuple[dict[str, Any], list[int]]:
        """Send a request and return the answer with its descriptors. Raises OSError if it is
        refused."""
        for _ in range(100):
            protocol.send(self.connection, {"do": do, **message}, fds)
            answer, out = protocol.receive(self.connection)
            if answer["ok"]:
                return answer, out
            if answer["errno"] != _UNDER_WAY:
                break
            time.sleep(0.1)
        raise OSError(answer["errno"], answer["error"])

    def ask(self, do: str, fds: Sequence[int] = (), **message: Any) -> dict[str, Any]:
        return self.given(do, fds, **message)[0]

    def start(self, *argv: str, fds: Mapping[int, int] | None = None) -> tuple[int, int]:
        """Start a program. Return its number and the descriptor of its exit status."""
        fds = fds or {}
        if os.geteuid() == 0:
            for fd in fds.values():
                os.fchown(fd, sandbox_uid(), sandbox_uid())
        status, write = os.pipe()
        answer = self.ask(
            "spawn",
            [write, *fds.values()],
            argv=list(argv),
            cwd="/",
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
            targets=list(fds),
        )
        os.close(write)
        return answer["pid"], status

    def sh(self, command: str) -> tuple[str, int]:
        """Run a command in a shell. Return its output and exit status."""
        read, write = os.pipe()
        _, status = self.start("bash", "-c", command, fds={1: write, 2: write})
        os.close(write)
        with open(read, "rb") as f:
            output = f.read().decode()
        return output, waited(status)

    def rows(self) -> dict[str, list[Any]]:
        answer = self.ask("changes", digests=True, pause=False)
        return {row[0]: row[1:] for row in answer["rows"]}

    def __enter__(self) -> SupervisedContainer:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()
        with suppress(subprocess.TimeoutExpired):
            _run_engine(self.image.engine, "rm", "--force", self.name)

    def exists(self) -> bool:
        names = _run_engine(self.image.engine, "ps", "--all", "--format={{.Names}}").stdout
        return self.name in names.split()


def waited(status: int) -> int:
    """Read the exit status from a descriptor, and close it."""
    with open(status, "rb") as f:
        return int(struct.unpack("i", f.read(4))[0])
