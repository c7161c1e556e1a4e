"""The arguments that servers of environments share, and the settings that they give."""

from __future__ import annotations

import argparse
from typing import Any

from intercode.cli.parser import given_options
from intercode.core.config import parse_key_values
from intercode.core.types import Dataset

IDLE_SECONDS = 600.0
"""Seconds without a request after which the session of an environment ends by default."""
SERVER_OPTIONS = """\
--host HOST           address to listen on
--token TOKEN         what clients must send as Authorization: Bearer TOKEN (default
                      INTERCODE_SERVE_TOKEN, which the list of processes does not show)
--allow-origin ORIGIN ...  let web pages of this origin, such as http://localhost:3000, use the
                      server
--port PORT           port (default 8000; 0: any free)
--sessions N          sessions at once (default 64)"""
SNAPSHOTS_OPTION = """\
--snapshots N         snapshots of episodes that clients may hold at once (default 16)"""
EPISODE_OPTIONS = """\
--max-turns N         actions an episode may take
--score-requests      clients may ask for the score during an episode; without this, asking ends it
--allow-exploitable   allow a profile whose faults training would exploit"""
SERVER_DEFAULTS = {"dataset": "starter", "host": "127.0.0.1", "port": 8000, "sessions": 64}
SERVER_SETTINGS = {"port": {"type": int}}

_SETTINGS = ("profile", "image", "network", "backend", "timeout", "reward", "max_turns")


def environment_settings(args: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of the environments to serve. Raises UsageError for those with which
    training would teach exploits, unless --allow-exploitable is given."""
    from intercode.environments.base.options import check_training

    given = {k: v for k, v in given_options(args).items() if k in _SETTINGS}
    given |= parse_key_values(args.env_option)
    check_training(given, args.allow_exploitable)
    return given


def check_environment(name: str, dataset: Dataset, settings: dict[str, Any]) -> None:
    """Begin an episode and end it, so that what cannot work fails before there is a client."""
    import intercode

    with intercode.make(name, dataset, **settings) as env:
        env.reset(options={"task": 0})
