"""The synchronous HTTP client: threads, event loops, time-outs, limits, redirects and proxies."""

from __future__ import annotations

import asyncio
import io
import ssl
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from yarl import URL

from intercode.core.errors import ConfigError, DataError
from intercode_sandbox import http
from intercode_sandbox.http import ConnectError, HttpClient, HttpError, Response, TooLongError
from support.certificates import certificate
from support.faulty_endpoint import FaultyEndpoint, hang, reset, short_body, status

PROXY_VARIABLES = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY")


def get(client: HttpClient, url: str, limit: int = 1 << 20) -> bytes:
    """Return the body that a server sends."""
    with client.request(URL(url)) as response:
        return response.read(limit)


def test_threads_share_a_client_and_event_loops_may_run_around_it() -> None:
    body = b"x" * 3_000_000

    async def inside_a_loop(client: HttpClient, url: str) -> bytes:
        return get(client, url, len(body))

    with FaultyEndpoint(status(200, body)) as server, HttpClient() as client:
        with ThreadPoolExecutor(20) as threads:
            found = list(threads.map(lambda _: get(client, server.base_url, len(body)), range(60)))
        assert {len(data) for data in found} == {len(body)}
        assert asyncio.run(inside_a_loop(client, server.base_url)) == body


def test_a_document_has_a_limit() -> None:
    with FaultyEndpoint(status(200, b"x" * 1001)) as server, HttpClient() as client:
        assert len(get(client, server.base_url, 1001)) == 1001
        with pytest.raises(TooLongError, match="more than 1000 bytes"):
            get(client, server.base_url, 1000)


@pytest.mark.parametrize("fault", [reset, short_body, hang], ids=lambda f: f.__name__)
def test_a_broken_or_silent_response_is_an_error(
    fault: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "READ_TIMEOUT", 0.2)
    with FaultyEndpoint(fault) as server, HttpClient() as client, pytest.raises(HttpError):  # type: ignore[arg-type]
        get(client, server.base_url)


def test_nobody_listening_is_an_error_of_its_own() -> None:
    with FaultyEndpoint(status(200)) as server:
        url = server.base_url
    with HttpClient() as client, pytest.raises(ConnectError, match="ConnectionRefusedError"):
        get(client, url)


def test_a_broken_download_is_continued() -> None:
    file, sent = io.BytesIO(), []
    with FaultyEndpoint(short_body) as server, HttpClient() as client:

        def request(headers: Mapping[str, str]) -> AbstractContextManager[Response]:
            sent.append(dict(headers))
            return client.request(URL(server.base_url), headers)

        with pytest.raises(HttpError):
            http.append_rest(file, 5000, request)
        assert file.getvalue() == b'{"choices": ['
        with pytest.raises(HttpError):
            http.append_rest(file, 5000, request)
    assert sent == [{}, {"Range": "bytes=13-"}]
    assert file.getvalue() == b'{"choices": ['  # the server began anew


def test_a_redirect_does_not_leave_https(tmp_path: Path) -> None:
    key, cert = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    with FaultyEndpoint(status(200)) as plain:
        moved = status(307, b"", Location=f"{plain.base_url}/elsewhere")
        with FaultyEndpoint(moved, tls=context) as server:
            url = server.base_url.replace("http:", "https:")
            trusted = ssl.create_default_context(cafile=cert)
            with HttpClient(trusted) as client, pytest.raises(DataError, match="not encrypted"):
                get(client, url)
        with FaultyEndpoint(moved) as server, HttpClient() as client:
            assert get(client, server.base_url) == b"{}"
    assert plain.paths == ["/v1/elsewhere"]


def test_a_proxys_password_is_sent_to_it_and_shown_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    with FaultyEndpoint(status(200, b"by proxy")) as proxy, HttpClient() as client:
        address = proxy.base_url.removesuffix("/v1").replace("//", "//me:secret-word@")
        monkeypatch.setenv("http_proxy", address)
        assert get(client, "http://data.invalid/x") == b"by proxy"
    assert proxy.headers[0]["Proxy-Authorization"] == "Basic bWU6c2VjcmV0LXdvcmQ="
    with HttpClient() as client, pytest.raises(ConnectError) as caught:
        get(client, "http://data.invalid/x")
    assert "secret-word" not in str(caught.value)
    monkeypatch.setenv("http_proxy", "socks5://me:secret-word@localhost")
    with HttpClient() as client, pytest.raises(ConfigError, match=r"not socks5://.*HTTP_PROXY"):
        get(client, "http://data.invalid/x")
