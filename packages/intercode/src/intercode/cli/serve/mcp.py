"""``intercode serve --protocol mcp``: environments as tools of the Model Context Protocol."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from intercode.cli.serve.options import check_environment, environment_settings
from intercode.core.errors import ConfigError
from intercode_sandbox.command.address import check_exposure, given_token, host_and_port, listen

if TYPE_CHECKING:
    from intercode.integrations.mcp.server import EnvironmentServer


def handle(args: argparse.Namespace) -> int:
    """Serve until the client closes the standard input, or until Ctrl-C."""
    import intercode
    from intercode.environments.base.options import pick_dataset

    try:
        import anyio

        from intercode.integrations.mcp.server import EnvironmentServer
    except ImportError as e:
        raise ConfigError("this needs MCP's library: pip install 'intercode-gym[mcp]'") from e
    given = environment_settings(args)
    dataset = pick_dataset(args.dataset, args.environment)
    check_environment(args.environment, dataset, given)
    server = EnvironmentServer(
        lambda: intercode.make(args.environment, dataset, **given),
        args.score_requests,
        args.sessions,
    )
    with suppress(KeyboardInterrupt):
        if args.port is not None:
            _serve_http(args, server)
        else:
            print(f"serving {args.environment} on standard input and output", file=sys.stderr)
            anyio.run(server.serve_stdio)
    return 0


def _serve_http(args: argparse.Namespace, server: EnvironmentServer) -> None:
    from intercode.cli.serve.web_server import run_web_server
    from intercode.integrations.mcp.server import PATH, build_app
    from intercode_sandbox.remote.access import Access

    token = given_token()
    app = build_app(
        server, Access(token, tuple(args.allow_origin)), args.sessions, args.idle_timeout
    )
    with listen(args.host, args.port) as listener:
        host, port = listener.getsockname()[:2]
        check_exposure(host, token)
        url = f"http://{host_and_port(host, port)}{PATH}"
        print(f"serving {args.environment} at {url}; Ctrl-C ends it", flush=True)
        run_web_server(app, listener, server.abort)
