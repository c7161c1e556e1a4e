"""The table of all isolation tiers, and of what their sandboxes can do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from intercode_sandbox.contract import Limits
from intercode_sandbox.registry import load_object

if TYPE_CHECKING:
    from intercode_sandbox.container.engine import EngineName

_REMOTE = "remote/"


@dataclass(frozen=True, slots=True)
class Tier:
    """An isolation tier.

    ``backend``: the name under which ``open_sandbox`` opens its sandboxes for ``auto``. ``check``:
    the reference of a function that returns whether the tier works here, and why not.
    ``automatic``: whether ``auto`` may choose it. ``note``: what ``doctor`` prints where it works.
    ``threat``: the reference of its ThreatModel, empty for an unknown tier. ``strongest``: that of
    a function which names the tier that is used where a back end has several.

    ``own_layers``: each sandbox mounts the image and an upper layer of its own. ``recycles``: a new
    sandbox takes so long that old ones are recycled. ``users``: there can be users besides root.
    ``user_ids``: which user ids each sandbox has, if that is certain. ``engine``: the container
    engine that it needs. ``is_child``: programs inherit the hard limits of the process that opened
    the sandbox. ``is_remote``: it is a tier of another machine.
    """

    name: str
    backend: str
    check: str = ""
    automatic: bool = True
    note: str = ""
    threat: str = ""
    strongest: str = ""
    own_layers: bool = False
    recycles: bool = False
    users: bool = False
    user_ids: str = ""
    engine: EngineName | None = None
    is_child: bool = True
    is_remote: bool = False

    def find_fault(self) -> str:
        """Return why the tier does not work on this machine; empty if it works."""
        works, reason = load_object(self.check)()
        return "" if works else reason or "it does not work, for an unknown reason"


_PROTECTIONS = "intercode_sandbox.tiers.protections"
_NAMESPACES = "intercode_sandbox.namespace.open"
_CONTAINERS = "intercode_sandbox.container.open"
TIERS = (
    Tier(
        "namespace/1",
        "namespace",
        f"{_NAMESPACES}:check_cgroup_tier",
        note="namespaces, and a control group for each sandbox",
        threat=f"{_PROTECTIONS}:CGROUP_NAMESPACE",
        strongest=f"{_NAMESPACES}:strongest_tier",
        own_layers=True,
        users=True,
    ),
    Tier(
        "namespace/2",
        "namespace",
        f"{_NAMESPACES}:check_watchdog_tier",
        note="namespaces, limits per process, and a watchdog, which does not see shared memory of "
        "processes that have ended, or what lasts less than 0.1 s",
        threat=f"{_PROTECTIONS}:WATCHDOG_NAMESPACE",
        strongest=f"{_NAMESPACES}:strongest_tier",
        own_layers=True,
        users=True,
    ),
    Tier(
        "container/docker",
        "docker",
        f"{_CONTAINERS}:check_docker",
        threat=f"{_PROTECTIONS}:DOCKER",
        strongest=f"{_CONTAINERS}:strongest_tier",
        recycles=True,
        engine="docker",
        is_child=False,
    ),
    Tier(
        "container/podman",
        "podman",
        f"{_CONTAINERS}:check_podman",
        threat=f"{_PROTECTIONS}:PODMAN",
        strongest=f"{_CONTAINERS}:strongest_tier",
        recycles=True,
        engine="podman",
    ),
    Tier(
        "chroot",
        "chroot",
        "intercode_sandbox.chroot.open:check",
        note="a root directory and user ids for each sandbox, limits per process, and a watchdog",
        threat=f"{_PROTECTIONS}:CHROOT",
        recycles=True,
        user_ids="two for each sandbox",
    ),
    Tier(
        "landlock",
        "landlock",
        "intercode_sandbox.landlock.open:check",
        automatic=False,
        note="against accidents and curiosity, not against an attacker: `--backend landlock` takes "
        "it, `auto` never does",
        threat=f"{_PROTECTIONS}:LANDLOCK",
    ),
)
"""Every tier, the strongest first."""


def tier_named(name: str) -> Tier:
    """Return the record of a tier. A tier that is not in the table, such as that of a back end of
    the user, can do the least; a remote one protects as its tier on the other machine does."""
    if name.startswith(_REMOTE):
        there = tier_named(name.removeprefix(_REMOTE))
        return Tier(name, name, threat=there.threat, is_child=False, is_remote=True)
    return next((tier for tier in TIERS if tier.name == name), Tier(name, name))


def remote_name(tier: str) -> str:
    """Return the name of a tier of another machine."""
    return f"{_REMOTE}{tier}"


def tiers_of(backend: str) -> tuple[Tier, ...]:
    """Return the tiers that a back end, or ``auto``, may have."""
    return tuple(
        tier
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
