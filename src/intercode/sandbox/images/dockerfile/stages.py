"""The stages of a Dockerfile, and which of them the image that is asked for needs."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from intercode.core.errors import DataError, UsageError
from intercode.core.registry import unknown_name_error
from intercode.sandbox.images.dockerfile.parser import Dockerfile, Instruction
from intercode.sandbox.images.dockerfile.substitution import expand, parse_pairs


@dataclass(frozen=True, slots=True)
class Stage:
    """From one FROM to the next: its base, its name (its number where it has none), its line."""

    base: str
    name: str
    number: int
    instructions: tuple[Instruction, ...]
    line: int = 1

    def dependencies(self) -> list[str]:
        """What other stages or images it takes files from, its base first."""
        flags = (flag for i in self.instructions for flag in i.flags if i.name in ("COPY", "ADD"))
        return [self.base, *(value for key, value in flags if key == "from")]


def declared_arguments(
    found: Instruction, given: Mapping[str, str], known: Mapping[str, str], escape: str
) -> dict[str, str | None]:
    """What an ARG line declares: each name with what was given for it, else its default."""
    out: dict[str, str | None] = {}
    words = parse_pairs(found.text, known, escape, "ARG") if "=" in found.text else {}
    for word in [w for w in found.text.split() if "=" not in w] if not words else []:
        out[word] = given.get(word)
    return {**out, **{name: given.get(name, value) for name, value in words.items()}}


def split_stages(
    script: Dockerfile, given: Mapping[str, str], file: str = "Dockerfile"
) -> tuple[list[Stage], dict[str, str]]:
    """The stages of a Dockerfile, and the values of the ARG lines before the first of them;
    ``file`` is what messages call it.

    Raises DataError for an instruction that stands before the first FROM.
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
                raise DataError(f"{file}:{found.line}: {found.name} stands before the first FROM")
            declared = declared_arguments(found, given, outer, script.escape)
            outer |= {name: value for name, value in declared.items() if value is not None}
        else:
            inside.append(found)
            last = stages[-1]
            stages[-1] = replace(last, instructions=tuple(inside))
    if not stages:
        raise DataError(
            f"{file}: there is no FROM: a Dockerfile begins with the image that it builds on"
        )
    return stages, outer


def _platform_args() -> dict[str, str]:
    """What Docker tells of the platform: a build here is for the machine that it runs on."""
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
        told = (
            "write FROM IMAGE [AS NAME]"
            if "$" not in found.text
            else "a variable in it has no value: declare it above, ARG NAME=value"
        )
        raise DataError(f"{file}:{found.line}: FROM {found.text}: {told}")
    return words[0], str(number)


def required_stages(stages: Sequence[Stage], target: str | None) -> list[Stage]:
    """The stages that the target (None: the last) is made of, itself at the end."""
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
