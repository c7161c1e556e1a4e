"""Applies the instructions of a Dockerfile to the stage that is being built."""

from __future__ import annotations

import stat
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from intercode_sandbox.contract import STANDARD_PATH
from intercode_sandbox.errors import DataError, UsageError
from intercode_sandbox.images.build import commands, steps
from intercode_sandbox.images.build.base_images import BaseImageResolver
from intercode_sandbox.images.build.commands import BuildCommand
from intercode_sandbox.images.build.layer_stack import LayerStack
from intercode_sandbox.images.build.steps import BuildBase
from intercode_sandbox.images.dockerfile.copy import (
    CopyEntry,
    CopySource,
    collect_entries,
    copy_layer,
    empty_directory,
)
from intercode_sandbox.images.dockerfile.parser import HereDocument, Instruction, strip_documents
from intercode_sandbox.images.dockerfile.stages import declared_arguments
from intercode_sandbox.images.dockerfile.substitution import (
    expand,
    expand_document,
    parse_pairs,
    split_words,
)
from intercode_sandbox.images.progress import Progress
from intercode_sandbox.registry import suggest_name
from intercode_sandbox.types import Layer, Network

_SHELL = ("/bin/sh", "-c")
_SCRIPT = "intercode-script"
_NETWORKS: dict[str, Network] = {"none": "none", "host": "host", "default": "host", "": "host"}
_IGNORED_MOUNTS = ("cache", "tmpfs")


@dataclass(frozen=True, slots=True)
class StageState:
    """The state of a stage during the build.

    ``base`` has the layers so far. ``args`` are the variables of ARG instructions. ``notes`` are
    instructions that have no effect here and are only recorded.
    """

    base: BuildBase
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = "/"
    args: Mapping[str, str] = field(default_factory=dict)
    shell: tuple[str, ...] = _SHELL
    notes: tuple[str, ...] = ()
    entrypoint: tuple[str, ...] = ()

    def derive(self) -> StageState:
        """Return the initial state of a stage FROM this one."""
        return replace(self, args={})

    @property
    def variables(self) -> dict[str, str]:
        """The values of variables in instructions."""
        return {"PATH": STANDARD_PATH, **self.args, **self.env}

    def with_layer(self, layer: Layer) -> StageState:
        """Return the state after a step."""
        return replace(self, base=self.base.with_layer(layer))


@dataclass(frozen=True)
class BuildContext:
    """State that the stages of a build share.

    ``build_args`` are the values of --build-arg, ``global_args`` those of ARG before the first
    FROM, ``built_stages`` the finished stages by name and number, ``stage_names`` all names.
    """

    context: LayerStack
    is_ignored: Callable[[str], bool]
    bases: BaseImageResolver
    escape: str
    build_args: Mapping[str, str]
    global_args: Mapping[str, str]
    built_stages: Mapping[str, StageState]
    progress: Progress
    stage_names: tuple[str, ...] = ()

    def handler(self, found: Instruction) -> Callable[[StageState, Instruction], StageState]:
        """Return the method that applies an instruction."""
        special: dict[str, Callable[[StageState, Instruction], StageState]] = {
            "RUN": self._run,
            "COPY": self._copy,
            "ADD": self._copy,
            "ENV": self._env,
            "ARG": self._arg,
            "WORKDIR": self._workdir,
            "SHELL": self._shell,
            "ENTRYPOINT": self._entrypoint,
        }
        return special.get(found.name, self._record_note)

    def _record_note(self, built: StageState, found: Instruction) -> StageState:
        if found.name == "ONBUILD":
            raise DataError(
                "ONBUILD is not supported: write its instruction into the Dockerfiles that need it"
            )
        return replace(built, notes=(*built.notes, f"{found.name} {found.text}"))

    def _env(self, built: StageState, found: Instruction) -> StageState:
        new = parse_pairs(found.text, built.variables, self.escape, "ENV")
        return replace(built, env={**built.env, **new})

    def _arg(self, built: StageState, found: Instruction) -> StageState:
        declared = declared_arguments(found, self.build_args, built.variables, self.escape)
        values = {
            name: self.global_args.get(name) if v is None else v for name, v in declared.items()
        }
        known = {name: value for name, value in values.items() if value is not None}
        return replace(built, args={**built.args, **known})

    def _shell(self, built: StageState, found: Instruction) -> StageState:
        listed = found.exec_form()
        if not listed:
            raise DataError(f'SHELL {found.text}: write a list, such as SHELL ["/bin/bash", "-c"]')
        return replace(built, shell=tuple(listed))

    def _entrypoint(self, built: StageState, found: Instruction) -> StageState:
        listed = found.exec_form()
        words = (*built.shell, found.text) if listed is None else tuple(listed)
        return replace(built, entrypoint=words)

    def _workdir(self, built: StageState, found: Instruction) -> StageState:
        to = _join_path(built.cwd, expand(found.text, built.variables, self.escape))
        built = replace(built, cwd=to)
        existing = built.base.stack.find(built.base.stack.resolve(to))
        if existing and stat.S_ISDIR(existing[1].st_mode):
            return built
        return built.with_layer(copy_layer(built.base, [empty_directory(to)]))

    def _run(self, built: StageState, found: Instruction) -> StageState:
        network = _network_flag(found)
        argv, files = _run_command(built, found)
        command = BuildCommand(
            f"RUN {found.text}",
            argv,
            {**built.args, **built.env},
            built.cwd,
            network,
            multi_uid=True,
            files=files,
            mirrors=self.bases.mirrors,
        )
        identity = repr((argv, files, sorted(command.env.items()), built.cwd, network))
        name = steps.step_key("run", built.base.cache_key, identity)
        fill = partial(_run_step, command, built.base, self.progress)
        return built.with_layer(steps.cached_step(name, fill))

    def _copy(self, built: StageState, found: Instruction) -> StageState:
        chmod, source, unpacked = self._copy_flags(found, built)
        listed = found.exec_form()
        if listed is None:
            text = strip_documents(found.text)
            listed = split_words(text, built.variables, self.escape)
        else:
            listed = [expand(word, built.variables, self.escape) for word in listed]
        *patterns, to = listed or [""]
        if not to or not (patterns or found.documents):
            raise DataError(f"{found.name} {found.text}: write {found.name} SOURCE… DESTINATION")
        for pattern in patterns:
            if found.name == "ADD" and ("://" in pattern or pattern.startswith("git@")):
                raise DataError(
                    f"ADD {pattern}: URLs are not supported; fetch it with RUN, or COPY a file"
                )
        end = "/" if to.endswith(("/", "/.")) or to == "." else ""
        to = _join_path(built.cwd, to).rstrip("/") + end or "/"
        entries = [
            _document_entry(
                text, to, built, chmod, len(found.documents) + len(patterns) > 1, self.escape
            )
            for text in found.documents
        ]
        if patterns:
            entries += collect_entries(
                source, patterns, to, built.base, chmod=chmod, unpack_archives=unpacked
            )
        return built.with_layer(copy_layer(built.base, entries))

    def _copy_flags(
        self, found: Instruction, built: StageState
    ) -> tuple[int | None, CopySource, bool]:
        chmod, source = None, CopySource(self.context, "the context", self.is_ignored)
        unpacked = found.name == "ADD"
        for name, text in found.flags:
            value = expand(text, built.variables, self.escape)
            if name == "from" and found.name == "COPY":
                source = CopySource(self._source_tree(value), value, keeps_programs=True)
            elif name == "chmod":
                if not value.isdigit() or not 0 <= int(value, 8) <= 0o7777:
                    raise DataError(f"--chmod={value}: write an octal number such as 0755")
                chmod = int(value, 8) & ~stat.S_ISGID
            elif name == "unpack":
                unpacked = value.lower() != "false"
            elif name not in ("chown", "link", "checksum"):
                raise DataError(f"{found.name} --{name} is not supported; remove it")
        return chmod, source, unpacked

    def _source_tree(self, name: str) -> LayerStack:
        """Return the files of the stage or image that COPY --from names."""
        if former := self.built_stages.get(name.lower()):
            return former.base.stack
        try:
            return BuildBase(self.bases.resolve_base(name, "COPY --from")).stack
        except UsageError as e:
            hint = suggest_name(name.lower(), self.stage_names)
            known = (
                f"stages: {', '.join(self.stage_names)}"
                if self.stage_names
                else "no stage has a name"
            )
            raise UsageError(f"no earlier stage is called {name!r}; {hint}({known}). {e}") from e


def _join_path(cwd: str, path: str) -> str:
    """Return ``path`` relative to ``cwd`` as an absolute path, without ``.`` and ``..``."""
    parts: list[str] = []
    for part in (path if path.startswith("/") else f"{cwd}/{path}").split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


def _network_flag(found: Instruction) -> Network:
    """Return the network of a RUN instruction. Raises DataError for unsupported flags."""
    network: Network = "host"
    for name, value in found.flags:
        if name == "network" and value in _NETWORKS:
            network = _NETWORKS[value]
        elif name == "mount" and any(f"type={kind}" in value for kind in _IGNORED_MOUNTS):
            continue  # its files become part of the image
        elif name == "mount":
            raise DataError(f"RUN --mount={value} is not supported: COPY the files instead")
        else:
            raise DataError(f"RUN --{name}={value} is not supported")
    return network


def _run_command(built: StageState, found: Instruction) -> tuple[list[str], dict[str, str]]:
    """Return the command line of a RUN instruction, and the files that it needs in /dev/shm."""
    if (listed := found.exec_form()) is not None:
        if not listed:
            raise DataError("RUN []: there is no program")
        return listed, {}
    if not found.documents:
        return [*built.shell, found.text], {}
    first = found.documents[0]
    if not strip_documents(found.text):
        if first.text.startswith("#!"):
            program = first.text.partition("\n")[0][2:].split(None, 1)
            return [*program, f"/dev/shm/{_SCRIPT}"], {_SCRIPT: first.text}
        return [*built.shell, first.text], {}
    bodies = "".join(f"{each.text}{each.name}\n" for each in found.documents)
    return [*built.shell, f"{found.text}\n{bodies}"], {}


def _run_step(command: BuildCommand, base: BuildBase, progress: Progress, home: Path) -> None:
    commands.run_build_command(command, base, home, progress)


def _document_entry(
    text: HereDocument, to: str, built: StageState, chmod: int | None, several: bool, escape: str
) -> CopyEntry:
    """Return the entry for a here-document of COPY."""
    content = text.text if text.quoted else expand_document(text.text, built.variables, escape)
    at = f"{to.rstrip('/')}/{text.name}" if several or to.endswith("/") else to
    mode = stat.S_IFREG | (chmod or 0o644)
    return CopyEntry(at, content.encode("utf-8", "surrogateescape"), mode, time.time_ns())
