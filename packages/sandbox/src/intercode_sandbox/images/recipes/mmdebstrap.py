"""Builds images from recipes with mmdebstrap, reproducibly."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from intercode_sandbox.errors import DataError, InfrastructureError, UsageError
from intercode_sandbox.images.cache.trees import file_lock
from intercode_sandbox.images.progress import Progress, ignore_progress, run_with_progress
from intercode_sandbox.images.recipes import apt_sources, packaged
from intercode_sandbox.images.recipes.packaged import Recipe, is_pinned
from intercode_sandbox.lines import split_lines
from intercode_sandbox.platforms.digests import cached_file_digest
from intercode_sandbox.platforms.paths import cache_root

__all__ = [
    "Recipe",
    "build_recipe",
    "build_report",
    "is_pinned",
    "mmdebstrap_command",
    "package_versions",
    "version_differences",
]

_PREFERENCES_PATH = "etc/apt/preferences.d/intercode"
_CLEANUP_HOOK = f"""set -e; cd "$1"
rm -f etc/resolv.conf etc/hostname {_PREFERENCES_PATH} etc/apt/apt.conf.d/99mmdebstrap
rm -f etc/ssl/certs/java/cacerts
: > etc/resolv.conf; : > etc/hostname; : > etc/apt/sources.list
rm -rf etc/apt/sources.list.d/* var/lib/apt/lists/* var/cache/apt/*"""
"""Removes what depends on the machine or the mirror from the image, after the installation."""
_APT_SETTINGS = 'APT::Sandbox::User "root";\n'
"""Lets apt download as root, because a sandbox may have no other user."""
_ENVIRONMENT = ("PATH", "HOME", "TMPDIR", "http_proxy", "https_proxy", "no_proxy", "APT_CONFIG")


def build_recipe(
    recipe: Recipe | str,
    mirror: str | Sequence[str] | None = None,
    progress: Progress | None = None,
    *,
    cache: Path | None = None,
    force: bool = False,
) -> Path:
    """Build ``recipe`` if it is not in the cache, or if ``force``, and return the path of its tar.

    ``mirror`` names archives to install from (see ``apt_sources.recipe_sources``), by default those
    of this machine. NAME.json next to the tar holds the digest, the versions, and their differences
    from the recipe's lock file.

    Raises UsageError when mmdebstrap or an archive is missing, InfrastructureError with the end of
    the output when the build fails.
    """
    recipe = packaged.load_recipe(recipe) if isinstance(recipe, str) else recipe
    target = packaged.built_path(recipe.name, cache_root() if cache is None else cache)
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
    with file_lock(target.with_name(f".{recipe.name}.lock")):
        if target.is_file() and not force:
            return target
        tool = shutil.which("mmdebstrap")
        if tool is None:
            raise UsageError(
                f"the image {recipe.name!r} is built with mmdebstrap, which is not installed: "
                "`apt-get install mmdebstrap` on Debian or Ubuntu, or give a root file system "
                "with --image tar:/path.tar"
            )
        mirrors = [mirror] if isinstance(mirror, str) else list(mirror or ())
        archives = apt_sources.recipe_sources(recipe.suite, recipe.date, mirrors)
        stage = target.with_name(f".{recipe.name}.half")
        _remove_stage(stage)
        stage.mkdir(mode=0o755)
        partial = stage / os.urandom(4).hex()  # a killed build may still write to its own file
        try:
            _run_mmdebstrap(
                tool, recipe, partial, archives, bool(mirrors), progress or ignore_progress
            )
            partial.chmod(0o644)
            report = build_report(recipe, partial, target.parent.parent)
            target.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
            partial.replace(target)
        finally:
            _remove_stage(stage)
    return target


def _remove_stage(stage: Path) -> None:
    if stage.is_dir():
        shutil.rmtree(stage, ignore_errors=True)
    else:
        stage.unlink(missing_ok=True)


def mmdebstrap_command(
    tool: str, recipe: Recipe, target: Path, pins: Path | None, archives: str, dated: bool
) -> tuple[str, ...]:
    """Return the command line of the build. It reads ``archives`` from its standard input.

    ``archives`` is the text of a sources.list. ``dated``: they are snapshots of a past day.
    """
    hooks = [f"--customize-hook={_CLEANUP_HOOK}"]
    sources = apt_sources.image_sources(archives, dated) if recipe.installs_packages else ""
    if sources:
        hooks.append(_write_hook("etc/apt/sources.list.d/debian.sources", sources))
    if recipe.installs_packages:
        hooks.append(_write_hook("etc/apt/apt.conf.d/sandbox-user", _APT_SETTINGS))
    for path, aim in recipe.links:
        hooks.append(f'--customize-hook=ln -s {shlex.quote(aim)} "$1"/{shlex.quote(path)}')
    if pins is not None:
        hooks.insert(
            0, f'--setup-hook=install -D -m644 {shlex.quote(str(pins))} "$1"/{_PREFERENCES_PATH}'
        )
    if dated:  # the signature of a past day's archive has expired
        hooks.insert(0, '--aptopt=Acquire::Check-Valid-Until "false"')
    return (
        tool,
        f"--mode={'root' if os.geteuid() == 0 else 'unshare'}",
        "--variant=minbase",
        "--format=tar",
        *([f"--include={','.join(recipe.packages)}"] if recipe.packages else []),
        *hooks,
        recipe.suite,
        str(target),
        "-",
    )


def _write_hook(path: str, text: str) -> str:
    return f'--customize-hook=printf %s {shlex.quote(text)} > "$1"/{path}'


def _run_mmdebstrap(
    tool: str, recipe: Recipe, target: Path, archives: str, dated: bool, progress: Progress
) -> None:
    """Run the build. Raises InfrastructureError with its last lines of output when it fails."""
    environment = {key: os.environ[key] for key in _ENVIRONMENT if key in os.environ}
    environment |= {"SOURCE_DATE_EPOCH": str(recipe.epoch), "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    environment["PYTHONHASHSEED"] = "0"  # the order of sets affects compiled Python files
    with tempfile.TemporaryDirectory(prefix="intercode-build-") as folder:
        Path(folder).chmod(0o755)
        pins = Path(folder) / "pins"
        pins.write_text(apt_preferences(recipe))
        command = mmdebstrap_command(
            tool, recipe, target, pins if recipe.versions else None, archives, dated
        )
        status, output = run_with_progress(
            command, environment, progress, last_lines=8, stdin=archives
        )
    if status != 0:
        raise InfrastructureError(
            f"building the image {recipe.name!r} ended with status {status}:\n{output}"
        )


def apt_preferences(recipe: Recipe) -> str:
    """Return apt preferences that select the locked versions if the archive has them."""
    return "\n".join(
        f"Package: {package}\nPin: version {version}\nPin-Priority: 1001\n"
        for package, version in recipe.versions
    )


def package_versions(path: Path) -> dict[str, str]:
    """Return the versions of the installed packages in the tar of a Debian root file system.

    Raises DataError when the tar has no list of packages.
    """
    with tarfile.open(path, "r:*") as archive:
        for member in archive:
            if member.name.removeprefix("./") == "var/lib/dpkg/status" and member.isfile():
                content = archive.extractfile(member)
                assert content is not None
                return dict(sorted(_installed_packages(content.read().decode("utf-8", "replace"))))
    raise DataError(f"{path} has no var/lib/dpkg/status: it is not a Debian root file system")


def _installed_packages(status: str) -> list[tuple[str, str]]:
    found = []
    for block in status.split("\n\n"):
        lines = (line.partition(": ") for line in split_lines(block) if not line.startswith(" "))
        fields = {key: value for key, _, value in lines}
        if fields.get("Status") == "install ok installed":
            found.append((fields["Package"], fields["Version"]))
    return found


def version_differences(recipe: Recipe, versions: Mapping[str, str]) -> dict[str, list[str | None]]:
    """Return the packages whose locked and installed versions differ, with both; None if absent."""
    locked_ = dict(recipe.versions)
    if not locked_:
        return {}
    names = sorted(set(locked_) | set(versions))
    pairs = ((name, locked_.get(name), versions.get(name)) for name in names)
    return {name: [wanted, found] for name, wanted, found in pairs if wanted != found}


def build_report(recipe: Recipe, path: Path, cache: Path) -> dict[str, object]:
    """Return a report on a built tar: digest, whether it is pinned, versions, differences."""
    digest = f"sha256:{cached_file_digest(cache, path)}"
    versions = package_versions(path)
    return {
        "recipe": recipe.name,
        "suite": recipe.suite,
        "date": recipe.date,
        "digest": digest,
        "pinned": recipe.matches(digest),
        "size": path.stat().st_size,
        "differences": version_differences(recipe, versions),
        "packages": versions,
    }
