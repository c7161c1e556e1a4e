"""``intercode image``: root file systems that tasks run on."""

from __future__ import annotations

import argparse
import sys

EXAMPLE = """\
examples:
  intercode image list
  intercode image build nl2bash
      the image that NL2Bash is meant for; needs mmdebstrap and a Debian archive
  intercode image remove nl2bash

A built image is used by its name: --image recipe:nl2bash. A root file system that you have already
is --image tar:/path.tar or --image dir:/path."""


def add(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.epilog = EXAMPLE
    parts = parser.add_subparsers(dest="what", metavar="build|list|remove", required=True)
    build = parts.add_parser("build", help="build an image from its recipe", epilog=EXAMPLE)
    build.add_argument("name", metavar="NAME", help="recipe (see `intercode image list`)")
    build.add_argument(
        "--mirror", action="append", metavar="URL",
        help="Debian archive to install from ({date} stands for the recipe's day); may be repeated",
    )  # fmt: skip
    build.add_argument("--again", action="store_true", help="also when it is built already")
    parts.add_parser("list", help="recipes, and whether they are built")
    remove = parts.add_parser("remove", help="remove a built image")
    remove.add_argument("name", metavar="NAME", help="recipe")


def handle(args: argparse.Namespace) -> int:
    """Build, list or remove."""
    from intercode.images import recipe
    from intercode.paths import cache_root

    if args.what == "list":
        for name in recipe.names():
            built = recipe.built_path(name, cache_root())
            state = str(built) if built.is_file() else "not built"
            print(f"{name:<16} {recipe.load(name).description}\n{'':<16} {state}")
        return 0
    recipe.load(args.name)
    if args.what == "build":
        from intercode.builders.recipe import build

        print(build(args.name, args.mirror, _show, again=args.again))
        return 0
    return _remove(args.name)


def _remove(name: str) -> int:
    from intercode.images import recipe
    from intercode.paths import cache_root

    built = recipe.built_path(name, cache_root())
    if not built.is_file():
        print(f"intercode: the image {name!r} is not built: nothing to remove", file=sys.stderr)
        return 1
    built.unlink()
    built.with_suffix(".json").unlink(missing_ok=True)
    print(f"removed {built}")
    return 0


def _show(line: str) -> None:
    print(line, file=sys.stderr)
