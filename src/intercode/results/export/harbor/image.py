"""The environment directory of a Harbor task: a Dockerfile and the files that it copies."""

from __future__ import annotations

import io
import shlex
import tarfile
from pathlib import Path, PurePosixPath

from intercode.core.errors import UsageError
from intercode.core.types import Dataset, LayerSpec, Task
from intercode.datasets.harbor.task_directory import Files, read_files
from intercode.environments.base.diffs.initial_files import pack_tree
from intercode.results.safe_text import encode_text
from intercode.sandbox.images.recipes import packaged

DEFAULT_BASE = "debian:bookworm"
"""The base image of tasks that use the local machine's programs."""
_INSTALL = (
    "RUN apt-get update && apt-get install -y --no-install-recommends \\\n    {} \\\n"
    "    && rm -rf /var/lib/apt/lists/*"
)


def environment_files(dataset: Dataset, task: Task, base: str | None) -> Files:
    """Return the files below ``environment/``. Raises UsageError for an image that a Dockerfile
    cannot name: ``base`` is required then."""
    kind, _, reference = dataset.image.partition(":")
    files: Files = {}
    if base is not None:
        lines = [f"FROM {base}"]
    elif dataset.image == "host":
        python = dataset.environment == "python" or "python3" in dataset.programs
        lines = [f"FROM {DEFAULT_BASE}", *([_INSTALL.format("python3")] if python else [])]
    elif kind == "recipe" and reference in packaged.recipe_names():
        lines = _recipe_lines(packaged.load_recipe(reference))
    elif kind == "dockerfile" and Path(reference).is_dir():
        files = dict(read_files(Path(reference)))
        lines = [files.pop("Dockerfile")[0].decode().rstrip()]
    else:
        raise UsageError(
            f"the image {dataset.image!r} cannot be named in a Dockerfile: give a base that has "
            "what the tasks need, as with --base debian:bookworm"
        )
    lines.append("RUN mkdir -p /app")
    for number, layer in enumerate(task.files):
        lines += _layer_lines(layer, number, files)
    if task.initial_files:
        files["contents.tar"] = pack_tree(task.initial_files), 0o644
        lines.append("ADD contents.tar /")
    if task.setup and "tests" not in task.data:
        files["setup.sh"] = encode_text(f"{task.setup}\n"), 0o755
        lines.append("COPY setup.sh /tmp/setup.sh")
        lines.append(f"RUN cd {shlex.quote(task.cwd)} && bash /tmp/setup.sh && rm /tmp/setup.sh")
    lines.append(f"WORKDIR {task.cwd}")
    files["Dockerfile"] = encode_text("\n".join(lines) + "\n"), 0o644
    return {f"environment/{name}": file for name, file in files.items()}


def _recipe_lines(recipe: packaged.Recipe) -> list[str]:
    packages = " \\\n    ".join(sorted(recipe.packages))
    links = [f"RUN ln -sf {shlex.quote(to)} {shlex.quote(at)}" for at, to in recipe.links]
    return [f"FROM debian:{recipe.suite}", _INSTALL.format(packages), *links]


def _layer_lines(layer: LayerSpec, number: int, files: Files) -> list[str]:
    if layer.kind == "script":
        files[f"layer{number}.sh"] = layer.path.read_bytes(), 0o755
        name = f"/tmp/layer{number}.sh"
        return [f"COPY layer{number}.sh {name}", f"RUN bash {name} && rm {name}"]
    if layer.kind == "tar":
        files[f"layer{number}.tar"] = layer.path.read_bytes(), 0o644
    else:
        files[f"layer{number}.tar"] = _pack_directory(layer), 0o644
    return [f"ADD layer{number}.tar /"]


def _pack_directory(layer: LayerSpec) -> bytes:
    """Return a directory as a tar archive, owned by root and without dates."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path in sorted(layer.path.rglob("*")):
            inside = path.relative_to(layer.path)
            if set(inside.parts) & set(layer.exclude):
                continue
            info = tar.gettarinfo(
                str(path), str(PurePosixPath(layer.destination, *inside.parts))[1:]
            )
            info.uid = info.gid = info.mtime = 0
            info.uname = info.gname = "root"
            if layer.destination != "/":
                runs = info.isdir() or str(inside) in layer.executable
                info.mode = 0o755 if runs else 0o644
            if info.isreg():
                with path.open("rb") as file:
                    tar.addfile(info, file)
            else:
                tar.addfile(info)
    return out.getvalue()
