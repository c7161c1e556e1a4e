"""Decides which requests a server answers: those with its token, and none that a web page of
another origin sends."""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from intercode_sandbox.errors import ConfigError

_TOKEN = re.compile(r"[!-~]+")  # what an HTTP header carries unchanged


@dataclass(frozen=True)
class Access:
    """Who may use a server.

    ``token``: the text that each request must carry as ``Authorization: Bearer TOKEN``; None for no
    check. ``origins``: the origins besides the server's own whose web pages may send requests, such
    as ``https://example.org``. Raises ConfigError for a value that no request can carry.
    """

    token: str | None = None
    origins: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.token is not None and not _TOKEN.fullmatch(self.token):
            raise ConfigError("a token is printable ASCII text without spaces, and not empty")
        for origin in self.origins:
            parts = urlsplit(origin)
            if origin != f"{parts.scheme}://{parts.netloc}" or not parts.netloc:
                raise ConfigError(
                    f"{origin!r} is not an origin: write scheme, host and port alone, such as "
                    "http://localhost:3000"
                )

    def refusal(self, headers: Mapping[bytes, bytes]) -> tuple[int, str] | None:
        """Return the status and the reason if a request with these headers is refused."""
        origin = headers.get(b"origin")
        host = headers.get(b"host", b"").decode("latin-1")
        if origin is not None and not self._allows_origin(origin.decode("latin-1"), host):
            return 403, (
                f"a web page of {origin.decode('latin-1')!a} may not use this server: "
                "its option `--allow-origin ORIGIN` allows that"
            )
        if self.token is None:
            return None
        expected = b"bearer " + self.token.encode("ascii")
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        if hmac.compare_digest(scheme.lower() + b" " + token.strip(), expected):
            return None
        return 401, "this server requires its token: send the header Authorization: Bearer TOKEN"

    def _allows_origin(self, origin: str, host: str) -> bool:
        """Return whether web pages of an origin may use the server that they address as ``host``.

        The server's own origin is an address, or localhost. Any other name may be that of a
        stranger's web page which the stranger's name server then points to this machine.
        """
        if origin in self.origins:
            return True
        parts = urlsplit(origin)
        return parts.netloc.lower() == host.lower() and _is_own_name(host)


def _is_own_name(host: str) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or bool(ip_address(name))
    except ValueError:
        return False
