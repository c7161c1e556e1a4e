"""Harbor's task directories as tasks: ``harbor:/path`` of one, or of a directory of them.

A task is ``task.toml``, ``instruction.md``, ``environment/`` with a Dockerfile, ``tests/test.sh``,
and perhaps ``solution/solve.sh``. Only the environment is ever in the agent's box.
"""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from intercode.core.errors import DataError, UsageError
from intercode.core.types import Dataset, Task
from intercode.datasets.columns import parse_options
from intercode.datasets.files import read_text
from intercode.datasets.harbor.task_toml import Config, read_config

SCHEME = "harbor:"
SOLUTION, TESTS = "/solution", "/tests"
"""Where Harbor lays the two directories out."""
UNPLAYABLE = "unplayable"
MAX_FILES_SIZE = 64 << 20
"""Bytes that the files of one of them may have together."""
_HEREDOC_END = "END-OF-SOLUTION-FILE"
_LOCAL_IMAGE = re.compile(r"(?:dir|tar|recipe|docker-archive|oci|dockerfile|built|image):")
_MAX_SOLUTION_LENGTH = 120_000  # characters of a solution as one action

Files = dict[str, tuple[bytes, int]]


def load(spec: str) -> Dataset:
    """The task in a directory, or those in its directories, by name.

    Raises UsageError for a place that holds none, DataError for tasks that are broken or need what
    is not here: several containers, several steps, a verifier in an image of its own, GPUs. With
    ``?skip=unplayable`` these are left out, and the dataset's notes name them.
    """
    place, columns, options = parse_options(spec, ("skip",))
    if columns.names or options.get("skip", UNPLAYABLE) != UNPLAYABLE:
        raise UsageError(f"{spec!r}: what may follow the question mark is skip={UNPLAYABLE}")
    root = Path(place.removeprefix(SCHEME)).expanduser().absolute()
    alone = (root / "task.toml").is_file()
    if alone:
        folders = [root]
    elif root.is_dir():
        folders = sorted(p.parent for p in root.glob("*/task.toml"))
    else:
        raise UsageError(f"{spec!r}: there is no directory {root}")
    if not folders:
        raise UsageError(f"{root} holds no task of Harbor's: a directory with a task.toml is one")
    tasks, faults = [], []
    for folder in folders:
        try:
            tasks.append(read_task(folder, folder.name if alone else f"{root.name}/{folder.name}"))
        except DataError as e:
            faults.append(f"{folder.name}: {e}")
    if faults and (not options or not tasks):
        way = "" if alone else f"; harbor:{root}?skip={UNPLAYABLE} plays the others"
        raise DataError(f"{'; '.join(faults)}{way}")
    notes = "tasks in Harbor's format; the image and the verifier are each task's own"
    if faults:
        notes += f"; left out are {'; '.join(faults)}"
    return Dataset(spec, "harbor", tuple(tasks), image="", comparable=False, notes=notes)


def read_task(folder: Path, name: str) -> Task:
    """One task directory. Raises DataError that names the file at fault.

    ``Task.data`` holds ``image``, a Dockerfile's directory as a specification, or the name of an
    image as it would stand in its FROM line; ``dockerfile``, the former if there is one all the
    same; ``config``, what its task.toml says;
    ``folder``; ``tests``, the texts of its hidden files; ``setup``, a checksum over what it is
    played in.
    """
    config = read_config(folder / "task.toml")
    query = read_text(folder / "instruction.md").strip()
    if not query:
        raise DataError(f"{folder / 'instruction.md'} is empty: it is what the agent is asked")
    tests = read_files(folder / "tests")
    if "test.sh" not in tests:
        raise DataError(f"{folder} has no tests/test.sh: nothing says when its task is done")
    solution = read_files(folder / "solution")
    data: dict[str, Any] = {
        "image": _image_reference(folder, config),
        "dockerfile": _dockerfile(folder) or "",
        "config": config,
        "folder": str(folder),
        "tests": tuple(_text_or_digest(content) for content, _ in tests.values()),
        "setup": _checksum(folder, config),
    }
    return Task(
        name, query, solution_action(solution, config.solution_env), cwd=config.workdir or "/",
        group=config.category, hardness=config.difficulty, tags=config.tags, data=data,
    )  # fmt: skip


def read_files(folder: Path) -> Files:
    """Path within a directory to content and mode, sorted; nothing where there is none.

    Raises DataError for links that lead out of it and for more than LARGEST bytes.
    """
    found: Files = {}
    total = 0
    for path in sorted(folder.rglob("*")):
        if not path.resolve().is_relative_to(folder.resolve()):
            raise DataError(f"{path} is a link that leads out of {folder}: copy the file instead")
        if not path.is_file():
            continue
        total += path.stat().st_size
        if total > MAX_FILES_SIZE:
            raise DataError(f"the files of {folder} have more than {MAX_FILES_SIZE >> 20} MiB")
        mode = 0o755 if path.stat().st_mode & 0o100 or path.suffix == ".sh" else 0o644
        found[str(path.relative_to(folder))] = path.read_bytes(), mode
    return found


def solution_action(files: Files, env: Mapping[str, str]) -> str | None:
    """What lays a solution out as Harbor does, runs it and takes it away again, as one action; None
    where there is none, or it is too large for that."""
    if "solve.sh" not in files:
        return None
    lines = []
    for name, (content, mode) in files.items():
        path = shlex.quote(f"{SOLUTION}/{name}")
        lines.append(f"mkdir -p {shlex.quote(str(Path(SOLUTION, name).parent))}")
        text = _decode(content)
        if text is not None and _HEREDOC_END not in text and (not text or text.endswith("\n")):
            lines.append(f"cat > {path} <<'{_HEREDOC_END}'\n{text}{_HEREDOC_END}")
        else:
            coded = base64.b64encode(content).decode()
            lines.append(f"base64 -d > {path} <<'{_HEREDOC_END}'\n{coded}\n{_HEREDOC_END}")
        lines.append(f"chmod {mode:o} {path}")
    given = "".join(f"{k}={shlex.quote(v)} " for k, v in env.items())
    lines.append(f"{given}sh -c {SOLUTION}/solve.sh < /dev/null")
    lines.append(f"( s=$?; rm -rf {SOLUTION}; exit $s )")
    action = "\n".join(lines)
    return action if len(action) <= _MAX_SOLUTION_LENGTH else None


def _image_reference(folder: Path, config: Config) -> str:
    environment = folder / "environment"
    for name in ("docker-compose.yaml", "docker-compose.yml"):
        if (environment / name).exists():
            raise DataError(
                f"{environment / name} asks for several containers, and a task here has one box"
            )
    if _LOCAL_IMAGE.match(config.docker_image):
        raise DataError(
            f"{folder / 'task.toml'}: docker_image = {config.docker_image!r} means files of this "
            "machine, which are none of a task's: if you want them, give them with --image"
        )
    if config.docker_image:
        return config.docker_image
    built = _dockerfile(folder)
    if built is None:
        raise DataError(f"{folder} has neither environment/Dockerfile nor a docker_image")
    return built


def _dockerfile(folder: Path) -> str | None:
    environment = folder / "environment"
    there = (environment / "Dockerfile").is_file()
    return f"dockerfile:{environment}" if there else None


def _checksum(folder: Path, config: Config) -> str:
    """Over all that decides how an episode goes and what it is paid."""
    sum_ = hashlib.sha256(repr(config).encode())
    for part in ("environment", "tests"):
        for name, (content, mode) in read_files(folder / part).items():
            sum_.update(f"\0{part}/{name}\0{mode:o}\0{len(content)}\0".encode() + content)
    return f"sha256:{sum_.hexdigest()}"


def _text_or_digest(content: bytes) -> str:
    return _decode(content) or f"sha256:{hashlib.sha256(content).hexdigest()}"


def _decode(content: bytes) -> str | None:
    try:
        return None if b"\0" in content else content.decode()
    except UnicodeDecodeError:
        return None
