"""Defines hostile cases and lists all of them. The other ``*_cases.py`` hold them by class."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any, Literal

from support import backend

Kind = Literal["dos", "shell", "framing", "kernel", "network", "leak", "file", "lifecycle"]
Probe = tuple[str, str]
"""An operation of the owner on the sandbox after the actions, and its path: ``read``, ``refused``
(a read that must fail), ``denied`` (a write that must fail), ``write``, ``changes`` and ``clone``.
"""


LONG = bool(os.environ.get("INTERCODE_HOSTILE_LONG"))
"""Whether every case gets the time and resources of an episode (`make soak`)."""
LIMIT = 3.0 if LONG else 0.3
"""Default seconds per action."""


@dataclass(frozen=True, slots=True)
class Case:
    """Something that an agent may try, as data.

    ``actions`` run one after another, each for at most ``limit`` seconds. In them, ``@FILE@`` and
    the like stand for objects on the host (see ``planted.py``). Their output must contain
    ``shows`` and must not contain ``hides``. ``late``: whether the last action must (True) or must
    not (False) time out. ``after``: ``reset`` if the shell is usable after it was ended, for
    example because its outputs were closed; ``wrecked`` if the agent has destroyed its shell, which
    must be reported, and a new sandbox must work. ``fault``: why the case fails today; ``sure``:
    whether it always does.
    """

    name: str
    kind: Kind
    actions: tuple[str, ...]
    shows: tuple[str, ...] = ()
    hides: tuple[str, ...] = ()
    probes: tuple[Probe, ...] = ()
    limit: float = LIMIT
    late: bool | None = None
    after: Literal["usable", "reset", "wrecked"] = "usable"
    fault: str = ""
    sure: bool = True
    harmful: bool = False


def python(code: str) -> str:
    """Return an action that runs Python code in the sandbox."""
    return f"python3 - <<'END-OF-PYTHON'\n{code}\nEND-OF-PYTHON"


IN_CONTAINERS: dict[str, dict[str, tuple[Any, ...]]] = {
    # root in a container has no capability
    "kernel: chroot and out again": {"shows": ("not permitted",)},
    # a full disk ends only the agent's processes
    "file: a disk that is full": {"probes": (("read", "/etc/passwd"),)},
    "leak: mounts": {"hides": ("@FILE@", "@DIRECTORY@")},  # mounts of an engine name their sources
}
"""Expectations that differ where sandboxes are containers, by kind and name."""

_NO_PROC = {"shows": ("No such file",)}
IN_CHROOT: dict[str, dict[str, tuple[Any, ...]]] = {
    "kernel: chroot and out again": IN_CONTAINERS["kernel: chroot and out again"],
    "file: a disk that is full": IN_CONTAINERS["file: a disk that is full"],
    # without /proc, nsenter enters no namespace and runs its program where it is
    "kernel: new namespaces by the programs": {"shows": ("unshare failed", "over"), "hides": ()},
    # process numbers are those of the machine
    "kernel: signals to the host": {"shows": ("not permitted", "over")},
    "kernel: PID 1": {"shows": ("No such file", "over")},
    "kernel: PID 1 as the first victim of memory": _NO_PROC,
    "kernel: /proc/sys": _NO_PROC,
    "kernel: other ids": {"shows": ("CHANGED (0, 0, 0)",)},  # it succeeds and changes nothing
    "kernel: capabilities": {"shows": ("Bounding set =\n", "Ambient set =\n")},
    "kernel: typing into a terminal": {"shows": ("out of pty devices",)},  # there are no terminals
    "kernel: the machine's programs": {"shows": ("Permission denied", "0\n")},
    "network: interfaces": {"shows": ("No such file",)},
    # LD_LIBRARY_PATH is set for Java
    "leak: the environment": {"hides": ("INTERCODE", "PYTHONPATH")},
}
"""Expectations that differ where sandboxes lie below a changed root directory."""

_CLOSED = {"shows": ("Permission denied",)}
_OWN_FILE: dict[str, tuple[Any, ...]] = {"probes": ()}
IN_LANDLOCK: dict[str, dict[str, Any]] = {
    "kernel: other ids": IN_CHROOT["kernel: other ids"],
    "kernel: typing into a terminal": IN_CHROOT["kernel: typing into a terminal"],
    "kernel: signals to the host": IN_CHROOT["kernel: signals to the host"],
    # threads count as processes, and all are killed once they are too many
    "dos: threads": {"late": None},
    "dos: forks into new sessions": {
        "fault": "the kernel bounds no processes of root, and gives each session an equal share of "
        "the processors, so that the supervisor is too slow to end them",
        "harmful": True,
    },
    "dos: a full /dev/shm": {"late": None, **_CLOSED},
    "kernel: chroot and out again": _CLOSED,
    "kernel: PID 1 as the first victim of memory": _CLOSED,
    "kernel: /proc/sys": _CLOSED,
    "kernel: device nodes": _CLOSED,
    "kernel: capabilities": {"shows": ("Bounding set =\n", "Ambient set =\n")},
    "kernel: the owner's terminal": _CLOSED,
    "kernel: the machine's programs": _CLOSED,
    "network: interfaces": _CLOSED,
    "leak: another sandbox's abstract socket": {"shows": ("not supported",)},
    "leak: the machine's identity": _CLOSED,
    # the private directory has a directory of that name
    "leak: the interpreter's home": {"hides": ()},
    "file: forged overlay attributes": _CLOSED,
    # a full disk ends only the agent's processes
    "file: a disk that is full": {"probes": (("write", "/tmp/new"),)},
    # what lies at such a path is an ordinary file of the private directory
    "file: a socket": _OWN_FILE,
    "file: devices": _OWN_FILE,
    "file: links to devices": _OWN_FILE,
    "file: magic links": _OWN_FILE,
    "file: PID 1": _OWN_FILE,
    "file: the kernel's knobs": _OWN_FILE,
    "file: the machine's programs": _OWN_FILE,
}
"""Expectations that differ where sandboxes are private directories of this machine, for root."""


def all_cases() -> list[Case]:
    """Return every case in a fixed order, as expected on the back end under test. Names are
    unique."""
    cases = _all_cases()
    if not backend.is_container():
        return cases
    others = {"chroot": IN_CHROOT, "landlock": IN_LANDLOCK}
    differences = others.get(backend.chosen(), IN_CONTAINERS)
    return [replace(case, **differences.get(f"{case.kind}: {case.name}", {})) for case in cases]


def _all_cases() -> list[Case]:
    from hostile import dos_cases, file_cases, kernel_cases, reach_cases, shell_cases

    return [
        *dos_cases.CASES,
        *shell_cases.CASES,
        *kernel_cases.CASES,
        *reach_cases.CASES,
        *file_cases.CASES,
    ]
