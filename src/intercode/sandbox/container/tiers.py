"""The kinds of containers by name: of one engine, or of the first that answers."""

from __future__ import annotations

from pathlib import Path

from intercode.sandbox.container import engine
from intercode.sandbox.container.sandbox import ContainerSandbox
from intercode.sandbox.contract import SandboxSpec


def docker(spec: SandboxSpec, files: Path | None = None) -> ContainerSandbox:
    """A container of Docker. ``files``: an upper layer to begin with a copy of."""
    return _open(spec, engine.get("docker"), files)


def podman(spec: SandboxSpec, files: Path | None = None) -> ContainerSandbox:
    """A container of Podman. ``files``: an upper layer to begin with a copy of."""
    return _open(spec, engine.get("podman"), files)


def either(spec: SandboxSpec, files: Path | None = None) -> ContainerSandbox:
    """A container of the first engine that answers."""
    return _open(spec, engine.first(), files)


def _open(spec: SandboxSpec, by: engine.Engine, files: Path | None) -> ContainerSandbox:
    box = ContainerSandbox(spec, by)
    if files is not None:
        try:
            box.refile(files)
        except BaseException:
            box.close()
            raise
    return box


def strongest() -> str:
    """The tier of containers that this machine has. Raises SandboxUnavailableError."""
    return f"container/{engine.first().name}"
