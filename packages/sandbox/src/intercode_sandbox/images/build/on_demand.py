"""Resolves specifications of images, and builds images that are not built yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from pathlib import Path

from intercode_sandbox import images
from intercode_sandbox.errors import InterCodeError, UsageError
from intercode_sandbox.images.build import built_images
from intercode_sandbox.images.build.base_images import (
    BaseImageResolver,
    is_packaged_recipe,
    scratch_image,
)
from intercode_sandbox.images.build.recipe_conversion import refuse_recipe
from intercode_sandbox.images.dockerfile import build_dockerfile
from intercode_sandbox.images.dockerfile.build import locate_dockerfile
from intercode_sandbox.images.progress import Progress, ignore_progress
from intercode_sandbox.types import Image

_builds_in_progress: ContextVar[tuple[Path, ...]] = ContextVar(
    "images that are being built", default=()
)
_allowed_directory: ContextVar[Path | None] = ContextVar(
    "whose files a Dockerfile may use", default=None
)


def resolve_or_build(
    spec: str,
    progress: Progress | None = None,
    *,
    aliases: Mapping[str, str] | None = None,
    args: Mapping[str, str] | None = None,
    target: str | None = None,
    context: Path | None = None,
    mirrors: Sequence[str] = (),
    force: bool = False,
    refuse_undeclared: bool = True,
) -> Image:
    """Return the image that ``spec`` names, built first if necessary or with ``force``.

    ``dockerfile:/path`` (a file or directory) is built, and ``built:DIGEST`` is an earlier build;
    for other forms see ``images.resolve``. ``progress`` receives the lines of a build's output.
    For builds: ``aliases`` maps names in FROM to specifications, ``args`` are values for ARG (for
    ``refuse_undeclared`` see ``build_dockerfile``), ``target`` is the stage to build, ``context``
    is the directory of COPY (None: that of the Dockerfile), ``mirrors`` are Debian archives (see
    ``apt_sources.recipe_sources``).

    Raises as ``images.resolve`` does; DataError with the line of a Dockerfile that fails.
    """
    kind, _, rest = spec.partition(":")
    if kind == "built":
        return built_images.load_built_image(rest, partial(resolve_or_build, progress=progress))
    check_spec(spec)
    if spec == "scratch":
        return scratch_image()
    if not is_build_spec(spec):
        return images.resolve(spec, progress=progress)
    say = progress or ignore_progress
    bases = BaseImageResolver(
        lambda other: resolve_or_build(other, progress),
        dict(aliases or {}),
        tuple(mirrors),
        force,
        progress,
        _allowed_directory.get(),
    )
    path = Path(rest).expanduser().resolve()
    bases = replace(bases, allowed_directory=context or (path if path.is_dir() else path.parent))
    if path in _builds_in_progress.get():
        raise UsageError(f"{spec} uses itself as a base: choose another base")
    mark, trusted_directory = (
        _builds_in_progress.set((*_builds_in_progress.get(), path)),
        _allowed_directory.set(bases.allowed_directory),
    )
    try:
        return build_dockerfile(
            path,
            bases,
            say,
            args=args,
            target=target,
            context=context,
            force=force,
            refuse_undeclared=refuse_undeclared,
        )
    finally:
        _builds_in_progress.reset(mark)
        _allowed_directory.reset(trusted_directory)


def check_spec(spec: str) -> None:
    """Raise UsageError for a specification that ``resolve_or_build`` would refuse for its form, or
    because what it names does not exist on this machine. Nothing is built, fetched or unpacked."""
    kind, _, rest = spec.partition(":")
    try:
        if kind == "recipe" and not is_packaged_recipe(spec):
            raise refuse_recipe(Path(rest).expanduser().resolve())
        if is_build_spec(spec):
            locate_dockerfile(Path(rest).expanduser().resolve())
        elif kind == "built" and rest:
            built_images.find_built_image(rest)
        elif spec != "scratch":
            images.check_spec(spec)
    except InterCodeError:
        raise
    except (OSError, ValueError) as e:  # a name that no file can have
        reason = e.strerror if isinstance(e, OSError) else e
        raise UsageError(f"there is no image {spec[:80]!r}: {reason}") from e


def is_build_spec(spec: str) -> bool:
    """Return whether a specification names a Dockerfile."""
    return spec.startswith("dockerfile:") and spec != "dockerfile:"
