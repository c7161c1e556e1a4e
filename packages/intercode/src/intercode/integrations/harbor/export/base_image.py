"""The lines with which the Dockerfile of a Harbor task begins: the image of the dataset."""

from __future__ import annotations

import io
import re
import shlex
import stat
import tarfile
from collections.abc import Mapping
from pathlib import Path

from intercode.core.errors import UsageError
from intercode.core.types import Dataset, Image, Task
from intercode.environments.recorded_descriptions import describe_environment
from intercode.integrations.harbor.export.trees import read_tree
from intercode.integrations.harbor.tasks.task_directory import MAX_FILES_SIZE, Files
from intercode_sandbox.images.archives.directory import walk_entries
from intercode_sandbox.images.archives.set_user_id import is_program
from intercode_sandbox.images.build.on_demand import resolve_or_build
from intercode_sandbox.images.dockerfile.build import locate_dockerfile
from intercode_sandbox.images.dockerfile.dockerignore import IgnoreRules
from intercode_sandbox.images.dockerfile.substitution import env_instruction
from intercode_sandbox.images.recipes import packaged

DEFAULT_BASE = "debian:bookworm"
"""The base image of tasks that use the local machine's programs."""
_INSTALL = (
    "RUN apt-get update && apt-get install -y --no-install-recommends \\\n    {} \\\n"
    "    && rm -rf /var/lib/apt/lists/*"
)
_FROM = re.compile(r"^([ \t]*FROM[ \t]+(?:--\S+[ \t]+)*)(\S+)", re.MULTILINE | re.IGNORECASE)
_USER = re.compile(r"^[ \t]*USER[ \t]+(\S+)", re.MULTILINE | re.IGNORECASE)


def image_lines(dataset: Dataset, base: str | None, files: Files) -> tuple[list[str], str]:
    """Return the lines of a Dockerfile that make the dataset's image, and the user that they end
    with. Adds the files that they copy to ``files``.

    ``base`` replaces the image on which a Dockerfile of the dataset builds, and any other
    image. Raises UsageError for an image that a task's directory cannot hold.
    """
    kind, _, reference = dataset.image.partition(":")
    if kind == "dockerfile":
        return _dockerfile_lines(Path(reference), base, files)
    if base is not None:
        return [f"FROM {base}"], "root"
    programs = (*describe_environment(dataset.environment).programs, *dataset.programs)
    python = "python3" in programs
    return _base_lines(dataset.image, python, files), "root"


def has_directory_of_image(dataset: Dataset, task: Task, base: str | None) -> bool:
    """Return whether a task has the working directory that its image declares."""
    kind = dataset.image.partition(":")[0]
    builds = kind == "dockerfile"
    keeps = base is None and kind not in ("host", "recipe")
    return task.cwd == "/" and (builds or keeps)


def _base_lines(spec: str, python: bool, files: Files) -> list[str]:
    kind, _, reference = spec.partition(":")
    if spec == "host":
        return [f"FROM {DEFAULT_BASE}", *([_INSTALL.format("python3")] if python else [])]
    if kind == "recipe":
        return _packaged_recipe_lines(packaged.load_recipe(reference))
    if kind == "registry":
        return [f"FROM {reference}"]
    return _packed_lines(resolve_or_build(spec), files)


def _packaged_recipe_lines(recipe: packaged.Recipe) -> list[str]:
    links = [f"RUN ln -sf {shlex.quote(to)} {shlex.quote(at)}" for at, to in recipe.links]
    return [f"FROM debian:{recipe.suite}", _install(recipe.packages), *links]


def _install(packages: tuple[str, ...]) -> str:
    return _INSTALL.format(" \\\n    ".join(sorted(packages)))


def _dockerfile_lines(path: Path, base: str | None, files: Files) -> tuple[list[str], str]:
    file, context = locate_dockerfile(path)
    text = file.read_text("utf-8").rstrip()
    ignores = IgnoreRules.for_dockerfile(file, context)
    files |= read_tree(context, ignores)
    for name in (file.name, f"{file.name}.dockerignore", ".dockerignore"):
        files.pop(name, None)
    if ignores(file.name):
        files[".dockerignore"] = b"Dockerfile\n.dockerignore\n", 0o644
    stages = _FROM.findall(text)
    if base is not None:
        if len(stages) != 1:
            raise UsageError(f"{file} has {len(stages)} lines FROM: leave the base out")
        text = _FROM.sub(lambda line: line[1] + base, text)
    last = list(_FROM.finditer(text))[-1:]
    users = _USER.findall(text, last[0].end() if last else 0)
    user = users[-1] if users else "root"
    return [text, *(["USER root"] if users else [])], user


def _packed_lines(image: Image, files: Files) -> list[str]:
    """Return lines for an image of which only the files are known."""
    if image.root is None:
        raise UsageError(
            f"the image {image.name!r} cannot be named in a Dockerfile: give a base that has "
            "what the tasks need, as with --base debian:bookworm"
        )
    packed = _pack_image(image.root)
    if len(packed) > MAX_FILES_SIZE:
        raise UsageError(
            f"the image {image.name!r} has {len(packed) >> 20} MiB, and a task's directory at most "
            f"{MAX_FILES_SIZE >> 20}: put it into a registry, and name it with --base"
        )
    files["image.tar.gz"] = packed, 0o644
    return ["FROM scratch", "ADD image.tar.gz /", *_environment_lines(image.env, image.cwd)]


def _environment_lines(env: Mapping[str, str], cwd: str) -> list[str]:
    """Return lines that set variables and the directory of programs."""
    lines = [env_instruction(name, value) for name, value in env.items()]
    return [*lines, *([f"WORKDIR {cwd}"] if cwd != "/" else [])]


def _pack_image(root: Path) -> bytes:
    """Return a tree as a compressed tar archive, owned by root and without dates."""
    out = io.BytesIO()
    links: dict[tuple[int, int], str] = {}
    with tarfile.open(fileobj=out, mode="w:gz", format=tarfile.GNU_FORMAT, compresslevel=6) as tar:
        for name, status in walk_entries(root):
            if not name:
                continue
            path = root / name
            info = tarfile.TarInfo(name)
            info.mode = stat.S_IMODE(status.st_mode)
            if is_program(str(path), status):
                info.mode |= stat.S_ISUID
            first = links.setdefault((status.st_dev, status.st_ino), name)
            if stat.S_ISDIR(status.st_mode):
                info.type = tarfile.DIRTYPE
            elif stat.S_ISLNK(status.st_mode):
                info.type, info.linkname = tarfile.SYMTYPE, str(path.readlink())
            elif not stat.S_ISREG(status.st_mode):
                continue
            elif first != name:
                info.type, info.linkname = tarfile.LNKTYPE, first
            else:
                info.size = status.st_size
                with path.open("rb") as file:
                    tar.addfile(info, file)
                continue
            tar.addfile(info)
    return out.getvalue()
