"""``intercode-sandbox image``: builds, fetches, lists and removes images (root file systems)."""

from __future__ import annotations

import argparse

from intercode_sandbox.command import build_image
from intercode_sandbox.command import image_list as inventory
from intercode_sandbox.command.output import log
from intercode_sandbox.command.parser import add_options
from intercode_sandbox.images import registry
from intercode_sandbox.images.build import on_demand
from intercode_sandbox.images.build.built_images import built_images, delete_built_image
from intercode_sandbox.images.build.container_engines import prune_engine_images
from intercode_sandbox.images.cache import prune as pruning
from intercode_sandbox.images.oci import saved_images
from intercode_sandbox.images.recipes import packaged
from intercode_sandbox.images.registry.reference import HTTP_REGISTRIES_VARIABLE
from intercode_sandbox.platforms.paths import cache_root

EXAMPLE = """\
examples:
  intercode-sandbox image list
  intercode-sandbox image build nl2bash
      builds the image of NL2Bash; needs mmdebstrap and a Debian archive
  intercode-sandbox image build ./my-task
      builds from a directory with a Dockerfile; needs no daemon
  intercode-sandbox image pull docker.io/library/debian:bookworm-slim
  intercode-sandbox image import docker-archive:/tmp/saved.tar mine
      stores it as image:mine, also after the archive is deleted
  intercode-sandbox image show image:mine
  intercode-sandbox image remove image:mine
  intercode-sandbox image prune

Other commands take the name of an image: --image recipe:nl2bash, --image image:mine. They also take
a root file system (tar:/path.tar, dir:/path) and what Docker or Podman saved
(docker-archive:/path.tar, oci:/path)."""

SUMMARY = "build, fetch, list and remove root file systems"
_NAME = "name SPEC  as in `intercode-sandbox image list`"
_PARTS = {
    "build": ("build a packaged recipe or a Dockerfile", build_image.ARGUMENTS),
    "pull": (
        "fetch an image from a registry, or update it",
        "name HOST/NAME[:TAG]  the image, with or without registry: in front",
    ),
    "import": (
        "store an image under a name of your own",
        "spec SPEC  any image, such as docker-archive:/saved.tar\n"
        "name NAME  the image is then image:NAME",
    ),
    "list": (
        "list stored images and recipes with their sizes",
        "--json  print JSON, with sizes in bytes",
    ),
    "show": ("print everything that is known of an image", _NAME),
    "remove": ("remove an image", _NAME),
    "prune": (
        "delete from disk what is not in use",
        "--all  also images that can be unpacked or fetched again by their name",
    ),
}
"""The sub-commands: the description and the arguments of each."""
_RENAMED = {"--http": f"the variable {HTTP_REGISTRIES_VARIABLE}"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the sub-commands."""
    commands = parser.add_subparsers(dest="what", metavar="|".join(_PARTS), required=True)
    for name, (text, arguments) in _PARTS.items():
        epilog = for_program(build_image.EXAMPLE, parser.prog) if name == "build" else None
        part = commands.add_parser(name, help=text, epilog=epilog)
        add_options(part, for_program(arguments, parser.prog), build_image.SETTINGS, _RENAMED)
        part.set_defaults(program=parser.prog.partition(" ")[0])


def for_program(text: str, program: str) -> str:
    """Return a text in which the commands of this module are those of another program."""
    return text.replace("intercode-sandbox image", program)


def handle(args: argparse.Namespace) -> int:
    """Run the sub-command."""
    done = {
        "build": build_image.handle,
        "pull": _pull,
        "import": _import,
        "list": inventory.print_images,
        "show": inventory.print_image,
        "remove": _remove,
        "prune": _prune,
    }
    return done[args.what](args)


def _pull(args: argparse.Namespace) -> int:
    image = registry.pull(args.name.removeprefix("registry:"), cache_root(), log, force=True)
    print(f"{image.name}\t{image.digest}")
    return 0


def _import(args: argparse.Namespace) -> int:
    image = saved_images.import_image(
        on_demand.resolve_or_build(args.spec, log), args.name, cache_root()
    )
    print(f"{image.name}\t{image.digest}")
    return 0


def _remove(args: argparse.Namespace) -> int:
    cache, exists = cache_root(), False
    name = f"recipe:{args.name}" if args.name in packaged.recipe_names() else args.name
    if name.startswith("recipe:") and "/" not in name:
        built = packaged.built_path(name.removeprefix("recipe:"), cache)
        for path in (built, built.with_suffix(".json")):
            exists = path.is_file() or exists
            path.unlink(missing_ok=True)
    for image in built_images():
        if image.spec == name:
            delete_built_image(image)
            exists = True
    removed = pruning.remove_image(cache, name, inventory.paths_in_use())
    if not exists and removed is None:
        log(
            f"{args.program}: there is no image {args.name!r}: nothing to remove; see "
            f"`{for_program('intercode-sandbox image', f'{args.program} image')} list`"
        )
        return 1
    freed = f", {inventory.rounded_size(removed.bytes)} freed" if removed and removed.trees else ""
    used = "; its files stay while something uses them" if removed and not removed.trees else ""
    print(f"removed {name}{freed}{used}")
    return 0


def _prune(args: argparse.Namespace) -> int:
    cache = cache_root()
    for image in inventory.orphaned_images():
        delete_built_image(image)
        print(f"removed {image.spec}, whose source is deleted")
    done = pruning.prune(cache, inventory.paths_in_use(), everything=args.all)
    for name in done.images:
        print(f"removed {name}")
    for engine, engine_images in prune_engine_images(cache, args.all).items():
        print(f"{len(engine_images)} images removed from {engine}")
    print(f"{done.trees} trees and files removed, {inventory.rounded_size(done.bytes)} freed")
    return 0
