"""The table of all isolation tiers."""

from __future__ import annotations

from dataclasses import dataclass

from intercode_sandbox.contract import Limits
from intercode_sandbox.registry import load_object


@dataclass(frozen=True, slots=True)
class Tier:
    """An isolation tier.

    ``backend``: the name under which ``open_sandbox`` opens its sandboxes for ``auto``. ``check``:
    the reference of a function that returns whether the tier works here, and why not.
    ``automatic``: whether ``auto`` may choose it. ``note``: what ``doctor`` prints where it works.
    """

    name: str
    backend: str
    check: str
    automatic: bool = True
    note: str = ""

    def find_fault(self) -> str:
        """Return why the tier does not work on this machine; empty if it works."""
        works, reason = load_object(self.check)()
        return "" if works else reason or "it does not work, for an unknown reason"


TIERS = (
    Tier(
        "namespace/1",
        "namespace",
        "intercode_sandbox.namespace.open:check_cgroup_tier",
        note="namespaces, and a control group for each sandbox",
    ),
    Tier(
        "namespace/2",
        "namespace",
        "intercode_sandbox.namespace.open:check_watchdog_tier",
        note="namespaces, limits per process, and a watchdog, which does not see shared memory of "
        "processes that have ended, or what lasts less than 0.1 s",
    ),
    Tier("container/docker", "docker", "intercode_sandbox.container.open:check_docker"),
    Tier("container/podman", "podman", "intercode_sandbox.container.open:check_podman"),
    Tier(
        "chroot",
        "chroot",
        "intercode_sandbox.chroot.open:check",
        note="a root directory and user ids for each sandbox, limits per process, and a watchdog",
    ),
    Tier(
        "landlock",
        "landlock",
        "intercode_sandbox.landlock.open:check",
        automatic=False,
        note="against accidents and curiosity, not against an attacker: `--backend landlock` takes "
        "it, `auto` never does",
    ),
)
"""Every tier, the strongest first."""


def tiers_of(backend: str) -> tuple[str, ...]:
    """Return the names of the tiers that a back end, or ``auto``, may have."""
    return tuple(
        tier.name
        for tier in TIERS
        if backend in (tier.name, tier.backend, tier.name.partition("/")[0])
        or (backend == "auto" and tier.automatic)
    )


# The result of a check of this machine.
@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. ``needed``: no sandbox works without the feature. ``fix``: how to
    get it."""

    name: str
    ok: bool
    detail: str = ""
    fix: str = ""
    needed: bool = False


# The limits of the sandboxes that the checks of tiers open.
TRIAL_LIMITS = Limits(processes=16, open_files=64, file_size=1 << 20, address_space=1 << 28)
"""Low ones, because a hard limit of this process (``ulimit -H``) below the default limits of
sandboxes does not mean that the tier does not work."""
