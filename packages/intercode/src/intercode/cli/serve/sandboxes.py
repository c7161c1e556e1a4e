"""``intercode serve --sandboxes``: opens sandboxes for clients on other machines."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from intercode.cli.serve.address import check_exposure, given_token, host_and_port, listen
from intercode.core.errors import ConfigError, DataError, UsageError
from intercode_sandbox import tier_of
from intercode_sandbox.http import is_loopback
from intercode_sandbox.remote.access import Access

_GIB = 1 << 30


def serve_sandboxes(args: argparse.Namespace) -> int:
    """Serve sandboxes until Ctrl-C."""
    from aiohttp import web

    from intercode_sandbox.remote.bounds import Bounds
    from intercode_sandbox.remote.server import SandboxServer

    if args.environment is not None:
        raise UsageError("--sandboxes serves sandboxes for all environments: name none")
    backend = args.backend or "auto"
    tier = tier_of(backend)  # fail now rather than at the first client
    if tier.startswith("remote/"):
        raise UsageError("a server of sandboxes needs its own: choose another --backend")
    if tier == "landlock":
        raise UsageError(
            "sandboxes of the tier landlock are for programs of this user, not for clients: choose "
            "another --backend; `intercode doctor` lists those that work here"
        )
    given = {
        "sandboxes": args.max_sandboxes, "cpu_seconds": args.max_cpu_seconds,
        "idle": args.idle_timeout, "lifetime": args.max_lifetime, "network": args.allow_network,
        "memory": args.max_memory and args.max_memory * _GIB,
        "disk": args.max_disk and args.max_disk * _GIB,
        "uploads": args.max_uploads and args.max_uploads * _GIB,
    }  # fmt: skip
    bounds = Bounds(**{name: value for name, value in given.items() if value is not None})
    tokens = _tokens(args)
    accesses = [Access(token, tuple(args.allow_origin)) for token in tokens]
    with listen(args.host, args.port) as listener:
        host, port = listener.getsockname()[:2]
        check_exposure(host, tokens[0])
        server = SandboxServer(accesses, bounds, backend)
        print(f"serving sandboxes of the tier {tier} at http://{host_and_port(host, port)}; "
              "Ctrl-C ends it")  # fmt: skip
        print(f"on a client:  {_client_command(host, port, tokens[0])}", flush=True)
        web.run_app(server.application(), sock=listener, print=None, access_log=None)
    print("the sandboxes have ended", file=sys.stderr)
    return 0


def _tokens(args: argparse.Namespace) -> list[str | None]:
    """Return the tokens of the clients, or None alone if the server has none."""
    if args.token_file is None:
        return [given_token(args)]
    if args.token is not None:
        raise UsageError("give --token or --token-file, not both")
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


def _client_command(host: str, port: int, token: str | None) -> str:
    """Return the command that plays with these sandboxes from another machine."""
    url = f"http://{host_and_port(host, port)}"
    if not is_loopback(host):
        url = "https://NAME-OF-THE-PROXY"
    before = "INTERCODE_REMOTE_TOKEN=TOKEN " if token is not None else ""
    return f"{before}intercode eval starter --agent gold --backend remote:{url}"
