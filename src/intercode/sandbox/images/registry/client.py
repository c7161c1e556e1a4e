"""A client of the OCI distribution protocol that reads manifests and blobs of one repository."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import httpx

from intercode.core.errors import DataError, InfrastructureError, UsageError
from intercode.sandbox.images.oci.documents import MAX_DOCUMENT_SIZE, parse_json
from intercode.sandbox.images.registry import credentials
from intercode.sandbox.images.registry.reference import (
    HTTP_REGISTRIES_VARIABLE,
    Reference,
    is_loopback,
    uses_http,
)

MAX_ATTEMPTS = 5
"""Attempts for a request while the registry fails or is overloaded."""
ACCEPT = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)
T = TypeVar("T")
_TIMEOUT = httpx.Timeout(30.0, connect=10.0)
_MAX_REDIRECTS = 5
_MAX_PAUSE = 30.0
_CERTIFICATE_DIRECTORIES = ("/etc/docker/certs.d", "/etc/containers/certs.d")


class RetryableError(InfrastructureError):
    """A failure of the registry after which the same request may succeed.

    ``retry_after`` is the delay in seconds that the registry asks for; ``status`` is the status of
    its answer, 0 without an answer.
    """

    def __init__(self, message: str, status: int = 0, pause: float = 0.0) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = pause


class RegistryClient:
    """A client of one repository. Close it, or use it as a context manager.

    It uses HTTPS. A registry on the loopback interface, or named in ``INTERCODE_REGISTRY_HTTP``, is
    used over HTTP if HTTPS fails.
    """

    def __init__(self, reference: Reference, retry_delay: float = 0.5) -> None:
        self._reference = reference
        self._retry_delay = retry_delay
        self._authorization: str | None = None
        self._client = httpx.Client(
            timeout=_TIMEOUT,
            verify=_ssl_context(reference.host),
            trust_env=not is_loopback(reference.host),
        )
        self._scheme = "https"

    def __enter__(self) -> RegistryClient:
        try:
            self._scheme = self._find_scheme()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def fetch_manifest(self, wanted: str) -> bytes:
        """Return the bytes of the manifest of a tag or digest; the caller checks the digest.

        Raises UsageError if it does not exist or access is denied, InfrastructureError if the
        registry does not answer.
        """
        return self.retry(lambda: self._fetch_document(f"manifests/{wanted}", {"Accept": ACCEPT}))

    def fetch_config(self, digest: str) -> bytes:
        """Return the unverified bytes of a small blob. Raises as ``fetch_manifest`` does."""
        return self.retry(lambda: self._fetch_document(f"blobs/{digest}", {}))

    def _fetch_document(self, path: str, headers: Mapping[str, str]) -> bytes:
        data = b""
        with self.stream(path, headers) as response:
            for piece in response.iter_bytes():
                data += piece
                if len(data) > MAX_DOCUMENT_SIZE:
                    raise DataError(
                        f"{self._reference}: a document has more than {MAX_DOCUMENT_SIZE} bytes"
                    )
        return data

    def retry(self, ask: Callable[[], T]) -> T:
        """Call ``ask`` and return its result. Call it again, after a delay, if it raises
        ``RetryableError``.

        Raises InfrastructureError after ``MAX_ATTEMPTS`` attempts.
        """
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                return ask()
            except RetryableError as e:
                if attempt == MAX_ATTEMPTS:
                    raise InfrastructureError(
                        f"{self._reference.host} did not answer after {MAX_ATTEMPTS} attempts: {e}"
                    ) from e
                time.sleep(
                    min(max(e.retry_after, self._retry_delay * 2 ** (attempt - 1)), _MAX_PAUSE)
                )
        raise AssertionError("no attempt was made")

    @contextmanager
    def stream(self, path: str, headers: Mapping[str, str]) -> Iterator[httpx.Response]:
        """Send a request and yield the response (status 200 or 206) before its body is read.

        Logs in if the registry asks for it. Raises RetryableError if another attempt may help.
        """
        url = httpx.URL(f"{self._base}/{self._reference.name}/{path}")
        try:
            response = self._follow(url, headers)
            if response.status_code == 401:
                challenge = response.headers.get("www-authenticate", "")
                response.close()
                self._authorization = self._authorize(challenge)
                response = self._follow(url, headers)
            try:
                self._check_status(response)
                yield response
            finally:
                response.close()
        except httpx.InvalidURL as e:
            raise DataError(f"{self._reference.host} redirects to an invalid address") from e
        except httpx.RequestError as e:
            raise RetryableError(f"{type(e).__name__}: {e}") from e

    @property
    def _base(self) -> str:
        return f"{self._scheme}://{self._reference.host}/v2"

    def _follow(self, url: httpx.URL, headers: Mapping[str, str]) -> httpx.Response:
        """Send a request and follow redirects. The login is sent to the registry only."""
        home = (url.scheme, url.host, url.port)
        for _ in range(_MAX_REDIRECTS + 1):
            own = (url.scheme, url.host, url.port) == home
            known = {"Authorization": self._authorization} if own and self._authorization else {}
            request = self._client.build_request("GET", url, headers={**headers, **known})
            response = self._client.send(request, stream=True, auth=None)
            if not response.has_redirect_location:
                return response
            target = url.join(response.headers["location"])
            response.close()
            if target.scheme != "https" and self._scheme == "https":
                raise DataError(
                    f"{self._reference.host} redirects to {target.scheme}://{target.host}, which "
                    "is not encrypted: refused"
                )
            url = target
        raise DataError(f"{self._reference.host} redirects more than {_MAX_REDIRECTS} times")

    def _check_status(self, response: httpx.Response) -> None:
        status, where = response.status_code, str(self._reference)
        if status in (200, 206):
            return
        if status == 429 or status >= 500:
            delay = response.headers.get("retry-after", "")
            raise RetryableError(
                f"status {status}", status, float(delay) if delay.isdigit() else 0.0
            )
        if status in (401, 403):
            raise UsageError(
                f"{self._reference.host} denies access to {where} (status {status}): check the "
                f"name, or run `docker login {self._reference.host}` or `podman login`"
            )
        if status == 404:
            raise UsageError(f"there is no {where}: the registry has no such image or blob")
        if status == 416:
            raise RetryableError("the requested range is beyond the end", status)
        raise InfrastructureError(f"{where}: unexpected status {status} from the registry")

    def _authorize(self, header: str) -> str:
        """Return the Authorization header in response to a challenge."""
        scheme, challenge = credentials.parse_challenge(header)
        known = credentials.find_credentials(self._reference.host)
        if scheme == "basic":
            if known is None or known.token:
                raise UsageError(
                    f"{self._reference.host} requires a login: run `docker login "
                    f"{self._reference.host}` or `podman login`"
                )
            return _basic_header(known)
        if scheme != "bearer" or "realm" not in challenge:
            raise InfrastructureError(
                f"{self._reference.host} requires an unknown kind of login: {header[:80]!r}"
            )
        return f"Bearer {self._token(challenge, known)}"

    def _token(self, challenge: Mapping[str, str], known: credentials.Credentials | None) -> str:
        realm = httpx.URL(challenge["realm"])
        if realm.scheme != "https" and self._scheme == "https":
            raise DataError(
                f"{self._reference.host} requires a login at {realm}, which is not encrypted: "
                "refused"
            )
        scope = challenge.get("scope") or f"repository:{self._reference.name}:pull"
        query = {"service": challenge.get("service", self._reference.host), "scope": scope}
        if known is not None and known.token:
            form = {"grant_type": "refresh_token", "refresh_token": known.token, **query}
            form["client_id"] = "intercode"
            response = self._client.post(realm, data=form)
        else:
            headers = {"Authorization": _basic_header(known)} if known else {}
            response = self._client.get(realm, params={**realm.params, **query}, headers=headers)
        if response.status_code in (400, 401, 403):
            raise UsageError(
                f"{realm.host} refuses the login for {self._reference}: run `docker login "
                f"{self._reference.host}` or `podman login` again"
            )
        self._check_status(response)
        table = parse_json(response.content, str(realm.host))
        token = table.get("token") or table.get("access_token")
        if not isinstance(token, str) or not token.isprintable():
            raise InfrastructureError(f"{realm.host} answered without a token")
        return token

    def _find_scheme(self) -> str:
        host = self._reference.host
        try:
            self._client.get(f"https://{host}/v2/")
        except httpx.RequestError as e:
            if "CERTIFICATE_VERIFY_FAILED" in str(e):
                raise UsageError(
                    f"the certificate of {host} is not trusted ({e}): set SSL_CERT_FILE to its "
                    "authority's certificate, or put that into "
                    f"{_CERTIFICATE_DIRECTORIES[0]}/{host}/ca.crt"
                ) from e
            if uses_http(host):
                return "http"
            if "WRONG_VERSION_NUMBER" in str(e) or "record layer" in str(e):
                raise UsageError(
                    f"{host} does not use HTTPS; to allow HTTP, set "
                    f"{HTTP_REGISTRIES_VARIABLE}={host}"
                ) from e
        return "https"


def _basic_header(known: credentials.Credentials) -> str:
    request = httpx.Request("GET", "https://unused")
    flow = httpx.BasicAuth(known.user, known.password).auth_flow(request)
    return str(next(flow).headers["Authorization"])


def _ssl_context(host: str) -> ssl.SSLContext:
    """Return a context that trusts the certificates of Python, of the system, and of the engines'
    configuration for this registry."""
    context = httpx.create_ssl_context()
    context.load_default_certs()
    for folder in _CERTIFICATE_DIRECTORIES:
        for path in sorted((Path(folder) / host).glob("*.crt")):
            context.load_verify_locations(path)
    return context
