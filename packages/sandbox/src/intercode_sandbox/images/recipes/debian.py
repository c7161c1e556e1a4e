"""Builds images of a Debian release with packages, as bases of users' recipes and Dockerfiles."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

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
_TAG = re.compile(r"(?:docker\.io/)?(?:library/)?debian:([a-z0-9]+)(?:\.\d+)?(?:-slim)?")


def parse_release(text: str) -> str | None:
    """Return the release in a name such as ``bookworm`` or ``debian:12-slim``, or None."""
    found = _TAG.fullmatch(text)
    name = found[1] if found else text
    name = RELEASES.get(name, name) if found else name
    return name if name in RELEASE_NAMES else None


def debian_image(
    suite: str,
    packages: Sequence[str] = (),
    date: str = "",
    mirrors: Sequence[str] = (),
    progress: Progress | None = None,
    force: bool = False,
) -> Image:
    """Return the image of a release with packages; the first call builds it.

    Commands in the image install further packages from the archives that it was built from.

    ``date`` (YYYYMMDD) replaces ``{date}`` in the address of a mirror; the default is the day of
    the build. ``force`` builds the image again. Raises UsageError if mmdebstrap or a Debian
    archive is missing, InfrastructureError if the build fails.
    """
    today = datetime.now(UTC).strftime("%Y%m%d")
    recipe = packaged.Recipe(
        name=image_name(suite, packages, date),
        suite=suite,
        packages=tuple(dict.fromkeys(packages)),
        date=date or today,
        installs_packages=True,
    )
    path: Path = mmdebstrap.build_recipe(recipe, mirrors, progress, force=force)
    return images.resolve(f"tar:{path}")


def image_name(suite: str, packages: Sequence[str], date: str) -> str:
    """Return the name of such an image in the cache."""
    identity = repr((suite, sorted(set(packages)), date, _VERSION))
    return f"{suite}-{hashlib.sha256(identity.encode()).hexdigest()[:12]}"
