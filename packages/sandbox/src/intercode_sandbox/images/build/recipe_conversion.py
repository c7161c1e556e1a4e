"""Prints the Dockerfile for a recipe.toml, the form in which images were described before."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from intercode_sandbox.errors import ConfigError, UsageError
from intercode_sandbox.toml import read_toml


def refuse_recipe(path: Path) -> UsageError:
    """Return the error for a recipe.toml, or a directory with one, with the Dockerfile that makes
    its image. Raises ConfigError if the file is not TOML."""
    file = path / "recipe.toml" if path.is_dir() else path
    if not file.is_file():
        return UsageError(f"there is no recipe {file}; an image of your own is dockerfile:PATH")
    return UsageError(
        f"{file}: images are described by Dockerfiles, not by recipes. Write this to "
        f"{file.parent / 'Dockerfile'}, and name the image dockerfile:{file.parent}:\n\n"
        f"{_dockerfile(file, read_toml(file))}"
    )


def _dockerfile(file: Path, recipe: dict[str, Any]) -> str:
    base, date = str(recipe.get("base", "host")), str(recipe.get("date", ""))
    if re.fullmatch(r"[a-z]+", base) and base != "host":
        base = f"debian:{base}{f'-{date}' if date else ''}"
    lines = [f"FROM {base}"]
    if packages := " ".join(map(str, recipe.get("packages", ()))):
        lines.append(
            f"RUN apt-get update && apt-get install -y --no-install-recommends {packages} \\\n"
            "    && rm -rf /var/lib/apt/lists/*"
        )
    lines += [f"COPY {json.dumps([name, to])}" for to, name in _pairs(file, recipe, "files")]
    lines += [f"ENV {name}={json.dumps(value)}" for name, value in _pairs(file, recipe, "env")]
    if setup := str(recipe.get("setup", "")).rstrip():
        beside = (file.parent / setup).resolve() if "\n" not in setup else file.parent
        is_script = beside.is_relative_to(file.parent) and beside.is_file()
        script = beside.read_text("utf-8", "replace").rstrip() if is_script else setup
        script = script if script.startswith("#!") else f"#!/bin/bash\n{script}"
        network = "" if recipe.get("network") == "host" else "--network=none "
        lines.append(f"RUN {network}<<'SETUP'\n{script}\nSETUP")
    if workdir := recipe.get("workdir"):
        lines.append(f"WORKDIR {workdir}")
    return "\n".join(lines) + "\n"


def _pairs(file: Path, recipe: dict[str, Any], key: str) -> list[tuple[str, str]]:
    table = recipe.get(key, {})
    if not isinstance(table, dict):
        raise ConfigError(f"{file}: {key} = {table!r} is not a table")
    return [(name, str(value)) for name, value in table.items()]
