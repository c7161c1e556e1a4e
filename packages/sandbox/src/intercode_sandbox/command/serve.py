"""``intercode-sandbox serve``: opens sandboxes for clients on other machines."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from intercode_sandbox import tier_of
from intercode_sandbox.command.address import check_exposure, given_token, host_and_port, listen
from intercode_sandbox.command.options import split_pair
from intercode_sandbox.command.parser import add_options
from intercode_sandbox.errors import ConfigError, DataError, UsageError
from intercode_sandbox.http import is_loopback
from intercode_sandbox.remote.access import Access
from intercode_sandbox.tiers.tier_table import tier_named
from intercode_sandbox.validation import read_limits

SUMMARY = "serve sandboxes to machines that cannot have their own"
EXAMPLE = """\
examples:
  intercode-sandbox serve --token-file tokens.txt
  INTERCODE_REMOTE_TOKEN=TOKEN intercode-sandbox run --backend remote:https://HOST -- uname -a
      on the other machine

At an address of a network, a server requires a token (INTERCODE_SERVE_TOKEN or --token-file), which
clients send as Authorization: Bearer TOKEN: whoever has it can run code in sandboxes. It is sent as
it is, so use a network that you trust, or a proxy with TLS."""
BOUNDS = """\
--token-file FILE     file with a token in each line; what a client may use is counted by token
--limit NAME=VALUE ...  may be given several times: sandboxes of a client at once (default 64);
                      memory and disk of one sandbox (default 4g each); cpu_seconds of one action;
                      lifetime of a sandbox in seconds (default 21600); uploads, the layers that a
                      client may send or make (default 8g)
--allow-network       let clients open sandboxes with this machine's network"""
"""What clients may use."""
RENAMED_BOUNDS = {
    "--max-sandboxes": "--limit sandboxes=N",
    "--max-memory": "--limit memory=SIZE",
    "--max-disk": "--limit disk=SIZE",
    "--max-cpu-seconds": "--limit cpu_seconds=S",
    "--max-lifetime": "--limit lifetime=S",
    "--max-uploads": "--limit uploads=SIZE",
    "--token": "the variable INTERCODE_SERVE_TOKEN",
}
"""Options of an earlier version, and what they are now."""
_LIMITS = ("sandboxes", "memory", "disk", "cpu_seconds", "lifetime", "uploads")
ADDRESS = """\
--host HOST           address to listen on
--allow-origin ORIGIN ...  let web pages of this origin, such as http://localhost:3000, use the
                      server
--port PORT           port (default 8000; 0: any free)"""
"""Where a server listens, and who may use it."""
_ARGUMENTS = f"""{ADDRESS}
--idle-timeout S      end a sandbox after so many seconds without a request (default 1800)
{BOUNDS}
--backend BACKEND     namespace, chroot, docker, podman, or auto (the default)"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_options(parser, _ARGUMENTS, {"port": {"type": int}}, RENAMED_BOUNDS)
    parser.set_defaults(host="127.0.0.1")


def handle(args: argparse.Namespace) -> int:
    """Serve sandboxes until Ctrl-C."""
    return serve_sandboxes(args, "intercode-sandbox run", "-- uname -a")


def _read_bounds(pairs: list[str]) -> dict[str, int | float]:
    """Return bounds from texts such as ``memory=2g``. Raises UsageError."""
    texts = dict(split_pair(pair, "limit", "NAME=VALUE") for pair in pairs)
    read = read_limits(texts, _LIMITS)
    for name, value in read.items():
        if not 0 < value < float("inf"):
            raise UsageError(f"the limit {name} has to be greater than 0, not {texts[name]}")
    return read


def serve_sandboxes(args: argparse.Namespace, before: str, after: str = "") -> int:
    """Serve sandboxes until Ctrl-C.

    ``before`` and ``after``: the parts of an example of a client's command around its back end.
    """
    from aiohttp import web

    from intercode_sandbox.remote.bounds import Bounds
    from intercode_sandbox.remote.server import SandboxServer

    backend = args.backend or "auto"
    tier = tier_of(backend)  # fail now rather than at the first client
    record = tier_named(tier)
    if record.is_remote:
        raise UsageError("a server of sandboxes needs its own: choose another --backend")
    if not record.automatic:
        raise UsageError(
            f"sandboxes of the tier {tier} are for programs of this user, not for clients: choose "
            "another --backend; `intercode-sandbox doctor` lists those that work here"
        )
    given: dict[str, Any] = {"network": args.allow_network, **_read_bounds(args.limit)}
    if args.idle_timeout is not None:
        given["idle"] = args.idle_timeout
    bounds = Bounds(**given)
    tokens = _tokens(args)
    accesses = [Access(token, tuple(args.allow_origin)) for token in tokens]
    with listen(args.host, args.port) as listener:
        host, port = listener.getsockname()[:2]
        check_exposure(host, tokens[0])
        server = SandboxServer(accesses, bounds, backend)
        print(
            f"serving sandboxes of the tier {tier} at http://{host_and_port(host, port)}; "
            "Ctrl-C ends it"
        )
        address = _client_address(host, port)
        variable = "" if tokens[0] is None else "INTERCODE_REMOTE_TOKEN=TOKEN "
        command = f"{variable}{before} --backend remote:{address} {after}".rstrip()
        print(f"on a client:  {command}", flush=True)
        web.run_app(server.application(), sock=listener, print=None, access_log=None)
    print("the sandboxes have ended", file=sys.stderr)
    return 0


def _tokens(args: argparse.Namespace) -> list[str | None]:
    """Return the tokens of the clients, or None alone if the server has none."""
    if args.token_file is None:
        return [given_token()]
    path: Path = args.token_file
    try:
        tokens = path.read_text("ascii").split()
    except (OSError, UnicodeDecodeError) as e:
        raise DataError(f"the file of tokens {path} cannot be read: {e}") from e
    if not tokens:
        raise DataError(f"the file of tokens {path} is empty: write a token in each line")
    if path.stat().st_mode & 0o077:
        raise ConfigError(f"other users of this machine can read the tokens: chmod 600 {path}")
    return list(tokens)


def _client_address(host: str, port: int) -> str:
    """Return the URL under which another machine reaches these sandboxes."""
    return (
        f"http://{host_and_port(host, port)}" if is_loopback(host) else "https://NAME-OF-THE-PROXY"
    )
