"""Which back end gives the boxes in this run of the tests: ``pytest --back-end NAME``.

The environment variable that says what ``auto`` means carries it, so that environments and the
processes that tests start get boxes of the same kind. Unset, it is the namespace back end.
"""

from __future__ import annotations

import os
import re
import subprocess

NAMES = ("namespace", "docker", "podman")
_VARIABLE = "INTERCODE_SANDBOX"


def choose(name: str) -> None:
    """Have all boxes of this process, and of those that it starts, come from that back end."""
    if name == "namespace":
        os.environ.pop(_VARIABLE, None)
    else:
        os.environ[_VARIABLE] = name


def chosen() -> str:
    """The name of the back end."""
    return os.environ.get(_VARIABLE, "namespace")


def is_container() -> bool:
    """Whether a box is a container of an engine."""
    return chosen() != "namespace"


def tiers() -> tuple[str, ...]:
    """The kinds of boxes that it has, each for ``open_sandbox``."""
    return (f"container/{chosen()}",) if is_container() else ("namespace/1", "namespace/2")


def containers_of(owner: int, engine: str = "") -> list[str]:
    """The containers that an engine, if none is named the chosen one, has of a process."""
    found = subprocess.run(
        [engine or chosen(), "ps", "--all", "--format={{.ID}} {{.Labels}}"],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    label = re.compile(rf"\bintercode\.owner[=:]{owner}\.")  # docker's way and podman's
    return [line.split()[0] for line in found.stdout.splitlines() if label.search(line)]


def some(many: int) -> int:
    """How many boxes stand for many: an engine takes some hundred times longer to make one."""
    return max(2, many // 10) if is_container() else many
