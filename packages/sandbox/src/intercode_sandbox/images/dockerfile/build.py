"""Builds Dockerfiles. Each instruction that changes files is a cached step (``build.steps``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from intercode_sandbox.errors import DataError, InterCodeError, UsageError
from intercode_sandbox.images.build import built_images
from intercode_sandbox.images.build.base_images import BaseImageResolver
from intercode_sandbox.images.build.layer_stack import LayerStack
from intercode_sandbox.images.build.steps import BuildBase
from intercode_sandbox.images.dockerfile import stages
from intercode_sandbox.images.dockerfile.dockerignore import IgnoreRules
from intercode_sandbox.images.dockerfile.instructions import BuildContext, StageState
from intercode_sandbox.images.dockerfile.parser import Instruction, parse_dockerfile
from intercode_sandbox.images.progress import Progress
from intercode_sandbox.types import Image

_PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy", "all_proxy")
"""Arguments that need no ARG: commands get this machine's proxies."""


def build_dockerfile(
    path: Path,
    bases: BaseImageResolver,
    progress: Progress,
    *,
    args: Mapping[str, str] | None = None,
    target: str | None = None,
    context: Path | None = None,
    force: bool = False,
    refuse_undeclared: bool = True,
) -> Image:
    """Return the image of a Dockerfile, or of the Dockerfile in a directory. ``context`` is by
    default the directory of the file.

    ``args`` are values for ARG; ``target`` is the stage to build. Cached steps do not run again,
    unless ``force``. Raises UsageError for a missing file, an unknown base image, or, with
    ``refuse_undeclared``, an argument that no ARG declares; DataError with the line for faults of
    the Dockerfile and failed commands.
    """
    file, directory = locate_dockerfile(path)
    spec = f"dockerfile:{directory if file.name == 'Dockerfile' else file}"
    context = context or directory
    given = dict(args or {})
    generation = built_images.build_generation(spec, force)
    script = parse_dockerfile(_read_text(file), str(file))
    found, outer = stages.split_stages(script, given, str(file))
    ignored = IgnoreRules.for_dockerfile(file, context)
    done: dict[str, StageState] = {}
    declared = {*outer, *_PROXIES, *(name.upper() for name in _PROXIES)}
    stage_names = tuple(stage.name for stage in found if not stage.name.isdigit())
    work = BuildContext(
        LayerStack([context]),
        ignored,
        bases,
        script.escape,
        given,
        outer,
        done,
        progress,
        stage_names,
    )
    for stage in stages.required_stages(found, target):
        built = _build_stage(stage, work, generation, file)
        done[stage.name] = done[str(stage.number)] = built
        declared |= built.args.keys()
    unknown = sorted(set(given) - declared - _declared_arguments(script.instructions))
    if unknown and refuse_undeclared:
        raise UsageError(f"--build-arg {unknown[0]}: no ARG of {file} declares it")
    return built_images.record_image(
        spec, built.base, built.env, built.cwd, built.notes, built.entrypoint
    )


def locate_dockerfile(path: Path) -> tuple[Path, Path]:
    """Return the Dockerfile for the path of a file or directory, and its context.

    Raises UsageError if it does not exist.
    """
    file = path / "Dockerfile" if path.is_dir() else path
    if not file.is_file():
        raise UsageError(f"there is no {file}: name a directory with a Dockerfile, or the file")
    return file.resolve(), file.resolve().parent


def _read_text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise DataError(f"{file} cannot be read as text: {e}") from e


def _declared_arguments(instructions: tuple[Instruction, ...]) -> set[str]:
    """Return the names that ARG instructions declare, in all stages."""
    lines = (i.text.split() for i in instructions if i.name == "ARG")
    return {word.partition("=")[0] for words in lines for word in words}


def _build_stage(
    stage: stages.Stage, work: BuildContext, generation: str, file: Path
) -> StageState:
    former = work.built_stages.get(stage.base.lower())
    try:
        built = former.derive() if former else _start_from_image(work, stage.base, generation)
    except InterCodeError as e:
        raise type(e)(f"{file}:{stage.line}: {e}") from e
    for found in stage.instructions:
        work.progress(f"{file.name}:{found.line}: {found.name} {found.text}")
        handler: Callable[[StageState, Instruction], StageState] = work.handler(found)
        try:
            built = handler(built, found)
        except (InterCodeError, OSError) as e:
            kind = type(e) if isinstance(e, InterCodeError) else DataError
            raise kind(f"{file}:{found.line}: {e}") from e
    return built


def _start_from_image(work: BuildContext, name: str, generation: str) -> StageState:
    """Return the initial state of a stage FROM an image."""
    image = work.bases.resolve_base(name)
    return StageState(
        BuildBase(image, generation=generation),
        dict(image.env),
        image.cwd,
        entrypoint=image.entrypoint,
    )
