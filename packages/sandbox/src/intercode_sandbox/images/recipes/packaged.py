"""Packaged recipes: the packages of a named image, their date, and the digests of the result."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

from intercode_sandbox.errors import ConfigError
from intercode_sandbox.registry import unknown_name_error
from intercode_sandbox.types import Image

_DATE = re.compile(r"\d{8}")


@dataclass(frozen=True, slots=True)
class Recipe:
    """A description of an image.

    ``suite`` is a release of Debian, ``packages`` are installed into it, and ``date`` (YYYYMMDD) is
    the day of their versions. ``digests`` are the expected SHA-256 of the tar by Debian's name of
    the architecture. ``versions`` are the exact versions of all packages by name. ``links`` are
    symbolic links (path and target) that are added after the installation. ``installs_packages``:
    commands in the image install packages from the archives that it was built from.
    """

    name: str
    suite: str
    packages: tuple[str, ...]
    date: str
    description: str = ""
    digests: tuple[tuple[str, str], ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    installs_packages: bool = False

    @property
    def epoch(self) -> int:
        """The recipe's date at midnight UTC in seconds since 1970."""
        return int(datetime.strptime(self.date, "%Y%m%d").replace(tzinfo=UTC).timestamp())

    def matches(self, digest: str) -> bool:
        """Return whether ``digest`` (``sha256:<hex>``) is pinned for any architecture."""
        return any(digest == f"sha256:{pinned}" for _, pinned in self.digests)


def recipe_names() -> list[str]:
    """Return the names of the packaged recipes."""
    found = resources.files("intercode_sandbox.images.recipes").joinpath("data").iterdir()
    return sorted(f.name.removesuffix(".toml") for f in found if f.name.endswith(".toml"))


def load_recipe(name: str) -> Recipe:
    """Return a packaged recipe. Raises UnknownNameError with the nearest name."""
    if name not in recipe_names():
        raise unknown_name_error("image recipe", name, recipe_names())
    folder = resources.files("intercode_sandbox.images.recipes").joinpath("data")
    lock = folder.joinpath(f"{name}.versions")
    locked = lock.read_text("utf-8") if lock.is_file() else ""
    return parse_recipe(name, folder.joinpath(f"{name}.toml").read_text("utf-8"), locked)


def parse_recipe(name: str, text: str, lock_text: str = "") -> Recipe:
    """Parse a recipe from its TOML text and the ``package=version`` lines of its lock file.

    Raises ConfigError for unknown or missing keys, wrong types and invalid dates.
    """
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as e:
        raise ConfigError(f"recipe {name!r} is not valid TOML: {e}") from e
    kinds = {
        "suite": str,
        "packages": list,
        "date": str,
        "description": str,
        "digests": dict,
        "links": dict,
    }
    for key, value in table.items():
        if key not in kinds:
            raise unknown_name_error(f"key in recipe {name}", key, list(kinds))
        if not isinstance(value, kinds[key]):
            raise ConfigError(
                f"recipe {name!r}: {key} = {value!r} is not of type {kinds[key].__name__}"
            )
    missing = {"suite", "packages", "date"} - set(table)
    if missing:
        raise ConfigError(f"recipe {name!r} lacks {', '.join(sorted(missing))}")
    recipe = Recipe(
        name=name,
        suite=table["suite"],
        packages=tuple(_string_list(name, "packages", table["packages"])),
        date=table["date"],
        description=table.get("description", ""),
        digests=tuple(sorted(table.get("digests", {}).items())),
        versions=tuple(_parse_lock(name, lock_text)),
        links=tuple(sorted(table.get("links", {}).items())),
    )
    try:
        if not _DATE.fullmatch(recipe.date):
            raise ValueError("eight digits are needed")
        _ = recipe.epoch
    except ValueError as e:
        raise ConfigError(f"recipe {name!r}: date {recipe.date!r} is not YYYYMMDD: {e}") from e
    return recipe


def _string_list(name: str, key: str, values: list[Any]) -> list[str]:
    if not values or not all(isinstance(v, str) and v for v in values):
        raise ConfigError(f"recipe {name!r}: {key} must be a list of names, not {values!r}")
    return values


def _parse_lock(name: str, text: str) -> list[tuple[str, str]]:
    pairs = [line.partition("=") for line in text.split()]
    for package, mark, version in pairs:
        if not (package and mark and version):
            raise ConfigError(
                f"recipe {name!r}: {package + mark!r} in the lock is not of the form name=version"
            )
    return [(package, version) for package, _, version in pairs]


def built_path(name: str, cache: Path) -> Path:
    """Return the path of the built tar of a recipe in the cache."""
    return cache / "images" / f"{name}.tar"


def is_pinned(image: Image) -> bool:
    """Return whether a recipe pins the image's digest, so that results on it are comparable."""
    return any(load_recipe(name).matches(image.digest) for name in recipe_names())
