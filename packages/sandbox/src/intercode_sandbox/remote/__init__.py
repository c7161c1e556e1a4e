"""The back end of sandboxes on another machine: ``remote:https://HOST``.

``intercode-sandbox serve`` runs there, and opens its own sandboxes for the clients.
"""

from __future__ import annotations

from pathlib import Path

from intercode_sandbox.backends import Backend
from intercode_sandbox.contract import BaseSandbox, SandboxSpec
from intercode_sandbox.errors import SandboxUnavailableError
from intercode_sandbox.tiers.tier_table import remote_name
from intercode_sandbox.types import Image

# The modules of the client are imported where they are used, because they load an HTTP client.


def backend_at(url: str) -> Backend:
    """Return the back end of the server with this address.

    Raises SandboxUnavailableError on Windows, which lacks what the client needs.
    """
    try:
        import fcntl  # noqa: F401
        import termios  # noqa: F401
    except ImportError as e:
        raise SandboxUnavailableError(
            "remote sandboxes need Linux or macOS: on Windows, use WSL 2, which has sandboxes of "
            "its own too"
        ) from e

    def open_there(spec: SandboxSpec, files: Path | None) -> BaseSandbox:
        from intercode_sandbox.remote.images import open_sandbox

        return open_sandbox(spec, url, files)

    def find_tier() -> str:
        from intercode_sandbox.remote.connection import connect

        return remote_name(connect(url).greeting["tier"])

    def find_architecture() -> str:
        from intercode_sandbox.remote.connection import connect

        return connect(url).greeting["machine"]

    def resolve_image(name: str) -> Image:
        from intercode_sandbox.remote import images

        return images.resolve_image(name, url)

    def attach(identifier: str) -> BaseSandbox:
        from intercode_sandbox.remote.images import attach_sandbox

        return attach_sandbox(identifier, url)

    return Backend(f"remote:{url}", open_there, find_tier, resolve_image, find_architecture, attach)
