"""The ladder of isolation: which rungs this machine has. A result names the one it stands on.

1 ``namespace/1``: user, mount, process and network namespaces, an overlay, and a control group.
2 ``namespace/2``: the same with bounds per process and a watchdog in place of the control group.
3 without an overlay: the task's files copied, everything else shown read-only.
4 ``container/docker``, ``container/podman``: the engine's isolation, the same keeper inside.
5 no isolation, only protection against accidents: Landlock, a seccomp filter, bounds per process.

Rungs 3 and 5 are looked at here, so that it is known where they would help; no box uses them yet.
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
from intercode.sandbox.supervisor.runtime import cgroup_paths

_NOT_IMPLEMENTED = "nothing to do: intercode has no such box yet"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. ``needed``: no sandbox works without it. ``fix``: how to get it."""

    name: str
    ok: bool
    detail: str = ""
    fix: str = ""
    needed: bool = False


def check_tiers(errors: Mapping[str, str], works: bool) -> list[Finding]:
    """Every rung, strongest first. ``errors`` is what the kernel refused, by the names of
    box/probing.py; ``works`` whether a box could be made."""
    below = "needs what is missing above"
    groups = check_cgroups()
    first = "tier namespace/1", works and groups.ok, groups.detail, groups.fix or below
    second = "tier namespace/2", works, "bounds per process, and a watchdog", below
    return [
        Finding(*first), Finding(*second),
        _check_no_overlay_tier(errors), _check_containers(), _check_unisolated_tier(errors),
    ]  # fmt: skip


def check_cgroups() -> Finding:
    """Whether control groups can be made from here, and if not, why."""
    try:
        version, parents = cgroup_paths.usable_parents(cgroup_paths.own_groups())
    except OSError as e:
        return Finding("control groups", False, e.strerror or str(e), CGROUPS_HINT)
    where = parents.get("memory", parents.get(""))
    return Finding("control groups", True, f"control groups v{version}, below {where}")


def _check_no_overlay_tier(errors: Mapping[str, str]) -> Finding:
    lacking = [name for name in ("user", "proc", "network", "seccomp") if errors[name]]
    detail = f"could not work: no {', '.join(lacking)}" if lacking else "could work"
    return Finding("tier 3, without overlay", False, f"{detail}; not built", _NOT_IMPLEMENTED)


def _check_containers() -> Finding:
    """Whether a container can be made: really, with every engine that answers."""
    works, told, fixes = False, [], []
    for name in engine.ENGINE_NAMES:
        try:
            detail = _time_container(engine.get_engine(name))
            works = True
        except SandboxError as e:
            detail, _, fix = str(e).partition("; ")
            fixes.append(f"{name}: {fix or detail}")
        told.append(detail)
    return Finding("tier 4, containers", works, "; ".join(told), "" if works else "; ".join(fixes))


def _time_container(by: engine.Engine) -> str:
    """Make a box of an engine twice (the second container of a kind may have served before), and
    say how long it took. Raises SandboxError."""
    spec = SandboxSpec(Image("host", ""))
    times = []
    for _ in range(2):
        began = time.perf_counter()
        with ContainerSandbox(spec, by) as box:
            times.append(1e3 * (time.perf_counter() - began))
            result = box.run(["/bin/bash", "-c", "true"])
            if not result.ok:
                raise SandboxError(
                    f"{by.name}: `true` ended with {result.exit_code}: {result.observation}"
                )
    return f"{by.name} {by.version}: started in {times[0]:.0f} ms, renewed in {times[1]:.0f} ms"


def _check_unisolated_tier(errors: Mapping[str, str]) -> Finding:
    lacking = [name for name in ("landlock", "seccomp") if errors[name]]
    detail = f"could not work: no {', '.join(lacking)}" if lacking else "could work"
    return Finding("tier 5, accidents only", False, f"{detail}; not built", _NOT_IMPLEMENTED)
