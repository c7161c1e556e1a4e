"""The arguments that servers of environments share, and the settings that they give."""

from __future__ import annotations

import argparse
from typing import Any

from intercode.cli import shared_options
from intercode.core.types import Dataset
from intercode_sandbox.command.serve import ADDRESS

IDLE_SECONDS = 600.0
"""Seconds without a request after which the session of an environment ends by default."""
SERVER_OPTIONS = f"""\
{ADDRESS}
--sessions N          sessions at once (default 64)"""
SNAPSHOTS_OPTION = """\
--snapshots N         snapshots of episodes that clients may hold at once (default 16)"""
EPISODE_OPTIONS = """\
--max-turns N         actions an episode may take
--score-requests      clients may ask for the score during an episode; without this, asking ends it
--allow-exploitable   allow a profile whose faults training would exploit"""
SERVER_DEFAULTS = {"dataset": "starter", "host": "127.0.0.1", "sessions": 64}
SERVER_SETTINGS = {"port": {"type": int}}


def environment_settings(args: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of the environments to serve. Raises UsageError for those with which
    training would teach exploits, unless --allow-exploitable is given."""
    from intercode.environments.base.options import check_training

    given = shared_options.environment_settings(args)
    if args.max_turns is not None:
        given["max_turns"] = args.max_turns
    check_training(given, args.allow_exploitable)
    return given


def check_environment(name: str, dataset: Dataset, settings: dict[str, Any]) -> None:
    """Begin an episode and end it, so that what cannot work fails before there is a client."""
    import intercode

    with intercode.make(name, dataset, **settings) as env:
        env.reset(options={"task": 0})
