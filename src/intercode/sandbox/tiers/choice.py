"""Chooses the isolation tier that ``auto`` stands for: the strongest one that works."""

from __future__ import annotations

import functools
import logging
import sys
from dataclasses import dataclass

from intercode.core.errors import SandboxUnavailableError
from intercode.core.registry import load_object

_logger = logging.getLogger("intercode.sandbox")


@dataclass(frozen=True, slots=True)
class Tier:
    """An isolation tier.

    ``kind``: the name under which ``open_sandbox`` opens its sandboxes for ``auto``. ``check``: the
    reference of a function that returns whether the tier works here, and why not. ``automatic``:
    whether ``auto`` may choose it.
    """

    name: str
    kind: str
    check: str
    automatic: bool = True

    def find_fault(self) -> str:
        """Return why the tier does not work on this machine; empty if it works."""
        works, reason = load_object(self.check)()
        return "" if works else reason or "it does not work, for an unknown reason"


TIERS = (
    Tier("namespace/1", "namespace", "intercode.sandbox.namespace.tiers:check_cgroup_tier"),
    Tier("namespace/2", "namespace", "intercode.sandbox.namespace.tiers:check_watchdog_tier"),
    Tier("container/docker", "docker", "intercode.sandbox.container.tiers:check_docker"),
    Tier("container/podman", "podman", "intercode.sandbox.container.tiers:check_podman"),
)
"""Every tier, the strongest first."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The tier that ``auto`` takes. ``faults``: why stronger tiers do not work, by name."""

    tier: Tier
    faults: dict[str, str]

    def describe(self) -> str:
        """Return the tier, and why it is not a stronger one, as one line."""
        if not self.faults:
            return self.tier.name
        return f"{self.tier.name} (no {describe_faults(self.faults)})"


@functools.cache
def choose_tier() -> Choice:
    """Return the strongest tier that works. Tries the tiers once per process.

    Raises SandboxUnavailableError if none works.
    """
    require_linux()
    faults: dict[str, str] = {}
    for tier in TIERS:
        if not tier.automatic:
            continue
        fault = tier.find_fault()
        if not fault:
            choice = Choice(tier, faults)
            _logger.info("sandboxes have the isolation tier %s", choice.describe())
            return choice
        faults[tier.name] = fault
    raise SandboxUnavailableError(
        f"no sandbox works on this machine: no {describe_faults(faults)}; `intercode doctor` says "
        "what would help"
    )


def strongest_kind() -> str:
    """Return the back end of the strongest tier that works, such as ``namespace`` or ``docker``.

    Raises SandboxUnavailableError if none works.
    """
    return choose_tier().tier.kind


def require_linux() -> None:
    """Raise SandboxUnavailableError on a machine whose kernel is not Linux."""
    if sys.platform != "linux":
        raise SandboxUnavailableError(
            f"sandboxes need Linux, and this is {sys.platform}: use a virtual machine or WSL 2; "
            "reports, comparisons, `intercode view` and SQL work everywhere"
        )


def describe_faults(faults: dict[str, str]) -> str:
    """Return the faults of several tiers as one line. Tiers with the same fault are named
    together."""
    names: dict[str, list[str]] = {}
    for name, fault in faults.items():
        names.setdefault(fault, []).append(name)
    return "; no ".join(f"{' and '.join(several)}: {fault}" for fault, several in names.items())
