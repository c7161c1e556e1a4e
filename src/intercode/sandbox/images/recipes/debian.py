"""A release of Debian with packages, as the lowest layer of an image of the user's own."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from intercode.core.paths import cache_root
from intercode.core.types import Image
from intercode.sandbox import images
from intercode.sandbox.images.recipes import mmdebstrap as builder
from intercode.sandbox.images.recipes import packaged as recipes

RELEASES = {
    "10": "buster", "11": "bullseye", "12": "bookworm", "13": "trixie", "14": "forky",
}  # fmt: skip
"""Debian's releases: number and name."""
RELEASE_NAMES = (*RELEASES.values(), "sid")
"""What a release may be called."""
_TAG = re.compile(r"(?:docker\.io/)?(?:library/)?debian:([a-z0-9]+)(?:\.\d+)?(?:-slim)?")


def parse_release(text: str) -> str | None:
    """The release that ``bookworm``, or an image's name such as ``debian:12-slim``, means."""
    found = _TAG.fullmatch(text)
    name = found[1] if found else text
    name = RELEASES.get(name, name) if found else name
    return name if name in RELEASE_NAMES else None


def debian_image(
    suite: str,
    packages: Sequence[str] = (),
    date: str = "",
    mirrors: Sequence[str] = (),
    progress: Callable[[str], None] | None = None,
    force: bool = False,
) -> Image:
    """The image of a release with packages, built when it is first asked for.

    ``date`` (YYYYMMDD) is the day that ``{date}`` in a mirror's address stands for; without one it
    is the day of the build, and what was built then stays until ``again``. Raises UsageError where
    mmdebstrap or a Debian archive is missing, InfrastructureError where the build fails.
    """
    today = datetime.now(UTC).strftime("%Y%m%d")
    wanted = recipes.Recipe(
        name=image_name(suite, packages, date),
        suite=suite,
        packages=tuple(dict.fromkeys(packages)),
        date=date or today,
    )
    path: Path = builder.build_recipe(wanted, mirrors, progress, force=force)
    return images.resolve(f"tar:{path}")


def image_name(suite: str, packages: Sequence[str], date: str) -> str:
    """What such an image is called in the cache."""
    told = repr((suite, sorted(set(packages)), date))
    return f"{suite}-{hashlib.sha256(told.encode()).hexdigest()[:12]}"


def is_built(suite: str, packages: Sequence[str] = (), date: str = "") -> bool:
    """Whether such an image is in the cache."""
    return recipes.built_path(image_name(suite, packages, date), cache_root()).is_file()
