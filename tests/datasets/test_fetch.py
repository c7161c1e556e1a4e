"""Fetching from correct and from faulty servers."""

from __future__ import annotations

import hashlib
import shlex
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from intercode.cli import main
from intercode.core.errors import DataError, InfrastructureError, UnknownNameError, UsageError
from intercode.datasets import fetch as fetching
from intercode.datasets import load
from intercode.datasets.fetch import fetch
from intercode.datasets.pins import Pin, PinnedFile, load_pins
from intercode_sandbox.http import ConnectError
from support.fake_clock import FakeClock

SCRIPT = "docker/bash_scripts/setup_nl2b_fs_1.sh"
BODY = bytes(range(256)) * 2000


class Server(ThreadingHTTPServer):
    """Serves ``files`` by path; ``cuts`` is how many answers to break off half-way."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.ranges, self.cuts, self.status = True, 0, 0
        self.requests: list[tuple[str, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        wanted = self.headers.get("Range", "")
        self.server.requests.append((self.path, wanted))
        body = self.server.files.get(self.path.lstrip("/"))
        if body is None or self.server.status:
            self.send_error(self.server.status or 404)
            return
        start = int(wanted.removeprefix("bytes=").rstrip("-") or 0) if self.server.ranges else 0
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        if self.server.cuts > 0:
            self.server.cuts -= 1
            body = body[: start + (len(body) - start) // 2]
        self.wfile.write(body[start:])


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


def pins_for(files: dict[str, bytes]) -> dict[str, Pin]:
    rows = [PinnedFile(k, len(v), hashlib.sha256(v).hexdigest()) for k, v in files.items()]
    return {"mine": Pin("someone/somewhere", "0" * 40, tuple(rows))}


@pytest.fixture
def one(server: Server) -> dict[str, Pin]:
    server.files = {"a/big": BODY}
    return pins_for(server.files)


def _by_git(body: bytes) -> Pin:
    """Return a pin with Git's digest only, without a size."""
    found = hashlib.sha1(b"blob %d\0" % len(body) + body).hexdigest()
    return Pin("a/b", "c", (PinnedFile("big.sql", git_blob_sha1=found),))


def test_a_file_of_unknown_size_is_known_by_gits_checksum(server: Server, tmp_path: Path) -> None:
    server.files["big.sql"], server.cuts = BODY, 1
    reports: list[tuple[str, int, int]] = []
    pins = {"x": _by_git(BODY)}
    fetch("x", server.url, tmp_path, lambda *a: reports.append(a), pins=pins, clock=FakeClock())
    assert (tmp_path / "big.sql").read_bytes() == BODY
    assert reports[-1] == ("big.sql", len(BODY), len(BODY))
    requests = len(server.requests)
    fetch("x", server.url, tmp_path, pins=pins)
    # the interrupted download was continued, and the file is not requested again
    assert len(server.requests) == requests > 1


def test_a_wrong_file_of_unknown_size_is_not_stored(server: Server, tmp_path: Path) -> None:
    server.files["big.sql"] = BODY + b"x"
    with pytest.raises(DataError, match="expected git's sha1"):
        fetch("x", server.url, tmp_path, pins={"x": _by_git(BODY)})
    assert not list(tmp_path.glob("big*"))


def test_files_arrive_and_are_not_fetched_again(server: Server, tmp_path: Path) -> None:
    server.files = {"a/big": BODY, "b/c/small": b"x\n", "empty": b""}
    pins, seen = pins_for(server.files), []
    for _ in range(2):
        root = fetch("mine", server.url + "/", tmp_path / "d", lambda *a: seen.append(a), pins=pins)
    assert {p: (root / p).read_bytes() for p in server.files} == server.files
    assert len(server.requests) == 3
    assert seen[-1] == ("empty", 0, 0)
    assert ("a/big", len(BODY), len(BODY)) in seen
    (root / "b/c/small").write_bytes(b"y\n")
    fetch("mine", server.url, root, pins=pins)
    assert (root / "b/c/small").read_bytes() == b"x\n"
    assert [path for path, _ in server.requests[3:]] == ["/b/c/small"]
    assert not list(root.rglob("*.part"))


@pytest.mark.parametrize("ranges", [True, False])
def test_a_cut_connection_is_taken_up_again(
    server: Server, one: dict[str, Pin], tmp_path: Path, ranges: bool
) -> None:
    server.ranges, server.cuts = ranges, 2
    fetch("mine", server.url, tmp_path, pins=one, clock=FakeClock())
    assert (tmp_path / "a/big").read_bytes() == BODY
    half, more = len(BODY) // 2, len(BODY) * 3 // 4
    resumed = [f"bytes={half}-", f"bytes={more if ranges else half}-"]
    assert [wanted for _, wanted in server.requests] == ["", *resumed]


def test_a_later_fetch_continues_where_the_first_gave_up(
    server: Server, one: dict[str, Pin], tmp_path: Path
) -> None:
    server.cuts = 4
    with pytest.raises(InfrastructureError, match=r"4 attempts.*run the same command again"):
        fetch("mine", server.url, tmp_path, pins=one, clock=FakeClock())
    have = (tmp_path / "a/big.part").stat().st_size
    assert have == len(BODY) - len(BODY) // 16
    fetch("mine", server.url, tmp_path, pins=one)
    assert server.requests[-1] == ("/a/big", f"bytes={have}-")
    assert (tmp_path / "a/big").read_bytes() == BODY


@pytest.mark.parametrize("left", [b"wrong bytes", BODY[:-1] + b"x", BODY + b"too long"])
def test_a_damaged_partial_download_does_not_damage_the_file(
    server: Server, one: dict[str, Pin], tmp_path: Path, left: bytes
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/big.part").write_bytes(left)
    fetch("mine", server.url, tmp_path, pins=one)
    assert (tmp_path / "a/big").read_bytes() == BODY


def test_wrong_content_is_refused_with_both_digests(
    server: Server, one: dict[str, Pin], tmp_path: Path
) -> None:
    spoilt = BODY[:-1] + b"!"
    server.files["a/big"] = spoilt
    with pytest.raises(DataError) as caught:
        fetch("mine", server.url, tmp_path, pins=one)
    for text in ("a/big", hashlib.sha256(spoilt).hexdigest(), one["mine"].files[0].sha256):
        assert text in str(caught.value)
    server.files["a/big"] = BODY + b"more"
    with pytest.raises(DataError, match=f"expected {len(BODY)} bytes, got more"):
        fetch("mine", server.url, tmp_path, pins=one)
    assert not [p for p in tmp_path.rglob("*") if p.name.startswith("big")]


def test_servers_that_refuse(server: Server, one: dict[str, Pin], tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'mine'"):
        fetch("mines", server.url, tmp_path, pins=one)
    with pytest.raises(UsageError, match="ftp://x"):
        fetch("mine", "ftp://x", tmp_path, pins=one)
    with pytest.raises(UsageError, match="status 404"):
        fetch("mine", server.url + "/elsewhere", tmp_path, pins=one)
    server.status = 503
    with pytest.raises(InfrastructureError, match="status 503"):
        fetch("mine", server.url, tmp_path, pins=one, clock=FakeClock())
    url = server.url
    server.shutdown()
    server.server_close()
    with pytest.raises(InfrastructureError, match="4 attempts"):
        fetch("mine", url, tmp_path, pins=one, clock=FakeClock())


def test_load_reads_the_fetched_files(
    server: Server,
    data_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Run the command of docs/datasets.md. The server stands in for the repository: it has
    the real task files with their real digests, and scripts written for the test."""
    pin = load_pins()["nl2bash"]
    real = tuple(f for f in pin.files if f.path.endswith(".json"))
    folder = data_dir if (data_dir / "nl2bash").is_dir() else data_dir / "data"
    server.files = {f.path: (folder / f.path.removeprefix("data/")).read_bytes() for f in real}
    made = {f.path: b"mkdir /made\n" for f in pin.files if f.path.endswith(".sh")}
    server.files |= made
    pins = {"nl2bash": Pin(pin.repository, pin.commit, real + pins_for(made)["mine"].files)}
    monkeypatch.setenv("INTERCODE_CACHE", str(tmp_path))
    monkeypatch.delenv("INTERCODE_DATA", raising=False)
    monkeypatch.setattr(fetching, "load_pins", lambda: pins)
    monkeypatch.setattr(Pin, "base_url", server.url)
    assert main(shlex.split("intercode list --fetch nl2bash")[1:]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'data'}\n"
    task = load("nl2bash:fs_1@c3e46d8").tasks[0]
    assert [(f.kind, f.path) for f in task.files] == [("script", tmp_path / "data" / SCRIPT)]


def test_the_pins_are_whole() -> None:
    pin = load_pins()["nl2bash"]
    assert pin.base_url.endswith(f"princeton-nlp/intercode/{pin.commit}")
    assert len(pin.commit) == 40
    assert len({f.path for f in pin.files}) == len(pin.files) == 10
    assert all(len(f.sha256) == 64 and f.size > 0 for f in pin.files)


@pytest.mark.network
def test_the_real_thing(tmp_path: Path) -> None:
    try:
        root = fetch("nl2bash", dest=tmp_path, clock=FakeClock())
    except InfrastructureError as e:
        if isinstance(e.__cause__, ConnectError):
            pytest.skip(f"needs the internet: {e}")
        raise
    assert (root / SCRIPT).is_file()
