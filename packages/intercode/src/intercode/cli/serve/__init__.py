"""``intercode serve``: serves environments to trainers on other machines (OpenEnv), or as tools
(MCP), or sandboxes to machines that cannot have their own."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import Any

from intercode.cli.serve.options import (
    EPISODE_OPTIONS,
    IDLE_SECONDS,
    SERVER_DEFAULTS,
    SERVER_OPTIONS,
    SERVER_SETTINGS,
    SNAPSHOTS_OPTION,
    check_environment,
    environment_settings,
)
from intercode.cli.shared_options import SANDBOX_OPTIONS, SET_OPTION, refuse_options
from intercode.core.errors import ConfigError, UsageError
from intercode_sandbox.command.serve import BOUNDS, RENAMED_BOUNDS, serve_sandboxes
from intercode_sandbox.registry import unknown_name_error
from intercode_sandbox.remote.access import Access

EXAMPLE = """\
examples:
  intercode serve bash
  intercode serve sql --dataset spider --port 9000 --sessions 256
  openenv validate --url http://localhost:8000
  intercode serve bash --package bash-env
      writes a package instead, for `openenv validate`, `build` and `push`
  intercode serve bash --protocol mcp
      serves the tools reset, step, score, snapshot and restore, to one session on standard input
      and output, as MCP clients start servers; with --port N over HTTP, to many
  intercode serve --protocol sandboxes --token-file tokens.txt
      serves sandboxes instead, to `intercode eval ... --backend remote:URL` on other machines

Each session of a client is an environment with a sandbox of its own. At an address of a network,
a server requires a token (INTERCODE_SERVE_TOKEN), which clients send as Authorization: Bearer
TOKEN: whoever has it can run code in sandboxes. It is sent as it is, so use a network that you
trust, or a proxy with TLS."""

ARGUMENTS = f"""\
environment [NAME]    bash, sql, python, ctf, ... (see `intercode list`)
--protocol NAME       openenv (the default), mcp (the Model Context Protocol), or sandboxes (to
                      other machines, in place of environments; clients: --backend remote:URL)
--dataset DATASET     dataset of the tasks (default starter)
{SERVER_OPTIONS}
--idle-timeout S      end a session after so many seconds without a request (default 600), or a
                      sandbox (default 1800)
{EPISODE_OPTIONS}
{SNAPSHOTS_OPTION}
--package DIR         write an OpenEnv package and serve nothing
sandboxes for other machines:
{BOUNDS}
{SET_OPTION}
{SANDBOX_OPTIONS}"""
DEFAULTS = {**SERVER_DEFAULTS, "snapshots": 16, "protocol": "openenv"}
_LISTENING = {"host", "allow_origin", "port"}
BOUND_NAMES = {name.replace("-", "_") for name in re.findall(r"^--([a-z-]+)", BOUNDS, re.MULTILINE)}
"""The options of sandboxes for other machines."""
_EPISODES = {
    "dataset",
    "max_turns",
    "score_requests",
    "allow_exploitable",
    "profile",
    "image",
    "set",
}
_PROTOCOLS = ["openenv", "mcp", "sandboxes"]
MODES = {
    "serve environments": {
        "--protocol openenv": {"snapshots", "package", "sessions", *_LISTENING, *_EPISODES},
        "--protocol mcp": _EPISODES,
        "--protocol mcp --port": {"sessions", *_LISTENING, *_EPISODES},
    },
    "serve sandboxes": {"--protocol sandboxes": {*_LISTENING, *BOUND_NAMES}},
}
"""All forms have --backend and --idle-timeout."""
SETTINGS = SERVER_SETTINGS
RENAMED = {**RENAMED_BOUNDS, "--http": "--port N"}
"""Options of an earlier version that only this command had, and what they are now."""


def handle(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C, or write the package."""
    if args.protocol not in _PROTOCOLS:
        raise unknown_name_error("protocol", args.protocol, _PROTOCOLS)
    form = f"--protocol {args.protocol}"
    if args.protocol == "mcp" and args.port is not None:
        form = "--protocol mcp --port"
    refuse_options(args, MODES, form, DEFAULTS)
    if args.protocol == "sandboxes":
        if args.environment is not None:
            raise UsageError("sandboxes are served for all environments: name none")
        return serve_sandboxes(args, "intercode eval starter --agent gold")
    if args.environment is None:
        raise UsageError("name an environment, such as bash, or --protocol sandboxes")
    args.idle_timeout = args.idle_timeout or IDLE_SECONDS
    if args.protocol == "mcp":
        from intercode.cli.serve import mcp

        return mcp.handle(args)
    given = environment_settings(args)
    return _serve(args, given) if args.package is None else _write(args, given)


def _write(args: argparse.Namespace, given: dict[str, Any]) -> int:
    from intercode.integrations.openenv.package import write_package

    home = args.package
    names = write_package(
        home,
        args.environment,
        args.dataset,
        given,
        args.sessions,
        args.idle_timeout,
        args.allow_exploitable,
    )
    print(f"{home}: {', '.join(names)}")
    print(f"check it:  openenv validate {home} --skip-build")
    print(f"serve it:  uvicorn --app-dir {home} server.app:app")
    return 0


def _serve(args: argparse.Namespace, given: dict[str, Any]) -> int:
    import intercode
    from intercode.environments.base.options import pick_dataset

    try:
        from intercode.cli.serve.web_server import run_web_server
        from intercode.integrations.openenv.server import build_app
    except ImportError as e:
        raise ConfigError("serving needs OpenEnv: pip install 'intercode-gym[openenv]'") from e
    dataset = pick_dataset(args.dataset, args.environment)

    def build(access: Access) -> tuple[Any, Callable[[], None]]:
        check_environment(args.environment, dataset, given)
        served = build_app(
            lambda: intercode.make(args.environment, dataset, **given),
            args.environment,
            args.sessions,
            args.idle_timeout,
            args.score_requests,
            access,
            args.allow_exploitable,
            args.snapshots,
        )
        return served, served.state.abort

    run_web_server(args.environment, args.host, args.port, args.allow_origin, build)
    return 0
