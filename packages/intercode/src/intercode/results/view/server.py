"""Serves the page on this machine, to anyone who has its address, which contains a secret.

Another web page in the same browser can send requests to a local port. It does not know the secret
in the path, it may not read a response (none has a CORS header), and a host name of its own that
resolves to this machine is refused by the Host header. Other users of the machine do not know the
secret either. What writes, a label, must also come from this page: its Origin header says so, and
its media type is one that another page may not send unasked.
"""

from __future__ import annotations

import gzip
import json
import secrets
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

from intercode import __version__
from intercode.core.errors import InterCodeError, UsageError
from intercode.core.types import Trajectory
from intercode.results.explanation import Explanation
from intercode.results.view.library import Library
from intercode.results.view.page import (
    CONNECT_SELF,
    browser_json,
    content_security_policy,
    page_head,
    page_tail,
)

LOOPBACK = "127.0.0.1"
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_MIN_COMPRESSED_SIZE = 2000  # bytes
_MAX_BODY_SIZE = 200_000  # bytes of a request that stores a label


class LabelPage(Protocol):
    """What the page needs to offer trajectories one by one to a person, who labels them."""

    def overview(self) -> dict[str, Any]:
        """Return all trajectories, each with its label or None."""
        ...

    def item(self, number: int) -> dict[str, Any]:
        """Return a trajectory and its label. Raises UsageError if there is no such number."""
        ...

    def result(self, number: int) -> dict[str, Any]:
        """Return what the grader said of a trajectory."""
        ...

    def store(self, number: int, given: Any) -> None:
        """Store a label of a trajectory. Raises UsageError if it is none."""
        ...


class ViewServer:
    """Serves a library on the loopback interface. ``port`` 0 selects a free port.

    ``explain`` returns what was expected of an episode; with None, the page shows no gold. With
    ``labelling``, the page offers its trajectories to label, and nothing else of the library.

    Raises UsageError for a port that is not available. Close the server when done (``with`` does).
    """

    def __init__(
        self,
        library: Library,
        port: int = 0,
        explain: Callable[[Trajectory], Explanation] | None = None,
        labelling: LabelPage | None = None,
    ) -> None:
        self.library, self._explain, self.labelling = library, explain, labelling
        self._explaining = threading.Lock()  # one episode is played again at a time
        self.secret = secrets.token_urlsafe(24)
        try:
            self._http = _HttpServer((LOOPBACK, port), _Handler)
        except (OSError, OverflowError) as e:
            raise UsageError(
                f"port {port} is not available ({e}); omit --port to use a free port"
            ) from e
        self._http.owner = self

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._http.server_address[1])

    @property
    def url(self) -> str:
        """The page's address, secret included."""
        return f"http://{LOOPBACK}:{self.port}/{self.secret}/"

    def serve(self) -> None:
        """Answer requests until ``stop`` is called in another thread."""
        self._http.serve_forever(poll_interval=0.1)

    def stop(self) -> None:
        """Make ``serve`` return. Call this only while it runs."""
        self._http.shutdown()

    def close(self) -> None:
        """Release the port."""
        self._http.server_close()

    def __enter__(self) -> ViewServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def respond(self, path: str, query: str) -> tuple[str, bytes] | None:
        """Return the media type and content of a path below the secret; None if there is nothing.
        Raises InterCodeError if the content cannot be read."""
        if path == "":
            config = {
                "mode": "served",
                "version": __version__,
                "gold": self._explain is not None,
                "label": self.labelling is not None,
            }
            return "text/html; charset=utf-8", (
                page_head(config, CONNECT_SELF) + page_tail()
            ).encode()
        words = path.split("/")
        value: Any = None
        if self.labelling is not None:
            value = self._labelling_value(self.labelling, words)
        elif words == ["index"]:
            self.library.refresh()
            value = self.library.index()
        elif words == ["version"]:
            self.library.refresh()
            value = self.library.state()
        elif words == ["search"]:
            value = self.library.search(parse_qs(query).get("q", [""])[0])
        elif len(words) == 3 and all(_is_number(w) for w in words[1:]):
            first, second = int(words[1]), int(words[2])
            if words[0] == "test":
                value = {"test": self.library.success_test(first, second)}
            else:
                value = self._episode_value(words[0], first, second)
        if value is None:
            return None
        return "application/json", browser_json(value).encode()

    def store_label(self, path: str, body: bytes) -> bool:
        """Store a label at a path below the secret. Returns False if the page labels nothing there.
        Raises UsageError for a label that is none."""
        words = path.split("/")
        if self.labelling is None or len(words) != 2 or words[0] != "labels":
            return False
        if not _is_number(words[1]):
            return False
        try:
            given = json.loads(body)
        except ValueError as e:
            raise UsageError(f"a label is JSON ({e})") from e
        self.labelling.store(int(words[1]), given)
        return True

    def _labelling_value(self, labelling: LabelPage, words: list[str]) -> Any:
        """Return what the page of labels asks for; None for anything else."""
        if words == ["labels"]:
            return labelling.overview()
        if len(words) == 2 and _is_number(words[1]) and words[0] in ("labels", "result"):
            read = labelling.item if words[0] == "labels" else labelling.result
            return read(int(words[1]))
        return None

    def _episode_value(self, what: str, run: int, at: int) -> Any:
        """Return an episode, or with ``gold`` what was expected of it; None for anything else."""
        if what == "episode":
            return self.library.episode(run, at)
        if what == "gold" and self._explain is not None:
            with self._explaining:
                return self._explain(self.library.trajectory(run, at)).to_json()
        return None


class _HttpServer(ThreadingHTTPServer):
    daemon_threads = True
    owner: ViewServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore browsers that disconnect during a response."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: _HttpServer
    server_version, sys_version = "intercode", ""
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_GET(self) -> None:
        """Answer a request that has the secret and was addressed to this machine."""
        owner, path = self.server.owner, self._path()
        if path is None:
            self._send_text(404, "Nothing here.")
            return
        try:
            response = owner.respond(path, urlsplit(self.path).query)
        except (InterCodeError, OSError) as e:
            self._send_text(404 if isinstance(e, UsageError) else 500, str(e))
            return
        if response is None:
            self._send_text(404, "Nothing here.")
        else:
            self._send(200, *response)

    def do_POST(self) -> None:
        """Store a label that this page sends."""
        self.close_connection = True  # of a request that is refused, the body is not read
        owner, path = self.server.owner, self._path()
        if owner.labelling is None:
            self.send_error(501)
            return
        origins = {f"http://{host}" for host in self._hosts()}
        size = self.headers.get("Content-Length", "")
        if path is None or self.headers.get("Origin") not in origins:
            self._send_text(404, "Nothing here.")
        elif self.headers.get("Content-Type") != "application/json":
            self._send_text(415, "A label is application/json.")
        elif not _is_number(size) or int(size) > _MAX_BODY_SIZE:
            self._send_text(413, f"A label has at most {_MAX_BODY_SIZE} bytes.")
        else:
            self._store_label(path, self.rfile.read(int(size)))

    def _store_label(self, path: str, body: bytes) -> None:
        try:
            stored = self.server.owner.store_label(path, body)
        except (InterCodeError, OSError) as e:
            self._send_text(400 if isinstance(e, UsageError) else 500, str(e))
            return
        if stored:
            self._send(200, "application/json", b"{}")
        else:
            self._send_text(404, "Nothing here.")

    def _hosts(self) -> set[str]:
        return {f"{name}:{self.server.owner.port}" for name in (LOOPBACK, "localhost")}

    def _path(self) -> str | None:
        """Return the path below the secret; None without the secret or for another host."""
        path = urlsplit(self.path).path
        secret, _, rest = path.removeprefix("/").partition("/")
        authorised = secrets.compare_digest(secret.encode(), self.server.owner.secret.encode())
        if self.headers.get("Host") not in self._hosts() or not authorised or "/" not in path[1:]:
            return None
        return rest

    def _send_text(self, status: int, text: str) -> None:
        self._send(status, "text/plain; charset=utf-8", f"{text}\n".encode())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        packed = (
            "gzip" in self.headers.get("Accept-Encoding", "") and len(body) > _MIN_COMPRESSED_SIZE
        )
        body = gzip.compress(body, 1) if packed else body
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header(
            "Content-Security-Policy",
            f"{content_security_policy(CONNECT_SELF)}; frame-ancestors 'none'",
        )
        if packed:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing: the address holds the secret."""


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10
