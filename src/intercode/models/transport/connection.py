"""One connection to an endpoint, on asyncio's streams with h11 for the protocol.

httpx rests on the same h11, but takes 2.7 ms of a processor per request where this takes 0.4, and
its pool looks at all its connections for each of them, which at 200 of them takes 30 ms: too much
where hundreds of episodes ask at once. httpx serves where a proxy is in between.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import h11
import httpx

READ_SIZE = 1 << 18
MAX_RESPONSE_BYTES = 64 << 20
"""Bytes of the largest answer that is read."""


class ResponseTooLargeError(Exception):
    """An answer of more than LARGEST bytes."""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """What came back; the names of the headers are in small letters."""

    status: int
    headers: dict[str, str]
    body: bytes


class Connection:
    """A connection that is kept for the next request. Used by one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=1 << 20)

    @classmethod
    async def open(cls, url: httpx.URL, verified: ssl.SSLContext | None) -> Self:
        """Connect to the host of an address, by TLS with ``verified``. Raises OSError."""
        port = url.port or (443 if verified else 80)
        reader, writer = await asyncio.open_connection(
            url.host, port, ssl=verified, happy_eyeballs_delay=0.25
        )
        return cls(reader, writer)

    @property
    def usable(self) -> bool:
        """Whether another request can go through it."""
        gone = self._writer.is_closing() or self._reader.at_eof()
        return not gone and self._http.our_state is h11.IDLE

    async def post(
        self, url: httpx.URL, headers: Sequence[tuple[str, str]], data: bytes
    ) -> HttpResponse:
        """Post and read the whole answer.

        Raises OSError, h11.RemoteProtocolError where the answer is none, TooLargeError. A
        connection on which anything went wrong is closed.
        """
        try:
            host = url.netloc.decode("ascii")
            given = [("Host", host), *headers, ("Content-Length", str(len(data)))]
            start = h11.Request(method="POST", target=url.raw_path, headers=given)
            events = (start, h11.Data(data=data), h11.EndOfMessage())
            self._writer.write(b"".join(self._http.send(event) or b"" for event in events))
            await self._writer.drain()
            answer = await self._read()
            if self._http.their_state is h11.DONE and self._http.our_state is h11.DONE:
                self._http.start_next_cycle()
            else:
                self.close()
            return answer
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close it at once, whatever is under way. May be called again."""
        self._writer.transport.abort()

    async def _read(self) -> HttpResponse:
        status, headers, parts, size = 0, dict[str, str](), list[bytes](), 0
        while True:
            event: Any = self._http.next_event()
            if event is h11.NEED_DATA:
                self._http.receive_data(await self._reader.read(READ_SIZE))
            elif isinstance(event, h11.Response):
                status = event.status_code
                headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in event.headers}
            elif isinstance(event, h11.Data):
                parts.append(bytes(event.data))
                size += len(event.data)
                if size > MAX_RESPONSE_BYTES:
                    raise ResponseTooLargeError(
                        f"the answer has more than {MAX_RESPONSE_BYTES >> 20} MiB"
                    )
            elif isinstance(event, h11.EndOfMessage):
                return HttpResponse(status, headers, b"".join(parts))
            elif not isinstance(event, h11.InformationalResponse):
                raise h11.RemoteProtocolError(f"the connection ended with {event!r}")
