"""The threat model: what each isolation tier protects, what enforces it, and what it leaves open.

docs/threat-model.md has the summaries; the site has the table of ``render_markdown``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from intercode_sandbox.registry import load_object
from intercode_sandbox.tiers.tier_table import TIERS, Tier, tier_named

ASPECTS = (
    "files",
    "processes",
    "network",
    "memory",
    "processor",
    "disk",
    "kernel surface",
    "gold answers",
)
"""What a sandbox protects."""

REMEDY = "intercode-sandbox doctor --threat-model"


@dataclass(frozen=True, slots=True)
class Protection:
    """The protection of one aspect. ``by``: what enforces it. ``gap``: what is not protected."""

    by: str
    gap: str = "nothing known"


@dataclass(frozen=True, slots=True)
class ThreatModel:
    """The protections of a tier by aspect. ``summary``: against whom they hold. ``golds``: which
    golds the tier may hold."""

    summary: str
    golds: str
    protections: dict[str, Protection]


_SHARES_PROCESSOR = "sandboxes share the processors: a busy one slows the others"
_GOLDS = Protection(
    "the owner compares the results; a gold runs in a sandbox of its own; flags and expected "
    "values enter no sandbox",
    "the calls of hidden tests, which run beside the agent's code in a fresh sandbox; a gold that "
    "the dataset itself puts into the task's files",
)
_ANY_GOLD = "any, even secret ones"
_WATCHED = {
    "memory": Protection(
        "limits per process, and a watchdog that adds up the sandbox several times a second",
        "as in `namespace/2`",
    ),
    "processor": Protection(
        "time limit of each action, and a watchdog for processor time", _SHARES_PROCESSOR
    ),
    "disk": Protection(
        "the supervisor counts while commands run, and kills them above the limit; a limit "
        "for each file",
        "this machine's disk can fill between two counts",
    ),
}
"""What the supervisor counts where the kernel has no limit for a whole sandbox."""
_NAMESPACE = {
    "files": Protection(
        "a mount namespace with a root of its own; image and layers are read-only below an overlay",
        "on the image `host`, the programs of this machine can be read",
    ),
    "processes": Protection(
        "PID and IPC namespaces; a sealed PID 1; a supervisor outside; everything ends with the "
        "owner; a user id of its own if root opened the sandbox",
        "without a user id of its own, a sandbox shares the kernel's budgets for pipe buffers and "
        "inotify instances with others. Sandboxes of an ordinary user share the budget for pipe "
        "buffers of each of their users. The kernel's records of user ids in use, up to 20 MB for "
        "a sandbox with several users, have no limit",
    ),
    "network": Protection(
        "a network namespace without a connection; seccomp allows a list of socket families",
        "`--network host` is the network of this machine; hosts that `--network allow:HOST,...` "
        "names can receive everything that a sandbox holds",
    ),
    "memory": Protection(
        "a control group for the whole sandbox, without swap, and for its processes without the "
        "files in memory a watchdog",
        "sandboxes of one image share its pages in memory, and can signal each other through them",
    ),
    "processor": Protection(
        "time limit of each action; then every process of the action is killed", _SHARES_PROCESSOR
    ),
    "disk": Protection("a file system in memory, with a limited size and number of files"),
    "kernel surface": Protection(
        "seccomp allows a list of system calls; no capabilities outside the namespace; no new "
        "privileges, except by set-user-ID programs in a sandbox with several users that root "
        "opened",
        "an exploit of the allowed calls",
    ),
    "gold answers": _GOLDS,
}
_CONTAINER = {
    "files": Protection(
        "the engine's mount namespace; an ordinary user without capabilities",
        "more of this machine can be read in /proc and /sys, such as its mounts",
    ),
    "processes": Protection(
        "the engine's PID and IPC namespaces; PID 1 is the supervisor, which commands cannot signal"
    ),
    "network": Protection(
        "the engine's network namespace without a connection; the seccomp list of socket families",
        "`--network host` is the network of this machine",
    ),
    "memory": Protection("the container's control group, without swap"),
    "processor": Protection(
        "time limit of each action, and a watchdog for processor time", _SHARES_PROCESSOR
    ),
    "disk": Protection(
        "the supervisor counts while commands run, and kills them above the limit",
        "the engine's disk can fill between two counts",
    ),
    "kernel surface": Protection(
        "the engine's seccomp profile and ours; no capabilities or new privileges",
        "an exploit of the allowed calls, or of the engine, which may be root",
    ),
    "gold answers": _GOLDS,
}

CGROUP_NAMESPACE = ThreatModel(
    "hostile code without an exploit of the kernel", _ANY_GOLD, _NAMESPACE
)
WATCHDOG_NAMESPACE = ThreatModel(
    "hostile code without an exploit of the kernel; memory is limited less strictly",
    _ANY_GOLD,
    _NAMESPACE
    | {
        "memory": Protection(
            "limits per process, and a watchdog that adds up the sandbox several times a second",
            "shared memory of processes that have ended, buffers of pipes (64 MiB for each "
            "user id), and processes that live less than 0.1 s",
        ),
        "kernel surface": Protection(
            "seccomp allows a list of system calls; no capabilities outside the namespace; no "
            "new privileges, so set-user-ID programs have no effect",
            "an exploit of the allowed calls",
        ),
    },
)
DOCKER = ThreatModel(
    "hostile code without an exploit of the kernel or of the engine", _ANY_GOLD, _CONTAINER
)
PODMAN = ThreatModel(
    "hostile code without an exploit of the kernel or of the engine",
    _ANY_GOLD,
    _CONTAINER
    | {
        "memory": Protection(
            "the container's control group, without swap",
            "without root on control groups of version 1, only a watchdog limits memory",
        ),
        "kernel surface": Protection(
            "the engine's seccomp profile and ours; no capabilities or new privileges",
            "an exploit of the allowed calls, or of the engine, where root runs it",
        ),
    },
)
CHROOT = ThreatModel(
    "hostile code without an exploit of the kernel; fewer layers than `namespace/2`: user ids "
    "in place of namespaces",
    "any; only user ids and file modes protect a secret one",
    {
        "files": Protection(
            "a changed root directory, two user ids per sandbox, and file modes; files of "
            "programs are hard links that belong to root, and cannot be watched",
            "on the image `host`, the programs of this machine can be read, and no namespace "
            "would hide its other files from a program that left the root directory. A lock on "
            "a file of a program blocks other sandboxes that lock it, and the time of its last "
            "access tells that one read it",
        ),
        "processes": Protection(
            "commands can neither signal nor trace processes of other user ids; without /proc "
            "they see none; a guard kills all processes of the ids at the end",
            "process numbers are those of the machine or container around the sandbox",
        ),
        "network": Protection(
            "seccomp refuses all socket families but Unix; before Linux 6.12, where Landlock "
            "cannot confine abstract names, that one too",
            "`--network host` is the network of this machine",
        ),
        **_WATCHED,
        "kernel surface": Protection(
            "seccomp allows a list of system calls, without System V IPC and message queues; "
            "no capabilities or new privileges",
            "an exploit of the allowed calls; the guard of a sandbox remains root",
        ),
        "gold answers": _GOLDS,
    },
)
LANDLOCK = ThreatModel(
    "accidents and curiosity, not an attacker: all processes have your user, and "
    "nothing hides this machine",
    "none that a model must not find out; those of tasks that it tries to solve",
    {
        "files": Protection(
            "Landlock: commands read the programs of this machine and a list of settings and "
            "devices, and write one directory; home directories, /tmp, this package, data "
            "sets, caches and other sandboxes are closed",
            "names, sizes and modes of files at paths that they know; a program with threads "
            "can change modes, times and extended attributes of this user's files there, "
            "which the guard otherwise refuses; locks on programs",
        ),
        "processes": Protection(
            "Landlock: commands can neither signal nor trace processes outside; a guard "
            "kills all processes of the sandbox at the end",
            "which process numbers exist, and the names of users; the processes of this user "
            "are counted together",
        ),
        "network": Protection(
            "seccomp refuses all sockets but pairs; Landlock refuses TCP",
            "`--network host` is the network of this machine",
        ),
        **_WATCHED,
        "kernel surface": Protection(
            "seccomp allows a list of system calls, without System V IPC and message queues; "
            "no capabilities or new privileges",
            "an exploit of the allowed calls; a process of root owns more of the machine",
        ),
        "gold answers": Protection(
            _GOLDS.by,
            "as in the other tiers, and every weakness above",
        ),
    },
)


def threat_model_of(tier: str) -> str:
    """Return what a tier protects against, as one line for the metadata of results."""
    model = _threat_model(tier_named(tier))
    return f"{model.summary} (see `{REMEDY}`)" if model else f"unknown: `{REMEDY}` has no such tier"


def threat_models() -> dict[str, ThreatModel]:
    """Return the threat model of every tier, by name."""
    return {tier.name: model for tier in TIERS if (model := _threat_model(tier))}


def _threat_model(tier: Tier) -> ThreatModel | None:
    return load_object(tier.threat) if tier.threat else None


def render_text(current: str = "") -> str:
    """Return the threat model as text for a terminal. ``current``: the tier of this machine."""
    lines: list[str] = []
    for name, model in threat_models().items():
        mark = ", which `auto` takes here" if name == current else ""
        lines += [*[""][not lines :], f"{name}{mark}", f"  {'against':<16}{model.summary}"]
        for aspect in ASPECTS:
            protection = model.protections[aspect]
            lines.append(f"  {aspect:<16}{protection.by}")
            lines.append(f"  {'':<16}not protected: {protection.gap}")
        lines.append(f"  {'golds':<16}{model.golds}")
    return "\n".join(lines)


def render_markdown() -> str:
    """Return the threat model as a Markdown table. Tiers with equal cells share a row."""
    models = threat_models()
    rows = [["", "tiers", "what enforces it", "not protected"], ["---"] * 4]
    rows += _shared_rows("protects against", {n: (m.summary, "") for n, m in models.items()})
    for aspect in ASPECTS:
        found = {name: model.protections[aspect] for name, model in models.items()}
        rows += _shared_rows(aspect, {name: (p.by, p.gap) for name, p in found.items()})
    rows += _shared_rows("may hold golds", {n: (m.golds, "") for n, m in models.items()})
    return "\n".join(map(_table_row, rows))


def _shared_rows(title: str, cells: dict[str, tuple[str, str]]) -> list[list[str]]:
    shared: dict[tuple[str, str], list[str]] = {}
    for name, cell in cells.items():
        shared.setdefault(cell, []).append(f"`{name}`")
    return [[f"**{title}**", ", ".join(names), *cell] for cell, names in shared.items()]


def _table_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
