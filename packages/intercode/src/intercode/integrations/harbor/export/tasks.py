"""Writes a dataset's tasks as Harbor's task directories.

Supported are environments whose description has ``harbor_files``, such as Capture the Flag and
Python, tasks with a probe of the end state, and Harbor's own tasks.
Harbor's verifier runs in the sandbox that the agent has left, so it is easier to deceive than ours.
"""

from __future__ import annotations

import io
import json
import re
import shlex
import tarfile
from collections.abc import Callable, Container
from itertools import count
from pathlib import Path, PurePosixPath

from intercode.core.errors import UsageError
from intercode.core.types import Dataset, LayerSpec, Payload, Task
from intercode.core.types.descriptions import load_function
from intercode.environments.base.diffs.initial_files import pack_tree
from intercode.environments.base.verifier_texts import REWARD_SCRIPT
from intercode.environments.recorded_descriptions import describe_environment
from intercode.integrations.harbor.export.base_image import has_directory_of_image, image_lines
from intercode.integrations.harbor.export.trees import read_tree, write_tree
from intercode.integrations.harbor.tasks.task_directory import Files, HarborPayload
from intercode.results.export.base import ExportResult, text_as_file_name
from intercode.results.safe_text import encode_text

ExpectedOutput = Callable[[Task], str]
"""Returns what a task's probe prints for the state that its gold leaves."""
_TOML = """\
version = "1.0"

[metadata]
author_name = "intercode"
source = {source}
difficulty = {hardness}
category = {group}
tags = {tags}

[verifier]
timeout_sec = 300.0

[agent]
timeout_sec = 900.0

[environment]
build_timeout_sec = 900.0
allow_internet = false
"""
_COPIES_ALL = re.compile(
    r"^[ \t]*(COPY|ADD)\b.*[\s\[\"](\./?|/|\S*[*?\[]\S*)[\s\"]", re.MULTILINE | re.I
)
"""Copies of a whole context, or by patterns, which have the export's files, too."""
_BASH = "#!/bin/bash\n"


def write_tasks(
    dataset: Dataset, out: Path, base: str | None = None, expected: ExpectedOutput | None = None
) -> ExportResult:
    """Write each task into a directory of its own below ``out``.

    ``base`` replaces the dataset's image in FROM. ``expected`` is required for tasks with a probe.
    Tasks that cannot be written are described in ``omitted``. Raises UsageError if that is all of
    them, or if a directory exists.
    """
    files: list[Path] = []
    names: set[str] = set()
    failures: dict[str, int] = {}
    for task in dataset.tasks:
        generated = task.instantiate(task, 0) if task.instantiate else task
        try:
            contents = task_files(dataset, generated, base, expected)
        except UsageError as e:
            failures[str(e)] = failures.get(str(e), 0) + 1
            continue
        name = _new_name(text_as_file_name(task.id.replace("/", "-")), names)
        names.add(name)
        directory = out / name
        if directory.exists():
            raise UsageError(f"{directory} exists already: choose an empty directory")
        write_tree(directory, contents)
        files.append(directory)
    left_out = tuple(f"{count} tasks: {why}" for why, count in failures.items())
    if not files:
        raise UsageError(f"no task of {dataset.name} can be written: {'; '.join(left_out)}")
    return ExportResult(tuple(files), len(files), left_out)


def task_files(
    dataset: Dataset, task: Task, base: str | None, expected: ExpectedOutput | None
) -> Files:
    """Return the files of one task's directory. Raises UsageError for a task that cannot be
    expressed in this form."""
    if dataset.environment == "harbor":
        return read_tree(Path(HarborPayload.of(task).folder))
    if task.probe is not None:
        parts = _probe_files(task, expected, _enter(dataset, task, base))
    elif (function := describe_environment(dataset.environment).harbor_files) is not None:
        texts = load_function(function, dict)(task, _enter(dataset, task, base))
        parts = {name: _text_file(text, name.endswith(".sh")) for name, text in texts.items()}
    else:
        raise UsageError(
            f"one sandbox, as a verifier has it, cannot score a {dataset.environment} task; tasks "
            "of ctf and python, tasks with a probe, and tasks of an environment whose description "
            "has harbor_files can be written, such as starter:ctf"
        )
    metadata = {
        "source": f"{dataset.name}/{task.id}",
        "hardness": task.hardness or "medium",
        "group": task.group or dataset.environment,
        "tags": list(task.tags),
    }
    values = {key: json.dumps(value, ensure_ascii=False) for key, value in metadata.items()}
    return {
        "task.toml": (encode_text(_TOML.format(**values)), 0o644),
        **environment_files(dataset, task, base),
        **parts,
    }


def _enter(dataset: Dataset, task: Task, base: str | None) -> str:
    """Return the line of a script that enters the directory of a task."""
    stays = has_directory_of_image(dataset, task, base)
    return "" if stays else f"cd {shlex.quote(task.cwd)}\n"


def _probe_files(task: Task, expected: ExpectedOutput | None, enter: str) -> Files:
    if expected is None or task.gold is None:
        raise UsageError("a task with a probe needs a gold, whose final state is probed")
    here = 'here=$(cd "$(dirname "$0")" && pwd)\n'
    test = 'cmp -s <(cd / && bash "$here/look.sh" 2>&1 | sort) <(sort "$here/expected.txt")'
    return {
        "instruction.md": _text_file(task.query),
        "tests/test.sh": _text_file(_BASH + here + REWARD_SCRIPT.format(test=test), True),
        "tests/look.sh": _text_file(task.probe or ""),
        "tests/expected.txt": (encode_text(expected(task)), 0o644),
        "solution/solve.sh": _text_file(f"{_BASH}{enter}{task.solution}", True),
    }


def _text_file(text: str, executable: bool = False) -> tuple[bytes, int]:
    """Return the content and the mode of a file."""
    return encode_text(f"{text.rstrip()}\n"), 0o755 if executable else 0o644


def _new_name(name: str, taken: Container[str]) -> str:
    """Return a name that is not taken: the name itself, or one with a number."""
    numbered = (name if number == 1 else f"{name}-{number}" for number in count(1))
    return next(candidate for candidate in numbered if candidate not in taken)


def environment_files(dataset: Dataset, task: Task, base: str | None) -> Files:
    """Return the files below ``environment/``. Raises UsageError for an image that a task's
    directory cannot hold: ``base`` is required then."""
    files: Files = {}
    lines, user = image_lines(dataset, base, files)
    stays = has_directory_of_image(dataset, task, base)
    enter = "" if stays else f"cd {shlex.quote(task.cwd)} && "
    lines.append("RUN mkdir -p /app")
    own = f"{_new_name('intercode-task-files', {name.partition('/')[0] for name in files})}/"
    own = own if files and dataset.image.startswith("dockerfile:") else ""
    if own and _COPIES_ALL.search(lines[0]):
        lines.append(f"RUN find / -xdev -type d -name {own[:-1]} -prune -exec rm -rf {{}} +")
    for number, layer in enumerate(task.files):
        lines += _layer_lines(layer, f"{own}layer{number}", files)
    if task.initial_files:
        files[f"{own}contents.tar"] = pack_tree(task.initial_files), 0o644
        lines.append(f"ADD {own}contents.tar /")
    if task.setup and not Payload.of(task).tests:
        files[f"{own}setup.sh"] = encode_text(f"{task.setup}\n"), 0o755
        lines.append(f"COPY {own}setup.sh /tmp/setup.sh")
        lines.append(f"RUN {enter}bash /tmp/setup.sh && rm /tmp/setup.sh")
    lines += [] if stays else [f"WORKDIR {task.cwd}"]
    lines += [f"USER {user}"] if user != "root" else []
    files["Dockerfile"] = encode_text("\n".join(lines) + "\n"), 0o644
    return {f"environment/{name}": file for name, file in files.items()}


def _layer_lines(layer: LayerSpec, name: str, files: Files) -> list[str]:
    if layer.kind == "script":
        files[f"{name}.sh"] = layer.path.read_bytes(), 0o755
        return [f"COPY {name}.sh /tmp/layer.sh", "RUN bash /tmp/layer.sh && rm /tmp/layer.sh"]
    tar = layer.path.read_bytes() if layer.kind == "tar" else _pack_directory(layer)
    files[f"{name}.tar"] = tar, 0o644
    return [f"ADD {name}.tar /"]


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
