"""Checks which isolation tiers work on this machine, and says what would give the others."""

from __future__ import annotations

import time

from intercode_sandbox.container import engine
from intercode_sandbox.container.sandbox import ContainerSandbox
from intercode_sandbox.contract import SandboxSpec
from intercode_sandbox.errors import ConfigError, SandboxError, SandboxUnavailableError
from intercode_sandbox.supervisor.runtime import cgroups
from intercode_sandbox.tiers import remedies
from intercode_sandbox.tiers.tier_table import TIERS, Finding, Tier
from intercode_sandbox.types import Image

_NO_REMEDY = "no change of this machine is known that would give it"


def check_tiers() -> list[Finding]:
    """Check every tier, the strongest first."""
    return [_check_tier(tier) for tier in TIERS]


def _check_tier(tier: Tier) -> Finding:
    name = f"tier {tier.name}"
    if tier.engine:
        finding = check_engine(tier.engine)
        return Finding(name, finding.ok, finding.detail, finding.fix)
    try:
        fault = tier.find_fault()
    except (ConfigError, SandboxUnavailableError) as e:  # of the cache
        return Finding(name, False, str(e), "do what the line of the cache says")
    if not fault:
        return Finding(name, True, tier.note)
    own_hint = fault if "`" in fault else _NO_REMEDY
    return Finding(name, False, fault, remedies.remedy_for(tier.name) or own_hint)


def check_cgroups() -> Finding:
    """Check whether control groups can be created."""
    try:
        version, parents = cgroups.usable_parents(cgroups.own_groups())
    except OSError as e:
        return Finding("control groups", False, e.strerror or str(e), remedies.CGROUPS_HINT)
    where = parents.get("memory", parents.get(""))
    return Finding("control groups", True, f"control groups v{version}, below {where}")


def check_engine(name: engine.EngineName) -> Finding:
    """Check whether one container engine can run a sandbox, by running one.

    ``name``: ``docker`` or ``podman``.
    """
    try:
        return Finding(name, True, _time_container(engine.get_engine(name)))
    except (SandboxError, ConfigError) as e:
        detail, _, fix = str(e).partition("; ")
        return Finding(name, False, detail, fix or detail)


def _time_container(container_engine: engine.ContainerEngine) -> str:
    """Open and close two sandboxes of an engine, the second of which may be recycled, and return
    the times as text. Raises SandboxError."""
    spec = SandboxSpec(Image("host", ""))
    times = []
    for _ in range(2):
        began = time.perf_counter()
        with ContainerSandbox(spec, container_engine) as sandbox:
            times.append(1e3 * (time.perf_counter() - began))
            result = sandbox.run(["/bin/bash", "-c", "true"])
            if not result.ok:
                raise SandboxError(
                    f"{container_engine.name}: `true` ended with {result.exit_code}: "
                    f"{result.observation}"
                )
    version = f"{container_engine.name} {container_engine.version}"
    return f"{version}: started in {times[0]:.0f} ms, recycled in {times[1]:.0f} ms"
