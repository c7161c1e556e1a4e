"""The environment directory of a Harbor task: a Dockerfile and the files that it copies."""

from __future__ import annotations

import io
import shlex
import tarfile
from pathlib import PurePosixPath

from intercode.core.types import Dataset, LayerSpec, Task
from intercode.datasets.harbor.task_directory import Files
from intercode.environments.base.diffs.initial_files import pack_tree
from intercode.results.export.harbor.base_image import has_directory_of_image, image_lines
from intercode.results.safe_text import encode_text


def environment_files(dataset: Dataset, task: Task, base: str | None) -> Files:
    """Return the files below ``environment/``. Raises UsageError for an image that a task's
    directory cannot hold: ``base`` is required then."""
    files: Files = {}
    lines, user = image_lines(dataset, base, files)
    stays = has_directory_of_image(dataset, task, base)
    enter = "" if stays else f"cd {shlex.quote(task.cwd)} && "
    lines.append("RUN mkdir -p /app")
    for number, layer in enumerate(task.files):
        lines += _layer_lines(layer, number, files)
    if task.initial_files:
        files["contents.tar"] = pack_tree(task.initial_files), 0o644
        lines.append("ADD contents.tar /")
    if task.setup and "tests" not in task.data:
        files["setup.sh"] = encode_text(f"{task.setup}\n"), 0o755
        lines.append("COPY setup.sh /tmp/setup.sh")
        lines.append(f"RUN {enter}bash /tmp/setup.sh && rm /tmp/setup.sh")
    lines += [] if stays else [f"WORKDIR {task.cwd}"]
    lines += [f"USER {user}"] if user != "root" else []
    files["Dockerfile"] = encode_text("\n".join(lines) + "\n"), 0o644
    return {f"environment/{name}": file for name, file in files.items()}


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
