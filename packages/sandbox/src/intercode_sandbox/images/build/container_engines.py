"""Builds images with Docker or Podman, exports their images to archives in the cache, and removes
the images of sandboxes from them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from intercode_sandbox.container import engine as engines
from intercode_sandbox.container.engine import ContainerEngine, EngineName
from intercode_sandbox.container.image_import import prune_images
from intercode_sandbox.errors import DataError, SandboxError, SandboxUnavailableError, UsageError
from intercode_sandbox.images.cache.trees import file_lock, mark_in_use
from intercode_sandbox.images.progress import Progress, ignore_progress, run_with_progress
from intercode_sandbox.platforms.paths import cache_root

_BASE_NOT_FOUND = (
    'Get "https://',
    "pull access denied",
    "did not resolve to an alias",
    "manifest unknown",
    "name unknown",
    "failed to resolve source metadata",
)
"""Messages of engines about a base image that they cannot get."""
_SAVE_TIMEOUT = 3600.0


def build_with_engine(
    dockerfile: Path,
    context: Path,
    progress: Progress | None = None,
    *,
    args: Mapping[str, str] | None = None,
    target: str | None = None,
    network: str | None = None,
    engine: EngineName | None = None,
    cache: Path | None = None,
) -> Path:
    """Build a Dockerfile with Docker or Podman and return the path of the image's archive in the
    cache, for ``docker-archive:``.

    ``engine`` defaults to the first that answers; its own build cache applies. ``args`` are values
    for ARG, ``target`` is the stage to build, ``network`` is that of RUN (default: the engine's).
    ``progress`` receives the lines of output. The image stays in the engine, without a name and
    with the label ``intercode.built``.

    Raises SandboxUnavailableError if no engine answers, UsageError for a base image that the engine
    cannot get, DataError with the end of the output if the build fails.
    """
    for path, what in ((dockerfile, Path.is_file), (context, Path.is_dir)):
        if not what(path):
            raise UsageError(f"cannot build {dockerfile} in {context}: {path} does not exist")
    chosen = engines.get_engine(engine) if engine else engines.first_engine()
    words = ["build", "--file", str(dockerfile), "--label", "intercode.built=true"]
    words += [f"--build-arg={key}={value}" for key, value in (args or {}).items()]
    words += ["--target", target] if target else []
    words += ["--network", network] if network else []
    words += chosen.docker_format("docker")
    with tempfile.TemporaryDirectory(prefix="intercode-build-") as folder:
        identity = Path(folder) / "id"
        _run_build(chosen, [*words, "--iidfile", str(identity), str(context)], dockerfile, progress)
        return _export_archive(chosen, identity.read_text().strip(), cache, progress)


def export_engine_image(
    name: str,
    progress: Progress | None = None,
    engine: EngineName | None = None,
    cache: Path | None = None,
) -> Path | None:
    """Return the image that Docker or Podman has under ``name``, as an archive in the cache; None
    if no engine that answers has it. Nothing is pulled. Raises SandboxError if saving fails.
    """
    for one in (engine,) if engine else engines.ENGINE_NAMES:
        try:
            found = engines.get_engine(one)
            identity = found.run("image", "inspect", "--format", "{{.Id}}", name)
        except SandboxError:
            continue
        return _export_archive(found, identity, cache, progress)
    return None


def archive_directory(cache: Path) -> Path:
    """Return the directory of exported images in the cache."""
    return cache / "images" / "engines"


def _export_archive(
    engine: ContainerEngine, identity: str, cache: Path | None, progress: Progress | None
) -> Path:
    root = cache_root() if cache is None else cache
    final = archive_directory(root) / f"{identity.removeprefix('sha256:')}.tar"
    mark_in_use(root, str(final.relative_to(root)))
    final.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
    with file_lock(final.with_name(f".{final.name}.lock")):
        if final.is_file():
            return final
        if progress:
            progress(f"saving the image {identity} of {engine.name}")
        partial = final.with_name(f".{final.name}.half")
        partial.unlink(missing_ok=True)
        try:
            words = ["save", "--output", str(partial)]
            words += engine.docker_format("docker-archive")
            engine.run(*words, identity, seconds=_SAVE_TIMEOUT)
            partial.chmod(0o644)
            partial.replace(final)
        finally:
            partial.unlink(missing_ok=True)
    return final


def _run_build(
    engine: ContainerEngine, words: list[str], dockerfile: Path, progress: Progress | None
) -> None:
    env = {**os.environ, "BUILDX_BUILDER": "default"}  # others do not store images in the engine
    status, output = run_with_progress(
        [engine.program, *words], env, progress or ignore_progress, last_lines=12
    )
    if status == 0:
        return
    if any(words in output for words in _BASE_NOT_FOUND):
        raise UsageError(
            f"{engine.name} neither has nor can fetch the base image of {dockerfile}: "
            f"`{engine.name} pull` or `{engine.name} load` it, or build without an engine "
            f"(intercode-sandbox image build --from NAME=SPEC). Its output:\n{output}"
        )
    known_error = engines.engine_error(engine.name, "build", output.encode())
    if isinstance(known_error, SandboxUnavailableError):
        raise known_error
    raise DataError(f"{dockerfile} does not build with {engine.name} (status {status}):\n{output}")


def prune_engine_images(cache: Path, everything: bool = False) -> dict[str, list[str]]:
    """Remove images of sandboxes from Docker and Podman. Return their names by engine.

    An image is removed if a tree in ``cache`` of which it was made is missing. ``everything``: all
    images of trees in ``cache`` are removed, except those that a container uses.
    """
    removed: dict[str, list[str]] = {}
    for name in engines.ENGINE_NAMES:
        with suppress(SandboxUnavailableError):
            if gone := prune_images(engines.get_engine(name), cache, everything):
                removed[name] = gone
    return removed
