"""Loads tasks in Harbor's format: ``harbor:PATH`` of a task directory or of its parent directory.

A task directory has ``task.toml``, ``instruction.md``, ``environment/`` with a Dockerfile,
``tests/test.sh``, and optionally ``solution/solve.sh``. A task with several steps has the
instruction, the tests and the solution of each in ``steps/NAME``. The agent's sandbox is built from
``environment/`` alone; it never contains the tests or the solution.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from intercode.core.errors import DataError, UsageError
from intercode.core.types import Dataset, Payload, Task
from intercode.datasets.columns import parse_options
from intercode.datasets.files import LOCAL_IMAGE, read_text, require_inside
from intercode.integrations.harbor.tasks.separate_verifier import (
    COMPOSE_FILE,
    COMPOSE_REASON,
    SeparateVerifier,
)
from intercode.integrations.harbor.tasks.steps import StepConfig
from intercode.integrations.harbor.tasks.task_toml import Config, read_config
from intercode_sandbox.lines import split_lines
from intercode_sandbox.valid_text import decode_text

SOLUTION, TESTS = "/solution", "/tests"
"""The paths of the directories ``solution`` and ``tests`` in a sandbox, as Harbor defines them."""
UNPLAYABLE = "unplayable"
STEPS = "steps"
_TEST_SCRIPT = "test.sh"
_EARLIER_CONVERSATION = "trajectory.json"
MAX_FILES_SIZE = 64 << 20
"""The largest total size of the files in ``environment``, ``tests`` or ``solution``, in bytes."""
_HEREDOC_END = "END-OF-SOLUTION-FILE"
SUBMIT_ACTION = "submit"
_STEPS_NOTE = (
    "The task has {} steps, of which this is the first. `submit` ends a step, and the observation "
    "is the instruction of the next one."
)
_MAX_SOLUTION_LENGTH = 120_000  # characters of the action that runs a solution

Files = dict[str, tuple[bytes, int]]


@dataclass(frozen=True, kw_only=True)
class HarborPayload(Payload):
    """A task directory, the path ``folder``.

    ``image``: the ``docker_image`` of task.toml, an image name as in a FROM line; without one,
    ``dockerfile:DIRECTORY``. ``dockerfile``: ``dockerfile:DIRECTORY`` if there is a Dockerfile.
    ``config``: the settings of task.toml. ``setup``: a checksum over everything that affects an
    episode. ``tests`` has the content of each hidden test file, or the digest of a binary one.
    """

    hint: ClassVar[str] = "; this is no Harbor task: load its directory as harbor:DIRECTORY"
    image: str
    dockerfile: str
    config: Config
    folder: str
    setup: str


def load(address: str) -> Dataset:
    """Task directories in Harbor's format bring images and verifiers of their own: harbor:PATH.

    Returns the task in a directory, or the tasks in its subdirectories, ordered by name.

    Raises UsageError for a path without tasks. Raises DataError for a task that is broken or
    needs a feature that InterCode does not support: a compose file, GPUs. With
    ``?skip=unplayable``, such tasks are left out and named in the dataset's notes.
    """
    spec = f"harbor:{address}"
    path, _, options = parse_options(address, ("skip",), fields=())
    if options.get("skip", UNPLAYABLE) != UNPLAYABLE:
        raise UsageError(f"{spec!r}: the only option is ?skip={UNPLAYABLE}")
    root = Path(path).expanduser().absolute()
    is_single = os.path.isfile(root / "task.toml")  # also of a name that no file can have
    if is_single:
        folders = [root]
    elif os.path.isdir(root):
        folders = sorted(p.parent for p in root.glob("*/task.toml"))
    else:
        raise UsageError(f"{spec!r}: there is no directory {root}")
    if not folders:
        raise UsageError(f"{root} has no Harbor task: name a directory with a task.toml")
    tasks, faults = [], []
    for folder in folders:
        try:
            require_inside(folder, root, str(folder))
            tasks.append(
                read_task(folder, folder.name if is_single else f"{root.name}/{folder.name}")
            )
        except DataError as e:
            faults.append(f"{folder.name}: {e}")
    if faults and (not options or not tasks):
        hint = "" if is_single else f"; harbor:{root}?skip={UNPLAYABLE} plays the others"
        raise DataError(f"{'; '.join(faults)}{hint}")
    notes = "tasks in Harbor's format; the image and the verifier are each task's own"
    if faults:
        notes += f"; left out are {'; '.join(faults)}"
    return Dataset(
        spec,
        "harbor",
        tuple(tasks),
        image="",
        comparable=False,
        notes=notes,
        warnings=_warnings(tasks),
    )


def _warnings(tasks: Sequence[Task]) -> tuple[str, ...]:
    """Name the settings without an effect, each with the number of tasks that have it."""
    counts = Counter(name for task in tasks for name in HarborPayload.of(task).config.named)
    names = ", ".join(f"{name} ({counts[name]})" for name in sorted(counts))
    settings = f"settings of task.toml without an effect here, and the number of tasks: {names}"
    return (settings,) if counts else ()


def read_task(folder: Path, name: str) -> Task:
    """Return the task of one directory, whose columns are those of HarborPayload. Raises DataError
    that names the faulty file."""
    require_inside(folder / "task.toml", folder, str(folder / "task.toml"))
    for path in (folder, *folder.glob(f"{STEPS}/*")):
        if (path / _EARLIER_CONVERSATION).exists():
            raise DataError(
                f"{path / _EARLIER_CONVERSATION} is a conversation that the agent continues, which "
                "is not supported"
            )
    config = read_config(folder / "task.toml")
    steps = tuple(step.name for step in config.steps) or ("",)
    query, *_ = (read_instruction(folder, step) for step in steps)
    owners: Sequence[StepConfig | Config] = config.steps or (config,)
    tests = {
        f"{step}/{path}": file
        for step, owner in zip(steps, owners, strict=True)
        for path, file in read_tests(folder, step, owner.separate).items()
    }
    actions = solution_actions(folder, config)
    data: dict[str, Any] = {
        "image": _image_reference(folder, config),
        "dockerfile": _dockerfile(folder) or "",
        "config": config,
        "folder": str(folder),
        "tests": tuple(_text_or_digest(content) for content, _ in tests.values()),
        "setup": _checksum(folder, config),
    }
    if config.steps:
        data |= {"notes": _STEPS_NOTE.format(len(steps)), "actions": actions}
    return Task(
        name,
        query,
        f"\n{SUBMIT_ACTION}\n".join(actions[::2]) or None,
        cwd=config.workdir or "/",
        group=config.category,
        hardness=config.difficulty,
        tags=config.tags,
        data=data,
    )


def read_instruction(folder: Path, step: str) -> str:
    """Return the instruction of a step, or of a task without steps."""
    path = step_directory(folder, step) / "instruction.md"
    require_inside(path, folder, str(path))
    query = read_text(path).strip()
    if not query:
        raise DataError(f"{path} is empty: write the agent's instruction into it")
    return query


def read_tests(folder: Path, step: str, separate: SeparateVerifier | None = None) -> Files:
    """Return the hidden tests: those of the task, and over them those of the step, if any.

    Raises DataError if there is no test.sh, which the image of a separate verifier may have.
    """
    excluded = read_exclusion(folder)
    tests = read_files(folder, "tests", excluded)
    if step:
        tests |= read_files(folder, f"{STEPS}/{step}/tests", excluded)
    if _TEST_SCRIPT not in tests and not (separate and separate.has_tests):
        where = step_directory(folder, step)
        raise DataError(f"{where} has no tests/{_TEST_SCRIPT}, which verifies the solution")
    return tests


def step_directory(folder: Path, step: str) -> Path:
    """Return the directory with the files of a step; ``folder`` itself without a name."""
    return folder / STEPS / step if step else folder


def step_files_directory(step: str) -> str:
    """Return the path of the files that a step brings, relative to the task's directory."""
    return f"{STEPS}/{step}/workdir"


def solution_actions(folder: Path, config: Config) -> tuple[str, ...]:
    """Return the actions that solve a task: one, or one for each step with ``submit`` in between.

    A step without a solution of its own has that of the task. Empty if a solution is absent or too
    long.
    """
    excluded = read_exclusion(folder)
    shared = read_files(folder, "solution", excluded)
    own = [read_files(folder, f"{STEPS}/{s.name}/solution", excluded) for s in config.steps]
    solutions = [files or shared for files in own]
    actions: list[str] = []
    for files in solutions or [shared]:
        action = solution_action(files, config.solution_env, config.agent_user)
        if action is None:
            return ()
        actions += [SUBMIT_ACTION, action] if actions else [action]
    return tuple(actions)


def read_files(folder: Path, part: str = ".", excluded: Exclusion = lambda _: False) -> Files:
    """Return content and mode of each file in the directory ``part`` of ``folder``, by path
    relative to it, sorted. ``excluded`` says which are left out.

    Raises DataError if the directory or a link in it leads out of ``folder``, or if the files have
    more than ``MAX_FILES_SIZE`` bytes in total.
    """
    files: Files = {}
    total = 0
    top = folder / part
    require_inside(top, folder, str(top))
    for path in sorted(top.rglob("*")):
        if excluded(path):
            continue
        require_inside(path, top, str(path))
        if not path.is_file():
            continue
        total += path.stat().st_size
        if total > MAX_FILES_SIZE:
            raise DataError(f"the files of {top} have more than {MAX_FILES_SIZE >> 20} MiB")
        mode = 0o755 if path.stat().st_mode & 0o100 or path.suffix == ".sh" else 0o644
        files[str(path.relative_to(top))] = path.read_bytes(), mode
    return files


def solution_action(files: Files, env: Mapping[str, str], user: str = "") -> str | None:
    """Return one action that writes the solution's files, runs ``solve.sh`` and removes the files.

    ``user``: who runs it; empty for root. The directory stays if another user cannot remove it.
    Returns None if there is no solution, or if the action would be too long.
    """
    if "solve.sh" not in files:
        return None
    lines = []
    for name, (content, mode) in files.items():
        path = shlex.quote(f"{SOLUTION}/{name}")
        lines.append(f"mkdir -p {shlex.quote(str(Path(SOLUTION, name).parent))}")
        text = decode_text(content)
        if text is not None and _HEREDOC_END not in text and (not text or text.endswith("\n")):
            lines.append(f"cat > {path} <<'{_HEREDOC_END}'\n{text}{_HEREDOC_END}")
        else:
            coded = base64.b64encode(content).decode()
            lines.append(f"base64 -d > {path} <<'{_HEREDOC_END}'\n{coded}\n{_HEREDOC_END}")
        lines.append(f"chmod {mode:o} {path}")
    given = "".join(f"{k}={shlex.quote(v)} " for k, v in env.items())
    lines.append(f"{given}sh -c {SOLUTION}/solve.sh < /dev/null")
    lines.append(f"( s=$?; rm -rf {SOLUTION}{' 2>&-' if user else ''}; exit $s )")
    action = "\n".join(lines)
    return action if len(action) <= _MAX_SOLUTION_LENGTH else None


def _image_reference(folder: Path, config: Config) -> str:
    compose = folder / "environment" / COMPOSE_FILE
    if compose.exists():
        raise DataError(COMPOSE_REASON.format(compose))
    if LOCAL_IMAGE.match(config.docker_image):
        raise DataError(
            f"{folder / 'task.toml'}: docker_image = {config.docker_image!r} refers to files of "
            "this machine, which a task must not read: to use them, set the image with --image"
        )
    if config.docker_image:
        return config.docker_image
    built = _dockerfile(folder)
    if built is None:
        raise DataError(
            f"{folder} has neither environment/Dockerfile nor docker_image in task.toml: add one"
        )
    return built


def _dockerfile(folder: Path) -> str | None:
    environment = folder / "environment"
    exists = (environment / "Dockerfile").is_file()
    return f"dockerfile:{environment}" if exists else None


def _checksum(folder: Path, config: Config) -> str:
    """Return a SHA-256 over everything that affects an episode and its reward.

    ``repr(config)`` is part of it: renaming Config or its fields changes the hash of datasets. A
    field that no longer exists stays in it. Of the fields that are not in it, those that are set
    are a part.
    """
    sum_ = hashlib.sha256(f"{repr(config)[:-1]}, noted=())".encode())
    for field in fields(config):
        value = getattr(config, field.name)
        if field.compare and not field.repr and value != field.default:
            sum_.update(f"\0{field.name}={value!r}".encode())
    excluded = read_exclusion(folder)
    for part in ("environment", "tests", *([STEPS] if config.steps else [])):
        for name, (content, mode) in read_files(folder, part, excluded).items():
            sum_.update(f"\0{part}/{name}\0{mode:o}\0{len(content)}\0".encode() + content)
    return f"sha256:{sum_.hexdigest()}"


def _text_or_digest(content: bytes) -> str:
    return decode_text(content) or f"sha256:{hashlib.sha256(content).hexdigest()}"


# Reads .harborignore files, which leave files out of the tests and the solution of a task.
_NAME = ".harborignore"
_PARTS = ("tests", "solution")
_STEPS = "steps"

Exclusion = Callable[[Path], bool]


def read_exclusion(folder: Path) -> Exclusion:
    """Return a function that says of a path in a task's directory whether it is left out.

    A file has rules as in .gitignore, for its directory and everything below it. A link is left out
    if its target is. Raises UsageError if there is such a file, and ``pathspec`` is not installed,
    and for a directory of that name.
    """
    given, folder = folder, folder.resolve()
    tops = [top for part in _PARTS for top in (folder / part, *folder.glob(f"{_STEPS}/*/{part}"))]
    if not any(next(top.rglob(_NAME), None) for top in tops):
        return lambda _: False
    try:
        from pathspec import GitIgnoreSpec
    except ImportError as e:
        raise UsageError(
            f"{folder} has a {_NAME}, which needs pathspec: pip install 'intercode-gym[data]'"
        ) from e

    @cache
    def rules(directory: Path) -> GitIgnoreSpec:
        file = directory / _NAME
        require_inside(file, folder, str(file))
        if os.path.lexists(file) and not file.is_file():
            raise UsageError(f"{file} is not a regular file, so its rules cannot be read")
        return GitIgnoreSpec.from_lines(split_lines(read_text(file)) if file.is_file() else [])

    def is_listed(path: Path) -> bool:
        parts = path.relative_to(folder).parts if path.is_relative_to(folder) else ()
        top = 3 if parts[:1] == (_STEPS,) else 1  # parts of the directory of tests or a solution
        if len(parts) <= top or parts[top - 1] not in _PARTS:
            return False
        return parts[-1] == _NAME or any(
            is_excluded(parts[:end], top, is_directory=end < len(parts) or path.is_dir())
            for end in range(top + 1, len(parts) + 1)
        )

    def is_excluded(parts: tuple[str, ...], top: int, *, is_directory: bool) -> bool:
        """Return what the last rule that matches says; those of deeper directories are later."""
        excluded = False
        for start in range(top, len(parts)):
            name = "/".join(parts[start:]) + "/" * is_directory
            found = rules(folder.joinpath(*parts[:start])).check_file(name).include
            excluded = excluded if found is None else found
        return excluded

    def excludes(path: Path) -> bool:
        path = folder / os.path.relpath(path, given)
        return is_listed(path) or is_listed(path.resolve())

    return excludes
