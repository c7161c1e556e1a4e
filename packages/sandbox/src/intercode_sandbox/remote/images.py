"""Resolves images and layers at a server of remote sandboxes, and sends it those that it lacks."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from intercode_sandbox.contract import BaseSandbox, Limits, SandboxSpec, mounts_error, refuse_rules
from intercode_sandbox.errors import SandboxError, UsageError
from intercode_sandbox.images.build.capture import layer_key
from intercode_sandbox.images.build.steps import steps_directory
from intercode_sandbox.images.cache.in_use import READ_ONLY_ERRNOS
from intercode_sandbox.images.cache.trees import file_lock
from intercode_sandbox.overlay_format import write_layer
from intercode_sandbox.remote.client import RemoteSandbox
from intercode_sandbox.remote.connection import BUILD_SECONDS, Connection, connect
from intercode_sandbox.remote.files import pack_files
from intercode_sandbox.remote.protocol import (
    ProtocolError,
    list_value,
    object_value,
    parse_spec,
    spec_values,
    string_values,
    text_value,
)
from intercode_sandbox.remote.references import NOWHERE, RemoteImage, RemoteLayer
from intercode_sandbox.types import Layer, Network

_MAX_DIGEST = 200  # characters


def resolve_image(name: str, url: str) -> RemoteImage:
    """Return an image of the server, which builds the recipe if it has to.

    Raises UsageError for an image that the server does not have or does not give away.
    """
    answer, _ = connect(url).request("image", name=name, seconds=BUILD_SECONDS)
    try:
        return _parse_image(name, answer, url)
    except ProtocolError as e:
        raise SandboxError(f"{url} sent an invalid description of the image {name}: {e}") from e


def _parse_image(name: str, values: dict[str, Any], url: str) -> RemoteImage:
    """Return an image from what ``image_values`` returned at the server. Raises ProtocolError."""
    return RemoteImage(
        name=name,
        digest=text_value(values.get("digest"))[:_MAX_DIGEST],
        env=string_values(values.get("env")),
        cwd=text_value(values.get("cwd")),
        url=url,
        entrypoint=tuple(map(text_value, list_value(values.get("entrypoint", [])))),
    )


def open_sandbox(spec: SandboxSpec, url: str, files: Path | None = None) -> RemoteSandbox:
    """Open a sandbox at a server. Its image is resolved there by name, and layers of this machine
    are sent first, once for each server. ``files``: a directory in the format of
    ``BaseSandbox.save``, of which it starts with a copy."""
    if spec.mounts:
        raise mounts_error("remote")
    refuse_rules(spec, "remote")
    if spec.upper is not None:
        raise UsageError("a remote sandbox cannot keep its files in a directory of this machine")
    connection = connect(url)
    number, values = connection.next_number(), _values(connection, spec)
    body = b"" if files is None else pack_files(files)
    try:
        opened, _ = connection.request(
            "open", body, sandbox=number, spec=values, with_files=files is not None
        )
    except BaseException:
        connection.notify("close", sandbox=number)  # it may be opened later
        raise
    return RemoteSandbox(connection, number, spec, opened)


def attach_sandbox(identifier: str, url: str) -> RemoteSandbox:
    """Return the sandbox that a client with the same token has detached with this id. Raises
    SandboxLostError if there is none."""
    connection = connect(url)
    number = connection.next_number()
    try:
        opened, _ = connection.request("attach", sandbox=number, detached=identifier)
        values = object_value(opened.get("spec"))
        name = text_value(values.get("image"))
        image = _parse_image(name, object_value(opened.get("image")), url)
        references = map(text_value, list_value(values.get("layers")))
        layers = tuple(RemoteLayer(NOWHERE, reference, reference) for reference in references)
        spec = parse_spec(values, image, layers)
        return RemoteSandbox(connection, number, spec, opened, identifier)
    except BaseException as e:
        connection.notify("detach", sandbox=number, detached=identifier)  # for the next attempt
        if isinstance(e, (ProtocolError, UsageError)):
            raise SandboxError(f"{url} sent an invalid description of a sandbox: {e}") from e
        raise


def _values(connection: Connection, spec: SandboxSpec) -> dict[str, Any]:
    image = spec.image
    if image.root is not None or image.layers:
        raise UsageError(
            f"the image {image.name} is on this machine: import it at {connection.url} with "
            "`intercode-sandbox image import`, and use it as image:NAME"
        )
    values = spec_values(spec, [layer_reference(connection, layer) for layer in spec.layers])
    if isinstance(image, RemoteImage):
        values["digest"] = image.digest
    return values


def layer_reference(connection: Connection, layer: Layer) -> str:
    """Return the server's reference to a layer. Sends its files if the server lacks them."""
    if isinstance(layer, RemoteLayer):
        return layer.reference
    known = connection.uploaded.get(layer.digest)
    if known is None:
        known = connection.uploaded[layer.digest] = _send_layer(connection, layer.root)
    return known


def _send_layer(connection: Connection, root: Path) -> str:
    with tempfile.TemporaryDirectory(prefix="intercode-layer-") as directory:
        archive = Path(directory, "layer.tar")
        with archive.open("wb") as out:
            write_layer(out, root)
        with archive.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        reference = f"archive:{digest}"
        answer, _ = connection.request("has_layer", reference=reference)
        if answer.get("value") is not True:
            connection.upload(digest, archive)
    return reference


def capture_layer(
    image: RemoteImage,
    key: str,
    layers: tuple[Layer, ...],
    work: Callable[[BaseSandbox], None],
    network: Network,
    limits: Limits,
) -> Layer:
    """Return the changes that ``work`` makes in a fresh sandbox of a server, as a layer there.

    The server keeps the first one for all clients with the same token. Other processes of this
    machine wait for it, if they can write to the cache.
    """
    reference = f"capture:{key}"
    with ExitStack() as held:
        try:
            held.enter_context(file_lock(steps_directory() / f"{layer_key(image.url, key)}.lock"))
        except OSError as e:
            if e.errno not in READ_ONLY_ERRNOS:
                raise
        connection = connect(image.url)
        answer, _ = connection.request("has_layer", reference=reference)
        if answer.get("value") is not True:
            spec = SandboxSpec(image, layers, network=network, limits=limits, appearance="docker")
            with open_sandbox(spec, image.url) as sandbox:
                work(sandbox)
                sandbox.keep_changes(reference)
    return RemoteLayer(NOWHERE, reference, reference)
