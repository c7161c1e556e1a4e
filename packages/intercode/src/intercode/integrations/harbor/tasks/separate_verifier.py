"""The settings of a verifier with a sandbox of its own, which receives artifacts of the agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path, PurePosixPath

from intercode.core.errors import DataError
from intercode.datasets.files import LOCAL_IMAGE
from intercode.integrations.harbor.tasks.values import (
    Table,
    read_env,
    read_size,
    read_table,
    read_tables,
    read_timeout,
    read_user,
    reject_unsupported,
)

ARTIFACTS = "/logs/artifacts"
"""The directory whose files a separate verifier always receives."""
DEFAULT_MEMORY, DEFAULT_STORAGE = 2 << 30, 10 << 30
_PLACES = ("/tests", "/logs/verifier")  # of the tests and their verdict
COMPOSE_FILE = "docker-compose.yaml"
"""The only name of a compose file that Harbor reads."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file or directory that a separate verifier receives at the same path.

    ``exclude``: patterns of names or paths in the directory that are left out, as for ``tar``.
    """

    source: str
    exclude: tuple[str, ...] = ()
    destination: str = field(default="", repr=False)  # where Harbor keeps it for people


@dataclass(frozen=True, slots=True)
class CollectCommand:
    """A command that runs in the agent's sandbox before its state is verified. ``user``: empty for
    root."""

    command: str
    timeout: float = 60.0
    user: str = ""


@dataclass(frozen=True, slots=True)
class SeparateVerifier:
    """The sandbox of a verifier.

    ``image``: as in a FROM line, or ``directory``: the part of the task with its Dockerfile; the
    image then has the tests. If both are empty, the image is that of the task, and the tests are
    written into it. ``workdir``: empty for the image's own. Sizes are in bytes.
    """

    image: str = ""
    directory: str = ""
    workdir: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    memory: int = DEFAULT_MEMORY
    storage: int = DEFAULT_STORAGE
    allows_network: bool = True
    artifacts: tuple[Artifact, ...] = ()

    @property
    def has_tests(self) -> bool:
        """Whether the image has the tests."""
        return bool(self.image or self.directory)


def read_separate_verifier(
    path: Path, table: Table, step: Table | None = None
) -> SeparateVerifier | None:
    """Return the sandbox of the verifier of a task, or of a step of it. None if the verifier runs
    among the agent's files. Raises DataError that names the setting.

    What a step does not set is that of the task, and else that of its ``[environment]``.
    """
    owners = [("tests", read_table(path, table, "verifier"))]
    if step is not None:
        tests = f"steps/{step.get('name')}/tests"
        owners.insert(0, (tests, read_table(path, step, "verifier", "steps.")))
    modes = [_mode(path, verifier) for _, verifier in owners]
    if next(filter(None, modes), "shared") == "shared":
        return None
    environments = [
        read_table(path, verifier, "environment", "verifier.")
        if "environment" in verifier
        else None
        for _, verifier in owners
    ]
    own = [settings for settings in environments if settings is not None]
    settings = own[0] if own else read_table(path, table, "environment")
    reject_unsupported(path, settings)
    image, directory = _image(path, [tests for tests, _ in owners], environments)
    where = "verifier.environment"
    network = [verifier.get("network_mode") for _, verifier in owners]
    baseline = settings.get("network_mode")
    if baseline is None:
        baseline = "public" if settings.get("allow_internet", True) else "no-network"
    return SeparateVerifier(
        image,
        directory,
        str(settings.get("workdir") or ""),
        read_env(path, settings, where),
        read_size(path, settings, "memory", DEFAULT_MEMORY),
        read_size(path, settings, "storage", DEFAULT_STORAGE),
        next(filter(None, network), baseline) == "public",
        _artifacts(path, table, *([step] if step is not None else [])),
    )


def _mode(path: Path, verifier: Table) -> str | None:
    mode = verifier.get("environment_mode")
    if mode not in (None, "shared", "separate"):
        raise DataError(f"{path}: environment_mode = {mode!r} is not shared or separate")
    if "environment" not in verifier:
        return mode
    if mode == "shared":
        raise DataError(
            f"{path}: [verifier.environment] contradicts environment_mode = 'shared': leave one out"
        )
    return "separate"


def _image(
    path: Path, tests: Sequence[str], environments: Sequence[Table | None]
) -> tuple[str, str]:
    """Return the image and the directory of the first owner that has one of them."""
    for directory, settings in zip(tests, environments, strict=True):
        image = str((settings or {}).get("docker_image") or "")
        if LOCAL_IMAGE.match(image):
            raise DataError(
                f"{path}: docker_image = {image!r} refers to files of this machine, which a task "
                "must not read"
            )
        if image:
            return image, ""
        if (path.parent / directory / COMPOSE_FILE).exists():
            raise DataError(
                f"{path.parent / directory / COMPOSE_FILE} defines several containers, which are "
                "not supported"
            )
        if (path.parent / directory / "Dockerfile").is_file():
            return "", directory
    return "", ""


def read_collect_commands(path: Path, *owners: Table) -> tuple[CollectCommand, ...]:
    """Return the commands in ``[[verifier.collect]]`` of a task and a step of it."""
    commands = []
    for owner in owners:
        for hook in read_tables(path, read_table(path, owner, "verifier"), "collect"):
            if not isinstance(hook.get("command"), str):
                raise DataError(f"{path}: [[verifier.collect]] needs a command, not {hook!r}")
            _require_main(path, hook)
            timeout = read_timeout(path, hook, "verifier.collect", 60.0)
            user = read_user(path, hook, "verifier.collect")
            commands.append(CollectCommand(hook["command"], timeout, user))
    return tuple(commands)


def _require_main(path: Path, table: Table) -> None:
    if table.get("service") not in (None, "", "main"):
        raise DataError(
            f"{path} names the container {table['service']!r}, and several are not supported"
        )


def _artifacts(path: Path, *owners: Table) -> tuple[Artifact, ...]:
    found = []
    for owner in owners:
        entries = owner.get("artifacts") or []
        if not isinstance(entries, list):
            raise DataError(f"{path}: artifacts must be a list, not {entries!r}")
        found += [_artifact(path, entry) for entry in entries]
    if all(artifact.source.rstrip("/") != ARTIFACTS for artifact in found):
        found.insert(0, Artifact(ARTIFACTS))
    for first, second in combinations(found, 2):
        if _overlap(_output(first), _output(second)) and not _covers(first, second):
            raise DataError(
                f"{path}: the artifacts {first.source!r} and {second.source!r} have overlapping "
                "destinations: give them others"
            )
    return tuple(found)


def _artifact(path: Path, entry: object) -> Artifact:
    table = {"source": entry} if isinstance(entry, str) else entry
    if not isinstance(table, dict) or not isinstance(table.get("source"), str):
        raise DataError(f"{path}: the artifact {entry!r} has no source")
    exclude = table.get("exclude") or []
    if not isinstance(exclude, list):
        raise DataError(f"{path}: exclude must be a list, not {exclude!r}")
    _require_main(path, table)
    source = PurePosixPath(table["source"])
    if not source.is_absolute() or ".." in source.parts:
        raise DataError(f"{path}: the artifact source {str(source)!r} is not an absolute path")
    if any(_overlap(source, PurePosixPath(place)) for place in _PLACES):
        raise DataError(
            f"{path}: the artifact {str(source)!r} would come in the place of the tests or their "
            "verdict"
        )
    return Artifact(
        str(source),
        tuple(map(str, exclude)),
        str(table.get("destination") or ""),
    )


def _output(artifact: Artifact) -> PurePosixPath:
    return PurePosixPath("/", artifact.destination or artifact.source)


def _overlap(one: PurePosixPath, other: PurePosixPath) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)


def _covers(first: Artifact, second: Artifact) -> bool:
    """Return whether the second artifact is a part of the first, also where Harbor keeps it."""
    if first.source == second.source and _output(first) == _output(second):
        return first.exclude == second.exclude
    if first.exclude or not PurePosixPath(second.source).is_relative_to(first.source):
        return False
    part = PurePosixPath(second.source).relative_to(first.source)
    return _output(second) == _output(first) / part
