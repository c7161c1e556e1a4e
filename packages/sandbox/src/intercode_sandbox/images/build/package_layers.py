"""Layers with packages of PyPI or npm, installed by the clients of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from intercode_sandbox.backends import open_sandbox
from intercode_sandbox.contract import SandboxSpec
from intercode_sandbox.errors import UsageError
from intercode_sandbox.images.build.capture import layer_key
from intercode_sandbox.images.cache.trees import cached_tree
from intercode_sandbox.platforms.paths import cache_root, sandbox_uid
from intercode_sandbox.tiers.choice import strongest_backend
from intercode_sandbox.types import Image, Layer

_INSTALL_SECONDS = 1800.0
_PYTHON_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


def package_layer(
    registry: Literal["pypi", "npm"], names: tuple[str, ...], image: Image, destination: str
) -> Layer:
    """Return a layer with packages below a directory of the sandbox, made once.

    ``names`` are requirements such as ``name==1.0`` or ``name@1.0``. Packages of PyPI are those for
    the Python of the image. Nothing of a package runs: only wheels are taken, and the scripts of
    npm packages are left out. Raises UsageError if the packages cannot be installed.
    """
    version = _python_version(image) if registry == "pypi" else ""
    key = layer_key("packages", registry, version, destination, *names)
    fill = partial(_install, registry, names, version, destination)
    tree = cached_tree(cache_root(), f"packages-{key}", fill)
    return Layer(tree, f"sha256:{key}")


def _python_version(image: Image) -> str:
    """Return the version of the image's Python, such as ``3.11``."""
    with open_sandbox(SandboxSpec(image), strongest_backend()) as sandbox:
        try:
            result = sandbox.run(["python3", "-c", _PYTHON_VERSION], timeout=60.0)
        except OSError as e:
            raise _no_python_error(image) from e
    if not result.ok:
        raise _no_python_error(image)
    return result.output.strip()


def _no_python_error(image: Image) -> UsageError:
    return UsageError(
        f"the image {image.name} has no python3, for which packages of PyPI would be "
        "installed: add it to the image, or name another with --image"
    )


def _install(
    registry: str, names: tuple[str, ...], version: str, destination: str, root: Path
) -> None:
    target = root / destination.lstrip("/")
    target.mkdir(parents=True)
    command = _pip_command(version) if registry == "pypi" else _npm_command()
    done = subprocess.run(
        [*command, str(target), *names],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=_INSTALL_SECONDS,
    )
    if done.returncode:
        last = "\n".join(done.stdout.strip().splitlines()[-5:])
        raise UsageError(f"{' '.join(names)} cannot be installed from {registry}:\n{last}")
    _give_to_sandbox(root)


def _pip_command(version: str) -> list[str]:
    if find_spec("pip") is None:
        raise UsageError(
            f"{sys.executable} has no pip, which installs the program of an agent: "
            "run `python -m ensurepip`"
        )
    return [
        sys.executable,
        "-P",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--only-binary=:all:",
        "--no-compile",
        "--python-version",
        version,
        "--target",
    ]


def _npm_command() -> list[str]:
    npm = shutil.which("npm")
    if npm is None:
        raise UsageError(
            "this machine has no npm, which installs the program of an agent: install Node.js"
        )
    return [npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"]


def _give_to_sandbox(root: Path) -> None:
    """Make root of the sandbox the owner of all files, and let everybody read them."""
    owner = sandbox_uid()
    for directory, _, files in os.walk(root):
        os.chmod(directory, 0o755)
        for path in (directory, *(os.path.join(directory, name) for name in files)):
            if os.lstat(path).st_uid != owner:
                os.chown(path, owner, owner, follow_symlinks=False)
