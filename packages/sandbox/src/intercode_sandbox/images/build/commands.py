"""Runs the commands of image builds in sandboxes and stores the files that they change."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from intercode_sandbox.contract import STANDARD_PATH, BaseSandbox, Limits, SandboxSpec
from intercode_sandbox.errors import DataError, UsageError
from intercode_sandbox.images.build import multi_uid
from intercode_sandbox.images.build.capture import capture_changes
from intercode_sandbox.images.build.steps import BuildBase
from intercode_sandbox.images.cache.set_user_id_trees import insert_programs
from intercode_sandbox.images.progress import Progress
from intercode_sandbox.images.recipes import apt_sources
from intercode_sandbox.lines import split_lines
from intercode_sandbox.supervisor import subordinate_ids
from intercode_sandbox.tiers.choice import choose_tier
from intercode_sandbox.types import ExecResult, Image, Network

_LIMITS = Limits(
    disk=64 << 30,
    inodes=4_000_000,
    processes=4096,
    file_size=64 << 30,
    address_space=256 << 30,
    memory=8 << 30,
)
_PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy", "all_proxy")
_APT, _APT_LIST = "intercode-apt.conf", "intercode-apt.list"
_ERROR_CHARACTERS = 1000
"""Characters of a failed command's output, before its last line, in the error message."""


@dataclass(frozen=True, slots=True)
class BuildCommand:
    """A program with its arguments.

    ``label`` names the command in messages. ``timeout`` is in seconds. ``multi_uid``: the command
    may need more than one user id, as apt does. ``files`` maps names of files in /dev/shm of the
    sandbox to their texts. ``mirrors``: see ``apt_sources.recipe_sources``.
    """

    label: str
    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str = "/"
    network: Network = "none"
    timeout: float = 3600.0
    multi_uid: bool = False
    files: Mapping[str, str] = field(default_factory=dict)
    mirrors: Sequence[str] = ()


def run_build_command(
    command: BuildCommand, base: BuildBase, home: Path, progress: Progress
) -> None:
    """Run a command as root and write its changes to ``home``/upper.

    Raises DataError with the last line of the output, and what came before it, if the command
    fails, SandboxError if no sandbox can be started.
    """
    several = command.multi_uid and base.image.root is not None and not _single_uid_reason()
    code, printed = (_run_with_many_uids if several else _run_in_sandbox)(
        command, base, home, progress
    )
    if code == 0:
        return
    hint = _failure_hint(printed, command, several, base.image)
    before, _, reason = printed.strip().rpartition("\n")
    if before := before[-_ERROR_CHARACTERS:].strip():
        reason += f"; it printed before that:\n{before}"
    raise DataError(f"{command.label} failed ({code}): {reason}{hint}")


def _single_uid_reason() -> str:
    """Return why commands have only one user id on this machine; empty if they may have several."""
    if not choose_tier().tier.users:
        return "namespaces do not work on this machine"
    return subordinate_ids.unavailable_reason()


def build_environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a build command: ``env``, defaults, and this machine's proxies."""
    proxies = {k: v for k, v in os.environ.items() if k.lower() in _PROXIES}
    return {"PATH": STANDARD_PATH, "HOME": "/root", **proxies, **env}


def _run_in_sandbox(
    command: BuildCommand, base: BuildBase, home: Path, progress: Progress
) -> tuple[int, str]:
    found: list[ExecResult] = []

    def work(sandbox: BaseSandbox) -> None:
        for name, text in command.files.items():
            sandbox.write(f"/dev/shm/{name}", text.encode("utf-8", "surrogateescape"), 0o755)
        env = build_environment(command.env)
        found.append(sandbox.run(command.argv, cwd=command.cwd, env=env, timeout=command.timeout))

    spec = SandboxSpec(base.image, base.layers, network=command.network, limits=_LIMITS)
    capture_changes(home, spec, work)
    done = found[0]
    for line in split_lines(done.output):
        progress(line)
    if done.timed_out:
        return 124, f"{done.output}\nended after {command.timeout:g} s"
    return (1 if done.exit_code is None else done.exit_code), done.output


def _run_with_many_uids(
    command: BuildCommand, base: BuildBase, home: Path, progress: Progress
) -> tuple[int, str]:
    env, files = build_environment(command.env), dict(command.files)
    if lines := apt_sources_list(base, command.mirrors):
        files[_APT_LIST] = lines
        settings = f'Dir::Etc::sourcelist "/dev/shm/{_APT_LIST}";\n'
        if command.mirrors:  # the signature of a past day's archive has expired
            settings += 'Acquire::Check-Valid-Until "false";\n'
        files[_APT] = settings
        env["APT_CONFIG"] = f"/dev/shm/{_APT}"
    return multi_uid.run_multi_uid(
        insert_programs(base.stack.trees),
        home,
        command.argv,
        env=env,
        cwd=command.cwd,
        files=files,
        timeout=command.timeout,
        progress=progress,
    )


def apt_sources_list(base: BuildBase, mirrors: Sequence[str] = ()) -> str:
    """Return the text of a sources.list for a Debian image that has none, such as a packaged one.

    It lists ``mirrors``, or the archives that this machine uses. It is empty if there are none, if
    the image has a list, or if it is not Debian.
    """
    stack = base.stack
    if stack.find("usr/bin/apt-get") is None:
        return ""
    folder = [name for name, _, _ in stack.walk("etc/apt/sources.list.d", depth=1)][1:]
    if folder or stack.read_text("etc/apt/sources.list").strip():
        return ""
    _, suite = apt_sources.parse_os_release(stack.read_text("etc/os-release"))
    try:
        return apt_sources.recipe_sources(suite, "", mirrors) if suite else ""
    except UsageError:
        return ""


def _failure_hint(printed: str, command: BuildCommand, several: bool, image: Image) -> str:
    """Return a hint for a failed command that may need several user ids or a writable system."""
    if image.root is None:
        installs = any(word in printed for word in ("dpkg", "Read-only file system"))
        if installs or "apt" in " ".join(command.argv):
            return (
                "\nthe image host has this machine's own programs, read-only: to install packages, "
                'write base = "bookworm" in a recipe, or another image than host after FROM'
            )
    elif command.multi_uid and not several:
        return (
            "\nthis ran with a single user id, with which apt, su and similar programs fail: "
            f'{_single_uid_reason()}; or name the packages in a recipe (base = "bookworm", '
            "packages = […]), or build with Docker or Podman: "
            "`intercode-sandbox image build --engine docker`"
        )
    return ""
