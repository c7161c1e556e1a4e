"""Which image a name in a FROM line, or a recipe's base, means."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from intercode.core.errors import ConfigError, InterCodeError, UsageError
from intercode.core.paths import cache_root, sandbox_uid
from intercode.core.registry import near, unknown
from intercode.core.types import Image
from intercode.sandbox.images.cache.trees import unpacked
from intercode.sandbox.images.oci import saved_images
from intercode.sandbox.images.recipes import debian as suites

_OURS = re.compile(
    r"host|(?:dir|tar|recipe|docker-archive|oci|dockerfile|image|built):.+|registry:.+/.+"
)
_PLACE = re.compile(r"(dir|tar|recipe|docker-archive|oci|dockerfile):(.+)")
_WAY_OUT = (
    "say which image it is: `intercode image build --from {name}=SPEC`, or a line "
    '"{name}" = "SPEC" under [from] in {table}'
)


@dataclass(frozen=True)
class Bases:
    """How names of images are understood.

    ``resolve`` gives the image of a specification of ours. ``table`` says what further names mean,
    before all else; ``mirrors``: see ``suites.debian``; ``again``: Debian's are built anew.
    ``within`` is the directory whose files names other than the table's may mean (None: any):
    a Dockerfile reads those of its context, and no others of this machine.
    """

    resolve: Callable[[str], Image]
    table: Mapping[str, str] = field(default_factory=dict)
    mirrors: tuple[str, ...] = ()
    again: bool = False
    progress: Callable[[str], None] | None = None
    within: Path | None = None

    def image(self, name: str, asked: str = "FROM") -> Image:
        """The image that a name means: by the table, by the user's own, a specification, a release
        of Debian, what a local engine has under it, or a registry. ``asked`` is what has named it,
        for messages.

        Raises UsageError, with what was tried, where it means none.
        """
        table = {**users_table(), **self.table}
        if spec := table.get(name, table.get(name.removesuffix(":latest"))):
            return self._ours(spec)
        if name == "scratch":
            return scratch()
        if _OURS.fullmatch(name) or suites.suite_of(name) == name:
            self._check_place(name, asked)
            return self._ours(name)
        tried: list[str] = []
        for attempt in (self._debian, self._engines, self._registry):
            try:
                if image := attempt(name):
                    return image
            except InterCodeError as e:
                tried.append(str(e))
        told = _WAY_OUT.format(name=name, table=users_path())
        asking = near(name, ("host", *suites.NAMES), 0.6)
        hint = f"{asking}Else " if asking else ""
        why = " | ".join(tried)
        raise UsageError(f"{asked} {name}: there is no such image here; {hint}{told}. {why}")

    def _check_place(self, name: str, asked: str) -> None:
        found = _PLACE.fullmatch(name)
        if self.within is None or found is None or is_packaged(name):
            return
        path, _ = saved_images.split(found[2])
        if not path.resolve().is_relative_to(self.within):
            told = _WAY_OUT.format(name=name, table=users_path())
            raise UsageError(
                f"{asked} {name} lies outside of {self.within}; if you trust it, {told}"
            )

    def _ours(self, spec: str) -> Image:
        suite = suites.suite_of(spec)
        return self.debian(suite) if suite else self.resolve(spec)

    def debian(self, suite: str, packages: tuple[str, ...] = (), date: str = "") -> Image:
        """A release of Debian."""
        return suites.debian(suite, packages, date, self.mirrors, self.progress, self.again)

    def _debian(self, name: str) -> Image | None:
        suite = suites.suite_of(name)
        return self.debian(suite) if suite else None

    def _engines(self, name: str) -> Image | None:
        from intercode.sandbox.images.build import container_engines

        found = container_engines.saved(name, self.progress)
        return self.resolve(f"docker-archive:{found}") if found else None

    def _registry(self, name: str) -> Image | None:
        return self.resolve(f"registry:{in_full(name)}")


def is_packaged(name: str) -> bool:
    """Whether a name means a recipe of this package."""
    kind, _, rest = name.partition(":")
    return kind == "recipe" and "/" not in rest and not rest.endswith(".toml")


def in_full(name: str) -> str:
    """A name as Docker completes it: ``debian`` is ``docker.io/library/debian:latest``."""
    first, mark, rest = name.partition("/")
    if not (mark and ("." in first or ":" in first or first == "localhost")):
        first, rest = "docker.io", name if mark else f"library/{name}"
    if "@" not in rest and ":" not in rest.rpartition("/")[2]:
        rest += ":latest"
    return f"{first}/{rest}"


def scratch() -> Image:
    """The empty image."""
    root = unpacked(cache_root(), f"scratch-{sandbox_uid()}", _empty)
    return Image("scratch", "sha256:" + "0" * 64, root)


def _empty(root: Path) -> None:
    root.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(root, sandbox_uid(), sandbox_uid())


def users_path() -> Path:
    """The file in which a user says what names of images mean: ``INTERCODE_IMAGES``, else
    images.toml in ``$XDG_CONFIG_HOME/intercode`` or ``~/.config/intercode``."""
    if chosen := os.environ.get("INTERCODE_IMAGES"):
        return Path(chosen).absolute()
    home = os.environ.get("XDG_CONFIG_HOME")
    return (Path(home) if home else Path.home() / ".config") / "intercode" / "images.toml"


def users_table() -> dict[str, str]:
    """What that file says: under ``[from]``, name = image specification. Raises ConfigError."""
    path = users_path()
    if not path.is_file():
        return {}
    try:
        found = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as e:
        raise ConfigError(f"{path} cannot be read as TOML: {e}") from e
    for key in found:
        if key != "from":
            raise ConfigError(f"{path}: {unknown('key', key, ['from'])}")
    table = found.get("from", {})
    if not isinstance(table, dict) or not all(isinstance(v, str) for v in table.values()):
        raise ConfigError(f'{path}: [from] holds lines such as "ubuntu:24.04" = "tar:/noble.tar"')
    return table
