"""``intercode-sandbox image build``: builds packaged recipes and Dockerfiles."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from intercode_sandbox.command.output import log
from intercode_sandbox.errors import UsageError
from intercode_sandbox.images.build.base_images import is_packaged_recipe
from intercode_sandbox.images.build.container_engines import build_with_engine
from intercode_sandbox.images.build.on_demand import resolve_or_build
from intercode_sandbox.images.dockerfile.build import locate_dockerfile
from intercode_sandbox.images.recipes.mmdebstrap import build_recipe

EXAMPLE = """\
examples:
  intercode-sandbox image build nl2bash
      builds the image of NL2Bash; needs mmdebstrap and a Debian archive
  intercode-sandbox image build my-task --from ubuntu:24.04=tar:/noble.tar
      builds the Dockerfile of that directory, without a daemon
  intercode-sandbox image build my-task --engine docker

The command prints the name to give to --image. For a packaged recipe, whose name is recipe:NAME, it
prints the path of the tar archive."""

ARGUMENTS = """\
name NAME|PATH        a packaged recipe (see `intercode-sandbox image list`), a Dockerfile, or a
                      directory that holds one
--mirror URL ...      Debian archive to install from ({date} stands for the recipe's day); may be
                      repeated
--force               build it again if it is built already
--from NAME=SPEC ...  the image to use for a name in FROM; may be repeated
--build-arg NAME=VALUE ...  a value for an ARG of the Dockerfile; may be repeated
--target STAGE        the Dockerfile's stage to build
--engine {docker,podman}  build the Dockerfile with this engine"""
SETTINGS = {"from": {"dest": "table"}, "engine": {"choices": ("docker", "podman")}}


def handle(args: argparse.Namespace) -> int:
    """Build the image and print its name."""
    print(_build(args))
    return 0


def _build(args: argparse.Namespace) -> str:
    spec = image_spec(args.name)
    chosen = name_value_pairs("--from", args.table), name_value_pairs("--build-arg", args.build_arg)
    kind = spec.partition(":")[0]
    if kind != "dockerfile" and (any(chosen) or args.target or args.engine):
        raise UsageError(
            f"{args.name} is not a Dockerfile: --from, --build-arg, --target and --engine need one"
        )
    if args.engine:
        return _build_with_engine(args, Path(spec.partition(":")[2]), chosen[1])
    if is_packaged_recipe(spec):
        return str(build_recipe(spec.removeprefix("recipe:"), args.mirror, log, force=args.force))
    image = resolve_or_build(
        spec,
        log,
        aliases=chosen[0],
        args=chosen[1],
        target=args.target,
        mirrors=args.mirror,
        force=args.force,
    )
    special = any(chosen) or args.target or args.mirror
    return f"built:{image.digest.removeprefix('sha256:')[:16]}" if special else spec


def _build_with_engine(args: argparse.Namespace, path: Path, given: dict[str, str]) -> str:
    if args.table:
        raise UsageError("--from cannot be used with --engine, which uses its own images")
    file, context = locate_dockerfile(path)
    image = build_with_engine(
        file, context, log, args=given, target=args.target, engine=args.engine
    )
    spec = f"docker-archive:{image}"
    resolve_or_build(spec, log)
    return spec


def image_spec(name: str) -> str:
    """Return the image specification of a name or a path on the command line.

    Raises UsageError for a directory without a Dockerfile.
    """
    kind, mark, given = name.partition(":")
    if mark and kind in ("recipe", "dockerfile"):  # a specification, as other commands take it
        if is_packaged_recipe(name):
            return name
        name = given
    path = Path(name).expanduser()
    if path.is_dir():
        if (path / "Dockerfile").is_file():
            return f"dockerfile:{path.resolve()}"
        if (path / "recipe.toml").is_file():
            return f"recipe:{path.resolve()}/recipe.toml"
        raise UsageError(f"{name} holds no Dockerfile")
    if path.suffix == ".toml":
        return f"recipe:{path.resolve()}"
    if "/" in name or path.is_file():
        return f"dockerfile:{path.resolve()}"
    return f"recipe:{name}"


def name_value_pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    """Parse ``NAME=VALUE`` texts. Raises UsageError for a text that is not of this form."""
    pairs = {}
    for text in texts:
        name, mark, value = text.partition("=")
        if not mark or not name:
            raise UsageError(f"{option} {text}: write {option} NAME=VALUE")
        pairs[name] = value
    return pairs
