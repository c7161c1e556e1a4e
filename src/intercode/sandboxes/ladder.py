"""The ladder of isolation: which rungs this machine has. A result names the one it stands on.

1 ``namespace/1``: user, mount, process and network namespaces, an overlay, and a control group.
2 ``namespace/2``: the same with bounds per process and a watchdog in place of the control group.
3 without an overlay: the task's files copied, everything else shown read-only.
4 Docker or Podman.
5 no isolation, only protection against accidents: Landlock, a seccomp filter, bounds per process.

Rungs 3 to 5 are looked at here, so that it is known where they would help; no box uses them yet.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from intercode.sandboxes.namespace.box import places
from intercode.sandboxes.namespace.tiers import HOW_TO_GET_GROUPS

_SECONDS = 5.0
_NOT_BUILT = "nothing to do: intercode has no such box yet"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. ``needed``: no sandbox works without it. ``fix``: how to get it."""

    name: str
    ok: bool
    detail: str = ""
    fix: str = ""
    needed: bool = False


def rungs(errors: Mapping[str, str], works: bool) -> list[Finding]:
    """Every rung, strongest first. ``errors`` is what the kernel refused, by the names of
    box/probing.py; ``works`` whether a box could be made."""
    below = "needs what is missing above"
    groups = cgroups()
    first = "tier namespace/1", works and groups.ok, groups.detail, groups.fix or below
    second = "tier namespace/2", works, "bounds per process, and a watchdog", below
    return [
        Finding(*first), Finding(*second),
        _without_overlay(errors), _containers(), _accidents(errors),
    ]  # fmt: skip


def cgroups() -> Finding:
    """Whether control groups can be made from here, and if not, why."""
    try:
        version, parents = places.usable(places.here())
    except OSError as e:
        return Finding("control groups", False, e.strerror or str(e), HOW_TO_GET_GROUPS)
    where = parents.get("memory", parents.get(""))
    return Finding("control groups", True, f"control groups v{version}, below {where}")


def _without_overlay(errors: Mapping[str, str]) -> Finding:
    lacking = [name for name in ("user", "proc", "network", "seccomp") if errors[name]]
    detail = f"could not work: no {', '.join(lacking)}" if lacking else "could work"
    return Finding("tier 3, without overlay", False, f"{detail}; not built", _NOT_BUILT)


def _containers() -> Finding:
    found = []
    for name in ("docker", "podman"):
        if shutil.which(name):
            found.append(f"{name} {_answer(name)}")
    detail = ", ".join(found) or "neither docker nor podman is installed"
    return Finding("tier 4, containers", False, f"{detail}; not built", _NOT_BUILT)


def _answer(program: str) -> str:
    command = [program, "info", "--format", "{{.ServerVersion}}"]
    if program == "podman":
        command[-1] = "{{.Version.Version}}"
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return "does not answer"
    return f"{done.stdout.strip()} answers"


def _accidents(errors: Mapping[str, str]) -> Finding:
    lacking = [name for name in ("landlock", "seccomp") if errors[name]]
    detail = f"could not work: no {', '.join(lacking)}" if lacking else "could work"
    return Finding("tier 5, accidents only", False, f"{detail}; not built", _NOT_BUILT)
