"""Builds images from users' recipes, which are TOML files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from intercode_sandbox.errors import ConfigError, DataError, InterCodeError, UsageError
from intercode_sandbox.images.build import built_images, commands, steps
from intercode_sandbox.images.build.base_images import BaseImageResolver
from intercode_sandbox.images.build.commands import BuildCommand
from intercode_sandbox.images.build.layer_stack import LayerStack
from intercode_sandbox.images.build.steps import BuildBase
from intercode_sandbox.images.dockerfile.copy import (
    CopySource,
    collect_entries,
    copy_layer,
    empty_directory,
)
from intercode_sandbox.images.progress import Progress
from intercode_sandbox.images.recipes import debian
from intercode_sandbox.registry import unknown_name_error
from intercode_sandbox.toml import read_toml
from intercode_sandbox.types import Image, Network

_KEY_TYPES: dict[str, tuple[type, ...]] = {
    "description": (str,),
    "base": (str,),
    "date": (str,),
    "packages": (list,),
    "files": (dict,),
    "setup": (str,),
    "env": (dict,),
    "workdir": (str,),
    "network": (str,),
    "timeout": (int, float),
}


_RELATIVE_HINT = "paths on the right in [files] are relative to the recipe's directory"


@dataclass(frozen=True, slots=True)
class UserRecipe:
    """The content of a recipe.toml.

    ``files`` maps paths in the image to paths in the recipe's directory. ``setup`` is code for
    bash, or the name of a script in that directory; ``timeout`` is its time limit in seconds.
    """

    path: Path
    base: str
    description: str = ""
    date: str = ""
    packages: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    setup: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    workdir: str = "/"
    network: Network = "none"
    timeout: float = 3600.0


def read_user_recipe(path: Path) -> UserRecipe:
    """Return the recipe in a file, or in the recipe.toml of a directory.

    Raises UsageError if it does not exist, ConfigError for invalid TOML, unknown keys and invalid
    values.
    """
    file = path / "recipe.toml" if path.is_dir() else path
    if not file.exists():
        raise UsageError(f"there is no recipe {file}")
    table = read_toml(file)
    try:
        return _validate(file.resolve(), table)
    except UsageError as e:
        raise ConfigError(f"{file}: {e}") from e


def _validate(file: Path, table: dict[str, Any]) -> UserRecipe:
    for key, value in table.items():
        if key not in _KEY_TYPES:
            raise unknown_name_error("key of a recipe", key, list(_KEY_TYPES))
        if not isinstance(value, _KEY_TYPES[key]) or isinstance(value, bool):
            raise ConfigError(f"{key} = {value!r} is not of type {_KEY_TYPES[key][0].__name__}")
    if not table.get("base"):
        raise ConfigError(
            'there is no base: a release of Debian, such as base = "bookworm", or an image '
            'specification, such as base = "host"'
        )
    for key in ("files", "env"):
        for name, value in table.get(key, {}).items():
            if not isinstance(value, str):
                raise ConfigError(f"[{key}] {name} = {value!r} is not a text")
            if key == "env" and (not name or "=" in name or "\0" in name + value):
                raise ConfigError(f"[env] {name!r} = {value!r} cannot be a variable")
    packages = table.get("packages", [])
    if not all(isinstance(name, str) and name and not name.startswith("-") for name in packages):
        raise ConfigError(f"packages = {packages!r} is not a list of names")
    for path in (*table.get("files", {}), table.get("workdir", "/")):
        if not path.startswith("/"):
            raise ConfigError(f"{path!r} must be an absolute path in the image, with a / in front")
    if table.get("network", "none") not in ("none", "host"):
        raise ConfigError(f'network = {table["network"]!r} is neither "none" nor "host"')
    if table.get("timeout", 1) <= 0:
        raise ConfigError(f"timeout = {table['timeout']!r} is not a time in seconds")
    table = {**table, "packages": tuple(packages)}
    found = UserRecipe(path=file, **table)
    if debian.parse_release(found.base) is None:
        for key in ("packages", "date"):
            if table.get(key):
                raise ConfigError(
                    f"{key} needs a release of Debian as base, such as "
                    f'base = "bookworm", not with {found.base!r}'
                )
    return found


def build_user_recipe(
    path: Path, bases: BaseImageResolver, progress: Progress, force: bool = False
) -> Image:
    """Return the image of a recipe; the first call, or ``force``, builds it.

    Raises as ``read_user_recipe``, UsageError for missing files or an unknown base, DataError if
    the set-up fails.
    """
    recipe = read_user_recipe(path)
    spec = f"recipe:{recipe.path}"
    try:
        return _build_image(
            recipe, spec, bases, progress, built_images.build_generation(spec, force)
        )
    except InterCodeError as e:
        raise type(e)(f"{recipe.path}: {e}") from e
    except OSError as e:
        raise DataError(f"{recipe.path}: {e}") from e


def _build_image(
    recipe: UserRecipe, spec: str, bases: BaseImageResolver, progress: Progress, generation: str
) -> Image:
    if suite := debian.parse_release(recipe.base):
        image = bases.debian(suite, recipe.packages, recipe.date)
    else:
        image = bases.resolve_base(recipe.base, "base")
    base = BuildBase(image, generation=generation)
    folder = recipe.path.parent
    source = CopySource(
        LayerStack([folder]), str(folder), instruction="[files]", hint=_RELATIVE_HINT
    )
    for to, name in recipe.files.items():
        progress(f"{to} = {name}")
        base = base.with_layer(copy_layer(base, collect_entries(source, [name], to, base)))
    cwd = image.cwd if recipe.workdir == "/" else recipe.workdir
    if cwd != "/" and base.stack.find(base.stack.resolve(cwd)) is None:
        base = base.with_layer(copy_layer(base, [empty_directory(cwd)]))
    env = {**image.env, **recipe.env}
    if recipe.setup:
        base = _run_setup(recipe, base, env, progress)
    return built_images.record_image(spec, base, env, cwd)


def _run_setup(
    recipe: UserRecipe, base: BuildBase, env: Mapping[str, str], progress: Progress
) -> BuildBase:
    script = setup_script(recipe)
    progress(f"setup: {recipe.setup if recipe.setup.count(chr(10)) < 1 else 'a script'}")
    argv = interpreter(script)
    command = BuildCommand(
        "setup",
        [*argv, "/dev/shm/setup"],
        env,
        network=recipe.network,
        timeout=recipe.timeout,
        files={"setup": script},
    )
    identity = repr((argv, script, sorted(env.items()), recipe.network))
    name = steps.step_key("setup", base.cache_key, identity)

    def fill(home: Path) -> None:
        commands.run_build_command(command, base, home, progress)

    return base.with_layer(steps.cached_step(name, fill))


def setup_script(recipe: UserRecipe) -> str:
    """Return the set-up as text: the content of the script that it names, or the text itself.

    Raises DataError for the name of a script that is missing or elsewhere.
    """
    beside = recipe.path.parent / recipe.setup
    if "\n" in recipe.setup or " " in recipe.setup:
        return recipe.setup
    if beside.is_file():
        if not beside.resolve().is_relative_to(recipe.path.parent):
            raise DataError(f"setup = {recipe.setup!r} leads out of {recipe.path.parent}")
        return beside.read_text("utf-8", "surrogateescape")
    if "/" in recipe.setup or recipe.setup.endswith(".sh"):
        raise DataError(f"setup = {recipe.setup!r}: there is no such script beside the recipe")
    return recipe.setup


def interpreter(script: str) -> list[str]:
    """Return the interpreter of a script: that of its ``#!`` line, else bash."""
    first = script.partition("\n")[0]
    return first[2:].split(None, 1) if first.startswith("#!") else ["/bin/bash"]
