"""The settings of a verifier with a sandbox of its own, which receives artifacts of the agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path, PurePosixPath
from typing import Annotated

from intercode.core.decoding import decode_as
from intercode.core.errors import DataError
from intercode.datasets.files import LOCAL_IMAGE
from intercode.integrations.harbor.tasks.tables import (
    Artifact,
    EnvironmentTable,
    StepTable,
    TaskTable,
    VerifierTable,
)

ARTIFACTS = "/logs/artifacts"
"""The directory whose files a separate verifier always receives."""
_PLACES = ("/tests", "/logs/verifier")  # of the tests and their verdict
COMPOSE_FILE = "docker-compose.yaml"
"""The only name of a compose file that Harbor reads."""
COMPOSE_REASON = (
    "{} is a compose file, which a sandbox does not read: write what it says of one container into "
    "the Dockerfile and task.toml, or run the task with Harbor's environment `docker`"
)


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
    memory: int = EnvironmentTable.memory
    storage: int = EnvironmentTable.storage
    allows_network: bool = True
    artifacts: tuple[Artifact, ...] = ()

    @property
    def has_tests(self) -> bool:
        """Whether the image has the tests."""
        return bool(self.image or self.directory)


def read_separate_verifier(
    path: Path, task: TaskTable, step: StepTable | None = None
) -> SeparateVerifier | None:
    """Return the sandbox of the verifier of a task, or of a step of it. None if the verifier runs
    among the agent's files. Raises DataError that names the setting.

    What a step does not set is that of the task, and else that of its ``[environment]``.
    """
    owners = {"tests": task.verifier}
    if step is not None:
        owners = {f"steps/{step.name}/tests": step.verifier, **owners}
    verifiers = list(owners.values())
    modes = [_mode(path, verifier) for verifier in verifiers]
    if next(filter(None, modes), "shared") == "shared":
        return None
    settings = next((v.environment for v in verifiers if v.environment), task.environment)
    image, directory = _image(path, owners)
    baseline = settings.network_mode
    if baseline is None:
        baseline = "public" if settings.allow_internet in (None, True) else "no-network"
    return SeparateVerifier(
        image,
        directory,
        settings.workdir,
        settings.env,
        settings.memory_mb or settings.memory,
        settings.storage_mb or settings.storage,
        next(filter(None, (v.network_mode for v in verifiers)), baseline) == "public",
        _artifacts(path, task, *([step] if step is not None else [])),
    )


def _mode(path: Path, verifier: VerifierTable) -> str | None:
    if verifier.environment is None:
        return verifier.environment_mode
    if verifier.environment_mode == "shared":
        raise DataError(
            f"{path}: [verifier.environment] contradicts environment_mode = 'shared': leave one out"
        )
    return "separate"


def _image(path: Path, owners: Mapping[str, VerifierTable]) -> tuple[str, str]:
    """Return the image and the directory of the first owner that has one of them."""
    for directory, verifier in owners.items():
        image = verifier.environment.docker_image if verifier.environment else ""
        if LOCAL_IMAGE.match(image):
            raise DataError(
                f"{path}: docker_image = {image!r} refers to files of this machine, which a task "
                "must not read"
            )
        if image:
            return image, ""
        if (compose := path.parent / directory / COMPOSE_FILE).exists():
            raise DataError(COMPOSE_REASON.format(compose))
        if (path.parent / directory / "Dockerfile").is_file():
            return "", directory
    return "", ""


def _artifacts(path: Path, *owners: TaskTable | StepTable) -> tuple[Artifact, ...]:
    kind = Mapping[str, tuple[Annotated[str | Artifact, _artifact], ...]]
    found: list[Artifact] = []
    for owner in owners:
        found += decode_as(kind, {"artifacts": owner.artifacts or ()}, path)["artifacts"]
    if all(artifact.source.rstrip("/") != ARTIFACTS for artifact in found):
        found.insert(0, Artifact(ARTIFACTS))
    for first, second in combinations(found, 2):
        if _overlap(_output(first), _output(second)) and not _covers(first, second):
            raise DataError(
                f"{path}: the artifacts {first.source!r} and {second.source!r} have overlapping "
                "destinations: give them others"
            )
    return tuple(found)


def _artifact(entry: str | Artifact) -> Artifact:
    """Return an artifact, of which an entry may be the source alone."""
    artifact = Artifact(entry) if isinstance(entry, str) else entry
    source = PurePosixPath(artifact.source)
    if not source.is_absolute() or ".." in source.parts:
        raise ValueError(f"has the source {str(source)!r}, which is not an absolute path")
    if any(_overlap(source, PurePosixPath(place)) for place in _PLACES):
        raise ValueError(
            f"has the source {str(source)!r}, which would come in the place of the tests or their "
            "verdict"
        )
    return replace(artifact, source=str(source))


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
