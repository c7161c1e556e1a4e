"""Reads what Inspect passes as the configuration of a sandbox: the name of an image, a Dockerfile,
or a compose file of a task that was written for Docker, with one service."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inspect_ai.util import (
    ComposeBuild,
    ComposeConfig,
    ComposeService,
    is_compose_yaml,
    is_dockerfile,
    parse_compose_yaml,
)

from intercode.core.errors import UsageError
from intercode.core.types import Image
from intercode.integrations.inspect.configuration import SandboxConfig
from intercode.sandbox import resolve_image
from intercode.sandbox.images.build.base_images import BaseImageResolver, is_packaged_recipe

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
_KEEPS_ALIVE = re.compile(r"\b(sleep|tail)\b|^(/bin/)?(ba)?sh$")
_SIZE = re.compile(r"(\d+)([bkmg]?)b?", re.IGNORECASE)
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


class ServiceConfig(SandboxConfig):
    """The configuration of a service, whose image has a name as in a FROM line."""

    def find_image(self) -> Image:
        bases = BaseImageResolver(resolve_image, allowed_directory=Path.cwd())
        return bases.resolve_base(str(self.image), "compose file, image:")


def read_config(config: Any) -> SandboxConfig:
    """Return the configuration that Inspect passes as an object, as a text, or not at all.

    Inspect takes a text for a file and puts the task's directory before it:
    ``/directory/recipe:python`` is the image ``recipe:python``, and relative paths in an image's
    name are relative to that directory. Raises UsageError for a text that names neither an image
    nor a Dockerfile or compose file, and for a compose file that a sandbox cannot honour.
    """
    if config is None:
        return SandboxConfig()
    if isinstance(config, SandboxConfig):
        return config
    if isinstance(config, ComposeConfig):
        return convert_compose(config)
    if not isinstance(config, str):
        raise UsageError(f"{config!r} is no configuration of a sandbox: use a SandboxConfig")
    if found := _SPEC.search(config):
        kind, rest = found.groups()
        if kind in _PATH_KINDS and not is_packaged_recipe(f"{kind}:{rest}"):
            rest = str(Path(config[: found.start()] or "/" * config.startswith("/"), rest))
        return SandboxConfig(image=f"{kind}:{rest}")
    if is_compose_yaml(config):
        return read_compose_file(Path(config))
    if is_dockerfile(config):
        return SandboxConfig(image=f"dockerfile:{config}")
    if Path(config).name == "host":
        return SandboxConfig(image="host")
    raise UsageError(
        f"{config} names neither an image, such as recipe:python or dockerfile:DIRECTORY, nor a "
        "Dockerfile or compose file: see docs/images.md"
    )


def read_compose_file(path: Path) -> SandboxConfig:
    """Return the configuration of a compose file, in which paths are relative to it. Raises
    UsageError if it is not valid, or for what a sandbox cannot do."""
    try:
        config = parse_compose_yaml(str(path), multiple_services=False)
    except (OSError, ValueError) as e:
        raise UsageError(f"{path} cannot be used: {e}") from e
    return convert_compose(config, path.parent)


def convert_compose(config: ComposeConfig, directory: Path = Path()) -> SandboxConfig:
    """Return the configuration of a compose file's service. Raises UsageError for what a sandbox
    cannot do."""
    if len(config.services) != 1:
        raise UsageError(f"a sandbox runs one service, not {', '.join(config.services) or 'none'}")
    [(name, service)] = config.services.items()
    _check_service(name, service)
    settings: dict[str, Any] = {
        "network": "host" if service.network_mode == "host" else "none", "user": service.user,
        "hostname": service.hostname, "directory": service.working_dir,
        "env": _environment(service), "memory": _parse_size(name, service.mem_limit),
    }  # fmt: skip
    if service.build is not None:
        return SandboxConfig(image=_dockerfile(name, service.build, directory), **settings)
    if service.image is None:
        raise UsageError(f"service {name} has neither an image nor a build")
    return ServiceConfig(image=service.image, **settings)


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


def _dockerfile(name: str, build: ComposeBuild | str, directory: Path) -> str:
    found = ComposeBuild(context=build) if isinstance(build, str) else build
    if found.extensions:
        raise UsageError(f"service {name}: build has {', '.join(found.extensions)}")
    return f"dockerfile:{directory / (found.context or '.') / (found.dockerfile or 'Dockerfile')}"


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
