"""Checks which isolation tiers this machine has. A result's metadata name its tier.

1 ``namespace/1``: user, mount, process and network namespaces, an overlay, a control group.

2 ``namespace/2``: the same, with limits per process and a watchdog instead of the control group.

3 without an overlay: the task's files copied, everything else read-only. Not implemented.

4 ``container/docker``, ``container/podman``: the engine's isolation, the same supervisor.

5 no isolation, only protection against accidents: Landlock, a seccomp filter, limits per process.
Not implemented; tiers 3 and 5 are checked to show whether they would help.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from intercode.core.errors import SandboxError
from intercode.core.types import Image
from intercode.sandbox.container import engine
from intercode.sandbox.container.sandbox import ContainerSandbox
from intercode.sandbox.contract import SandboxSpec
from intercode.sandbox.namespace.tiers import CGROUPS_HINT
from intercode.sandbox.supervisor.runtime import cgroups

_NOT_IMPLEMENTED = "nothing to do: intercode does not implement it yet"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. ``needed``: no sandbox works without the feature. ``fix``: how to
    get it."""

    name: str
    ok: bool
    detail: str = ""
    fix: str = ""
    needed: bool = False


def check_tiers(errors: Mapping[str, str], works: bool) -> list[Finding]:
    """Check every tier, the strongest first.

    ``errors``: the result of runtime/kernel_check.py. ``works``: whether a sandbox could be opened.
    """
    needs_others = "needs what is missing above"
    control_groups = check_cgroups()
    first = (
        "tier namespace/1",
        works and control_groups.ok,
        control_groups.detail,
        control_groups.fix or needs_others,
    )
    detail = (
        "limits per process, and a watchdog, which sees no shared memory that only ended processes "
        "used and nothing that lasts less than 0.1 s"
    )
    second = "tier namespace/2", works, detail, needs_others
    return [
        Finding(*first), Finding(*second),
        _check_no_overlay_tier(errors), _check_containers(), _check_unisolated_tier(errors),
    ]  # fmt: skip


def check_cgroups() -> Finding:
    """Check whether control groups can be created."""
    try:
        version, parents = cgroups.usable_parents(cgroups.own_groups())
    except OSError as e:
        return Finding("control groups", False, e.strerror or str(e), CGROUPS_HINT)
    where = parents.get("memory", parents.get(""))
    return Finding("control groups", True, f"control groups v{version}, below {where}")


def _check_no_overlay_tier(errors: Mapping[str, str]) -> Finding:
    missing = [name for name in ("user", "proc", "network", "seccomp") if errors[name]]
    detail = f"could not work: no {', '.join(missing)}" if missing else "could work"
    return Finding("tier 3, without overlay", False, f"{detail}; not implemented", _NOT_IMPLEMENTED)


def check_engine(name: engine.EngineName) -> Finding:
    """Check whether one container engine can run a sandbox, by running one.

    ``name``: ``docker`` or ``podman``.
    """
    try:
        return Finding(name, True, _time_container(engine.get_engine(name)))
    except SandboxError as e:
        detail, _, fix = str(e).partition("; ")
        return Finding(name, False, detail, fix or detail)


def _check_containers() -> Finding:
    """Check whether any container engine can run a sandbox."""
    checks = [check_engine(name) for name in engine.ENGINE_NAMES]
    works = any(check.ok for check in checks)
    fix = "" if works else "; ".join(f"{check.name}: {check.fix}" for check in checks)
    return Finding("tier 4, containers", works, "; ".join(c.detail for c in checks), fix)


def _time_container(container_engine: engine.Engine) -> str:
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


def _check_unisolated_tier(errors: Mapping[str, str]) -> Finding:
    missing = [name for name in ("landlock", "seccomp") if errors[name]]
    detail = f"could not work: no {', '.join(missing)}" if missing else "could work"
    return Finding("tier 5, accidents only", False, f"{detail}; not implemented", _NOT_IMPLEMENTED)
