"""Prints the Dockerfile for a recipe.toml, the form in which images were described before."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from intercode_sandbox.errors import ConfigError, UsageError
from intercode_sandbox.images.dockerfile.substitution import env_instruction
from intercode_sandbox.toml import read_toml

_TYPES: dict[str, type] = {
    "base": str,
    "date": str,
    "packages": list,
    "files": dict,
    "setup": str,
    "env": dict,
    "workdir": str,
    "network": str,
}


def refuse_recipe(path: Path) -> UsageError:
    """Return the error for a recipe.toml, or a directory with one; its ``verbatim`` is the
    Dockerfile that makes the image. Raises ConfigError if the file is no recipe."""
    file = path / "recipe.toml" if path.is_dir() else path
    if not file.is_file():
        return UsageError(f"there is no recipe {file}; an image of your own is dockerfile:PATH")
    recipe = read_toml(file)
    for key, kind in _TYPES.items():
        if not isinstance(recipe.get(key, kind()), kind):
            raise ConfigError(f"{file}: {key} = {recipe[key]!r} is not of type {kind.__name__}")
    error = UsageError(
        f"{file}: images are described by Dockerfiles, not by recipes. Write what follows to "
        f"{file.parent / 'Dockerfile'}, and name the image dockerfile:{file.parent}, or in a "
        'task.toml image = "Dockerfile"'
    )
    error.verbatim = _dockerfile(file, recipe)
    return error


def _dockerfile(file: Path, recipe: dict[str, Any]) -> str:
    base, date = recipe.get("base", "host"), recipe.get("date", "")
    if re.fullmatch(r"[a-z]+", base) and base != "host":
        base = f"debian:{base}{f'-{date}' if date else ''}"
    lines = [f"FROM {base}"]
    if packages := " ".join(map(str, recipe.get("packages", ()))):
        lines.append(
            f"RUN apt-get update && apt-get install -y --no-install-recommends {packages} \\\n"
            "    && rm -rf /var/lib/apt/lists/*"
        )
    files = recipe.get("files", {})
    lines += [f"COPY {json.dumps([str(name), to])}" for to, name in files.items()]
    lines += [env_instruction(name, str(value)) for name, value in recipe.get("env", {}).items()]
    if setup := recipe.get("setup", "").rstrip():
        script = _script(file, setup)
        script = script if script.startswith("#!") else f"#!/bin/bash\n{script}"
        network = "" if recipe.get("network") == "host" else "--network=none "
        end = next(word for n in range(len(script)) if (word := f"END{n or ''}") not in script)
        lines.append(f"RUN {network}<<'{end}'\n{script}\n{end}")
    if workdir := recipe.get("workdir"):
        lines.append(f"WORKDIR {workdir}")
    return "\n".join(lines) + "\n"


def _script(file: Path, setup: str) -> str:
    """Return the script that ``setup`` names beside the recipe, or ``setup`` itself."""
    if re.fullmatch(r"[\w./-]+", setup):
        with suppress(OSError):  # of a text that is too long for a name
            beside = (file.parent / setup).resolve()
            if beside.is_relative_to(file.parent) and beside.is_file():
                return beside.read_text("utf-8", "replace").rstrip()
    return setup
