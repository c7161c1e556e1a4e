"""The image that a specification names, built first where it has to be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from pathlib import Path

from intercode.core.errors import UsageError
from intercode.core.types import Image
from intercode.sandbox import images
from intercode.sandbox.images import dockerfile
from intercode.sandbox.images.build import built_images, user_recipe
from intercode.sandbox.images.build.base_images import Bases, scratch

Progress = Callable[[str], None]

_inside: ContextVar[tuple[Path, ...]] = ContextVar("images that are being built", default=())
_within: ContextVar[Path | None] = ContextVar("whose files a Dockerfile may use", default=None)


def resolve(
    spec: str,
    progress: Progress | None = None,
    *,
    table: Mapping[str, str] | None = None,
    args: Mapping[str, str] | None = None,
    target: str | None = None,
    mirrors: Sequence[str] = (),
    again: bool = False,
) -> Image:
    """The image that ``spec`` names, built if it is not built yet, or ``again``.

    ``recipe:/path.toml`` and ``dockerfile:/path`` (directories as well) are built here, and
    ``built:DIGEST`` is what was; all else is as in ``images.resolve``. ``progress`` gets the lines
    that a build prints. For builds only: ``table`` says what names in FROM mean, ``args`` are
    values for ARG, ``target`` is the stage to build, ``mirrors`` are Debian archives (see
    ``sources.for_recipe``).

    Raises as ``images.resolve`` does; DataError with the line of a Dockerfile that fails.
    """
    kind, _, rest = spec.partition(":")
    if kind == "built":
        return built_images.load(rest, partial(resolve, progress=progress))
    if spec == "scratch":
        return scratch()
    if not is_built(spec):
        return images.resolve(spec, progress=progress)
    say = progress or _silent
    bases = Bases(
        lambda other: resolve(other, progress),
        dict(table or {}),
        tuple(mirrors),
        again,
        progress,
        _within.get(),
    )
    path = Path(rest).expanduser().resolve()
    if kind == "dockerfile":
        bases = replace(bases, within=path if path.is_dir() else path.parent)
    if path in _inside.get():
        raise UsageError(f"{spec} is built on itself: choose another base")
    mark, border = _inside.set((*_inside.get(), path)), _within.set(bases.within)
    try:
        if kind == "recipe":
            return user_recipe.build(path, bases, say, again)
        return dockerfile.build(path, bases, say, args=args, target=target, again=again)
    finally:
        _inside.reset(mark)
        _within.reset(border)


def is_built(spec: str) -> bool:
    """Whether a specification is one that is built here from a file of the user's."""
    kind, _, rest = spec.partition(":")
    if kind == "dockerfile":
        return bool(rest)
    return kind == "recipe" and ("/" in rest or rest.endswith(".toml"))


def _silent(line: str) -> None:
    del line
