"""Splits a Dockerfile into stages, and selects those that a target needs."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from intercode_sandbox.errors import DataError, UsageError
from intercode_sandbox.images.dockerfile.parser import Dockerfile, Instruction
from intercode_sandbox.images.dockerfile.substitution import expand, parse_pairs
from intercode_sandbox.registry import unknown_name_error


@dataclass(frozen=True, slots=True)
class Stage:
    """The instructions from one FROM to the next: base, name (default: number), and line."""

    base: str
    name: str
    number: int
    instructions: tuple[Instruction, ...]
    line: int = 1

    def dependencies(self) -> list[str]:
        """Return the stages or images whose files this stage uses, its base first."""
        flags = (flag for i in self.instructions for flag in i.flags if i.name in ("COPY", "ADD"))
        return [self.base, *(value for key, value in flags if key == "from")]


def declared_arguments(
    found: Instruction, given: Mapping[str, str], known: Mapping[str, str], escape: str
) -> dict[str, str | None]:
    """Return the variables of an ARG instruction, with the given values or the defaults."""
    out: dict[str, str | None] = {}
    words = parse_pairs(found.text, known, escape, "ARG") if "=" in found.text else {}
    for word in [w for w in found.text.split() if "=" not in w] if not words else []:
        out[word] = given.get(word)
    return {**out, **{name: given.get(name, value) for name, value in words.items()}}


def split_stages(
    script: Dockerfile, given: Mapping[str, str], file: str = "Dockerfile"
) -> tuple[list[Stage], dict[str, str]]:
    """Return the stages of a Dockerfile, and the variables of ARG before the first stage.

    ``file`` is what messages call it. Raises DataError for another instruction before the first
    FROM.
    """
    outer = {
        **_platform_args(),
        **{name: given[name] for name in _platform_args() if name in given},
    }
    stages: list[Stage] = []
    inside: list[Instruction] = []
    for found in script.instructions:
        if found.name == "FROM":
            inside = []
            base, name = _parse_from(found, outer, script.escape, len(stages), file)
            stages.append(Stage(base, name, len(stages), (), found.line))
        elif not stages:
            if found.name != "ARG":
                raise DataError(f"{file}:{found.line}: {found.name} precedes the first FROM")
            declared = declared_arguments(found, given, outer, script.escape)
            outer |= {name: value for name, value in declared.items() if value is not None}
        else:
            inside.append(found)
            last = stages[-1]
            stages[-1] = replace(last, instructions=tuple(inside))
    if not stages:
        raise DataError(f"{file}: there is no FROM: a Dockerfile begins with its base image")
    return stages, outer


def _platform_args() -> dict[str, str]:
    """Return Docker's predefined platform arguments; builds are for this machine's platform."""
    arch = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    parts = {"PLATFORM": f"linux/{arch}", "OS": "linux", "ARCH": arch, "VARIANT": ""}
    return {f"{side}{name}": v for side in ("TARGET", "BUILD") for name, v in parts.items()}


def _parse_from(
    found: Instruction, values: Mapping[str, str], escape: str, number: int, file: str
) -> tuple[str, str]:
    words = [expand(word, values, escape) for word in found.text.split()]
    if len(words) == 3 and words[1].upper() == "AS":
        return words[0], words[2].lower()
    if len(words) != 1 or not words[0]:
        hint = (
            "write FROM IMAGE [AS NAME]"
            if "$" not in found.text
            else "a variable has no value: declare it before, with ARG NAME=value"
        )
        raise DataError(f"{file}:{found.line}: FROM {found.text}: {hint}")
    return words[0], str(number)


def required_stages(stages: Sequence[Stage], target: str | None) -> list[Stage]:
    """Return the stages that the target (default: the last) depends on, and the target, in
    order."""
    by_name = {stage.name: stage for stage in stages}
    by_name |= {str(stage.number): stage for stage in stages}
    if target is not None and target.lower() not in by_name:
        raise UsageError(str(unknown_name_error("stage", target, [stage.name for stage in stages])))
    last = stages[-1] if target is None else by_name[target.lower()]
    needed: set[int] = set()
    todo = [last]
    while todo:
        stage = todo.pop()
        needed.add(stage.number)
        for name in stage.dependencies():
            other = by_name.get(name.lower())
            if other and other.number < stage.number and other.number not in needed:
                todo.append(other)
    return [stage for stage in stages if stage.number in needed]
