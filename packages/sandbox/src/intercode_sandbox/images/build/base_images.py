"""Resolves the names of base images, in a FROM line of a Dockerfile."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from intercode_sandbox.errors import ConfigError, InterCodeError, UsageError
from intercode_sandbox.images.cache.trees import cached_tree
from intercode_sandbox.images.oci import saved_images
from intercode_sandbox.images.progress import Progress
from intercode_sandbox.images.recipes import debian
from intercode_sandbox.images.registry_hosts import is_registry_host
from intercode_sandbox.platforms.paths import cache_root, config_path, sandbox_uid, user_file
from intercode_sandbox.registry import suggest_name, unknown_name_error
from intercode_sandbox.toml import read_toml
from intercode_sandbox.types import Image

_SPEC = re.compile(
    r"host|(?:dir|tar|recipe|docker-archive|oci|dockerfile|image|built):.+|registry:.+/.+"
)
_LOCAL_SPEC = re.compile(r"(dir|tar|recipe|docker-archive|oci|dockerfile):(.+)")
_TABLE = "images.toml"
"""The user's table of image names."""


@dataclass(frozen=True)
class BaseImageResolver:
    """Resolves the names of base images.

    ``resolve`` returns the image of a specification. ``aliases`` maps further names to
    specifications and takes precedence. ``mirrors``: see ``debian.debian_image``. ``force`` builds
    images of Debian releases again. ``allowed_directory``: names other than aliases may refer only
    to files below it (None: to any), as a Dockerfile may use files of its directory only.
    """

    resolve: Callable[[str], Image]
    aliases: Mapping[str, str] = field(default_factory=dict)
    mirrors: tuple[str, ...] = ()
    force: bool = False
    progress: Progress | None = None
    allowed_directory: Path | None = None

    def resolve_base(self, name: str, instruction: str = "FROM") -> Image:
        """Return the image of a name.

        The name is looked up in this order: aliases, the user's images.toml, specifications,
        releases of Debian, images of a local engine, images in a registry. Error messages quote
        ``instruction`` as the origin of the name. Raises UsageError for an unknown name, with a
        list of the attempts.
        """
        table = {**user_images(), **self.aliases}
        if spec := table.get(name, table.get(name.removesuffix(":latest"))):
            return self._from_spec(spec)
        if name == "scratch":
            return scratch_image()
        if _SPEC.fullmatch(name) or name in debian.RELEASE_NAMES:
            self._check_location(name, instruction)
            return self._from_spec(name)
        attempts: list[str] = []
        for attempt in (self._from_debian, self._from_engines, self._from_registry):
            try:
                if image := attempt(name):
                    return image
            except InterCodeError as e:
                attempts.append(str(e))
        remedy = _hint(name)
        suggestion = suggest_name(name, ("host", *debian.RELEASE_NAMES), 0.6)
        hint = f"{suggestion}Else " if suggestion else ""
        reasons = " | ".join(attempts)
        raise UsageError(
            f"{instruction} {name}: there is no such image here; {hint}{remedy}. {reasons}"
        )

    def _check_location(self, name: str, instruction: str) -> None:
        found = _LOCAL_SPEC.fullmatch(name)
        if self.allowed_directory is None or found is None or is_packaged_recipe(name):
            return
        path, _ = saved_images.split_path_and_name(found[2])
        if not path.resolve().is_relative_to(self.allowed_directory):
            raise UsageError(
                f"{instruction} {name} is outside of {self.allowed_directory}; if you trust it, "
                f"{_hint(name)}"
            )

    def _from_spec(self, spec: str) -> Image:
        return self._from_debian(spec) or self.resolve(spec)

    def _from_debian(self, name: str) -> Image | None:
        if release := debian.parse_release(name):
            return debian.debian_image(release, self.mirrors, self.progress, self.force)
        return None

    def _from_engines(self, name: str) -> Image | None:
        from intercode_sandbox.images.build import container_engines

        found = container_engines.export_engine_image(name, self.progress)
        return self.resolve(f"docker-archive:{found}") if found else None

    def _from_registry(self, name: str) -> Image | None:
        return self.resolve(f"registry:{full_reference(name)}")


def is_packaged_recipe(name: str) -> bool:
    """Return whether a name refers to a packaged recipe."""
    kind, _, rest = name.partition(":")
    return kind == "recipe" and "/" not in rest and not rest.endswith(".toml")


def full_reference(name: str) -> str:
    """Return the full reference of a name, as in Docker: ``debian`` becomes
    ``docker.io/library/debian:latest``."""
    first, mark, rest = name.partition("/")
    if not (mark and is_registry_host(first)):
        first, rest = "docker.io", name if mark else f"library/{name}"
    if "@" not in rest and ":" not in rest.rpartition("/")[2]:
        rest += ":latest"
    return f"{first}/{rest}"


def scratch_image() -> Image:
    """Return the empty image."""
    root = cached_tree(cache_root(), f"scratch-{sandbox_uid()}", _prepare_root)
    return Image("scratch", "sha256:" + "0" * 64, root)


def _prepare_root(root: Path) -> None:
    root.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(root, sandbox_uid(), sandbox_uid())


def _hint(name: str) -> str:
    try:
        table = str(config_path(_TABLE))
    except RuntimeError:  # this user has no home directory
        table = f"{_TABLE} in the directory INTERCODE_CONFIG"
    return (
        f"say which image it is: `intercode-sandbox image build --from {name}=SPEC`, or a line "
        f'"{name}" = "SPEC" under [from] in {table}'
    )


def user_images() -> dict[str, str]:
    """Return the user's table of image names, from its section ``[from]``. Raises ConfigError."""
    if (path := user_file(_TABLE)) is None:
        return {}
    found = read_toml(path)
    for key in found:
        if key != "from":
            raise ConfigError(f"{path}: {unknown_name_error('key', key, ['from'])}")
    table = found.get("from", {})
    if not isinstance(table, dict) or not all(isinstance(v, str) for v in table.values()):
        raise ConfigError(
            f'{path}: [from] must hold lines such as "ubuntu:24.04" = "tar:/noble.tar"'
        )
    return table
