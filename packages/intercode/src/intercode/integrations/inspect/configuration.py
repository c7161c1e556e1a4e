"""The configuration of a sample's sandbox, also as Inspect reads it from tasks for Docker: the name
of an image, a Dockerfile, or a compose file with one service."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from inspect_ai.util import (
    ComposeBuild,
    ComposeConfig,
    ComposeService,
    is_compose_yaml,
    is_dockerfile,
)
from pydantic import AfterValidator, BaseModel, ConfigDict

from intercode.core.errors import UsageError
from intercode.core.types import Image
from intercode.integrations.inspect.compose import OWN_BUILD, Variables, read_compose_file
from intercode_sandbox import resolve_image
from intercode_sandbox.backends import find_backend
from intercode_sandbox.images.build.base_images import BaseImageResolver, is_packaged_recipe
from intercode_sandbox.images.build.on_demand import resolve_or_build
from intercode_sandbox.images.registry_hosts import is_registry_host
from intercode_sandbox.sizes import parse_size
from intercode_sandbox.validation import check_network

_IMAGE = re.compile(
    r"(?:^|/)(dir|tar|recipe|docker-archive|oci|registry|image|built|dockerfile):(.+)"
)
_NAME_AND_TAG = re.compile(r"[\w./-]+(?::[\w.-]+|@sha256:\w+)")
"""What follows the host of a registry in ``docker.io/library/debian:12``."""
_NOT_ON_DISK = ("registry", "image", "built")
_KEYS = {
    "image",
    "build",
    "command",
    "entrypoint",
    "working_dir",
    "environment",
    "user",
    "hostname",
    "network_mode",
    "mem_limit",
    # these change nothing that a program in one sandbox can count on
    "init",
    "stdin_open",
    "tty",
    "restart",
    "stop_grace_period",
    "pull_policy",
    "expose",
    "cpus",
    "mem_reservation",
    "memswap_limit",
    "x_default",
    "cap_drop",
    "deploy",
}
"""The keys of a service that a sandbox honours."""


class ImageBuild(BaseModel):
    """How a Dockerfile is built: values for ARG, the stage (None: the last one), and the directory
    of COPY."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    context: str
    args: dict[str, str] = {}
    target: str | None = None


class SandboxConfig(BaseModel):
    """The configuration: ``sandbox=SandboxEnvironmentSpec("intercode", SandboxConfig(...))``.

    Attributes:
        image: A form of docs/images.md, or a name as in a FROM line.
        backend: The back end, as in `intercode eval`.
        network: The network, as in `intercode eval`.
        user: Runs the commands that name no user; None: root.
        directory: That of commands and relative paths; None: the image's, as with Docker.
        command: A program with its arguments that is started in the background when the sandbox
            opens; empty: none.
        env: Environment variables of commands.
        hostname: The name of the machine in the sandbox.
        memory: Bytes of memory; None: the default of sandboxes.
        build: How the Dockerfile of a compose file is built; None: as any other image.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    image: str = "host"
    backend: str = "auto"
    network: Annotated[str, AfterValidator(check_network)] = "none"
    user: str | None = None
    directory: str | None = None
    command: tuple[str, ...] = ()
    env: dict[str, str] = {}
    hostname: str = "intercode"
    memory: int | None = None
    build: ImageBuild | None = None

    def __hash__(self) -> int:  # Inspect keeps configurations in sets
        return hash(self.model_dump_json())

    def find_image(self) -> Image:
        """Return the image, fetched or built first if necessary.

        Values for arguments that the Dockerfile does not declare have no effect, as with Docker.

        Raises:
            UsageError: There is no such image, or ``build`` is set and the back end is on another
                machine.
        """
        if build := self.build:
            if (backend := find_backend(self.backend)).resolve_image is not None:
                raise UsageError(
                    f"the build of {self.image} would be on this machine, not at {backend.name}: "
                    "import its image there with `intercode-sandbox image import`, and use it as "
                    "image:NAME"
                )
            return resolve_or_build(
                self.image,
                args=build.args,
                target=build.target,
                context=Path(build.context).resolve(),
                refuse_undeclared=False,
            )
        images = BaseImageResolver(lambda name: resolve_image(name, self.backend))
        return images.resolve_base(self.image, "image")


def read_config(config: Any, variables: Variables | None = None) -> SandboxConfig:
    """Return the configuration that Inspect passes as an object, as a text, or not at all.
    ``variables`` are those of the sample for a compose file.

    Raises UsageError for a text that names neither an image nor a Dockerfile or compose file;
    ValueError, which includes it, for a compose file that is broken or that a sandbox cannot
    honour.
    """
    if config is None:
        return SandboxConfig()
    if isinstance(config, SandboxConfig):
        return config
    if isinstance(config, ComposeConfig):
        return _read_compose(config, Path())
    if is_compose_yaml(config) or _is_compose_file(str(config)):
        path = Path(config)
        return _read_compose(read_compose_file(path, variables or {}), path.parent)
    return SandboxConfig(image=_find_name(str(config)))


def _is_compose_file(text: str) -> bool:
    """Return whether a text is the path of a compose file, whatever its name: of a file that is no
    Dockerfile, and not the name of an image."""
    is_image = _IMAGE.search(text) or Path(text).name == "host"
    return not is_image and not is_dockerfile(text) and Path(text).is_file()


def _find_name(text: str) -> str:
    """Return the name of the image in a text. Inspect takes a text for a file and puts the task's
    directory before it, so ``/directory/recipe:python`` is ``recipe:python``; relative paths in a
    name are relative to that directory."""
    if found := _IMAGE.search(text):
        kind, rest = found.groups()
        if kind in _NOT_ON_DISK or is_packaged_recipe(f"{kind}:{rest}"):
            return f"{kind}:{rest}"
        return f"{kind}:{Path(text[: found.start() + text.startswith('/')], rest)}"
    if is_dockerfile(text):
        return f"dockerfile:{text}"
    if Path(text).name == "host":
        return "host"
    parts = text.split("/")
    for first in reversed(range(len(parts) - 1)):
        rest = "/".join(parts[first + 1 :])
        if is_registry_host(parts[first]) and _NAME_AND_TAG.fullmatch(rest):
            return f"{parts[first]}/{rest}"
    raise UsageError(
        f"{text} names neither an image, such as recipe:python, dockerfile:DIRECTORY or "
        "docker.io/library/debian:12 (with the host of its registry and a tag), nor a Dockerfile "
        "or compose file: give one of these"
    )


def _read_compose(config: ComposeConfig, directory: Path) -> SandboxConfig:
    """Return the configuration of a compose file, in which paths are relative to ``directory``."""
    if len(config.services) != 1:
        raise UsageError(f"a sandbox runs one service, not {', '.join(config.services) or 'none'}")
    [service] = config.services.values()
    memory = service.mem_limit
    if service.deploy and (bounds := service.deploy.resources):
        memory = memory or (bounds.limits.memory if bounds.limits else None)
        if bounds.reservations and bounds.reservations.devices:
            raise UsageError("a sandbox cannot honour the devices that the compose file reserves")
    given = {key for key in ComposeService.model_fields if getattr(service, key)}
    if unsupported := sorted(given - _KEYS):
        raise UsageError(
            f"a sandbox cannot honour {', '.join(unsupported)} of the compose file; use Docker for "
            "this task, or a configuration without it"
        )
    if service.network_mode not in (None, "none", "host"):
        raise UsageError(
            f"network_mode of the compose file is {service.network_mode!r}; a sandbox has 'none' "
            "or 'host'"
        )
    image, build, env = service.image, service.build, service.environment or {}
    chosen: ImageBuild | None = None
    if not (image or build):
        raise UsageError("the service of the compose file has neither an image nor a build")
    if service.working_dir and not service.working_dir.startswith("/"):
        raise UsageError(
            f"working_dir of the compose file is no absolute path: {service.working_dir}"
        )
    if build:
        build = ComposeBuild(context=build) if isinstance(build, str) else build
        if _ADDRESS.match(build.context or ""):
            raise UsageError(
                f"a sandbox cannot be built from the address {build.context} of the compose file: "
                "clone it, and name its directory in 'build'"
            )
        context = directory / (build.context or ".")
        file = context / (build.dockerfile or "Dockerfile")
        image, own = f"dockerfile:{file}", build.extensions.get(OWN_BUILD, {})
        if any(own.values()) or file.parent != context:
            chosen = ImageBuild(context=str(context), **own)
    pairs = env.items() if isinstance(env, Mapping) else (e.partition("=")[::2] for e in env)
    settings: dict[str, Any] = {
        "image": image,
        "build": chosen,
        "user": service.user,
        "directory": service.working_dir,
        "command": (*_words(service.entrypoint), *_words(service.command)),
        "env": {name: value or "" for name, value in pairs},
        "hostname": service.hostname,
        "network": service.network_mode,
        "memory": parse_size(memory) if memory else None,
    }
    return SandboxConfig(**{key: value for key, value in settings.items() if value})


_ADDRESS = re.compile(r"(https?|git|ssh)://|git@|github\.com/")
"""What begins an address from which Docker Compose would build an image."""


def _words(command: list[str] | str | None) -> list[str]:
    try:
        return shlex.split(command) if isinstance(command, str) else command or []
    except ValueError as e:
        raise UsageError(f"the compose file has the command {command!r}: {e}") from e
