"""``intercode-sandbox image list`` and ``show``: the images in the cache."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from intercode_sandbox.errors import UsageError
from intercode_sandbox.images.build.built_images import BuiltImage, built_images
from intercode_sandbox.images.cache import prune, records
from intercode_sandbox.images.oci.assemble import tree_key
from intercode_sandbox.images.recipes import packaged
from intercode_sandbox.platforms.paths import cache_root
from intercode_sandbox.registry import unknown_name_error


def print_images(args: argparse.Namespace) -> int:
    """Print a line for each image, and what else the cache contains."""
    cache = cache_root()
    rows = list(_image_rows(cache))
    if args.json:
        print(json.dumps(rows, indent=1))
        return 0
    width = max([len(row["name"]) for row in rows] + [4])
    print(f"{'NAME':<{width}}  {'DIGEST':<12}  {'SIZE':>8}  CREATED")
    for row in rows:
        digest = row["digest"].partition(":")[2][:12]
        created = (
            time.strftime("%Y-%m-%d", time.localtime(row["created"])) if row["created"] else ""
        )
        size = rounded_size(row["size"]) if row["digest"] else "-"
        print(f"{row['name']:<{width}}  {digest:<12}  {size:>8}  {created or row['note']}")
    print(f"\n{_other_usage(cache)}")
    return 0


def print_image(args: argparse.Namespace) -> int:
    """Print everything that is known of one image as JSON."""
    cache = cache_root()
    name = f"recipe:{args.name}" if args.name in packaged.recipe_names() else args.name
    rows = [row for row in _image_rows(cache) if row["name"] == name]
    if not rows:
        raise _unknown_image(name, [row["name"] for row in _image_rows(cache)])
    row = dict(rows[0])
    if name.startswith("recipe:") and name.removeprefix("recipe:") in packaged.recipe_names():
        known = packaged.load_recipe(name.removeprefix("recipe:"))
        row |= {"description": known.description, "suite": known.suite, "date": known.date}
        row |= {"packages": list(known.packages), **_recipe_build(known.name, cache)}
    print(json.dumps(row, indent=1))
    return 0


def _unknown_image(name: str, known: list[str]) -> UsageError:
    if ":" in name and not name.startswith(("recipe:", "image:")):
        return UsageError(
            f"{name!r} is not in the cache under this name (see `intercode-sandbox image list`); "
            "an image is stored when it is first used, or by `intercode-sandbox image import SPEC "
            "NAME`"
        )
    return (
        unknown_name_error("image", name, known)
        if known
        else UsageError(f"there is no image {name!r}")
    )


def _recipe_build(name: str, cache: Path) -> dict[str, Any]:
    record = packaged.built_path(name, cache).with_suffix(".json")
    if not record.is_file():
        return {}
    values = json.loads(record.read_text("utf-8"))
    keys = {"archive": "digest", "pinned": "pinned", "differences": "differences"}
    return {key: values[name] for key, name in keys.items()}


def _image_rows(cache: Path) -> Iterator[dict[str, Any]]:
    """Yield a row for each image: unpacked ones, built ones, and recipes that are neither."""
    seen = set()
    for record in records.all_records(cache):
        seen.add(record.name)
        root = cache / "layers" / record.tree
        yield {
            "name": record.name,
            "digest": record.digest,
            "created": record.unpacked_at,
            "size": prune.disk_usage(root),
            "path": str(root),
            "note": "",
            "tree": record.tree,
            "source": record.source,
            "env": dict(record.env),
            "cwd": record.cwd,
        }
    for built in built_images():
        if built.spec not in seen:
            seen.add(built.spec)
            yield {
                **asdict(built),
                "name": built.spec,
                "created": built.built_at,
                "note": "",
                "path": str(built.path),
            }
    for name in packaged.recipe_names():
        if f"recipe:{name}" not in seen:
            path = packaged.built_path(name, cache)
            is_built = path.is_file()
            yield {
                "name": f"recipe:{name}",
                "digest": "",
                "created": 0.0,
                "path": str(path),
                "size": prune.disk_usage(path) if is_built else 0,
                "note": "built, not unpacked yet" if is_built else "not built",
            }


def orphaned_images() -> list[BuiltImage]:
    """Return the images whose Dockerfile is deleted, so that they cannot be requested."""
    return [image for image in built_images() if not _is_there(Path(image.spec.partition(":")[2]))]


def _is_there(dockerfile: Path) -> bool:
    return dockerfile.is_file() or (dockerfile / "Dockerfile").is_file()


def paths_in_use() -> set[str]:
    """Return the paths in the cache that built images need."""
    steps = {f"built/{step}" for one in built_images() for step in one.steps}
    return steps | {f"layers/{tree_key(one.base_digest)}" for one in built_images()}


def rounded_size(size: int) -> str:
    """Format a number of bytes."""
    value, units = float(size), ["B", "KB", "MB", "GB"]
    while value >= 1000 and len(units) > 1:
        value, units = value / 1000, units[1:]
    return f"{value:.0f} B" if units[0] == "B" else f"{value:.1f} {units[0]}"


def _other_usage(cache: Path) -> str:
    """Return the sizes of what the cache contains in addition to images."""
    parts = [("downloads", "blobs"), ("set-up of tasks and steps of builds", "built")]
    sizes = [f"{what} {rounded_size(prune.disk_usage(cache / home))}" for what, home in parts]
    return f"In {cache}: {', '.join(sizes)} (intercode-sandbox image prune)."
