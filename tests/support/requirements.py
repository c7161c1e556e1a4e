"""Check what a test needs from the machine beyond Python packages.

A test declares a need with a marker (``pytest.mark.mysql``) or by calling :func:`require`. Each
need is checked once per process, with the check of ``intercode doctor`` where it has one. Where the
check fails, the test is skipped with the reason. The environment variable ``INTERCODE_REQUIRE``
names needs (``docker,podman``, or ``all``; ``all,-harbor``: all but one) whose absence is an error
instead.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[3] / "shared"
VARIABLE = "INTERCODE_REQUIRE"
Check = Callable[[], str]
"""Return why the need is not met, with the remedy; an empty string where it is met."""


def require(need: str) -> None:
    """Skip the running test if the machine lacks ``need``; fail it if the need is required."""
    reason = why_missing(need)
    if not reason:
        return
    message = f"needs {need}: {reason}"
    if required(need):
        pytest.fail(f"{message} ({VARIABLE} requires it)", pytrace=False)
    pytest.skip(message)


def require_library(name: str, extra: str) -> None:
    """Skip the running test if a library is not installed, without importing it."""
    try:
        found = find_spec(name)
    except ModuleNotFoundError:  # the package that would hold it
        found = None
    if found is None:
        pytest.skip(f"no {name}: pip install 'intercode-gym[{extra}]'")


def required(need: str) -> bool:
    """Return whether ``INTERCODE_REQUIRE`` names the need. Raises ValueError for unknown names."""
    names = {name.strip() for name in os.environ.get(VARIABLE, "").split(",") if name.strip()}
    if unknown := {name.removeprefix("-") for name in names} - CHECKS.keys() - {"all"}:
        raise ValueError(f"{VARIABLE} names {', '.join(sorted(unknown))}: known are {list(CHECKS)}")
    return f"-{need}" not in names and (need in names or "all" in names)


@functools.cache
def why_missing(need: str) -> str:
    """Return why the machine lacks a need, with the remedy; an empty string if it does not."""
    return CHECKS[need]()


def _engine(name: str) -> str:
    from intercode_sandbox.tiers import checks

    finding = checks.check_engine(name)
    return "" if finding.ok else f"{finding.fix or finding.detail} (or run `.ci/{name} COMMAND`)"


def _sandbox() -> str:
    from intercode_sandbox import SandboxSpec, images, open_sandbox
    from intercode_sandbox.errors import SandboxError
    from support import backend

    try:
        open_sandbox(SandboxSpec(images.resolve("host")), backend.chosen()).close()
    except SandboxError as e:
        return f"{e} (see `intercode doctor`)"
    return ""


def _sql_server() -> str:
    from intercode_sql import open_engine
    from intercode_sql.errors import EngineUnavailableError

    try:
        open_engine("mysql").close()
    except EngineUnavailableError as e:
        return str(e)
    return ""


def _browser() -> str:
    from support import browser

    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "pip install playwright"
    return "" if browser.program() else "apt-get install chromium"


def _image(name: str) -> Check:
    def check() -> str:
        from intercode_sandbox.platforms.paths import cache_root

        built = cache_root() / "images" / f"{name}.tar"
        return "" if built.is_file() else f"intercode image build {name}"

    return check


def _program(name: str, package: str) -> Check:
    return lambda: "" if shutil.which(name) else f"apt-get install {package}"


def input_directory(variable: str, name: str) -> Path:
    """Return where a directory of inputs is expected: the variable's value, else ../shared/NAME."""
    return Path(os.environ[variable]) if variable in os.environ else SHARED / name


def _index() -> str:
    command = [sys.executable, "-m", "pip", "index", "versions", "pip", "--retries", "0"]
    done = subprocess.run(command, capture_output=True, check=False)
    return "" if done.returncode == 0 else "pip reaches no index of packages"


def _directory(variable: str, name: str) -> Check:
    def check() -> str:
        path = input_directory(variable, name)
        return "" if path.is_dir() else f"set {variable} to a directory like the authors' {name}"

    return check


def _framework(name: str) -> Check:
    variable = f"INTERCODE_{name.upper()}"
    group = {"mcp": "mcp-2"}.get(name, name)

    def check() -> str:
        directory = os.environ.get(variable)
        if directory and Path(directory).is_dir():
            return ""
        return f"set {variable} to the bin directory that `.ci/separate {group} DIRECTORY` makes"

    return check


def _llama() -> str:
    from intercode.core.errors import InterCodeError
    from intercode.models.providers.local_file import smollm2

    if find_spec("xllamacpp") is None:
        return "pip install 'intercode-gym[local]'"
    try:
        smollm2()
    except InterCodeError as e:
        return str(e)
    return ""


def _paper() -> str:
    return "" if find_spec("intercode.paper") else "intercode/paper was deleted"


CHECKS: dict[str, Check] = {
    "sandbox": _sandbox,
    "paper": _paper,
    "docker": functools.partial(_engine, "docker"),
    "podman": functools.partial(_engine, "podman"),
    "mysql": _sql_server,
    "browser": _browser,
    "rootfs": _image("nl2bash"),
    "image:ctf": _image("ctf"),
    "image:code": _image("code"),
    "image:python": _image("python"),
    "registry": _program("docker-registry", "docker-registry"),
    "mmdebstrap": _program("mmdebstrap", "mmdebstrap"),
    "musl": _program("musl-gcc", "musl-tools"),
    "openssl": _program("openssl", "openssl"),
    "index": _index,
    "harbor": _framework("harbor"),
    "mcp": _framework("mcp"),
    "verifiers": _framework("verifiers"),
    "llama": _llama,
    "data": _directory("INTERCODE_DATA", "data"),
    "recorded": _directory("INTERCODE_RECORDED", "recorded"),
    "reference": _directory("INTERCODE_REFERENCE", "reference"),
}
"""Every need, with its check."""

MARKERS = ("sandbox", "paper", "mysql", "browser", "rootfs")
"""Needs that a test declares by a marker of the same name."""


def framework_programs(name: str) -> Path:
    """Return the directory with the programs of ``harbor``, ``mcp`` or ``verifiers``, which have a
    virtual environment of their own; skip or fail the test if there is none."""
    require(name)
    return Path(os.environ[f"INTERCODE_{name.upper()}"]).absolute()


def image(name: str) -> str:
    """Return the specification of a built image; skip or fail the test if it is not built.

    ``INTERCODE_TEST_IMAGE`` and ``INTERCODE_TEST_CTF_IMAGE`` name other images of the same content.
    """
    variable, need = {
        "nl2bash": ("INTERCODE_TEST_IMAGE", "rootfs"),
        "ctf": ("INTERCODE_TEST_CTF_IMAGE", "image:ctf"),
    }[name]
    if named := os.environ.get(variable):
        return named
    require(need)
    return f"recipe:{name}"
