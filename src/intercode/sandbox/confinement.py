"""What keeps this process from making sandboxes, and how to ask for it to be taken away."""

from __future__ import annotations

from pathlib import Path

_SYSCTLS = (
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),  # Ubuntu 24.04
    ("kernel.unprivileged_userns_clone", "0", "1"),  # Debian before 11
    ("user.max_user_namespaces", "0", "10000"),
)
_OPTION = "--security-opt {}=unconfined"
_KUBERNETES = {
    "seccomp": "seccompProfile: {type: Unconfined}",
    "apparmor": "appArmorProfile: {type: Unconfined}",
    "systempaths": "procMount: Unmasked",
}


def user_namespace_fix(proc: Path = Path("/proc/sys")) -> str:
    """The settings of this machine that forbid user namespaces, as commands that allow them."""
    found = []
    for name, forbids, allows in _SYSCTLS:
        file = proc / name.replace(".", "/")
        if file.is_file() and file.read_text().strip() == forbids:
            found.append(f"sysctl -w {name}={allows}")
    return " and ".join(found)


def detect_confinement(proc: Path = Path("/proc/self")) -> list[str]:
    """What a container's runtime has put around this process, by the names of its options: a
    ``seccomp`` filter, an ``apparmor`` profile, covered ``systempaths`` (the kernel mounts no new
    /proc or /sys for one that sees only parts of the old)."""
    found = []
    if _field(proc / "status", "Seccomp:") == "2":
        found.append("seccomp")
    try:
        profile = (proc / "attr" / "current").read_text().strip("\0\n ")
    except OSError:
        profile = ""  # no AppArmor here
    if profile not in ("", "unconfined") and "(" in profile:  # a mode, which SELinux does not write
        found.append("apparmor")
    places = [line.split()[4] for line in (proc / "mountinfo").read_text().splitlines()]
    covered = ("/proc/", "/sys/firmware", "/sys/devices")
    if any(place.startswith(covered) and not place.endswith("binfmt_misc") for place in places):
        found.append("systempaths")
    return found


def _field(file: Path, name: str) -> str:
    for line in file.read_text().splitlines():
        if line.startswith(name):
            return line.removeprefix(name).strip()
    return ""


def container_options_hint(confined: list[str]) -> str:
    """How to start a container without these; empty for none."""
    if not confined:
        return ""
    options = " ".join(_OPTION.format(name) for name in confined)
    context = ", ".join(_KUBERNETES[name] for name in confined)
    pod = f"securityContext: {{{context}}}"
    if "systempaths" in confined:
        pod += " with hostUsers: false"
    return f"add to what the container is started with: {options} (Kubernetes: {pod})"
