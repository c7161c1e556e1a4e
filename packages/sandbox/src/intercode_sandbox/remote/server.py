"""The server of remote sandboxes: an HTTP application with a WebSocket for each client."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from contextlib import suppress

from aiohttp import WSCloseCode, web

from intercode_sandbox.errors import UsageError
from intercode_sandbox.images.cache.remove_tree import remove_tree
from intercode_sandbox.images.cache.staging import abandoned_directories, staging_directory
from intercode_sandbox.platforms.paths import cache_root
from intercode_sandbox.remote.access import Access
from intercode_sandbox.remote.bounds import DIGEST, Bounds, Client, Store, token_key
from intercode_sandbox.remote.connection import HEARTBEAT_SECONDS
from intercode_sandbox.remote.protocol import CHUNK, MAX_FRAME, PATH, text_for_clients
from intercode_sandbox.remote.session import ClientSession


class SandboxServer:
    """Opens sandboxes of the local back end ``backend`` for clients.

    ``accesses``: the rules of access, one for each token; what a client may use is counted for each
    token.
    """

    def __init__(
        self, accesses: Sequence[Access], bounds: Bounds | None = None, backend: str = "auto"
    ) -> None:
        self._accesses = [(access, Client(token_key(access.token))) for access in accesses]
        self._bounds, self._backend = bounds or Bounds(), backend
        self._store = Store(self._bounds)
        self._sockets: set[web.WebSocketResponse] = set()
        _remove_left_uploads()

    def application(self) -> web.Application:
        """Return the application for an HTTP server."""
        application = web.Application()
        application.router.add_get("/health", self._health)
        application.router.add_get(PATH, self._connect)
        application.router.add_put("/layers/{digest}", self._receive_layer)
        application.on_shutdown.append(self._shutdown)
        return application

    async def _health(self, _: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    def _client(self, request: web.Request) -> Client:
        """Return the client that sent a request. Raises the response that refuses it."""
        headers = {name.lower(): value for name, value in request.raw_headers}
        refusals = [access.refusal(headers) for access, _ in self._accesses]
        if None in refusals:
            return self._accesses[refusals.index(None)][1]
        status, text = next(r for r in refusals if r is not None)
        error = web.HTTPForbidden if status == 403 else web.HTTPUnauthorized
        raise error(text=text)

    async def _connect(self, request: web.Request) -> web.StreamResponse:
        client = self._client(request)
        if client.connections >= self._bounds.connections:
            raise web.HTTPServiceUnavailable(text="too many connections of this client")
        socket = web.WebSocketResponse(
            heartbeat=HEARTBEAT_SECONDS, max_msg_size=MAX_FRAME, compress=False
        )
        client.connections += 1
        self._sockets.add(socket)
        try:
            await socket.prepare(request)
            transport = request.transport
            assert transport is not None  # it is there until the response ends
            session = ClientSession(
                socket, client, self._bounds, self._store, self._backend, transport.abort
            )
            await session.run()
        finally:
            self._sockets.discard(socket)
            client.connections -= 1
        return socket

    async def _receive_layer(self, request: web.Request) -> web.Response:
        """Store the archive of a layer, whose SHA-256 is its name."""
        client, digest = self._client(request), request.match_info["digest"]
        if not DIGEST.fullmatch(digest):
            raise web.HTTPBadRequest(text="the name of a layer is the SHA-256 of its archive")
        with staging_directory() as directory:
            path, found = directory / "layer.tar", hashlib.sha256()
            with path.open("wb") as file:
                async for part in request.content.iter_chunked(CHUNK):
                    try:
                        client.charge(len(part), self._bounds)
                    except UsageError as e:
                        raise web.HTTPInsufficientStorage(text=str(e)) from e
                    found.update(part)
                    file.write(part)
            if found.hexdigest() != digest:
                raise web.HTTPBadRequest(text="the archive has another SHA-256 than its name")
            try:
                await asyncio.to_thread(self._store.add_archive, client, digest, path)
            except UsageError as e:
                raise web.HTTPBadRequest(text=text_for_clients(e)) from e
        return web.json_response({})

    async def _shutdown(self, _: web.Application) -> None:
        for socket in list(self._sockets):
            await socket.close(code=WSCloseCode.GOING_AWAY, message=b"the server ends")


def _remove_left_uploads() -> None:
    """Remove the uploads of servers that were killed. Others of this user may receive some now."""
    for directory in abandoned_directories(cache_root()):
        with suppress(OSError):
            remove_tree(directory)
