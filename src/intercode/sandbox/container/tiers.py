"""The kinds of containers by name: of one engine, or of the first that answers."""

from __future__ import annotations

from pathlib import Path

from intercode.sandbox.container import engine
from intercode.sandbox.container.sandbox import ContainerSandbox
from intercode.sandbox.contract import SandboxSpec


def open_docker(spec: SandboxSpec, files: Path | None = None) -> ContainerSandbox:
    """A container of Docker. ``files``: an upper layer to begin with a copy of."""
    return _open_with_files(spec, engine.get_engine("docker"), files)


def open_podman(spec: SandboxSpec, files: Path | None = None) -> ContainerSandbox:
    """A container of Podman. ``files``: an upper layer to begin with a copy of."""
    return _open_with_files(spec, engine.get_engine("podman"), files)


def open_first_engine(spec: SandboxSpec, files: Path | None = None) -> ContainerSandbox:
    """A container of the first engine that answers."""
    return _open_with_files(spec, engine.first_engine(), files)


def _open_with_files(spec: SandboxSpec, by: engine.Engine, files: Path | None) -> ContainerSandbox:
    box = ContainerSandbox(spec, by)
    if files is not None:
        try:
            box.replace_files(files)
        except BaseException:
            box.close()
            raise
    return box


def strongest_tier() -> str:
    """The tier of containers that this machine has. Raises SandboxUnavailableError."""
    return f"container/{engine.first_engine().name}"
