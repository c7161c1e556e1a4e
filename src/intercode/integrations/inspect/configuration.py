"""Configures a sample's sandbox: with our own type, an image, a Dockerfile or a compose file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from inspect_ai.util import (
    ComposeBuild,
    ComposeConfig,
    ComposeService,
    SandboxEnvironmentLimits,
    is_compose_yaml,
    is_dockerfile,
    parse_compose_yaml,
)
from pydantic import BaseModel, ConfigDict

from intercode.core.errors import UsageError
from intercode.core.types import Image
from intercode.sandbox import Limits, SandboxSpec, resolve_image
from intercode.sandbox.back_ends import open_with_users
from intercode.sandbox.contract import BaseSandbox
from intercode.sandbox.images.build.base_images import BaseImageResolver, is_packaged_recipe
from intercode.sandbox.users import User, find_user

DEFAULT_FILES = [
    "compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml", "Dockerfile",
]  # fmt: skip
"""Files beside a task that configure its sandbox if the task does not."""
_SPEC = re.compile(
    r"(?:^|/)(dir|tar|recipe|docker-archive|oci|registry|image|built|dockerfile):(.+)"
)
_PATH_KINDS = ("dir", "tar", "recipe", "docker-archive", "oci", "dockerfile")
_HONOURED = {
    "image", "build", "working_dir", "environment", "hostname", "network_mode", "mem_limit",
    "user", "command", "entrypoint",
}  # fmt: skip
_WITHOUT_EFFECT = {
    "init", "stdin_open", "tty", "restart", "stop_grace_period", "pull_policy", "expose", "cpus",
    "mem_reservation", "memswap_limit", "x_default", "cap_drop",
}  # fmt: skip
"""Keys of a service that change nothing that a program in one sandbox can count on."""
_OS_RELEASE = "/etc/os-release"
_KEEPS_ALIVE = re.compile(r"\b(sleep|tail)\b|^(/bin/)?(ba)?sh$")
_SIZE = re.compile(r"(\d+)([bkmg]?)b?", re.IGNORECASE)
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


class SandboxConfig(BaseModel):
    """The configuration: ``sandbox=SandboxEnvironmentSpec("intercode", SandboxConfig(...))``.

    ``environment`` and ``dataset`` name one of our environments and its tasks; the sample's
    metadata names its ``task``, and ``settings`` are the environment's own. Without ``environment``
    a sample has a plain sandbox of ``image`` (``--sandbox intercode:recipe:nl2bash`` on the command
    line). ``back_end`` and ``network`` are as in `intercode eval`. ``user`` runs the commands that
    name no user (None: root).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    image: str | None = None
    back_end: str = "auto"
    network: Literal["none", "host"] = "none"
    user: str | None = None
    environment: str | None = None
    dataset: str = "starter"
    settings: dict[str, Any] = {}

    def __hash__(self) -> int:  # Inspect keeps configurations in sets
        return hash(self.model_dump_json())


def read_config(config: Any) -> SandboxConfig | ComposeConfig:
    """Return the configuration that Inspect passes as an object, as a text, or not at all.

    Inspect takes a text for a file and puts the task's directory before it:
    ``/directory/recipe:python`` is the image ``recipe:python``, and relative paths in an image's
    name are relative to that directory. Raises UsageError for a text that names neither an image
    nor a Dockerfile or compose file, and for a compose file that is not valid.
    """
    if config is None:
        return SandboxConfig()
    if isinstance(config, SandboxConfig | ComposeConfig):
        return config
    if not isinstance(config, str):
        raise UsageError(f"{config!r} is no configuration of a sandbox: use a SandboxConfig")
    if found := _SPEC.search(config):
        kind, rest = found.groups()
        if kind in _PATH_KINDS and not is_packaged_recipe(f"{kind}:{rest}"):
            rest = str(Path(config[: found.start()] or "/" * config.startswith("/"), rest))
        return SandboxConfig(image=f"{kind}:{rest}")
    if is_compose_yaml(config):
        return _read_compose_file(Path(config))
    if is_dockerfile(config):
        return SandboxConfig(image=f"dockerfile:{config}")
    if Path(config).name == "host":
        return SandboxConfig(image="host")
    raise UsageError(
        f"{config} names neither an image, such as recipe:python or dockerfile:DIRECTORY, nor a "
        "Dockerfile or compose file: see docs/images.md"
    )


def _read_compose_file(path: Path) -> ComposeConfig:
    try:
        config = parse_compose_yaml(str(path), multiple_services=False)
    except (OSError, ValueError) as e:
        raise UsageError(f"{path} cannot be used: {e}") from e
    for service in config.services.values():  # paths in the file are relative to it
        build = service.build
        if isinstance(build, str):
            service.build = str(path.parent / build)
        elif build is not None:
            build.context = str(path.parent / (build.context or "."))
    return config


def make_spec(config: SandboxConfig | ComposeConfig) -> tuple[SandboxSpec, str]:
    """Return the specification of a plain sandbox, its image built first if necessary, and the name
    of its back end. Raises UsageError for what a sandbox cannot do."""
    output = SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE
    if isinstance(config, SandboxConfig):
        image = resolve_image(config.image or "host", config.back_end)
        limits = Limits(output=output)
        return SandboxSpec(image, network=config.network, limits=limits), config.back_end
    if len(config.services) != 1:
        raise UsageError(f"a sandbox runs one service, not {', '.join(config.services) or 'none'}")
    [(name, service)] = config.services.items()
    _check_service(name, service)
    limits = Limits(output=output, memory=_parse_size(name, service.mem_limit) or Limits().memory)
    network: Literal["none", "host"] = "host" if service.network_mode == "host" else "none"
    image = _find_image(name, service)
    spec = SandboxSpec(
        image, network=network, limits=limits, hostname=service.hostname or "intercode",
        env=_environment(service),
    )  # fmt: skip
    return spec, "auto"


def open_plain_sandbox(
    config: SandboxConfig | ComposeConfig,
) -> tuple[BaseSandbox, str, User | None]:
    """Open a sandbox that belongs to no environment. Return it, the directory of relative paths and
    commands, and the user of commands. Raises UsageError for what a sandbox cannot do."""
    spec, back_end = make_spec(config)
    directory = spec.image.cwd if spec.image.cwd != "/" else ""
    if isinstance(config, ComposeConfig):
        [service] = config.services.values()
        directory, name = service.working_dir or directory, service.user
    else:
        name = config.user
    sandbox = open_with_users(spec, back_end)
    try:
        user = find_user(sandbox, name)
        directory = directory or (f"/home/{user.name}" if user else "/root")
        _add_missing_files(sandbox, directory, user)
    except BaseException:
        sandbox.close()
        raise
    return sandbox, directory, user


def _add_missing_files(sandbox: BaseSandbox, directory: str, user: User | None) -> None:
    """Make the working directory, and tell programs the system of the image ``host``: Inspect's
    tools look for it, and that image has no such file."""
    if sandbox.spec.image.name != "host" or directory != "/root":
        with suppress(OSError):
            if user is None:
                sandbox.run(["mkdir", "-p", directory])
            elif not sandbox.run(["test", "-d", directory]).ok:
                owner = ["-o", str(user.uid), "-g", str(user.gid)]
                sandbox.run(["install", "-d", *owner, directory])
    if sandbox.spec.image.name == "host":
        try:
            sandbox.read(_OS_RELEASE)
        except OSError:
            with suppress(OSError):
                sandbox.write(_OS_RELEASE, Path(_OS_RELEASE).read_bytes())


def _check_service(name: str, service: ComposeService) -> None:
    """Raise UsageError for a key that a sandbox cannot honour."""
    given = service.model_dump(exclude_none=True, exclude_defaults=True)
    keys = {key for key in given if key in ComposeService.model_fields}
    if unsupported := sorted(keys - _HONOURED - _WITHOUT_EFFECT):
        raise UsageError(
            f"service {name}: a sandbox cannot honour {', '.join(unsupported)}; use Docker for "
            "this task, or a configuration without it"
        )
    if service.network_mode not in (None, "none", "host"):
        raise UsageError(
            f"service {name}: network_mode is none or host, not {service.network_mode!r}"
        )
    for key in ("entrypoint", "command"):
        words = getattr(service, key) or []
        text = words if isinstance(words, str) else " ".join(words)
        if text and not _KEEPS_ALIVE.search(text):
            raise UsageError(
                f"service {name}: a sandbox does not start {key}: {text!r}; start it in the "
                "sample's setup"
            )


def _find_image(name: str, service: ComposeService) -> Image:
    build = service.build
    if build is not None:
        found = ComposeBuild(context=build) if isinstance(build, str) else build
        if found.extensions:
            raise UsageError(f"service {name}: build has {', '.join(found.extensions)}")
        path = Path(found.context or ".", found.dockerfile or "Dockerfile")
        return resolve_image(f"dockerfile:{path}")
    if service.image is None:
        raise UsageError(f"service {name} has neither an image nor a build")
    bases = BaseImageResolver(resolve_image, allowed_directory=Path.cwd())
    return bases.resolve_base(service.image, f"service {name}, image:")


def _environment(service: ComposeService) -> dict[str, str]:
    given = service.environment or {}
    if isinstance(given, Mapping):
        return {key: value or "" for key, value in given.items()}
    pairs = (line.partition("=") for line in given)
    return {key: value for key, _, value in pairs}


def _parse_size(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    found = _SIZE.fullmatch(text)
    if found is None:
        raise UsageError(f"service {name}: mem_limit {text!r} is no size such as 512m or 2g")
    return int(found[1]) * _UNITS[found[2].lower()]
