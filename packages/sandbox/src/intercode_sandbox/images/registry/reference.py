"""References to images in registries, and whether a registry is used over HTTP."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from intercode_sandbox.errors import UsageError
from intercode_sandbox.http import is_loopback
from intercode_sandbox.images.registry_hosts import is_registry_host

HTTP_REGISTRIES_VARIABLE = "INTERCODE_REGISTRY_HTTP"
"""Environment variable: comma-separated registries (host or host:port) that may use plain HTTP."""

_NAME = re.compile(
    r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*"
)
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_DOCKER_HUB_HOSTS = ("docker.io", "index.docker.io", "registry-1.docker.io")
"""Names of Docker Hub; the last is the host of its registry."""


@dataclass(frozen=True, slots=True)
class Reference:
    """An image in a registry, identified by ``digest`` if given, else by ``tag``."""

    host: str
    name: str
    tag: str
    digest: str = ""

    @property
    def tag_or_digest(self) -> str:
        """The digest, or without one the tag."""
        return self.digest or self.tag

    def __str__(self) -> str:
        end = f"@{self.digest}" if self.digest else f":{self.tag}"
        return f"{self.host}/{self.name}{end}"


def parse_reference(text: str) -> Reference:
    """Parse ``host[:port]/name[:tag][@sha256:digest]``; the tag defaults to ``latest``.

    Raises UsageError for anything else.
    """
    host, slash, rest = text.partition("/")
    rest, _, digest = rest.partition("@")
    name, _, tag = rest.partition(":")
    if host in _DOCKER_HUB_HOSTS and "/" not in name:
        name = f"library/{name}"
    host = _DOCKER_HUB_HOSTS[-1] if host in _DOCKER_HUB_HOSTS else host
    good = slash and is_registry_host(host) and _NAME.fullmatch(name) and len(name) < 256
    if (
        not good
        or not _TAG.fullmatch(tag or "latest")
        or (digest and not _DIGEST.fullmatch(digest))
    ):
        raise UsageError(
            f"{text!r} is not a reference to an image in a registry; write "
            "registry:host[:port]/name[:tag] or registry:host[:port]/name@sha256:DIGEST "
            "(the host of Docker Hub is docker.io)"
        )
    return Reference(host, name, tag or "latest", digest)


def uses_http(host: str) -> bool:
    """Return whether a registry may use HTTP: it is on this machine or in the environment
    variable."""
    hosts = [one.strip() for one in os.environ.get(HTTP_REGISTRIES_VARIABLE, "").split(",")]
    bare = host.rpartition("]")[0].removeprefix("[") if "]" in host else host.partition(":")[0]
    return is_loopback(bare) or host in hosts
