"""Checks the values of a sandbox's specification, before any back end receives them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from intercode_sandbox.errors import UsageError
from intercode_sandbox.registry import unknown_name_error
from intercode_sandbox.sizes import format_size, parse_size
from intercode_sandbox.types import Network


def check_network(network: object) -> Network:
    """Return the network that a value names, with all its rules if it has some. Raises
    UnknownNameError for one that sandboxes cannot have, UsageError for a wrong rule."""
    if network in ("none", "host"):
        return str(network)
    if isinstance(network, str) and network.startswith("allow:"):
        from intercode_sandbox.network.rules import parse_rules  # most sandboxes have no rules

        return str(parse_rules(network))
    raise unknown_name_error("network", network, ["none", "host", "allow:HOST,..."])


def check_text(what: str, value: object, example: str) -> None:
    """Raise UsageError for a value that is no text."""
    if not isinstance(value, str):
        raise UsageError(f"{what} is a text such as {example!r}, not {value!r:.80}")


def check_texts(what: str, values: Iterable[object]) -> None:
    """Raise UsageError for a value that is no text: a sandbox would take it for an empty one."""
    for value in values:
        if not isinstance(value, str):
            raise UsageError(f"an {what} is a text, not {value!r}: use {str(value)!r}")


def check_variables(variables: object) -> None:
    """Raise UsageError for environment variables that no program would get as they are."""
    if not isinstance(variables, Mapping):
        raise UsageError(f"environment variables are a mapping such as {{'A': '1'}}: {variables!r}")
    check_texts("environment variable", variables.values())
    for name, value in variables.items():
        if not isinstance(name, str) or not name or "=" in name or "\0" in name + value:
            raise UsageError(
                f"the environment variable {name!r} with the value {value!r}: a name is a text "
                "without '=', and neither holds a NUL byte"
            )


_SYSTEM_MOUNTS = ("/proc", "/sys", "/dev")


def check_mounts(mounts: object) -> None:
    """Raise UsageError for directories at paths where a sandbox cannot show them."""
    if not isinstance(mounts, Mapping):
        raise UsageError(f"mounts are a mapping such as {{'/data': '/srv/data'}}: {mounts!r}")
    for target, source in mounts.items():
        path = absolute_path(target, "the path of a mount")
        if path != os.path.normpath(path) or path.startswith("//") or path == "/":
            raise UsageError(f"the path of a mount is below / and has no .., unlike {target!r}")
        if any(f"{path}/".startswith(f"{system}/") for system in _SYSTEM_MOUNTS):
            raise UsageError(f"nothing can be mounted at {path}, in a directory of the system")
        if not isinstance(source, str | os.PathLike):
            raise UsageError(f"a mount shows a directory of this machine, not {source!r}")


def check_timeout(timeout: object, what: str = "timeout", may_be_over: bool = False) -> None:
    """Raise UsageError for a time limit that is neither None nor a positive number of seconds that
    a float holds. ``may_be_over``: 0 and less are allowed, and mean not to wait."""
    if timeout is None:
        return
    if isinstance(timeout, int) and timeout > sys.float_info.max:
        raise UsageError(f"{what} is too large: give None for no limit")
    least = -sys.float_info.max if may_be_over else 0
    if not (isinstance(timeout, int | float) and timeout > least):
        wanted = "a number of seconds" if may_be_over else "more than 0 seconds"
        raise UsageError(f"{what} has to be {wanted}, or None for no limit, not {timeout!r}")


def absolute_path(path: object, what: str = "a path in a sandbox") -> str:
    """Return a path in a sandbox as a text. Raises UsageError unless it is absolute."""
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(text, str) or not text.startswith("/"):
        raise UsageError(f"{what} is absolute, unlike {path!r}")
    if "\0" in text:
        raise UsageError(f"{what} has no NUL byte, unlike {path!r}")
    return text


FRACTIONS = ("cpu_seconds", "idle_timeout", "cpus")
"""The limits that need not be whole numbers, and can be None."""


def check_limits_type(limits: Any) -> None:
    """Raise UsageError for another value than a ``Limits``."""
    if not is_dataclass(limits):
        raise UsageError(
            f"limits has to be Limits(...), such as Limits(memory=1 << 30), not {limits!r}"
        )


def check_limits(limits: Any) -> None:
    """Raise UsageError for a limit of ``Limits`` that is no number, or with which no sandbox would
    work."""
    for limit in fields(limits):
        if "least" not in limit.metadata:
            continue
        name, value = limit.name, getattr(limits, limit.name)
        least, most = limit.metadata["least"], limit.metadata["most"]
        is_fraction = name in FRACTIONS
        if is_fraction and value is None:
            continue
        is_number = type(value) in ((int, float) if is_fraction else (int,))
        if not is_number or not least <= value <= most:
            kind = "number" if is_fraction else "whole number"
            size = f" ({format_size(int(least))})" if least >= 1 << 10 else ""
            bound = f"at most {most}" if is_number and value > most else f"at least {least}{size}"
            raise UsageError(f"the limit {name} has to be a {kind} of {bound}, not {value!r}")


def read_limits(given: object, names: Sequence[str]) -> dict[str, int | float]:
    """Return limits by name from a mapping such as ``{"memory": "2g", "processes": 64}``, whose
    sizes are numbers of bytes or texts. ``names`` are those that it may set.

    Raises UnknownNameError for another name, UsageError for another value.
    """
    if not isinstance(given, Mapping):
        raise UsageError(f"limits is a mapping such as {{'memory': '2g'}}, not {given!r}")
    read: dict[str, int | float] = {}
    for name, value in given.items():
        if name not in names:
            error = unknown_name_error("limit", str(name), list(names))
            if name in ("time", "timeout"):
                error.args = (f"{error}; the seconds of an action are the setting timeout",)
            raise error
        is_fraction = name in FRACTIONS
        try:
            read_text = float if is_fraction else parse_size
            found = read_text(value) if isinstance(value, str) else value
        except (ValueError, UsageError):
            form = "number" if is_fraction else "whole number, or one with K, M or G"
            raise UsageError(f"the limit {name} is a {form}, unlike {value!r}") from None
        read[name] = found
    return read
