"""What each instruction of a Dockerfile does to the image that is being built."""

from __future__ import annotations

import stat
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from intercode.core.errors import DataError, UsageError
from intercode.core.registry import near
from intercode.core.types import Layer, Network
from intercode.sandbox.contract import STANDARD_PATH
from intercode.sandbox.images.build import commands, steps
from intercode.sandbox.images.build.base_images import Bases
from intercode.sandbox.images.build.commands import Command, Progress
from intercode.sandbox.images.build.layer_stack import Stack
from intercode.sandbox.images.build.steps import Ground
from intercode.sandbox.images.dockerfile.copy import Entry, Source, copied, directory, gathered
from intercode.sandbox.images.dockerfile.parser import Document, Instruction, without_documents
from intercode.sandbox.images.dockerfile.stages import arguments
from intercode.sandbox.images.dockerfile.substitution import document, expand, pairs, words

_SHELL = ("/bin/sh", "-c")
_SCRIPT = "intercode-script"
_NETWORKS: dict[str, Network] = {"none": "none", "host": "host", "default": "host", "": "host"}
_UNSEEN_MOUNTS = ("cache", "tmpfs")


@dataclass(frozen=True, slots=True)
class Built:
    """A stage as far as it is built. ``args`` are what ARG lines declared; ``notes`` instructions
    that are told and have no effect."""

    ground: Ground
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = "/"
    args: Mapping[str, str] = field(default_factory=dict)
    shell: tuple[str, ...] = _SHELL
    notes: tuple[str, ...] = ()

    def begun_on(self) -> Built:
        """A stage that begins on this one."""
        return replace(self, args={})

    @property
    def values(self) -> dict[str, str]:
        """What variables in instructions stand for."""
        return {"PATH": STANDARD_PATH, **self.args, **self.env}

    def with_layer(self, layer: Layer) -> Built:
        """After a step."""
        return replace(self, ground=self.ground.above(layer))


@dataclass(frozen=True)
class Work:
    """What all stages have in common. ``given`` are --build-arg, ``outer`` the ARG lines before the
    first FROM, ``done`` the stages by name and number, ``named`` all names that stages have."""

    context: Stack
    ignored: Callable[[str], bool]
    bases: Bases
    escape: str
    given: Mapping[str, str]
    outer: Mapping[str, str]
    done: Mapping[str, Built]
    progress: Progress
    named: tuple[str, ...] = ()

    def handler(self, found: Instruction) -> Callable[[Built, Instruction], Built]:
        """What does an instruction."""
        special: dict[str, Callable[[Built, Instruction], Built]] = {
            "RUN": self._run, "COPY": self._copy, "ADD": self._copy, "ENV": self._env,
            "ARG": self._arg, "WORKDIR": self._workdir, "SHELL": self._shell,
        }  # fmt: skip
        return special.get(found.name, self._note)

    def _note(self, built: Built, found: Instruction) -> Built:
        if found.name == "ONBUILD":
            raise DataError("ONBUILD is not known here: write what it says where it is to be done")
        return replace(built, notes=(*built.notes, f"{found.name} {found.text}"))

    def _env(self, built: Built, found: Instruction) -> Built:
        new = pairs(found.text, built.values, self.escape, "ENV")
        return replace(built, env={**built.env, **new})

    def _arg(self, built: Built, found: Instruction) -> Built:
        declared = arguments(found, self.given, built.values, self.escape)
        values = {name: self.outer.get(name) if v is None else v for name, v in declared.items()}
        known = {name: value for name, value in values.items() if value is not None}
        return replace(built, args={**built.args, **known})

    def _shell(self, built: Built, found: Instruction) -> Built:
        listed = found.listed()
        if not listed:
            raise DataError(f'SHELL {found.text}: write a list, such as SHELL ["/bin/bash", "-c"]')
        return replace(built, shell=tuple(listed))

    def _workdir(self, built: Built, found: Instruction) -> Built:
        to = _joined(built.cwd, expand(found.text, built.values, self.escape))
        built = replace(built, cwd=to)
        there = built.ground.stack.find(built.ground.stack.resolve(to))
        if there and stat.S_ISDIR(there[1].st_mode):
            return built
        return built.with_layer(copied(built.ground, [directory(to)]))

    def _run(self, built: Built, found: Instruction) -> Built:
        network = _network(found)
        argv, files = _command(built, found)
        command = Command(
            f"RUN {found.text}", argv, {**built.args, **built.env}, built.cwd, network,
            several_ids=True, files=files, mirrors=self.bases.mirrors,
        )  # fmt: skip
        told = repr((argv, files, sorted(command.env.items()), built.cwd, network))
        name = steps.key("run", built.ground.key, told)
        fill = partial(_filled, command, built.ground, self.progress)
        return built.with_layer(steps.step(name, fill))

    def _copy(self, built: Built, found: Instruction) -> Built:
        chmod, source, unpacked = self._copy_flags(found, built)
        listed = found.listed()
        if listed is None:
            text = without_documents(found.text)
            listed = words(text, built.values, self.escape)
        else:
            listed = [expand(word, built.values, self.escape) for word in listed]
        *patterns, to = listed or [""]
        if not to or not (patterns or found.documents):
            raise DataError(f"{found.name} {found.text}: write {found.name} SOURCE… DESTINATION")
        for pattern in patterns:
            if found.name == "ADD" and ("://" in pattern or pattern.startswith("git@")):
                raise DataError(f"ADD {pattern}: fetch an address with RUN, or COPY a file")
        end = "/" if to.endswith(("/", "/.")) or to == "." else ""
        to = _joined(built.cwd, to).rstrip("/") + end or "/"
        entries = [
            _written(text, to, built, chmod, len(found.documents) + len(patterns) > 1, self.escape)
            for text in found.documents
        ]
        if patterns:
            entries += gathered(
                source, patterns, to, built.ground, chmod=chmod, unpacked=unpacked
            )  # fmt: skip
        return built.with_layer(copied(built.ground, entries))

    def _copy_flags(self, found: Instruction, built: Built) -> tuple[int | None, Source, bool]:
        chmod, source = None, Source(self.context, "the context", self.ignored)
        unpacked = found.name == "ADD"
        for name, text in found.flags:
            value = expand(text, built.values, self.escape)
            if name == "from" and found.name == "COPY":
                source = Source(self._tree(value), value)
            elif name == "chmod":
                if not value.isdigit() or not 0 <= int(value, 8) <= 0o7777:
                    raise DataError(f"--chmod={value}: write an octal number such as 0755")
                chmod = int(value, 8) & 0o1777
            elif name == "unpack":
                unpacked = value.lower() != "false"
            elif name not in ("chown", "link", "checksum"):
                raise DataError(f"{found.name} --{name} is not known here; leave it out")
        return chmod, source, unpacked

    def _tree(self, name: str) -> Stack:
        """What COPY --from takes files of: a stage, or an image."""
        if former := self.done.get(name.lower()):
            return former.ground.stack
        try:
            return Ground(self.bases.image(name, "COPY --from")).stack
        except UsageError as e:
            hint = near(name.lower(), self.named)
            there = f"stages: {', '.join(self.named)}" if self.named else "no stage has a name"
            raise UsageError(f"no stage above is called {name!r}; {hint}({there}). {e}") from e


def _joined(cwd: str, path: str) -> str:
    """An absolute path without ``.``; ``..`` goes up."""
    parts: list[str] = []
    for part in (path if path.startswith("/") else f"{cwd}/{path}").split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


def _network(found: Instruction) -> Network:
    """The network that a RUN asks for. Raises DataError for flags that cannot be done here."""
    network: Network = "host"
    for name, value in found.flags:
        if name == "network" and value in _NETWORKS:
            network = _NETWORKS[value]
        elif name == "mount" and any(f"type={kind}" in value for kind in _UNSEEN_MOUNTS):
            continue  # what it keeps stays in the image
        elif name == "mount":
            raise DataError(f"RUN --mount={value} is not known here: COPY what it shows")
        else:
            raise DataError(f"RUN --{name}={value} is not known here")
    return network


def _command(built: Built, found: Instruction) -> tuple[list[str], dict[str, str]]:
    """The program of a RUN with its arguments, and the files that it needs in /dev/shm."""
    if (listed := found.listed()) is not None:
        if not listed:
            raise DataError("RUN []: there is no program")
        return listed, {}
    if not found.documents:
        return [*built.shell, found.text], {}
    first = found.documents[0]
    if not without_documents(found.text):
        if first.text.startswith("#!"):
            program = first.text.partition("\n")[0][2:].split(None, 1)
            return [*program, f"/dev/shm/{_SCRIPT}"], {_SCRIPT: first.text}
        return [*built.shell, first.text], {}
    bodies = "".join(f"{each.text}{each.name}\n" for each in found.documents)
    return [*built.shell, f"{found.text}\n{bodies}"], {}


def _filled(command: Command, ground: Ground, progress: Progress, home: Path) -> None:
    commands.run(command, ground, home, progress)


def _written(
    text: Document, to: str, built: Built, chmod: int | None, several: bool, escape: str
) -> Entry:
    """What a here-document of COPY becomes."""
    content = text.text if text.plain else document(text.text, built.values, escape)
    at = f"{to.rstrip('/')}/{text.name}" if several or to.endswith("/") else to
    mode = stat.S_IFREG | (chmod or 0o644)
    return Entry(at, content.encode("utf-8", "surrogateescape"), mode, time.time_ns())
