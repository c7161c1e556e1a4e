"""A local server with the hub's protocol for datasets, from directories of files."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

Files = Mapping[str, bytes]


class Hub:
    """Serves datasets by ``owner/name``, each with its revisions and their files.

    ``cards`` is the front matter of the READMEs. ``gated`` datasets require a token.
    """

    def __init__(self, datasets: Mapping[str, Mapping[str, Files]]) -> None:
        self.datasets = datasets
        self.cards: dict[str, object] = {}
        self.gated: dict[str, str] = {}
        self.down = False
        self.asked: list[str] = []

    @staticmethod
    def commit(files: Files) -> str:
        """Return a substitute for a commit: a checksum over names and contents."""
        sum_ = hashlib.sha1(usedforsecurity=False)
        for name in sorted(files):
            sum_.update(name.encode() + b"\0" + files[name])
        return sum_.hexdigest()

    def find(self, repo: str, revision: str) -> Files | None:
        """Return the files at a revision, which may be a commit."""
        revisions = self.datasets[repo]
        if revision in revisions:
            return revisions[revision]
        return next((f for f in revisions.values() if self.commit(f) == revision), None)


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def _answer(self, body: bool) -> None:
        path = unquote(self.path.partition("?")[0]).strip("/")
        self.hub.asked.append(path)
        if self.hub.down:
            return self._send(503, b"", body)
        parts = path.removeprefix("api/").split("/")
        repo = "/".join(parts[1:3])
        if parts[0] != "datasets" or repo not in self.hub.datasets:
            return self._send(404, b"{}", body, {"X-Error-Code": "RepoNotFound"})
        token = self.hub.gated.get(repo)
        if token and self.headers.get("Authorization") != f"Bearer {token}":
            return self._send(403, b"{}", body, {"X-Error-Code": "GatedRepo"})
        rest = "/".join(parts[4:])
        if path.startswith("api/"):
            return self._info(repo, rest or "main", body)
        return self._file(repo, rest, body)

    def _info(self, repo: str, revision: str, body: bool) -> None:
        files = self.hub.find(repo, revision)
        if files is None:
            return self._send(404, b"{}", body, {"X-Error-Code": "RevisionNotFound"})
        told = {
            "id": repo,
            "sha": self.hub.commit(files),
            "private": False,
            "tags": [],
            "siblings": [{"rfilename": name} for name in files],
            "cardData": self.hub.cards.get(repo),
        }
        return self._send(200, json.dumps(told).encode(), body)

    def _file(self, repo: str, rest: str, body: bool) -> None:
        for revision in (*self.hub.datasets[repo], *map(Hub.commit, self._revisions(repo))):
            files = self.hub.find(repo, revision) or {}
            name = rest.removeprefix(f"{revision}/")
            if name != rest and name in files:
                content = files[name]
                etag = hashlib.sha256(content).hexdigest()
                told = {"ETag": f'"{etag}"', "X-Repo-Commit": self.hub.commit(files)}
                return self._send(200, content, body, told)
        return self._send(404, b"{}", body, {"X-Error-Code": "EntryNotFound"})

    def _revisions(self, repo: str) -> Iterator[Files]:
        yield from self.hub.datasets[repo].values()

    def _send(
        self, status: int, content: bytes, body: bool, reported: Mapping[str, str] | None = None
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        for name, value in (reported or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, *args: object) -> None:
        """Print nothing."""


@contextmanager
def serving(hub: Hub) -> Iterator[str]:
    """Return the address of the hub."""
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
