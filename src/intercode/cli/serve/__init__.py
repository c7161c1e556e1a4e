"""``intercode serve``: serves environments to trainers on other machines (OpenEnv protocol), or
sandboxes to machines that cannot have their own."""

from __future__ import annotations

import argparse
import os
from contextlib import suppress
from typing import Any

from intercode.cli.parser import ENVIRONMENT_OPTION, SANDBOX_OPTIONS, given_options
from intercode.cli.serve.address import TOKEN_VARIABLE, check_exposure, host_and_port, listen
from intercode.core.config import parse_key_values
from intercode.core.errors import ConfigError, UsageError

_IDLE_SECONDS = 600.0
EXAMPLE = """\
examples:
  intercode serve bash
  intercode serve sql --dataset spider --port 9000 --sessions 256
  openenv validate --url http://localhost:8000
  intercode serve bash --package bash-env
      writes a package instead, for `openenv validate`, `build` and `push`
  intercode serve --sandboxes --token-file tokens.txt
      serves sandboxes instead, to `intercode eval ... --sandbox remote:URL` on other machines

Each session of a client is an environment with a sandbox of its own. At an address of a network,
a server requires a token (INTERCODE_SERVE_TOKEN or --token): whoever has it can run code in
sandboxes. It is sent as it is, so use a network that you trust, or a proxy with TLS."""

ARGUMENTS = f"""\
environment [NAME]    bash, sql, python, ctf, ... (see `intercode list`)
--dataset DATASET     dataset of the tasks (default starter)
--host HOST           address to listen on
--token TOKEN         what clients must send as Authorization: Bearer TOKEN (default
                      INTERCODE_SERVE_TOKEN, which the list of processes does not show)
--allow-origin ORIGIN ...  let web pages of this origin, such as http://localhost:3000, use the
                      server
--port PORT           port (default 8000; 0: any free)
--sessions N          sessions at once (default 64)
--idle-timeout S      end a session after so many seconds without a request (default 600), or a
                      sandbox (default 1800)
--max-turns N         actions an episode may take
--score-requests      clients may ask for the score during an episode; without this, asking ends it
--allow-exploitable   allow --profile original, whose faults training would exploit
--package DIR         write an OpenEnv package and serve nothing
sandboxes for other machines:
--sandboxes           serve sandboxes in place of environments (docs/remote-sandboxes.md)
--token-file FILE     file with a token in each line; what a client may use is counted by token
--max-sandboxes N     sandboxes of a client at once (default 64)
--max-memory N        GiB of memory that one sandbox may have (default 4)
--max-disk N          GiB of files that one sandbox may have (default 4)
--max-cpu-seconds S   processor time of one action
--max-lifetime S      end a sandbox after so many seconds (default 21600)
--max-uploads N       GiB of layers that a client may send or make (default 8)
--allow-network       let clients open sandboxes with this machine's network
{ENVIRONMENT_OPTION}
{SANDBOX_OPTIONS}"""
DEFAULTS = {
    "dataset": "starter", "host": "127.0.0.1", "port": 8000, "sessions": 64,
}  # fmt: skip
SETTINGS = {"port": {"type": int}}


def handle(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C, or write the package."""
    if args.sandboxes:
        from intercode.cli.serve.sandboxes import serve_sandboxes

        return serve_sandboxes(args)
    if args.environment is None:
        raise UsageError("name an environment, such as bash, or --sandboxes")
    from intercode.environments.base.options import check_training

    args.idle_timeout = args.idle_timeout or _IDLE_SECONDS
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

        from intercode.integrations.openenv.server import build_app
        from intercode.sandbox.remote.access import Access
    except ImportError as e:
        raise ConfigError("serving needs OpenEnv: pip install 'intercode-gym[openenv]'") from e
    token = args.token if args.token is not None else os.environ.get(TOKEN_VARIABLE) or None
    access = Access(token, tuple(args.allow_origin))
    dataset = pick_dataset(args.dataset, args.environment)
    with listen(args.host, args.port) as listener:
        host, port = listener.getsockname()[:2]
        check_exposure(host, token)
        with intercode.make(args.environment, dataset, **given) as env:
            env.reset(options={"task": 0})  # fail now rather than at the first client
        served = build_app(
            lambda: intercode.make(args.environment, dataset, **given), args.environment,
            args.sessions, args.idle_timeout, args.score_requests, access, args.allow_exploitable,
        )  # fmt: skip
        at = host_and_port(host, port)
        print(f"serving {args.environment} at http://{at}; Ctrl-C ends it", flush=True)
        with suppress(KeyboardInterrupt):
            uvicorn.Server(uvicorn.Config(served, log_level="warning")).run(sockets=[listener])
    return 0
