"""Builds images of Debian releases, as bases of Dockerfiles."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from intercode_sandbox import images
from intercode_sandbox.images.progress import Progress
from intercode_sandbox.images.recipes import mmdebstrap, packaged
from intercode_sandbox.types import Image

RELEASES = {
    "10": "buster",
    "11": "bullseye",
    "12": "bookworm",
    "13": "trixie",
    "14": "forky",
}
"""Releases of Debian by number."""
RELEASE_NAMES = (*RELEASES.values(), "sid")
"""Names of releases."""
_VERSION = "2"
"""Version of what is written into such images: images of another version are not used."""
_TAG = re.compile(
    r"(?:docker\.io/)?(?:library/)?debian:([a-z0-9]+)(?:\.\d+)?(?:-(\d{8}))?(?:-slim)?"
)


class DebianRelease(NamedTuple):
    """A release of Debian, at a date (YYYYMMDD) or of the day of the build."""

    suite: str
    date: str = ""


def parse_release(text: str) -> DebianRelease | None:
    """Return the release that a name such as ``bookworm``, ``debian:12-slim`` or
    ``debian:bookworm-20261120`` stands for, or None."""
    if text in RELEASE_NAMES:
        return DebianRelease(text)
    if found := _TAG.fullmatch(text):
        suite = RELEASES.get(found[1], found[1])
        return DebianRelease(suite, found[2] or "") if suite in RELEASE_NAMES else None
    return None


def debian_image(
    release: DebianRelease,
    mirrors: Sequence[str] = (),
    progress: Progress | None = None,
    force: bool = False,
) -> Image:
    """Return the image of a release; the first call builds it.

    Commands in the image install packages from the archives that it was built from. The date of
    the release replaces ``{date}`` in the address of a mirror. ``force`` builds the image again.
    Raises UsageError if mmdebstrap or a Debian archive is missing, InfrastructureError if the build
    fails.
    """
    today = datetime.now(UTC).strftime("%Y%m%d")
    recipe = packaged.Recipe(
        name=image_name(release),
        suite=release.suite,
        packages=(),
        date=release.date or today,
        installs_packages=True,
    )
    path: Path = mmdebstrap.build_recipe(recipe, mirrors, progress, force=force)
    return images.resolve(f"tar:{path}")


def image_name(release: DebianRelease) -> str:
    """Return the name of such an image in the cache."""
    identity = repr((release.suite, [], release.date, _VERSION))
    return f"{release.suite}-{hashlib.sha256(identity.encode()).hexdigest()[:12]}"
