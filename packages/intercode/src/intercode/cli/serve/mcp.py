"""``intercode serve --protocol mcp``: environments as tools of the Model Context Protocol."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from intercode.cli.serve.options import check_environment, environment_settings
from intercode.core.errors import ConfigError
from intercode_sandbox.remote.access import Access


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
    if args.port is not None:
        from intercode.cli.serve.web_server import run_web_server
        from intercode.integrations.mcp.server import PATH, build_app

        def build(access: Access) -> tuple[Any, Callable[[], None]]:
            return build_app(server, access, args.sessions, args.idle_timeout), server.abort

        run_web_server(args.environment, args.host, args.port, args.allow_origin, build, PATH)
        return 0
    print(f"serving {args.environment} on standard input and output", file=sys.stderr)
    with suppress(KeyboardInterrupt):
        anyio.run(server.serve_stdio)
    return 0
