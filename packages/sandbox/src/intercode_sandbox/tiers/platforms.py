"""Recognizes where this process runs: in a container, a pod, a job, a notebook, or on a machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

Platform = Literal[
    "docker", "podman", "kubernetes", "notebook", "ci", "slurm", "wsl1", "wsl2", "linux"
]

TITLES: dict[Platform, str] = {
    "docker": "a container of Docker",
    "podman": "a container of Podman",
    "kubernetes": "a pod of Kubernetes",
    "notebook": "a hosted notebook",
    "ci": "a CI runner",
    "slurm": "a Slurm job",
    "wsl1": "WSL 1",
    "wsl2": "WSL 2",
    "linux": "a Linux machine",
}
"""The platforms as they are printed."""

_VARIABLES: dict[Platform, tuple[str, ...]] = {
    "kubernetes": ("KUBERNETES_SERVICE_HOST",),
    "notebook": (
        "COLAB_RELEASE_TAG",
        "KAGGLE_KERNEL_RUN_TYPE",
        "JUPYTERHUB_USER",
        "JPY_PARENT_PID",
    ),
    "ci": ("GITHUB_ACTIONS", "GITLAB_CI", "JENKINS_URL", "BUILDKITE", "CIRCLECI", "TF_BUILD"),
    "slurm": ("SLURM_JOB_ID",),
}
"""Variables of the environment that a platform sets."""

_FILES: dict[Platform, str] = {
    "kubernetes": "var/run/secrets/kubernetes.io",
    "podman": "run/.containerenv",
    "docker": ".dockerenv",
}
"""Files that a platform makes."""


def detect_platforms(
    environment: Mapping[str, str] | None = None, root: Path = Path("/")
) -> list[Platform]:
    """Return the platforms around this process, the most specific first; at least ``linux``.

    ``environment``: the variables of the environment (default: those of this process).
    """
    variables = os.environ if environment is None else environment
    release = _read(root / "proc/sys/kernel/osrelease").lower()
    found: list[Platform] = [
        name
        for name in TITLES
        if any(variables.get(variable) for variable in _VARIABLES.get(name, ()))
        or (name in _FILES and (root / _FILES[name]).exists())
        or (name == "wsl2" and "microsoft" in release and "wsl2" in release)
        or (name == "wsl1" and "microsoft" in release and "wsl2" not in release)
    ]
    if "kubernetes" in found and "docker" in found:
        found.remove("docker")  # Docker as the runtime of a pod: the pod's settings count
    order: list[Platform] = ["kubernetes", "notebook", "ci", "slurm"]
    return sorted(found, key=lambda name: name not in order) or ["linux"]


def detect_confinement(proc: Path = Path("/proc/self")) -> list[str]:
    """Return the restrictions of the container around this process, by the names of their options.

    ``seccomp``: a filter; ``apparmor``: a profile; ``systempaths``: parts of /proc or /sys are
    masked, so the kernel refuses to mount new ones.
    """
    found = []
    if _field(proc / "status", "Seccomp:") == "2":
        found.append("seccomp")
    profile = _read(proc / "attr" / "current").strip("\0\n ")
    # SELinux writes no mode in parentheses
    if profile not in ("", "unconfined") and "(" in profile:
        found.append("apparmor")
    targets = [line.split()[4] for line in (proc / "mountinfo").read_text().splitlines()]
    masked = ("/proc/", "/sys/firmware", "/sys/devices")
    if any(target.startswith(masked) and not target.endswith("binfmt_misc") for target in targets):
        found.append("systempaths")
    return found


def _field(file: Path, name: str) -> str:
    """Return the value of the first line of a file that begins with a name; empty for none."""
    for line in file.read_text().splitlines():
        if line.startswith(name):
            return line.removeprefix(name).strip()
    return ""


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:  # no such setting, or no right to read it
        return ""
