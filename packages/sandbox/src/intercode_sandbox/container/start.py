"""Starts a container and waits until its supervisor connects."""

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

from intercode_sandbox.container import image_import, orphans, removal
from intercode_sandbox.container.container_spec import SUPERVISOR_DIRECTORY, ContainerSpec
from intercode_sandbox.container.engine import (
    IMAGE_GONE,
    ContainerEngine,
    engine_error,
    quote_mount_fields,
)
from intercode_sandbox.container.limit_counters import SHARED_MEMORY_SIZE
from intercode_sandbox.contract import SandboxSpec
from intercode_sandbox.errors import SandboxError, SandboxUnavailableError
from intercode_sandbox.platforms.paths import cache_root, sandbox_uid
from intercode_sandbox.supervisor import build, programs
from intercode_sandbox.supervisor.connection import SupervisorConnection
from intercode_sandbox.supervisor.runtime import protocol, seccomp

_PROGRAM, _SOCKET = "supervisor", "s"
_STALE_SECONDS = 3600.0  # longer than any start takes
_SECONDS = 120.0  # timeout for starting a container, even if many start at once
_CLIENT_SECONDS = 10.0  # time for the engine's client to end by itself
_SETUP_CAPABILITIES = "--cap-add=CHOWN", "--cap-add=SETUID", "--cap-add=SETGID"
"""The supervisor needs these to give the root directory to the sandbox's user and to become that
user. It drops them before it starts anything else."""
_TREE = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PEER = struct.Struct("iII")
_AS_DOCKER = (
    "--sysctl=net.ipv4.ping_group_range=0 2147483647",
    "--sysctl=net.ipv4.ip_unprivileged_port_start=0",
)
"""Docker's defaults for a private network namespace: every user may ping and may use any port."""
_RLIMITS = resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC
_MAX_FILES = 1 << 16
_engines_without_rlimits: set[str] = set()
"""Engines that may not raise inherited limits, such as root without CAP_SYS_RESOURCE. They get
limits that need not be raised; the supervisor sets those of the sandbox."""


def start_container(
    engine: ContainerEngine, spec: SandboxSpec, layout: ContainerSpec
) -> tuple[SupervisorConnection, int]:
    """Start a container. Return the connection to its supervisor, and the supervisor's process
    number on this machine.

    Raises SandboxError, or SandboxUnavailableError if this machine cannot run containers.
    """
    program = programs.find_program(build.SUPERVISOR)
    image, retried = image_import.ensure_image(engine, layout), False
    while True:
        try:
            return _start_once(engine, spec, layout, image, program)
        except SandboxUnavailableError as e:
            if retried or IMAGE_GONE not in str(e):
                raise
            image, retried = image_import.ensure_image(engine, layout, force=True), True
        except SandboxError as e:
            if "rlimit" not in str(e) or engine.name in _engines_without_rlimits:
                raise
            _engines_without_rlimits.add(engine.name)


def _start_once(
    engine: ContainerEngine, spec: SandboxSpec, layout: ContainerSpec, image: str, program: Path
) -> tuple[SupervisorConnection, int]:
    name = f"intercode-{os.getpid()}-{secrets.token_hex(6)}"
    with _listening_directory(name, program) as (own, listener):
        command = _run_command(engine, spec, layout, name, own, image)
        watcher = removal.start_watcher(engine.program, own)
        try:
            # cwd=own, because Podman's monitor writes files to its working directory. A session of
            # its own, because a client killed with the owner's group leaves an unfinished container
            process = subprocess.Popen(
                command,
                cwd=own,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError:
            _end_watcher(watcher)
            raise
        try:
            connection, supervisor_pid = _accept_supervisor(engine, listener, process, own)
        except BaseException:
            _abort_start(engine, name, process)
            _end_watcher(watcher)  # continues if a second Ctrl-C interrupts the abort
            raise
    threading.Thread(
        target=_finish_start, args=(process, watcher), name="intercode-engine", daemon=True
    ).start()
    try:
        _send_setup(connection, spec, layout, engine.rootless and engine.name == "podman")
        return SupervisorConnection(connection), supervisor_pid
    except BaseException:
        connection.close()  # closing the connection ends the container
        raise


@contextmanager
def _listening_directory(name: str, program: Path) -> Iterator[tuple[Path, socket.socket]]:
    """Create a temporary directory with the program and a listening socket."""
    home = cache_root() / "containers"
    # so that no other user can connect
    (home / "starting").mkdir(parents=True, exist_ok=True, mode=0o700)
    own = home / "starting" / name
    own.mkdir(mode=0o755)
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            try:
                os.link(program, own / _PROGRAM)
            except OSError:  # it is on another file system
                shutil.copy(program, own / _PROGRAM)
            at = os.open(own, _TREE)
            try:  # the full path may be too long for a socket
                listener.bind(f"/proc/self/fd/{at}/{_SOCKET}")
            finally:
                os.close(at)
            (own / _SOCKET).chmod(0o666)
            listener.listen(1)
            yield own, listener
    finally:
        shutil.rmtree(own, ignore_errors=True)


def remove_stale_directories() -> None:
    """Remove the directories of processes that were killed while they started a container."""
    for own in (cache_root() / "containers" / "starting").glob("*"):
        with suppress(FileNotFoundError):
            if time.time() - own.stat().st_mtime > _STALE_SECONDS:
                shutil.rmtree(own, ignore_errors=True)


def _run_command(
    engine: ContainerEngine,
    spec: SandboxSpec,
    layout: ContainerSpec,
    name: str,
    own: Path,
    image: str,
) -> list[str]:
    limits = spec.limits
    memory = str(limits.memory + SHARED_MEMORY_SIZE)
    words = [
        engine.program,
        "run",
        "--detach",
        "--rm",
        "--pull=never",
        f"--name={name}",
        f"--label={orphans.OWNER_LABEL}={orphans.current_owner()}",
        "--user=0:0",
        "--cap-drop=ALL",
        *_SETUP_CAPABILITIES,
        "--security-opt=no-new-privileges",
        f"--network={spec.network}",
        "--ipc=private",
        f"--pids-limit={max(limits.processes, 3)}",
        f"--memory={memory}",
        f"--memory-swap={memory}",
        *([] if limits.cpus is None else [f"--cpus={min(limits.cpus, os.cpu_count() or 1)}"]),
        f"--shm-size={SHARED_MEMORY_SIZE}",
        f"--hostname={spec.hostname}",
        "--log-driver=none",
        "--workdir=/",
        f"--entrypoint={SUPERVISOR_DIRECTORY}/{_PROGRAM}",
    ]
    if spec.determinism is not None:  # the engine's own filter forbids personality(2)
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
    for source, target in mounts:
        fields = ["type=bind", f"source={source}", f"target={target}", "readonly"]
        words.append(f"--mount={quote_mount_fields(fields)}")
    return [*words, image, f"{SUPERVISOR_DIRECTORY}/{_SOCKET}"]


def _ulimit_options() -> list[str]:
    """Return options for those limits per process that this process could also set."""
    files, processes = (resource.getrlimit(limit)[1] for limit in _RLIMITS)
    files = _MAX_FILES if files == resource.RLIM_INFINITY else min(files, _MAX_FILES)
    pid_max = int(Path("/proc/sys/kernel/pid_max").read_text())
    processes = pid_max if processes == resource.RLIM_INFINITY else min(processes, pid_max)
    return [f"--ulimit=nofile={files}:{files}", f"--ulimit=nproc={processes}:{processes}"]


def _accept_supervisor(
    engine: ContainerEngine, listener: socket.socket, process: subprocess.Popen[bytes], own: Path
) -> tuple[socket.socket, int]:
    """Accept the connection of the supervisor. Return it with the supervisor's process number on
    this machine."""
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    ended = os.pidfd_open(process.pid)
    try:
        poll.register(ended, select.POLLIN)
        deadline = time.monotonic() + _SECONDS
        while (left := deadline - time.monotonic()) > 0:
            ready = [fd for fd, _ in poll.poll(left * 1000)]
            if listener.fileno() in ready:
                return _identify_peer(listener.accept()[0], engine)
            if ended in ready:
                poll.unregister(ended)
                error = _wait_for_client(process)
                if process.returncode:
                    raise engine_error(engine.name, "run", error)
                # the container runs, so the supervisor connects at once
                deadline = min(deadline, time.monotonic() + 20)
    finally:
        os.close(ended)
    raise SandboxUnavailableError(
        f"the container started, but its supervisor did not connect to {own}: {engine.name} must "
        "run on the same machine as this process, and see its files"
    )


def _identify_peer(connection: socket.socket, engine: ContainerEngine) -> tuple[socket.socket, int]:
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    pid: int = _PEER.unpack(data)[0]
    if pid <= 0:
        connection.close()
        raise SandboxUnavailableError(
            f"{engine.name} runs containers in a process namespace that this process does not see: "
            "run both on the same machine, not one of them in a container"
        )
    return connection, pid


def _abort_start(engine: ContainerEngine, name: str, process: subprocess.Popen[bytes]) -> None:
    if process.returncode is None:
        _wait_for_client(process)
    seconds = removal.CREATION_SECONDS if process.returncode < 0 else 0
    removal.remove_container(engine.program, name, seconds)


def _wait_for_client(process: subprocess.Popen[bytes]) -> bytes:
    """Wait until the engine's client ends, and return its errors. Kills it if it does not end."""
    try:
        return process.communicate(timeout=_CLIENT_SECONDS)[1]
    except subprocess.TimeoutExpired:  # or a program that it has started keeps the pipe open
        process.kill()
        process.wait()
        return b""


def _finish_start(process: subprocess.Popen[bytes], watcher: subprocess.Popen[bytes]) -> None:
    """Wait until the engine has recorded that the container runs."""
    if process.returncode is None:
        process.communicate()
    _end_watcher(watcher)


def _end_watcher(watcher: subprocess.Popen[bytes]) -> None:
    watcher.kill()
    watcher.wait()


def _send_setup(
    connection: socket.socket, spec: SandboxSpec, layout: ContainerSpec, own_users: bool
) -> None:
    """Send the first message, which describes the sandbox. ``own_users``: the container has a user
    namespace, so the kernel counts its processes separately."""
    code = seccomp.build_filter(platform.machine(), secrets.randbits(64))
    message: dict[str, Any] = {
        "limits": asdict(spec.limits),
        "env": layout.env,
        "deterministic": spec.determinism is not None,
        "mounts": layout.shown,
        "lowers": len(layout.trees),
        "copies": 0,
        "paths": [],
        "filter": code.hex(),
        "own_network": spec.network == "none",
        "uid": sandbox_uid(),
        "own_user_namespace": own_users,
    }
    lowers: list[int] = []
    try:
        try:
            lowers += [os.open(tree.path, _TREE) for tree in layout.trees]
        except OSError as e:
            raise SandboxError(f"the sandbox could not be set up: {e}") from e
        protocol.send(connection, message, lowers)
    except OSError as e:
        raise SandboxError(f"the container's supervisor has ended: {e}") from e
    finally:
        protocol.close_all(lowers)
