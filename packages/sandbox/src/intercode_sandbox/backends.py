"""Finds the back end that a name such as ``auto``, ``docker`` or ``file.py:function`` stands for,
and opens its sandboxes."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from intercode_sandbox.contract import BaseSandbox, SandboxSpec, mounts_error, refuse_rules
from intercode_sandbox.errors import SandboxUnavailableError, UsageError
from intercode_sandbox.registry import Registry, load_object, portable_reference, unknown_name_error
from intercode_sandbox.tiers.choice import choose_tier, require_linux, strongest_backend
from intercode_sandbox.tiers.tier_table import tier_named, tiers_of
from intercode_sandbox.types import Image
from intercode_sandbox.validation import check_text

if TYPE_CHECKING:
    from intercode_sandbox.images.progress import Progress

BACKENDS = Registry(
    "sandbox",
    {
        "namespace": "intercode_sandbox.namespace.open:open_strongest",
        "namespace/1": "intercode_sandbox.namespace.open:open_with_cgroups",
        "namespace/2": "intercode_sandbox.namespace.open:open_with_watchdog",
        "chroot": "intercode_sandbox.chroot.open:open_chroot",
        "landlock": "intercode_sandbox.landlock.open:open_landlock",
        "container": "intercode_sandbox.container.open:open_first_engine",
        "docker": "intercode_sandbox.container.open:open_docker",
        "podman": "intercode_sandbox.container.open:open_podman",
        "container/docker": "intercode_sandbox.container.open:open_docker",
        "container/podman": "intercode_sandbox.container.open:open_podman",
    },
    group="intercode.sandboxes",
)
"""Functions that open a sandbox, by the name of the back end.

>>> from intercode_sandbox import BACKENDS
>>> {"namespace", "chroot", "landlock", "docker", "podman"} <= set(BACKENDS)
True
"""

DESCRIPTIONS = {
    "namespace": "Runs code in Linux namespaces, at the strongest tier of the machine.",
    "namespace/1": "Runs code in Linux namespaces with a control group.",
    "namespace/2": "Runs code in Linux namespaces without a control group.",
    "chroot": "Runs code below a changed root directory, as root of a container.",
    "landlock": "Runs code in a directory of the machine, without root: for no attacker.",
    "container": "Runs code in a container of the first engine that answers.",
    "docker": "Runs code in a container of Docker.",
    "podman": "Runs code in a container of Podman.",
    "container/docker": "Runs code in a container of Docker, like `docker`.",
    "container/podman": "Runs code in a container of Podman, like `podman`.",
}
"""What each back end of this package does, for lists of them."""

ENVIRONMENT_VARIABLE = "INTERCODE_SANDBOX"
"""Environment variable that names the back end which ``auto`` stands for."""

_ADDRESSED: dict[str, str] = {"remote": "intercode_sandbox.remote:backend_at"}
"""Back ends that are named with an address, ``SCHEME:ADDRESS``: for each scheme, the reference of a
function that returns the Backend for an address. They work on every operating system."""


@dataclass(frozen=True, slots=True)
class Backend:
    """A way to open sandboxes.

    ``open``: opens a sandbox with a specification and with a copy of the files in a directory, if
    one is given. ``find_tier``: returns the isolation tier of these sandboxes. Both raise
    SandboxError. ``resolve_image``: returns the image that a name stands for; None for the images
    of this machine. ``find_architecture``: returns that of the machine with the sandboxes.
    ``attach``: returns the sandbox that was detached with an id; None if none can be.
    """

    name: str
    open: Callable[[SandboxSpec, Path | None], BaseSandbox]
    find_tier: Callable[[], str]
    resolve_image: Callable[[str], Image] | None = None
    find_architecture: Callable[[], str] = platform.machine
    attach: Callable[[str], BaseSandbox] | None = None


def find_backend(backend: str = "auto") -> Backend:
    """Return the back end that a name stands for; see ``open_sandbox``.

    Raises UnknownNameError for an unknown name, SandboxUnavailableError if ``auto`` finds no back
    end that works, or if the back end needs another operating system.
    """
    check_backend(backend)
    name = _named(backend) or strongest_backend()
    scheme, colon, address = name.partition(":")
    if colon and scheme in _ADDRESSED:
        found: Backend = load_object(_ADDRESSED[scheme])(address)
        return found
    if ":" in name:  # a reference, see Registry.load
        return Backend(name, _opener(name), lambda: portable_reference(name))
    require_linux()
    return Backend(name, _opener(name), lambda: _find_tier(name))


def _find_tier(name: str) -> str:
    tiers = tiers_of(name)
    if len(tiers) > 1:
        return str(load_object(tiers[0].strongest)())
    return tiers[0].name if tiers else name


def check_backend(backend: str) -> None:
    """Raise UnknownNameError for a name that stands for no back end. Nothing is opened."""
    check_text("a back end", backend, "namespace")
    name = _named(backend)
    if name and ":" not in name and name not in BACKENDS:
        schemes = [f"{scheme}:ADDRESS" for scheme in _ADDRESSED]
        raise unknown_name_error("back end", name, ["auto", *BACKENDS, *schemes])


def check_image(spec: str, backend: str = "auto") -> None:
    """Raise UsageError for an image that ``resolve_image`` would refuse for its form, or because
    what it names does not exist on this machine. A server of sandboxes has images of its own."""
    check_text("an image", spec, "recipe:python")
    check_backend(backend)
    if _named(backend).partition(":")[0] not in _ADDRESSED:
        load_object("intercode_sandbox.images.build.on_demand:check_spec")(spec)


def _named(backend: str) -> str:
    """Return the back end that the user names; empty for the strongest one that works."""
    return os.environ.get(ENVIRONMENT_VARIABLE, "") if backend == "auto" else backend


def _opener(name: str) -> Callable[[SandboxSpec, Path | None], BaseSandbox]:
    """Return a function that opens sandboxes of a registered back end or of a reference."""

    def open_with_files(spec: SandboxSpec, files: Path | None) -> BaseSandbox:
        make = BACKENDS.load(name)
        sandbox: BaseSandbox = make(spec) if files is None else make(spec, files)
        return sandbox

    return open_with_files


def open_sandbox(
    spec: SandboxSpec, backend: str = "auto", files: Path | None = None
) -> BaseSandbox:
    """Open a new sandbox.

    Args:
        spec: The specification.
        backend: A back end such as ``namespace``, a back end with its isolation tier such as
            ``namespace/1``, ``remote:URL`` for a server of sandboxes, a reference such as
            ``file.py:function`` to a back end of your own, or ``auto``: the back end that the
            environment variable INTERCODE_SANDBOX names, else that of the strongest isolation tier
            that works.
        files: A directory in the format of ``BaseSandbox.save``; the sandbox starts with a copy of
            these files (None: with those of the image).

    Raises:
        UnknownNameError: There is no such back end.
        SandboxUnavailableError: This machine or back end cannot provide what ``spec`` asks for.
        SandboxError: The sandbox cannot be created.
    """
    sandbox = find_backend(backend).open(spec, files)
    if spec.users and "users" not in sandbox.capabilities:
        sandbox.close()
        raise SandboxUnavailableError(
            f"a sandbox of the tier {sandbox.tier} has one user, root: use the back end namespace, "
            "or leave out `users`"
        )
    if spec.mounts and "mounts" not in sandbox.capabilities:
        sandbox.close()
        raise mounts_error(sandbox.tier)
    if "rules" not in sandbox.capabilities:
        try:
            refuse_rules(spec, sandbox.tier)
        except SandboxUnavailableError:
            sandbox.close()
            raise
    return sandbox


def attach_sandbox(identifier: str, backend: str) -> BaseSandbox:
    """Return the sandbox that was detached with this id, which the caller then owns. Raises
    UsageError for a back end that has none, SandboxLostError if it has ended."""
    check_text("the id of a sandbox", identifier, "7f3a0c51")
    attach = find_backend(backend).attach
    if attach is None:
        raise UsageError(f"no sandbox of the back end {backend!r} can be detached: use remote:URL")
    return attach(identifier)


def open_with_users(spec: SandboxSpec, backend: str = "auto") -> BaseSandbox:
    """Open a sandbox as ``open_sandbox`` does, with users besides root where the back end has them
    on this machine."""
    return open_sandbox(replace(spec, users=has_users(backend)), backend)


def has_users(backend: str = "auto") -> bool:
    """Return whether the sandboxes of a back end can have users besides root on this machine."""
    if tier_named(tier_of(backend)).users:
        with suppress(SandboxUnavailableError):  # this user has no ids for them
            open_sandbox(SandboxSpec(Image("host", ""), users=True), backend).close()
            return True
    return False


def tier_of(backend: str = "auto") -> str:
    """Return the isolation tier of the sandboxes that ``open_sandbox`` creates for a back end.

    Args:
        backend: The back end, as in ``open_sandbox``.

    Raises:
        UnknownNameError: There is no such back end.
        SandboxError: This machine cannot run it.

    >>> from intercode_sandbox import Sandbox, tier_of
    >>> with Sandbox("host") as sandbox:
    ...     sandbox.tier == tier_of()
    True
    """
    return find_backend(backend).find_tier()


def architecture_of(backend: str = "auto") -> str:
    """Return the processor architecture of the machine that has the sandboxes, such as x86_64.

    Args:
        backend: The back end, as in ``open_sandbox``.

    >>> from intercode_sandbox import architecture_of
    >>> architecture_of() in ("x86_64", "aarch64")
    True
    """
    name = _named(backend)
    is_addressed = name.partition(":")[0] in _ADDRESSED
    return find_backend(name).find_architecture() if is_addressed else platform.machine()


def resolve_image(spec: str, backend: str = "auto", progress: Progress | None = None) -> Image:
    """Return an image for sandboxes of a back end; built first if necessary.

    Args:
        spec: The name of the image, in a form of docs/images.md.
        backend: The back end, as in ``open_sandbox``; a server of sandboxes has images of its own.
        progress: Receives lines about slow steps (None: nobody does).

    Raises:
        UsageError: The name has another form, or there is no such image.
        DataError: An archive is broken or hostile, or a Dockerfile fails.
        InfrastructureError: A registry does not answer.

    >>> from intercode_sandbox import SandboxSpec, open_sandbox, resolve_image
    >>> with open_sandbox(SandboxSpec(resolve_image("host"))) as sandbox:
    ...     sandbox.spec.image.name
    'host'
    """
    check_text("an image", spec, "recipe:python")
    check_text("a back end", backend, "namespace")
    name = _named(backend)
    if name.partition(":")[0] in _ADDRESSED:
        resolve_there = find_backend(name).resolve_image
        if resolve_there is not None:
            return resolve_there(spec)
    # by name, because that module opens sandboxes
    image: Image = load_object("intercode_sandbox.images.build.on_demand:resolve_or_build")(
        spec, progress
    )
    return image


def describe_choice(backend: str = "auto") -> str:
    """Return what ``auto`` stands for, with why it is not a stronger tier, as one line.

    Args:
        backend: The back end, as in ``open_sandbox``; the line is empty unless it is ``auto``.

    Raises:
        SandboxUnavailableError: No sandbox works on this machine.

    >>> from intercode_sandbox import describe_choice, tier_of
    >>> describe_choice().startswith(tier_of())
    True
    """
    if backend != "auto":
        return ""
    if name := os.environ.get(ENVIRONMENT_VARIABLE):
        return f"{tier_of(name)} ({ENVIRONMENT_VARIABLE}={name})"
    return choose_tier().describe()
