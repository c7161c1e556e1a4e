"""Opens containers of Docker, of Podman, or of the first engine that answers."""

from __future__ import annotations

from pathlib import Path

from intercode_sandbox.container import engine
from intercode_sandbox.container.sandbox import ContainerSandbox
from intercode_sandbox.contract import SandboxSpec
from intercode_sandbox.errors import SandboxError
from intercode_sandbox.tiers.tier_table import TRIAL_LIMITS
from intercode_sandbox.types import Image


def open_docker(spec: SandboxSpec, files: Path | None = None) -> ContainerSandbox:
    """Open a container of Docker. ``files``: an upper layer to start with a copy of."""
    return _open_with_files(spec, engine.get_engine("docker"), files)


def open_podman(spec: SandboxSpec, files: Path | None = None) -> ContainerSandbox:
    """Open a container of Podman. ``files``: an upper layer to start with a copy of."""
    return _open_with_files(spec, engine.get_engine("podman"), files)


def open_first_engine(spec: SandboxSpec, files: Path | None = None) -> ContainerSandbox:
    """Open a container of the first engine that answers."""
    return _open_with_files(spec, engine.first_engine(), files)


def _open_with_files(
    spec: SandboxSpec, container_engine: engine.ContainerEngine, files: Path | None
) -> ContainerSandbox:
    sandbox = ContainerSandbox(spec, container_engine)
    return sandbox if files is None else sandbox.with_files_of(files)


def strongest_tier() -> str:
    """Return the isolation tier of containers on this machine. Raises SandboxUnavailableError."""
    return f"container/{engine.first_engine().name}"


def check_docker() -> tuple[bool, str]:
    """Return whether Docker can run a sandbox, by running one, and why not."""
    return _check_engine("docker")


def check_podman() -> tuple[bool, str]:
    """Return whether Podman can run a sandbox, by running one, and why not."""
    return _check_engine("podman")


def _check_engine(name: engine.EngineName) -> tuple[bool, str]:
    try:
        spec = SandboxSpec(Image("host", ""), limits=TRIAL_LIMITS)
        ContainerSandbox(spec, engine.get_engine(name)).close()
    except SandboxError as e:
        return False, str(e)
    return True, ""
