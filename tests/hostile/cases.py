"""Defines hostile cases and lists all of them. The other ``*_cases.py`` hold them by class."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any, Literal

from support import back_end

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


def all_cases() -> list[Case]:
    """Return every case in a fixed order, as expected on the back end under test. Names are
    unique."""
    cases = _all_cases()
    if not back_end.is_container():
        return cases
    differences = IN_CHROOT if back_end.is_chroot() else IN_CONTAINERS
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
