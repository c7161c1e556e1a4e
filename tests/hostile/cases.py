"""What a hostile case is, and all of them. The other ``*_cases.py`` hold them by class."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any, Literal

from support import back_end

Kind = Literal["dos", "shell", "framing", "kernel", "network", "leak", "file", "lifecycle"]
Probe = tuple[str, str]
"""What the owner does to the box afterwards, and where: ``read``, ``refused`` (a read that must
fail), ``denied`` (a write that must fail), ``write``, ``changes`` and ``clone``."""


LONG = bool(os.environ.get("INTERCODE_HOSTILE_LONG"))
"""Whether every case has the time and the room that an episode has (`make soak`)."""
LIMIT = 3.0 if LONG else 0.3
"""Seconds per action where a case names none."""


@dataclass(frozen=True, slots=True)
class Case:
    """Something that an agent may try, as data.

    ``actions`` are run one after another, each for at most ``limit`` seconds; ``@FILE@`` and the
    like in them stand for what is planted on the host (see ``planted.py``). ``shows`` must and
    ``hides`` may not be in what they print. ``late`` tells whether the last one must (True) or may
    not (False) run out of time. After ``reset`` cases the shell is usable once it was ended (its
    outputs are closed, say). After ``wrecked`` cases the agent has no shell any more by its own
    doing: it must be told, and a new box must work. ``fault`` is why the case fails today, which is
    ``sure`` where no race decides it.
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
    """An action that runs Python code in the box."""
    return f"python3 - <<'END-OF-PYTHON'\n{code}\nEND-OF-PYTHON"


IN_CONTAINERS: dict[str, dict[str, tuple[Any, ...]]] = {
    "chroot and out again": {"shows": ("not permitted",)},  # there root has no capability at all
    "a disk that is full": {"probes": (("read", "/etc/passwd"),)},  # its agent is bounded alone
    "mounts": {"hides": ("@FILE@", "@DIRECTORY@")},  # an engine's mounts name where things lie
}
"""What holds of a case in place of what is said of it, where boxes are containers."""


def all_cases() -> list[Case]:
    """Every case, in a fixed order, as it holds on the back end under test. The names differ."""
    cases = _all_cases()
    if back_end.is_container():
        return [replace(case, **IN_CONTAINERS.get(case.name, {})) for case in cases]
    return cases


def _all_cases() -> list[Case]:
    from hostile import dos_cases, file_cases, kernel_cases, reach_cases, shell_cases

    return [
        *dos_cases.CASES,
        *shell_cases.CASES,
        *kernel_cases.CASES,
        *reach_cases.CASES,
        *file_cases.CASES,
    ]
