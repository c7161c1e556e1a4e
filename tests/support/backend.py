"""The back end of the sandboxes in this test run: ``pytest --backend NAME``.

It is stored in the environment variable that defines ``auto``, so that environments and the
processes that tests start use the same back end. If it is unset, it is the namespace back end.
"""

from __future__ import annotations

import os
import re
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

NAMES = ("namespace", "docker", "podman", "chroot")
_VARIABLE = "INTERCODE_SANDBOX"


def choose(name: str) -> None:
    """Use that back end for all sandboxes of this process and of its children."""
    if name == "namespace":
        os.environ.pop(_VARIABLE, None)
    else:
        os.environ[_VARIABLE] = name


def chosen() -> str:
    """Return the name of the back end."""
    return os.environ.get(_VARIABLE, "namespace")


def is_container() -> bool:
    """Return whether sandboxes are containers of an engine, or like those: they have no mounts of
    their own, and process numbers continue."""
    return chosen() != "namespace"


def is_chroot() -> bool:
    """Return whether sandboxes lie below a changed root directory, and have no /proc."""
    return chosen() == "chroot"


def not_in_chroot(why: str) -> pytest.MarkDecorator:
    """Mark tests of what such sandboxes cannot have. With that back end they are deselected."""
    import pytest  # not at the top: hostile cases also run where it is not installed

    return pytest.mark.not_in_chroot(why)


def tiers() -> tuple[str, ...]:
    """Return the isolation tiers of the back end, each for ``open_sandbox``."""
    if is_chroot():
        return ("chroot",)
    return (f"container/{chosen()}",) if is_container() else ("namespace/1", "namespace/2")


def containers_of(owner: int, engine: str = "") -> list[str]:
    """Return the containers of a process in an engine, by default the selected one."""
    found = subprocess.run(
        [engine or chosen(), "ps", "--all", "--format={{.ID}} {{.Labels}}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    # the label formats of Docker and Podman
    label = re.compile(rf"\bintercode\.owner[=:]{owner}\.")
    return [line.split()[0] for line in found.stdout.splitlines() if label.search(line)]


def guards_of(owner: int) -> list[int]:
    """Return the live guards of a process's sandboxes below a changed root directory."""
    found = []
    for child in Path(f"/proc/{owner}/task/{owner}/children").read_text().split():
        with suppress(OSError):
            state = Path(f"/proc/{child}/stat").read_text()
            if "(intercode)" in state and ") Z " not in state:
                found.append(int(child))
    return found


def some(many: int) -> int:
    """Return how many sandboxes a test of many should open; fewer with an engine, which takes some
    hundred times longer."""
    return max(2, many // 10) if is_container() else many
