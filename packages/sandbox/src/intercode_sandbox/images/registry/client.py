"""A client of the OCI distribution protocol that reads manifests and blobs of one repository."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlencode

from yarl import URL

from intercode_sandbox.errors import DataError, InfrastructureError, UsageError
from intercode_sandbox.http import HttpClient, HttpError, Response, parse_url, retry, ssl_context
from intercode_sandbox.images.oci.documents import MAX_DOCUMENT_SIZE, parse_json
from intercode_sandbox.images.registry import credentials
from intercode_sandbox.images.registry.reference import (
    HTTP_REGISTRIES_VARIABLE,
    Reference,
    uses_http,
)

MAX_ATTEMPTS = 5
"""Attempts for a request while the registry fails or is overloaded."""
_RETRY_DELAY = 0.5
ACCEPT = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)
T = TypeVar("T")
_CERTIFICATE_DIRECTORIES = ("/etc/docker/certs.d", "/etc/containers/certs.d")


class RegistryClient:
    """A client of one repository. Close it, or use it as a context manager.

    It uses HTTPS. A registry on the loopback interface, or named in ``INTERCODE_REGISTRY_HTTP``, is
    used over HTTP if HTTPS fails.
    """

    def __init__(self, reference: Reference) -> None:
        self._reference = reference
        self._authorization = ""
        self._client = HttpClient(_ssl_context(reference.host))
        self._scheme = "https"

    def __enter__(self) -> RegistryClient:
        try:
            self._scheme = self._find_scheme()
        except BaseException:
            self._client.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
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
        with self.stream(path, headers) as response:
            return response.read(MAX_DOCUMENT_SIZE)

    def retry(self, attempt: Callable[[], T]) -> T:
        """Call ``attempt``, again after a delay while it raises HttpError, and return its result.

        Raises InfrastructureError after ``MAX_ATTEMPTS`` attempts.
        """
        try:
            return retry(attempt, MAX_ATTEMPTS, _RETRY_DELAY)
        except HttpError as e:
            raise InfrastructureError(
                f"{self._reference.host} did not answer after {MAX_ATTEMPTS} attempts: {e}"
            ) from e

    @contextmanager
    def stream(self, path: str, headers: Mapping[str, str]) -> Iterator[Response]:
        """Send a request and yield the response (status 200, 206 or 416) before its body is read.

        Logs in if the registry asks for it. Raises HttpError if another attempt may help.
        """
        url = URL(f"{self._scheme}://{self._reference.host}/v2/{self._reference.name}/{path}")
        with self._client.request(url, headers, authorization=self._authorization) as response:
            if response.status != 401:
                self._check_status(response)
                yield response
                return
            self._authorization = self._authorize(response.headers.get("WWW-Authenticate", ""))
        with self._client.request(url, headers, authorization=self._authorization) as response:
            self._check_status(response)
            yield response

    def _check_status(self, response: Response) -> None:
        status, where = response.status, str(self._reference)
        if status in (200, 206, 416):
            return
        if status == 429 or status >= 500:
            delay = response.headers.get("Retry-After", "")
            raise HttpError(f"status {status}", float(delay) if delay.isdigit() else 0.0)
        if status in (401, 403):
            raise UsageError(
                f"{self._reference.host} denies access to {where} (status {status}): check the "
                f"name, or run `docker login {self._reference.host}` or `podman login`"
            )
        if status == 404:
            raise UsageError(f"there is no {where}: the registry has no such image or blob")
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
        realm = parse_url(challenge["realm"])
        if realm.scheme != "https" and self._scheme == "https":
            raise DataError(
                f"{self._reference.host} requires a login at {realm}, which is not encrypted: "
                "refused"
            )
        scope = challenge.get("scope") or f"repository:{self._reference.name}:pull"
        query = {"service": challenge.get("service", self._reference.host), "scope": scope}
        form, login = None, ""
        if known is not None and known.token:
            form = {"grant_type": "refresh_token", "refresh_token": known.token, **query}
            form["client_id"] = "intercode"
        else:
            query = {**realm.query, **query}
            realm = URL(f"{realm.with_query(None)}?{urlencode(query)}", encoded=True)
            login = _basic_header(known) if known else ""
        with self._client.request(realm, authorization=login, form=form) as response:
            if response.status in (400, 401, 403):
                raise UsageError(
                    f"{realm.host} refuses the login for {self._reference}: run `docker login "
                    f"{self._reference.host}` or `podman login` again"
                )
            self._check_status(response)
            table = parse_json(response.read(MAX_DOCUMENT_SIZE), str(realm.host))
        token = table.get("token") or table.get("access_token")
        if not isinstance(token, str) or not token.isprintable():
            raise InfrastructureError(f"{realm.host} answered without a token")
        return token

    def _find_scheme(self) -> str:
        host = self._reference.host
        try:
            with self._client.request(URL(f"https://{host}/v2/")):
                return "https"
        except HttpError as e:
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
    login = f"{known.user}:{known.password}"
    return f"Basic {base64.b64encode(login.encode()).decode()}"


def _ssl_context(host: str) -> ssl.SSLContext:
    """Return a context that also trusts the certificates in the engines' configuration for this
    registry."""
    context = ssl_context()
    for folder in _CERTIFICATE_DIRECTORIES:
        for path in sorted((Path(folder) / host).glob("*.crt")):
            context.load_verify_locations(path)
    return context
