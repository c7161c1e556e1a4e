"""``intercode serve``: serves environments to trainers on other machines (OpenEnv protocol)."""

from __future__ import annotations

import argparse
import os
import socket
import sys
from contextlib import suppress
from ipaddress import ip_address
from typing import Any

from intercode.cli.parser import ENVIRONMENT_OPTION, SANDBOX_OPTIONS, given_options
from intercode.core.config import parse_key_values
from intercode.core.errors import ConfigError, UsageError

_TOKEN_VARIABLE = "INTERCODE_SERVE_TOKEN"
EXAMPLE = """\
examples:
  intercode serve bash
  intercode serve sql --dataset spider --port 9000 --sessions 256
  openenv validate --url http://localhost:8000
  intercode serve bash --package bash-env
      writes a package instead, for `openenv validate`, `build` and `push`

Each session of a client is an environment with a sandbox of its own. At an address of a network,
a server requires a token (INTERCODE_SERVE_TOKEN or --token): whoever has it can run code in
sandboxes. It is sent as it is, so use a network that you trust, or a proxy with TLS."""

ARGUMENTS = f"""\
environment           bash, sql, python, ctf, ... (see `intercode list`)
--dataset DATASET     dataset of the tasks (default starter)
--host HOST           address to listen on
--token TOKEN         what clients must send as Authorization: Bearer TOKEN (default
                      INTERCODE_SERVE_TOKEN, which the list of processes does not show)
--allow-origin ORIGIN ...  let web pages of this origin, such as http://localhost:3000, use the
                      server
--port PORT           port (default 8000; 0: any free)
--sessions N          sessions at once (default 64)
--idle-timeout S      end a session after so many seconds without a request (default 600)
--max-turns N         actions an episode may take
--score-requests      clients may ask for the score during an episode; without this, asking ends it
--allow-exploitable   allow --profile original, whose faults training would exploit
--package DIR         write an OpenEnv package and serve nothing
{ENVIRONMENT_OPTION}
{SANDBOX_OPTIONS}"""
DEFAULTS = {
    "dataset": "starter", "host": "127.0.0.1", "port": 8000, "sessions": 64, "idle_timeout": 600.0,
}  # fmt: skip
SETTINGS = {"port": {"type": int}}


def handle(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C, or write the package."""
    from intercode.environments.base.options import check_training

    names = ("profile", "image", "network", "sandbox", "timeout", "reward", "max_turns")
    given = {k: v for k, v in given_options(args).items() if k in names}
    given |= parse_key_values(args.env_option)
    check_training(given, args.allow_exploitable)
    return _serve(args, given) if args.package is None else _write(args, given)


def _write(args: argparse.Namespace, given: dict[str, Any]) -> int:
    from intercode.integrations.openenv.package import write_package

    home = args.package
    names = write_package(
        home, args.environment, args.dataset, given, args.sessions, args.idle_timeout,
        args.allow_exploitable,
    )  # fmt: skip
    print(f"{home}: {', '.join(names)}")
    print(f"check it:  openenv validate {home} --skip-build")
    print(f"serve it:  uvicorn --app-dir {home} server.app:app")
    return 0


def _serve(args: argparse.Namespace, given: dict[str, Any]) -> int:
    import intercode
    from intercode.environments.base.options import pick_dataset

    try:
        import uvicorn

        from intercode.core.access import Access
        from intercode.integrations.openenv.server import build_app
    except ImportError as e:
        raise ConfigError("serving needs OpenEnv: pip install 'intercode-gym[openenv]'") from e
    token = args.token if args.token is not None else os.environ.get(_TOKEN_VARIABLE) or None
    access = Access(token, tuple(args.allow_origin))
    dataset = pick_dataset(args.dataset, args.environment)
    with listen(args.host, args.port) as listener:
        host, port = listener.getsockname()[:2]
        _check_exposure(host, token)
        with intercode.make(args.environment, dataset, **given) as env:
            env.reset(options={"task": 0})  # fail now rather than at the first client
        served = build_app(
            lambda: intercode.make(args.environment, dataset, **given), args.environment,
            args.sessions, args.idle_timeout, args.score_requests, access, args.allow_exploitable,
        )  # fmt: skip
        at = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        print(f"serving {args.environment} at http://{at}; Ctrl-C ends it", flush=True)
        with suppress(KeyboardInterrupt):
            uvicorn.Server(uvicorn.Config(served, log_level="warning")).run(sockets=[listener])
    return 0


def _check_exposure(host: str, token: str | None) -> None:
    """Warn if a server listens on an address that other machines reach. Raises ConfigError if it
    has no token there."""
    if ip_address(host.partition("%")[0]).is_loopback:
        return
    if token is None:
        raise ConfigError(
            f"{host} is not an address of this machine alone: anybody who reaches the port could "
            f"run code in sandboxes. Set {_TOKEN_VARIABLE} (or --token) to a secret, or listen on "
            "127.0.0.1"
        )
    print(
        f"warning: {host} is not an address of this machine alone: anybody who reaches the port "
        "and has the token can run code in sandboxes",
        file=sys.stderr,
    )


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket, for port 0 on any free port. Raises UsageError if that fails."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as e:
        raise UsageError(
            f"cannot listen on {host}, port {port}: {e}; --port 0 takes any that is free"
        ) from e
