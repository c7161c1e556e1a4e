"""Chooses the isolation tier that ``auto`` stands for: the strongest one that works."""

from __future__ import annotations

import functools
import logging
import sys
from dataclasses import dataclass

from intercode_sandbox.errors import SandboxUnavailableError
from intercode_sandbox.tiers.tier_table import TIERS, Tier

_logger = logging.getLogger("intercode_sandbox")
LINUX_HINT = (
    "on macOS use the sandboxes of a Linux machine (there `intercode-sandbox serve`, here "
    "--backend remote:URL) or run this in a container; on Windows use WSL 2"
)
"""What to do on a machine whose kernel is not Linux."""


@dataclass(frozen=True, slots=True)
class TierChoice:
    """The tier that ``auto`` takes. ``faults``: why stronger tiers do not work, by name."""

    tier: Tier
    faults: dict[str, str]

    def describe(self) -> str:
        """Return the tier, and why it is not a stronger one, as one line."""
        if not self.faults:
            return self.tier.name
        return f"{self.tier.name} (no {describe_faults(self.faults)})"


@functools.cache
def choose_tier() -> TierChoice:
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
            choice = TierChoice(tier, faults)
            _logger.info("sandboxes have the isolation tier %s", choice.describe())
            return choice
        faults[tier.name] = fault
    from intercode_sandbox.tiers.remedies import least_change  # used only on such a machine

    change = least_change(tier.name for tier in TIERS)
    least = f"the least change: {change}; " if change else ""
    least += "".join(map(_describe_weak_tier, TIERS))
    raise SandboxUnavailableError(
        f"no sandbox works on this machine: no {describe_faults(faults)}; {least}"
        "`intercode-sandbox doctor --fix` prints all changes that would help, as text to paste"
    )


def _describe_weak_tier(tier: Tier) -> str:
    """Return how to use a tier that ``auto`` never takes; empty if it does not work here."""
    if tier.automatic or tier.find_fault():
        return ""
    return f"`--backend {tier.name}` works here, which protects {tier.note.partition(':')[0]}; "


def strongest_backend() -> str:
    """Return the back end of the strongest tier that works, such as ``namespace`` or ``docker``.

    Raises:
        SandboxUnavailableError: No tier works on this machine.

    >>> from intercode_sandbox import strongest_backend, tier_of
    >>> tier_of(strongest_backend()) == tier_of("auto")
    True
    """
    return choose_tier().tier.backend


def require_linux() -> None:
    """Raise SandboxUnavailableError on a machine whose kernel is not Linux."""
    if sys.platform != "linux":
        raise SandboxUnavailableError(
            f"sandboxes need Linux, and this is {sys.platform}: {LINUX_HINT}"
        )


def describe_faults(faults: dict[str, str]) -> str:
    """Return the faults of several tiers as one line. Tiers with the same fault are named
    together."""
    names: dict[str, list[str]] = {}
    for name, fault in faults.items():
        names.setdefault(fault, []).append(name)
    return "; no ".join(f"{' and '.join(several)}: {fault}" for fault, several in names.items())
