"""The configuration of a sample's sandbox, and the sandbox that it describes."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from inspect_ai.util import SandboxEnvironmentLimits
from pydantic import BaseModel, ConfigDict

from intercode.core.types import Image
from intercode.sandbox import Limits, Sandbox, SandboxSpec, resolve_image
from intercode.sandbox.back_ends import open_with_users
from intercode.sandbox.users import find_user

_OS_RELEASE = "/etc/os-release"


class SandboxConfig(BaseModel):
    """The configuration: ``sandbox=SandboxEnvironmentSpec("intercode", SandboxConfig(...))``.

    ``environment`` and ``dataset`` name one of our environments and its tasks; the sample's
    metadata names its ``task``, and ``settings`` are the environment's own. Without ``environment``
    a sample has a plain sandbox of ``image`` (``--sandbox intercode:recipe:nl2bash`` on the command
    line). ``back_end`` and ``network`` are as in `intercode eval`. The others are those of a plain
    sandbox: ``user`` runs the commands that name no user (None: root), ``directory`` is that of
    commands and relative paths (None: the image's, or the user's home), ``memory`` is in bytes.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    image: str | None = None
    back_end: str = "auto"
    network: Literal["none", "host"] = "none"
    user: str | None = None
    directory: str | None = None
    env: dict[str, str] = {}
    hostname: str | None = None
    memory: int | None = None
    environment: str | None = None
    dataset: str = "starter"
    settings: dict[str, Any] = {}

    def __hash__(self) -> int:  # Inspect keeps configurations in sets
        return hash(self.model_dump_json())

    def find_image(self) -> Image:
        """Return the image, fetched or built first if necessary."""
        return resolve_image(self.image or "host", self.back_end)


def open_plain_sandbox(config: SandboxConfig) -> tuple[Sandbox, str]:
    """Open a sandbox that belongs to no environment. Return it, and the directory of commands and
    relative paths. Raises UsageError for an image or a user that does not exist."""
    image = config.find_image()
    limits = Limits(
        output=SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE,
        memory=config.memory or Limits().memory,
    )
    spec = SandboxSpec(
        image, network=config.network, limits=limits, env=config.env,
        hostname=config.hostname or "intercode",
    )  # fmt: skip
    sandbox = Sandbox.from_base(open_with_users(spec, config.back_end))
    try:
        directory = config.directory or (image.cwd if image.cwd != "/" else "")
        return sandbox, _prepare(sandbox, directory, config.user)
    except BaseException:
        sandbox.close()
        raise


def _prepare(sandbox: Sandbox, directory: str, name: str | None) -> str:
    """Make the working directory and return it; tell programs the system of the image ``host``:
    Inspect's tools look for it, and that image has no such file."""
    user = find_user(sandbox.base, name)
    directory = directory or (f"/home/{user.name}" if user else "/root")
    with suppress(OSError):  # an image without programs
        if user is None:
            sandbox.run(["mkdir", "-p", directory], cwd="/")
        elif not sandbox.run(["test", "-d", directory], cwd="/").ok:
            owner = ["-o", str(user.uid), "-g", str(user.gid)]
            sandbox.run(["install", "-d", *owner, directory], cwd="/")
    if sandbox.image == "host":
        try:
            sandbox.read(_OS_RELEASE)
        except OSError:
            with suppress(OSError):
                sandbox.write(_OS_RELEASE, Path(_OS_RELEASE).read_bytes())
    return directory
