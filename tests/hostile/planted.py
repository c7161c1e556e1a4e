"""Plants objects on the host, to find out whether a sandbox reads or harms them."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from intercode.sessions.paths import program_root
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.platforms.paths import cache_root
from intercode_sandbox.supervisor.supervised_sandbox import SupervisedSandbox
from support import backend
from support.sandboxes import end_waiting, eventually

_KNOBS = ("core_pattern", "hostname", "modprobe", "sysrq", "domainname", "randomize_va_space")
_SERVE = (
    "import socket, sys, time\ns = socket.socket(socket.AF_UNIX)\ns.bind('\\0' + sys.argv[1])\n"
    "s.listen()\nprint('up')\nsys.stdout.flush()\ntime.sleep(9999)"
)


class Planted:
    """Secrets, servers and a process on the host, and a second sandbox beside the hostile one."""

    def __init__(self, open_new: Callable[[], BaseSandbox]) -> None:
        self.secret = f"secret{uuid.uuid4().hex}"
        os.environ["INTERCODE_PLANTED_SECRET"] = self.secret
        self.directory = Path(tempfile.mkdtemp(prefix="hostile-"))
        self.directory.chmod(0o777)  # a process with access to it could read and write
        self.file = self.directory / "secret"
        self.home = Path.home() if os.access(Path.home(), os.W_OK) else self.directory
        self.home_file = self.home / f".planted-{uuid.uuid4().hex[:12]}"
        for path in (self.file, self.home_file):
            path.write_text(self.secret)
            path.chmod(0o666)
        self.abstract = f"planted-{uuid.uuid4().hex}"
        self.servers = self._serve()
        self.victim = subprocess.Popen(["sleep", "9999"], stdin=subprocess.DEVNULL)
        self.beside = open_new()
        self.mark = f"mark{uuid.uuid4().hex}"
        self.beside.write("/tmp/beside", self.mark.encode())
        self.beside.spawn(["python3", "-c", _SERVE, self.mark])
        self.spaces: set[Space] = set()  # the process namespaces of closed sandboxes
        self.excluded: set[Space] = set()  # process namespaces that a known bug keeps alive
        self._before = self._host_state()

    def _serve(self) -> list[socket.socket]:
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", 0))
        servers = [socket.create_server(("127.0.0.1", 0)), udp]
        for address in (f"\0{self.abstract}", str(self.directory / "socket")):
            server = socket.socket(socket.AF_UNIX)
            server.bind(address)
            server.listen()
            servers.append(server)
        for server in servers:
            server.setblocking(False)
        return servers

    def fill(self, text: str) -> str:
        """Return ``text`` with ``@FILE@`` and the like replaced by what was planted."""
        tcp, udp = (server.getsockname()[1] for server in self.servers[:2])
        for word, value in (
            ("@FILE@", self.file),
            ("@DIRECTORY@", self.directory),
            ("@HOMEFILE@", self.home_file),
            ("@HOME@", self.home),
            ("@CACHE@", cache_root()),
            ("@SECRET@", self.secret),
            ("@TCP@", tcp),
            ("@UDP@", udp),
            ("@ABSTRACT@", self.abstract),
            ("@SOCKET@", self.directory / "socket"),
            ("@OWNER@", os.getpid()),
            ("@VICTIM@", self.victim.pid),
            ("@OTHERMARK@", self.mark),
            ("@OTHERFILE@", "/tmp/beside"),
            ("@OTHERSOCKET@", self.mark),
        ):
            text = text.replace(word, str(value))
        return text

    def _host_state(self) -> dict[str, object]:
        """Return what a sandbox must not be able to change."""
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
        ours = (str(cache_root()), str(self.directory))
        host_state: dict[str, object] = {
            "mounts": [m for m in mounts if any(w in m for w in ours)],
            "directory": sorted(p.name for p in self.directory.iterdir()),
            "staged": [p.name for p in (cache_root() / "stage").glob("*")],
            "kernel": os.uname(),
        }
        for name in _KNOBS:
            with suppress(OSError):
                host_state[name] = (Path("/proc/sys/kernel") / name).read_text()
        for path in (self.file, self.home_file):
            info = path.stat()
            host_state[path.name] = (path.read_text(), info.st_mtime_ns, info.st_mode, info.st_uid)
        return host_state

    def unharmed(self) -> None:
        """Raise AssertionError with what a sandbox has done to the host."""
        host_state = self._host_state()
        wrong = {k: host_state.get(k) for k in self._before if host_state.get(k) != self._before[k]}
        assert not wrong, f"the host was changed: {wrong}"
        assert self.victim.poll() is None, "a process of the host was killed"
        state = Path(f"/proc/{self.victim.pid}/stat").read_text().rpartition(")")[2].split()[0]
        assert state == "S", f"a process of the host was put into state {state}"
        for server in self.servers:
            with suppress(BlockingIOError):
                got = server.recv(9) if server.type == socket.SOCK_DGRAM else server.accept()
                raise AssertionError(f"a server of the host was reached: {got!r}")
        assert self.beside.read("/tmp/beside").decode() == self.mark, "the other sandbox changed"

    def close(self) -> None:
        """Remove everything. Raises AssertionError if processes of closed sandboxes remain."""
        self._put_away()
        end_waiting()
        eventually(
            lambda: not any(members(space) for space in self.spaces - self.excluded),
            "the processes of closed sandboxes have ended",
            details=lambda: "; ".join(line for space in self.spaces for line in _states(space)),
        )

    def _put_away(self) -> None:
        self.beside.close()
        self.victim.kill()
        self.victim.wait()
        for server in self.servers:
            server.close()
        self.home_file.unlink(missing_ok=True)
        shutil.rmtree(self.directory)
        os.environ.pop("INTERCODE_PLANTED_SECRET", None)


@dataclass(frozen=True, slots=True)
class Space:
    """A process namespace: its number, which may be reused later, and its PID 1. Where sandboxes
    have no process namespace, a user id whose processes are those of the sandbox, or the directory
    in which they work."""

    link: str
    init: str
    started: str
    user: int = 0
    directory: str = ""


def space_of(sandbox: SupervisedSandbox) -> Space:
    """Return the live process namespace of a sandbox, or its user id. Only root can see the PID 1
    of a namespace; other users have none here, and the number is theirs alone."""
    if backend.is_chroot():
        return Space("", "", "", sandbox.user_id)
    if directory := program_root(sandbox):
        return Space("", "", "", directory=directory)
    link = sandbox.run(["readlink", "/proc/self/ns/pid"], timeout=20).output.strip()
    for number, entry in _in_namespace(link):
        if number == 1:
            return Space(link, entry, _started(entry))
    assert os.geteuid() != 0, f"the sandbox's PID 1 is not among the processes of {link!r}"
    return Space(link, "", "")


def members(space: Space) -> list[tuple[int, str]]:
    """Return the live processes of a namespace, or of a user: their numbers inside and outside."""
    if space.user:
        own = str(space.user)
        return [(0, entry) for entry, fields in _table() if fields["Uid"].split()[0] == own]
    if space.directory:
        return [(0, entry) for entry, _ in _table() if _works_in(entry, space.directory)]
    found = _in_namespace(space.link)
    return found if not space.init or _started(space.init) == space.started else []


def _states(space: Space) -> list[str]:
    """Return the states of the processes of a namespace, including zombies, which keep its PID 1
    alive until their parent has collected them."""
    states = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            if os.readlink(f"/proc/{entry}/ns/pid") == space.link:
                words = _stat(entry)
                states.append(f"{entry} in state {words[0]}, child of {words[1]}")
    return states


def _in_namespace(link: str) -> list[tuple[int, str]]:
    return [(int(fields["NSpid"].split()[-1]), entry) for entry, fields in _table(link)]


def _table(link: str = "") -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the number and the status of every live process, or of those in a namespace."""
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            if link and os.readlink(f"/proc/{entry}/ns/pid") != link:
                continue
            with open(f"/proc/{entry}/status", errors="replace") as f:
                fields = dict(line.split(":", 1) for line in f)
        except OSError:
            continue
        if fields["State"].split()[0] not in "ZX" or int(fields["Threads"]) > 1:
            yield entry, fields


def _works_in(entry: str, directory: str) -> bool:
    try:
        return os.readlink(f"/proc/{entry}/cwd").startswith(directory)
    except OSError:  # it has ended
        return False


def _stat(entry: str) -> list[str]:
    """Return the kernel's words about a process after its name, which may be no text."""
    return Path(f"/proc/{entry}/stat").read_text(errors="replace").rpartition(")")[2].split()


def _started(entry: str) -> str:
    """Return when a process started, in clock ticks since boot; empty if it has ended."""
    try:
        return _stat(entry)[19]
    except OSError:
        return ""
