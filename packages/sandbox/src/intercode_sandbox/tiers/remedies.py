"""Changes of a machine that make an isolation tier work there, as texts to paste.

A remedy is marked "untested" unless it was carried out for this project.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from intercode_sandbox.errors import SandboxUnavailableError
from intercode_sandbox.platforms.paths import is_initial_user_namespace
from intercode_sandbox.supervisor import build, programs
from intercode_sandbox.tiers.platforms import TITLES, Platform, detect_confinement, detect_platforms
from intercode_sandbox.tiers.tier_table import TIERS

CGROUPS_HINT = (
    "run as root, or with `systemd-run --user --scope -p Delegate=yes COMMAND`; in a container, "
    "mount /sys/fs/cgroup writable"
)
_SYSCTLS = (
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),  # Ubuntu 24.04
    ("kernel.unprivileged_userns_clone", "0", "1"),  # Debian before 11
    ("user.max_user_namespaces", "0", "10000"),
)
_APPARMOR = _SYSCTLS[0][0]
_DOCKER_OPTION = "--security-opt {}=unconfined"
_PODMAN = {
    "seccomp": "--security-opt seccomp=unconfined",
    "apparmor": "--security-opt apparmor=unconfined",
    "systempaths": "--security-opt unmask=ALL",
}
_KUBERNETES = {
    "seccomp": "seccompProfile: {type: Unconfined}",
    "apparmor": "appArmorProfile: {type: Unconfined}",
    "systempaths": "procMount: Unmasked",
}
_CONTAINERS: tuple[Platform, ...] = ("docker", "podman", "kubernetes")
_ROOT_OF_PODMAN = "sudo podman run --user 0 --cap-add=MKNOD --cap-add=SYS_CHROOT"
_BECOME_ROOT = ("docker run --user 0", _ROOT_OF_PODMAN, "sudo COMMAND")
_PROGRAM = "/PATH/OF/intercode_sandbox/supervisor/bin/supervisor"
_USUAL_RESTRICTIONS = ("seccomp", "systempaths")
"""Those of a container on a machine without AppArmor."""
_BOTH = ("namespace/1", "namespace/2")


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change that makes tiers work.

    ``tiers``: the tiers that it gives. ``where``: where to make the change. ``text``: the text to
    paste, of one or more lines. ``short``: what to show where only one line fits (default: the text
    in one line). ``tested``: whether it was carried out for this project.
    """

    platform: Platform
    tiers: tuple[str, ...]
    where: str
    text: str
    tested: bool = False
    short: str = ""

    def as_line(self) -> str:
        """Return the remedy as one line."""
        text = self.short or " ".join(self.text.split())
        return f"{self.where}: {text}{'' if self.tested else ' (untested)'}"


def container_remedies(
    platform: Platform, confined: Sequence[str] = _USUAL_RESTRICTIONS
) -> list[Remedy]:
    """Return the remedies for a container without the given restrictions."""
    second, root = ("namespace/2",), ("chroot",)
    if platform == "kubernetes":
        context = "".join(f"  {_KUBERNETES[name]}\n" for name in confined)
        pod = "hostUsers: false  # of the pod\n" if "systempaths" in confined else ""
        return [
            Remedy(
                platform,
                root,
                "in the container of the pod",
                "securityContext:\n  runAsUser: 0\n  # no capabilities: {drop: [ALL]}; with "
                "CRI-O, capabilities: {add: [MKNOD, SYS_CHROOT]}\n",
                short="securityContext: {runAsUser: 0}",
            ),
            Remedy(
                platform,
                second,
                "in the pod",
                f"{pod}securityContext:  # of the container\n{context}",
                short=_pod_hint(confined),
            ),
        ]
    tested = "apparmor" not in confined
    if platform == "podman":
        options = " ".join(_PODMAN[name] for name in confined)
        return [
            Remedy(
                platform, root, "as root of the machine, start the container with", _ROOT_OF_PODMAN
            ),
            Remedy(platform, second, "start the container with", f"podman run {options}", tested),
        ]
    options = " ".join(_DOCKER_OPTION.format(name) for name in confined)
    groups = "--volume=/sys/fs/cgroup:/sys/fs/cgroup:rw"
    return [
        Remedy(platform, root, "start the container with", "docker run --user 0", tested=True),
        Remedy(platform, second, "start the container with", f"docker run {options}", tested),
        Remedy(
            platform,
            _BOTH,
            "start the container (control groups of version 1) with",
            f"docker run {options} {groups}",
            tested,
        ),
    ]


def _pod_hint(confined: Sequence[str]) -> str:
    context = ", ".join(_KUBERNETES[name] for name in confined)
    pod = " with hostUsers: false" if "systempaths" in confined else ""
    return f"securityContext: {{{context}}}{pod}"


def container_options_hint(confined: Sequence[str]) -> str:
    """Return how to start the container without the given restrictions; empty for none."""
    if not confined:
        return ""
    options = " ".join(_DOCKER_OPTION.format(name) for name in confined)
    return (
        f"start the container with the additional options: {options} "
        f"(Podman: {' '.join(_PODMAN[name] for name in confined)}; "
        f"Kubernetes: {_pod_hint(confined)})"
    )


def user_namespace_fix(proc: Path = Path("/proc/sys")) -> str:
    """Return commands that allow user namespaces if settings of this machine forbid them."""
    return " and ".join(f"sysctl -w {name}={allows}" for name, allows in _forbidding(proc))


def _forbidding(proc: Path) -> list[tuple[str, str]]:
    """Return the settings that forbid user namespaces, with values that allow them."""
    found = []
    for name, forbids, allows in _SYSCTLS:
        file = proc / name.replace(".", "/")
        if file.is_file() and file.read_text().strip() == forbids:
            found.append((name, allows))
    return found


def setting_remedies(names: Iterable[str], supervisor: str = _PROGRAM) -> list[Remedy]:
    """Return the remedies for settings of the kernel that forbid user namespaces.

    ``supervisor``: the path of the program that makes namespaces.
    """
    wanted = set(names)
    remedies = [
        Remedy(
            "linux",
            _BOTH,
            "as root",
            f"sysctl -w {name}={allows}",
            tested=name == "user.max_user_namespaces",
        )
        for name, _, allows in _SYSCTLS
        if name in wanted
    ]
    if _APPARMOR in wanted:
        profile = (
            "cat > /etc/apparmor.d/intercode <<'END'\n"
            "abi <abi/4.0>,\n"
            "include <tunables/global>\n"
            f"profile intercode {supervisor} flags=(unconfined) {{\n"
            "  userns,\n"
            "}\n"
            "END\n"
            "apparmor_parser --replace /etc/apparmor.d/intercode"
        )
        short = (
            "an AppArmor profile for this installation alone: see `intercode-sandbox doctor --fix`"
        )
        remedies.append(Remedy("linux", _BOTH, "or as root", profile, short=short))
    return remedies


def _supervisor_path() -> str:
    """Return the path of the program that makes namespaces."""
    try:
        return str(programs.find_program(build.SUPERVISOR))
    except SandboxUnavailableError:
        return _PROGRAM


OTHER_REMEDIES = (
    Remedy(
        "notebook",
        ("chroot",),
        "in JupyterHub's configuration",
        "c.KubeSpawner.container_security_context = {'runAsUser': 0}",
    ),
    Remedy(
        "notebook",
        ("namespace/2",),
        "in JupyterHub's configuration",
        "c.KubeSpawner.container_security_context = {\n"
        "    'seccompProfile': {'type': 'Unconfined'}, 'procMount': 'Unmasked'}\n"
        "c.KubeSpawner.extra_pod_config = {'hostUsers': False}\n",
    ),
    Remedy(
        "ci",
        _BOTH,
        "GitHub Actions, as the first step",
        "- run: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
    ),
    Remedy(
        "ci",
        ("namespace/2",),
        "GitHub Actions, in a job with `container:`",
        "options: --security-opt seccomp=unconfined --security-opt systempaths=unconfined",
    ),
    Remedy(
        "ci",
        ("namespace/2",),
        "GitLab, in the runner's config.toml",
        '[runners.docker]\n  security_opt = ["seccomp=unconfined", "systempaths=unconfined"]',
    ),
    Remedy(
        "slurm",
        ("namespace/2",),
        "as root of the nodes",
        "echo user.max_user_namespaces=10000 > /etc/sysctl.d/90-intercode.conf; sysctl --system",
    ),
    Remedy(
        "slurm",
        ("container/podman",),
        "as root of the nodes",
        "apt-get install podman uidmap; usermod --add-subuids 100000-165535 "
        "--add-subgids 100000-165535 USER",
    ),
    Remedy("wsl1", _BOTH, "in Windows", "wsl --set-version DISTRIBUTION 2"),
    Remedy(
        "wsl2",
        ("namespace/1",),
        "in WSL, then `wsl --shutdown` in Windows",
        "printf '[boot]\\nsystemd=true\\n' | sudo tee -a /etc/wsl.conf",
    ),
    Remedy(
        "linux",
        ("namespace/1",),
        "as an ordinary user",
        "systemd-run --user --scope -p Delegate=yes COMMAND",
    ),
    Remedy("linux", ("namespace/1", "chroot"), "as root", "sudo COMMAND", tested=True),
    Remedy(
        "linux",
        ("container/docker",),
        "as root",
        "apt-get install docker.io; usermod -aG docker USER",
    ),
    Remedy("linux", ("container/podman",), "as root", "apt-get install podman uidmap"),
)
"""Remedies that do not depend on what is found on a machine."""


def remedies_here() -> list[Remedy]:
    """Return the remedies for this machine: those of its platforms, and of settings that forbid
    user namespaces. The least change comes first."""
    platforms, confined = detect_platforms(), detect_confinement()
    containers: list[Platform] = [p for p in platforms if p in _CONTAINERS]
    if "seccomp" in confined and not containers:
        containers = ["docker"]  # a container of another kind: the names of its options differ
    found: list[Remedy] = []
    for platform in containers if confined else ():
        found += container_remedies(platform, confined)
    if not confined:
        platforms = [*(p for p in platforms if p not in containers), "linux"]
    forbidding = [name for name, _ in _forbidding(Path("/proc/sys"))]
    found += setting_remedies(forbidding, _supervisor_path())
    found += [r for r in OTHER_REMEDIES if r.platform in platforms]
    return [remedy for remedy in _known(found) if not _is_pointless(remedy)]


def _is_pointless(remedy: Remedy) -> bool:
    """Return whether a remedy would make this process root, which it is, or which would not help
    because root of its user namespace makes no device nodes, or install a program that is there."""
    engines = [tier.engine for tier in TIERS if tier.engine and tier.name in remedy.tiers]
    if engines:
        return shutil.which(engines[0]) is not None
    is_helpful = os.geteuid() != 0 and is_initial_user_namespace()
    return remedy.text in _BECOME_ROOT and not is_helpful


def _known(remedies: Iterable[Remedy]) -> list[Remedy]:
    """Return the remedies that give a tier of the table."""
    names = {tier.name for tier in TIERS}
    return [remedy for remedy in remedies if names & set(remedy.tiers)]


def remedies_elsewhere() -> list[Remedy]:
    """Return the remedies for all platforms, as the documentation lists them."""
    names = [name for name, _, _ in _SYSCTLS]
    order = list(TITLES)
    in_containers = (remedy for platform in _CONTAINERS for remedy in container_remedies(platform))
    everything = _known([*in_containers, *setting_remedies(names), *OTHER_REMEDIES])
    return sorted(everything, key=lambda remedy: order.index(remedy.platform))


def remedy_for(tier: str) -> str:
    """Return the least change that gives a tier on this machine, as one line; empty if none is
    known."""
    return next((r.as_line() for r in remedies_here() if tier in r.tiers), "")


def least_change(tiers: Iterable[str]) -> str:
    """Return the least change that gives one of the tiers, as one line; empty if none is known."""
    wanted = set(tiers)
    found = next((r for r in remedies_here() if wanted & set(r.tiers)), None)
    return f"{found.as_line()}; that gives {found.tiers[0]}" if found else ""


def render(remedies: Iterable[Remedy], markdown: bool = False) -> str:
    """Return remedies as text to read and to paste, below the names of their platforms.
    ``markdown``: as a page of the documentation."""
    quote, heading, before, after = ("`", "###", "", "```") if markdown else ("", "##", "# ", "")
    lines: list[str] = []
    title = ""
    for remedy in remedies:
        if TITLES[remedy.platform] != title:
            title = TITLES[remedy.platform]
            lines += ["", f"{heading} {title[0].upper()}{title[1:]}"][not lines :]
        tiers = " and ".join(f"{quote}{tier}{quote}" for tier in remedy.tiers)
        state = "" if remedy.tested else " (untested)"
        lines.append(f"{before}{tiers}: {remedy.where}{state}")
        lines += [f"{after}text", remedy.text.rstrip(), after] if after else [remedy.text.rstrip()]
    return "\n".join(lines)


if __name__ == "__main__":
    print(render(remedies_elsewhere(), markdown=True))
