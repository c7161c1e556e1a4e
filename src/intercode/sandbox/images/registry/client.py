"""The OCI distribution protocol as far as it reads: manifests and blobs of one repository."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import httpx

from intercode.core.errors import DataError, InfrastructureError, UsageError
from intercode.sandbox.images.oci.documents import LARGEST, read
from intercode.sandbox.images.registry import credentials
from intercode.sandbox.images.registry.reference import PLAIN, Reference, is_loopback, is_plain

ATTEMPTS = 5
"""Times that a request is sent while the registry fails or is too busy, without any progress."""
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
_REDIRECTS = 5
_LONGEST_PAUSE = 30.0
_CERTIFICATES = ("/etc/docker/certs.d", "/etc/containers/certs.d")


class BusyError(InfrastructureError):
    """The registry failed in a way that another attempt may mend.

    ``pause``: seconds to wait that it asks for; ``status``: of its answer, 0 without one.
    """

    def __init__(self, message: str, status: int = 0, pause: float = 0.0) -> None:
        super().__init__(message)
        self.status = status
        self.pause = pause


class Registry:
    """One repository of a registry. Close it, or use it with ``with``.

    HTTPS always; a registry on this machine's loopback, or named in ``INTERCODE_REGISTRY_HTTP``,
    is tried over HTTPS first and then spoken to without.
    """

    def __init__(self, reference: Reference, pause: float = 0.5) -> None:
        self._reference = reference
        self._pause = pause
        self._authorization: str | None = None
        self._client = httpx.Client(
            timeout=_TIMEOUT,
            verify=_trust(reference.host),
            trust_env=not is_loopback(reference.host),
        )
        self._scheme = "https"

    def __enter__(self) -> Registry:
        try:
            self._scheme = self._find_scheme()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all connections."""
        self._client.close()

    def manifest(self, wanted: str) -> bytes:
        """The bytes of the manifest of a tag or digest; a digest is left for the caller to check.

        Raises UsageError where there is none or it is not for us, InfrastructureError where the
        registry does not answer.
        """
        return self.patiently(lambda: self._small(f"manifests/{wanted}", {"Accept": ACCEPT}))

    def config(self, digest: str) -> bytes:
        """The bytes of a small blob, unchecked. Raises as ``manifest`` does."""
        return self.patiently(lambda: self._small(f"blobs/{digest}", {}))

    def _small(self, path: str, headers: Mapping[str, str]) -> bytes:
        data = b""
        with self.stream(path, headers) as response:
            for piece in response.iter_bytes():
                data += piece
                if len(data) > LARGEST:
                    raise DataError(f"{self._reference}: a document of over {LARGEST} bytes")
        return data

    def patiently(self, ask: Callable[[], T]) -> T:
        """What ``ask`` gives, asked again with pauses while the registry is ``BusyError``."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return ask()
            except BusyError as e:
                if attempt == ATTEMPTS:
                    raise InfrastructureError(
                        f"{self._reference.host} did not answer after {ATTEMPTS} attempts: {e}"
                    ) from e
                time.sleep(min(max(e.pause, self._pause * 2 ** (attempt - 1)), _LONGEST_PAUSE))
        raise AssertionError("no attempt was made")

    @contextmanager
    def stream(self, path: str, headers: Mapping[str, str]) -> Iterator[httpx.Response]:
        """An answer with status 200 or 206, not read yet; logged in where that is asked for.

        Raises BusyError where another attempt may help.
        """
        url = httpx.URL(f"{self._base}/{self._reference.name}/{path}")
        try:
            response = self._follow(url, headers)
            if response.status_code == 401:
                asked = response.headers.get("www-authenticate", "")
                response.close()
                self._authorization = self._authorize(asked)
                response = self._follow(url, headers)
            try:
                self._check(response)
                yield response
            finally:
                response.close()
        except httpx.InvalidURL as e:
            raise DataError(f"{self._reference.host} sends us to an address that is none") from e
        except httpx.RequestError as e:
            raise BusyError(f"{type(e).__name__}: {e}") from e

    @property
    def _base(self) -> str:
        return f"{self._scheme}://{self._reference.host}/v2"

    def _follow(self, url: httpx.URL, headers: Mapping[str, str]) -> httpx.Response:
        """Send a request and go where it is redirected; the login goes to the registry only."""
        home = (url.scheme, url.host, url.port)
        for _ in range(_REDIRECTS + 1):
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
                    "is not protected: refused"
                )
            url = target
        raise DataError(f"{self._reference.host} redirects without an end")

    def _check(self, response: httpx.Response) -> None:
        status, where = response.status_code, str(self._reference)
        if status in (200, 206):
            return
        if status == 429 or status >= 500:
            asked = response.headers.get("retry-after", "")
            raise BusyError(f"status {status}", status, float(asked) if asked.isdigit() else 0.0)
        if status in (401, 403):
            raise UsageError(
                f"{self._reference.host} does not give {where} to us (status {status}): "
                f"`docker login {self._reference.host}` or `podman login`, or the name is wrong"
            )
        if status == 404:
            raise UsageError(f"there is no {where}: the registry knows no such image or part")
        if status == 416:
            raise BusyError("it has no more of that part", status)
        raise InfrastructureError(f"{where}: unexpected status {status} from the registry")

    def _authorize(self, header: str) -> str:
        """The Authorization header that answers a challenge."""
        scheme, asked = credentials.challenge(header)
        known = credentials.find(self._reference.host)
        if scheme == "basic":
            if known is None or known.token:
                raise UsageError(
                    f"{self._reference.host} asks for a login: `docker login "
                    f"{self._reference.host}` or `podman login`"
                )
            return _basic(known)
        if scheme != "bearer" or "realm" not in asked:
            raise InfrastructureError(
                f"{self._reference.host} asks for a login of the unknown kind {header[:80]!r}"
            )
        return f"Bearer {self._token(asked, known)}"

    def _token(self, asked: Mapping[str, str], known: credentials.Login | None) -> str:
        realm = httpx.URL(asked["realm"])
        if realm.scheme != "https" and self._scheme == "https":
            raise DataError(f"{self._reference.host} asks to log in at {realm}: not protected")
        scope = asked.get("scope") or f"repository:{self._reference.name}:pull"
        query = {"service": asked.get("service", self._reference.host), "scope": scope}
        if known is not None and known.token:
            form = {"grant_type": "refresh_token", "refresh_token": known.token, **query}
            form["client_id"] = "intercode"
            response = self._client.post(realm, data=form)
        else:
            headers = {"Authorization": _basic(known)} if known else {}
            response = self._client.get(realm, params={**realm.params, **query}, headers=headers)
        if response.status_code in (400, 401, 403):
            raise UsageError(
                f"{realm.host} refuses the login for {self._reference}: `docker login "
                f"{self._reference.host}` or `podman login` again"
            )
        self._check(response)
        table = read(response.content, str(realm.host))
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
                    f"the certificate of {host} is not trusted ({e}): name its authority with "
                    f"SSL_CERT_FILE, or put it into {_CERTIFICATES[0]}/{host}/ca.crt"
                ) from e
            if is_plain(host):
                return "http"
            if "WRONG_VERSION_NUMBER" in str(e) or "record layer" in str(e):
                raise UsageError(
                    f"{host} speaks no HTTPS; if it is to be trusted without, set {PLAIN}={host}"
                ) from e
        return "https"


def _basic(known: credentials.Login) -> str:
    request = httpx.Request("GET", "https://unused")
    flow = httpx.BasicAuth(known.user, known.password).auth_flow(request)
    return str(next(flow).headers["Authorization"])


def _trust(host: str) -> ssl.SSLContext:
    """Whose certificates count: Python's and the system's, and those that engines keep for a
    registry."""
    context = httpx.create_ssl_context()
    context.load_default_certs()
    for folder in _CERTIFICATES:
        for path in sorted((Path(folder) / host).glob("*.crt")):
            context.load_verify_locations(path)
    return context
