"""What a process that parses actions executes: ``python -m`` this module with a descriptor.

It answers requests until its owner closes the socket, and is ended by the kernel if a request takes
longer than ``PARSE_SECONDS`` of processor time.
"""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Callable
from functools import lru_cache

from intercode.environments.base.policy.parse_process import PARSE_SECONDS
from intercode.environments.base.policy.policy import (
    ActionSyntax,
    Policy,
    action_parser,
    read_policy,
)
from intercode.environments.base.policy.rules import ParsedAction
from intercode_sql.worker.service_start import service_channel

_MEMORY_BYTES = 1 << 30


@lru_cache(maxsize=16)
def _policy(text: str, syntax: ActionSyntax) -> tuple[Policy, Callable[[str], ParsedAction]]:
    policy = read_policy(json.loads(text))
    parse = action_parser(policy, syntax)
    parse("")  # imports its modules
    return policy, parse


def serve(channel: socket.socket) -> None:
    """Answer requests until the channel ends."""
    _limit_memory()
    has_timers = hasattr(signal, "setitimer")
    if has_timers:
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
    for line in channel.makefile("rb"):
        request = json.loads(line)
        syntax = request["syntax"]
        policy, parse = _policy(
            json.dumps(request["policy"]),
            ActionSyntax(**{**syntax, "kinds": tuple(syntax["kinds"])}),
        )
        if request["unparsed"]:  # an earlier process did not parse it
            unparsed = ParsedAction((), request["unparsed"])
            parse = lambda _, unparsed=unparsed: unparsed  # type: ignore[misc]  # noqa: E731
        if has_timers:
            signal.setitimer(signal.ITIMER_PROF, PARSE_SECONDS)
        refusal = policy.refusal(request["text"], parse)
        if has_timers:
            signal.setitimer(signal.ITIMER_PROF, 0)
        channel.sendall(json.dumps({"refusal": refusal}).encode() + b"\n")


def _limit_memory() -> None:
    """Bound the memory of this process, on systems with such limits."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY_BYTES, _MEMORY_BYTES))


if __name__ == "__main__":
    serve(service_channel())
