"""Local registries: Debian's registry server, and a server with faults."""

from __future__ import annotations

import base64
import http.server
import json
import os
import shutil
import socket
import ssl
import subprocess
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from pathlib import Path
from typing import Any

from support import requirements
from support.sandboxes import eventually
from support.saved_images import Saved, sha
from support.serving import free_port

MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def require_server() -> str:
    """Return the registry's program; skip the test if it is not installed."""
    requirements.require("registry")
    program = shutil.which("docker-registry")
    assert program
    return program


@contextmanager
def registry(folder: Path, **http: Any) -> Iterator[str]:
    """Run a real registry that keeps its data in ``folder``; yield ``127.0.0.1:port``.

    ``http``: further settings of it (``tls``, ``auth``).
    """
    host = f"127.0.0.1:{free_port()}"
    settings: dict[str, Any] = {
        "version": 0.1,
        "log": {"level": "error", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": str(folder / "data")}},
        "http": {"addr": host, **({"tls": http["tls"]} if "tls" in http else {})},
    }
    settings |= {"auth": http["auth"]} if "auth" in http else {}
    folder.mkdir(exist_ok=True)
    (folder / "config.yml").write_text(json.dumps(settings))  # JSON is YAML too
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [require_server(), "serve", str(folder / "config.yml")],
            stdout=log,
            stderr=log,
            env={k: v for k, v in os.environ.items() if not k.startswith("REGISTRY_")},
        )
        try:
            eventually(
                lambda: process.poll() is not None or _answers(host),
                "the registry answers",
                details=lambda: (folder / "log").read_text()[-500:],
            )
            assert process.poll() is None, (folder / "log").read_text()[-500:]
            yield host
        finally:
            process.terminate()
            process.wait(20)


def _answers(host: str) -> bool:
    name, port = host.split(":")
    with socket.socket() as probe:
        return probe.connect_ex((name, int(port))) == 0


def push(base: str, saved: Saved, tag: str, **settings: Any) -> str:
    """Push an image to ``http(s)://host/v2/name``; return its manifest's digest."""
    blobs: dict[str, bytes] = {}
    manifest = json.loads(saved.manifest(blobs))
    manifest["config"]["mediaType"] = "application/vnd.oci.image.config.v1+json"
    for layer in manifest["layers"]:
        layer["mediaType"] = "application/vnd.oci.image.layer.v1.tar+gzip"
    manifest["mediaType"] = MANIFEST
    for digest, data in blobs.items():
        place = send("POST", f"{base}/blobs/uploads/", **settings)[1]["Location"]
        mark = "&" if "?" in place else "?"
        url = urllib.parse.urljoin(base, f"{place}{mark}digest=sha256:{digest}")
        send("PUT", url, data, **settings)
    return put_manifest(base, json.dumps(manifest).encode(), tag, MANIFEST, **settings)


def put_manifest(base: str, data: bytes, tag: str, kind: str, **settings: Any) -> str:
    """Push a manifest or an index; return its digest."""
    send("PUT", f"{base}/manifests/{tag}", data, kind, **settings)
    return f"sha256:{sha(data)}"


def send(
    method: str,
    url: str,
    data: bytes = b"",
    kind: str = "application/octet-stream",
    *,
    accept: str = "*/*",
    verify: ssl.SSLContext | None = None,
    login: str = "",
) -> tuple[bytes, Message]:
    """Send one request, without a proxy; return the body and the headers of the answer."""
    headers = {"Content-Type": kind, "Accept": accept}
    if login:
        headers["Authorization"] = f"Basic {base64.b64encode(login.encode()).decode()}"
    request = urllib.request.Request(url, data or None, headers, method=method)
    handlers = urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=verify)
    with urllib.request.build_opener(*handlers).open(request, timeout=30) as answer:
        return answer.read(), answer.headers


@dataclass
class Faults:
    """The faults of a registry, and the requests that it received."""

    manifest: bytes
    blobs: dict[str, bytes]
    # the next answers break off after these numbers of bytes
    cut: list[int] = field(default_factory=list)
    statuses: list[tuple[int, dict[str, str]]] = field(default_factory=list)  # the first answers
    ranges: bool = True  # whether it supports the header Range
    swap: bytes | None = None  # content that replaces every layer
    token: bytes = b""  # the token for logins; every other request needs it
    redirect: str = ""  # the address to which requests for layers are redirected
    asked: list[tuple[str, str, str]] = field(default_factory=list)  # path, Range, Authorization


class _Handler(http.server.BaseHTTPRequestHandler):
    """Answers according to the ``faults`` of its class."""

    faults: Faults

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass

    def do_GET(self) -> None:
        told = self.headers.get("Range", ""), self.headers.get("Authorization", "")
        if self.path != "/v2/":
            self.faults.asked.append((self.path, *told))
        digest = self.path.rpartition("sha256:")[2]
        if self.path == "/v2/":
            self._send(200, {}, b"{}")
        elif self.path.startswith("/token"):
            self._send(200, {}, self.faults.token)
        elif self.faults.token and told[1] != "Bearer of-today":
            where = f'Bearer realm="http://{self.headers["Host"]}/token",service="here"'
            self._send(401, {"WWW-Authenticate": where}, b"")
        elif self.faults.statuses:
            self._send(*self.faults.statuses.pop(0), b"")
        elif "/manifests/" in self.path:
            self._send(200, {}, self.faults.manifest)
        elif digest in self.faults.blobs:
            data = self.faults.blobs[digest]
            self._blob(data, data is not min(self.faults.blobs.values(), key=len))
        else:
            self._send(404, {}, b"")

    def do_POST(self) -> None:
        told = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.faults.asked.append((self.path, told, self.headers.get("Authorization", "")))
        self._send(200, {}, self.faults.token)

    def _blob(self, data: bytes, is_layer: bool) -> None:
        if is_layer and self.faults.redirect:
            self._send(307, {"Location": self.faults.redirect}, b"")
            return
        data = self.faults.swap if is_layer and self.faults.swap is not None else data
        start = 0
        if (asked := self.headers.get("Range")) and self.faults.ranges:
            start = int(asked.removeprefix("bytes=").partition("-")[0])
        whole = {"Content-Range": f"bytes {start}-{len(data) - 1}/{len(data)}"} if start else {}
        cut = self.faults.cut.pop(0) if is_layer and self.faults.cut else None
        self._send(206 if start else 200, whole, data[start:], cut)

    def _send(
        self, status: int, headers: dict[str, str], data: bytes, cut: int | None = None
    ) -> None:
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data if cut is None else data[:cut])
        self.close_connection = cut is not None


@contextmanager
def faulty(faults: Faults) -> Iterator[str]:
    """Run a registry with these faults; yield ``127.0.0.1:port``."""

    handler = type("Handler", (_Handler,), {"faults": faults})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join(10)
