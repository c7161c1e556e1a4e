"""Starts a container and waits for its keeper to connect."""

from __future__ import annotations

import os
import platform
import resource
import secrets
import select
import shutil
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from intercode.core.errors import SandboxError, SandboxUnavailableError
from intercode.core.paths import cache_root, sandbox_uid
from intercode.sandbox.container import image_import, orphans
from intercode.sandbox.container.container_spec import SUPERVISOR_DIRECTORY, ContainerSpec
from intercode.sandbox.container.engine import IMAGE_GONE, Engine, engine_error, quote_mount_fields
from intercode.sandbox.container.limit_counters import SHARED_MEMORY_SIZE
from intercode.sandbox.contract import SandboxSpec
from intercode.sandbox.supervisor import programs
from intercode.sandbox.supervisor.connection import SupervisorConnection
from intercode.sandbox.supervisor.runtime import protocol, seccomp

_PROGRAM, _SOCKET = "keeper", "s"
_STALE_SECONDS = 3600.0  # seconds: no start takes as long
_SECONDS = 120.0  # for an engine to start a container; many at once take their time
_SETUP_CAPABILITIES = "--cap-add=CHOWN", "--cap-add=SETUID", "--cap-add=SETGID"
"""What the keeper needs to give the root directory, which engines keep for root, to the boxes' id,
and to become it: before anything else is started, and there is no way back."""
_TREE = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PEER = struct.Struct("iII")
_AS_DOCKER = (
    "--sysctl=net.ipv4.ping_group_range=0 2147483647",
    "--sysctl=net.ipv4.ip_unprivileged_port_start=0",
)
"""What Docker allows every id in a network namespace of its own: to ping, and any port."""
_RLIMITS = resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC
_MOST_FILES = 1 << 16
_engines_without_rlimits: set[str] = set()
"""Engines that may not raise what they inherit, as root without CAP_SYS_RESOURCE: they are told
bounds that need no raising. Those of the box are the keeper's to set."""


def start_container(
    engine: Engine, spec: SandboxSpec, layout: ContainerSpec
) -> tuple[SupervisorConnection, int]:
    """A new container: the connection to its keeper, and the keeper's process number here.

    Raises SandboxError, SandboxUnavailableError where this machine cannot have any.
    """
    program, why = programs.supervisor_program()
    if program is None:
        raise SandboxUnavailableError(
            f"a container needs a keeper that is a program, and here it is {why}: "
            "install a C compiler (Debian, Ubuntu: apt-get install gcc libc6-dev)"
        )
    image, again = image_import.ensure_image(engine, layout), False
    while True:
        try:
            return _start_once(engine, spec, layout, image, program)
        except SandboxUnavailableError as e:
            if again or IMAGE_GONE not in str(e):
                raise
            image, again = image_import.ensure_image(engine, layout, force=True), True
        except SandboxError as e:
            if "rlimit" not in str(e) or engine.name in _engines_without_rlimits:
                raise
            _engines_without_rlimits.add(engine.name)


def _start_once(
    engine: Engine, spec: SandboxSpec, layout: ContainerSpec, image: str, program: Path
) -> tuple[SupervisorConnection, int]:
    name = f"intercode-{os.getpid()}-{secrets.token_hex(6)}"
    with _listening_directory(name, program) as (own, listener):
        command = _run_command(engine, spec, layout, name, own, image)
        asked = subprocess.Popen(  # in `own`: Podman's monitor leaves files where it was started
            command, cwd=own, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            connection, keeper = _accept_supervisor(engine, listener, asked, own)
        except BaseException:
            _abort_start(engine, name, asked)
            raise
    if asked.returncode is None:
        threading.Thread(target=asked.communicate, name="intercode-engine", daemon=True).start()
    try:
        _send_setup(connection, spec, layout, engine.rootless and engine.name == "podman")
        return SupervisorConnection(connection), keeper
    except BaseException:
        connection.close()  # the container ends with it
        raise


@contextmanager
def _listening_directory(name: str, program: Path) -> Iterator[tuple[Path, socket.socket]]:
    """A directory with the program and a socket that listens, for as long as it takes to start."""
    home = cache_root() / "containers"
    (home / "starting").mkdir(parents=True, exist_ok=True, mode=0o700)  # nobody else may connect
    own = home / "starting" / name
    own.mkdir(mode=0o755)
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            try:
                os.link(program, own / _PROGRAM)
            except OSError:  # another file system
                shutil.copy(program, own / _PROGRAM)
            at = os.open(own, _TREE)
            try:  # its whole path may be longer than the name of a socket may be
                listener.bind(f"/proc/self/fd/{at}/{_SOCKET}")
            finally:
                os.close(at)
            (own / _SOCKET).chmod(0o666)
            listener.listen(1)
            yield own, listener
    finally:
        shutil.rmtree(own, ignore_errors=True)


def remove_stale_directories() -> None:
    """Remove what was left by processes that were killed while a container started."""
    for own in (cache_root() / "containers" / "starting").glob("*"):
        with suppress(FileNotFoundError):
            if time.time() - own.stat().st_mtime > _STALE_SECONDS:
                shutil.rmtree(own, ignore_errors=True)


def _run_command(
    engine: Engine, spec: SandboxSpec, layout: ContainerSpec, name: str, own: Path, image: str
) -> list[str]:
    limits = spec.limits
    memory = str(limits.memory + SHARED_MEMORY_SIZE)
    words = [
        engine.program, "run", "--detach", "--rm", "--pull=never", f"--name={name}",
        f"--label={orphans.OWNER_LABEL}={orphans.current_owner()}", "--user=0:0", "--cap-drop=ALL", *_SETUP_CAPABILITIES,
        "--security-opt=no-new-privileges", f"--network={spec.network}", "--ipc=private",
        f"--pids-limit={max(limits.processes, 3)}", f"--memory={memory}",
        f"--memory-swap={memory}", f"--shm-size={SHARED_MEMORY_SIZE}", f"--hostname={spec.hostname}",
        "--log-driver=none", "--workdir=/", f"--entrypoint={SUPERVISOR_DIRECTORY}/{_PROGRAM}",
    ]  # fmt: skip
    if spec.determinism is not None:  # an engine's own filter refuses addresses that do not change
        words.append("--security-opt=seccomp=unconfined")
    if Path("/sys/fs/selinux/enforce").exists():
        words.append("--security-opt=label=disable")
    if engine.name == "podman":
        words += ["--passwd=false", "--systemd=false", "--http-proxy=false"]
        if engine.rootless:
            words.append("--userns=keep-id")
        elif spec.network == "none":
            words += _AS_DOCKER
    if engine.name in _engines_without_rlimits:
        words += _ulimit_options()
    mounts = [(str(own), SUPERVISOR_DIRECTORY), *layout.mounts]
    for source, place in mounts:
        fields = ["type=bind", f"source={source}", f"target={place}", "readonly"]
        words.append(f"--mount={quote_mount_fields(fields)}")
    return [*words, image, f"{SUPERVISOR_DIRECTORY}/{_SOCKET}"]


def _ulimit_options() -> list[str]:
    """Bounds per process that this process could set as well."""
    files, processes = (resource.getrlimit(limit)[1] for limit in _RLIMITS)
    files = _MOST_FILES if files == resource.RLIM_INFINITY else min(files, _MOST_FILES)
    most = int(Path("/proc/sys/kernel/pid_max").read_text())
    processes = most if processes == resource.RLIM_INFINITY else min(processes, most)
    return [f"--ulimit=nofile={files}:{files}", f"--ulimit=nproc={processes}:{processes}"]


def _accept_supervisor(
    engine: Engine, listener: socket.socket, asked: subprocess.Popen[bytes], own: Path
) -> tuple[socket.socket, int]:
    """The connection of the container's keeper, and its process number here."""
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    ended = os.pidfd_open(asked.pid)
    try:
        poll.register(ended, select.POLLIN)
        until = time.monotonic() + _SECONDS
        while (left := until - time.monotonic()) > 0:
            ready = [fd for fd, _ in poll.poll(left * 1000)]
            if listener.fileno() in ready:
                return _identify_peer(listener.accept()[0], engine)
            if ended in ready:
                poll.unregister(ended)
                _, said = asked.communicate()
                if asked.returncode:
                    raise engine_error(engine.name, "run", said)
                until = min(until, time.monotonic() + 20)  # it runs: its keeper connects at once
    finally:
        os.close(ended)
    raise SandboxUnavailableError(
        f"the container started, and nothing in it connected to {own}: {engine.name} has to run "
        "beside this process, and see its files"
    )


def _identify_peer(connection: socket.socket, engine: Engine) -> tuple[socket.socket, int]:
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    pid: int = _PEER.unpack(data)[0]
    if pid <= 0:
        connection.close()
        raise SandboxUnavailableError(
            f"{engine.name} runs its containers where this process does not see theirs: run both "
            "on the same machine, not one of them in a container"
        )
    return connection, pid


def _abort_start(engine: Engine, name: str, asked: subprocess.Popen[bytes]) -> None:
    if asked.returncode is None:
        asked.kill()
        asked.communicate()
    with suppress(SandboxError):  # there may be none
        engine.run("rm", "--force", name)


def _send_setup(
    connection: socket.socket, spec: SandboxSpec, layout: ContainerSpec, own_users: bool
) -> None:
    """The first message: what the keeper has to know of the box. ``own_users``: it has a user
    namespace of its own, where the kernel counts its processes apart from those of all others."""
    code = seccomp.build_filter(platform.machine(), secrets.randbits(64))
    told: dict[str, Any] = {
        "limits": asdict(spec.limits), "env": layout.env, "steady": spec.determinism is not None,
        "lowers": len(layout.trees), "copies": 0, "changed": [], "filter": code.hex(),
        "own_network": spec.network == "none", "uid": sandbox_uid(), "own_users": own_users,
    }  # fmt: skip
    lowers: list[int] = []
    try:
        try:
            lowers += [os.open(tree.path, _TREE) for tree in layout.trees]
        except OSError as e:
            raise SandboxError(f"the sandbox could not be set up: {e}") from e
        protocol.send(connection, told, lowers)
    except OSError as e:
        raise SandboxError(f"the container's keeper has gone: {e}") from e
    finally:
        protocol.close_all(lowers)
