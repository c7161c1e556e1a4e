"""Runs Docker and Podman by their command lines, and explains their errors."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Literal

from intercode_sandbox.errors import SandboxError, SandboxUnavailableError
from intercode_sandbox.lines import split_lines

EngineName = Literal["docker", "podman"]
ENGINE_NAMES: tuple[EngineName, ...] = ("docker", "podman")
COMMAND_SECONDS = 60.0
"""Timeout of short commands."""
IMAGE_GONE = "the image has been removed"
_LOCAL = "unix://"
_INSTALL_HINT = {
    "docker": "install it (Debian, Ubuntu: apt-get install docker.io)",
    "podman": "install it (Debian, Ubuntu: apt-get install podman)",
}
_START_HINT = {
    "docker": "start its daemon (systemctl start docker), or set DOCKER_HOST to the right socket",
    "podman": "`podman info` says what is wrong",
}
_KNOWN_ERRORS: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (
        ("permission denied while trying to connect", "connect: permission denied"),
        "this user has no access to it",
        "add the user to its group (usermod -aG docker NAME, then log in again)",
    ),
    (
        ("cannot connect to the docker daemon", "error during connect", "connection refused"),
        "its daemon does not answer",
        "",
    ),
    (("no space left on device",), "its disk is full", "free some, or move its data directory"),
    (
        ("no such image", "image not known", "unable to find image", "pull access denied"),
        IMAGE_GONE,
        "run again: it is imported again",
    ),
    (
        ("bind source path does not exist", "statfs", "no such file or directory: os"),
        "it does not see this process's files",
        "run it on this machine and next to this process (not outside a container that this "
        "process is in), or set INTERCODE_CACHE to a directory that both see",
    ),
)


@dataclass(frozen=True, slots=True)
class ContainerEngine:
    """A container engine that answers. ``program`` is its path."""

    name: EngineName
    program: str
    version: str
    rootless: bool

    def docker_format(self, name: str) -> list[str]:
        """Return the options for an image in Docker's format, which Podman calls by this name."""
        return ["--format", name] if self.name == "podman" else []

    def run(
        self, *words: str, stdin: IO[bytes] | None = None, seconds: float = COMMAND_SECONDS
    ) -> str:
        """Run a command and return its output. Raises SandboxError if it fails."""
        command = [self.program, *words]
        try:
            done = subprocess.run(
                command,
                stdin=stdin or subprocess.DEVNULL,
                capture_output=True,
                timeout=seconds,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as e:
            raise SandboxUnavailableError(f"`{self.name} {words[0]}` does not answer: {e}") from e
        if done.returncode:
            raise engine_error(self.name, words[0], done.stderr)
        return done.stdout.decode(errors="replace").strip()


def engine_error(name: str, command: str, message: bytes) -> SandboxError:
    """Return an error that explains the message of an engine."""
    text = message.decode(errors="replace").strip()
    low = text.lower()
    for words, problem, remedy in _KNOWN_ERRORS:
        if any(word in low for word in words):
            return SandboxUnavailableError(
                f"{name}: {problem}; {remedy or _START_HINT[name]} (it says: {_last_line(text)})"
            )
    return SandboxError(f"`{name} {command}` fails: {_last_line(text) or 'without a message'}")


def _last_line(text: str) -> str:
    lines = [line for line in split_lines(text) if line and not line.startswith(("See '", "Run '"))]
    return lines[-1][-300:] if lines else ""


def get_engine(name: EngineName) -> ContainerEngine:
    """Return an engine. Checks once per process whether it answers. Raises
    SandboxUnavailableError."""
    return _get_engine(name, os.environ.get("DOCKER_HOST"), os.environ.get("CONTAINER_HOST"))


@functools.cache
def _get_engine(
    name: EngineName, docker_host: str | None, podman_host: str | None
) -> ContainerEngine:
    program = shutil.which(name)
    if program is None:
        raise SandboxUnavailableError(
            f"{name} is not installed: {_INSTALL_HINT[name]}, or choose another --backend"
        )
    host = docker_host if name == "docker" else podman_host
    if host and not host.startswith(_LOCAL):
        raise SandboxUnavailableError(
            f"{name} is configured to use {host}: sandboxes need an engine on this "
            "machine, by its socket"
        )
    form = "{{.Server.Version}}" if name == "docker" else "{{.Version.Version}}"
    candidate = ContainerEngine(name, program, "", rootless=False)
    try:
        version = candidate.run("version" if name == "docker" else "info", "--format", form)
        rootless = _is_rootless(candidate)
    except SandboxUnavailableError:
        raise
    except SandboxError as e:
        raise SandboxUnavailableError(f"{e}; {_START_HINT[name]}") from e
    return ContainerEngine(name, program, version, rootless)


def _is_rootless(engine: ContainerEngine) -> bool:
    """Return whether the engine runs as an ordinary user. Raises SandboxUnavailableError for an
    engine on another machine."""
    if engine.name == "docker":
        host = engine.run("context", "inspect", "--format", "{{.Endpoints.docker.Host}}")
        if not host.startswith(_LOCAL):
            raise SandboxUnavailableError(
                f"docker's context is {host}: sandboxes need an engine on this machine, "
                "by its socket"
            )
        return "rootless" in engine.run("info", "--format", "{{.SecurityOptions}}")
    answers = engine.run(
        "info", "--format", "{{.Host.ServiceIsRemote}} {{.Host.Security.Rootless}}"
    ).split()
    if answers[0] == "true":
        raise SandboxUnavailableError(
            "podman is a client of a remote service: sandboxes need an engine on this machine"
        )
    return answers[1] == "true"


def first_engine() -> ContainerEngine:
    """Return the first engine that answers. Raises SandboxUnavailableError with the errors of
    all."""
    errors: list[str] = []
    for name in ENGINE_NAMES:
        try:
            return get_engine(name)
        except SandboxUnavailableError as e:
            errors.append(str(e))
    raise SandboxUnavailableError(f"no container engine answers: {'; '.join(errors)}")


def quote_mount_fields(values: Sequence[str]) -> str:
    """Join the fields of ``--mount`` with commas, quoted as in a CSV file."""
    return ",".join(f'"{v.replace(chr(34), chr(34) * 2)}"' if "," in v else v for v in values)
