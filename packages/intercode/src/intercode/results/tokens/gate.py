"""Which of some episodes may be trained on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from intercode.core.types import Trajectory
from intercode.results.tokens.faults import TokenFault, find_faults
from intercode.results.tokens.trace import TokenTrace, families


@dataclass(frozen=True, slots=True)
class TokenCheck:
    """An episode with its trace, which it shares with its forks, and the faults of the episode."""

    episode: Trajectory
    trace: TokenTrace
    has_ids: bool
    faults: tuple[TokenFault, ...]


def check_episodes(
    episodes: Iterable[Trajectory], *, allow: Collection[str] = ()
) -> list[TokenCheck]:
    """Return a check for each episode; forks come after the episode that they were forked from.
    ``allow`` are kinds of faults that do not count."""
    checks = []
    for family in families(episodes):
        trace = TokenTrace.from_episodes(family)
        found = find_faults(trace, allow=allow)
        known = {call.episode for call in trace.calls if call.has_any_ids}
        known |= {episode for episode, _, _ in trace.reply_nodes}
        checks += [
            TokenCheck(e, trace, e.id in known, tuple(f for f in found if f.episode == e.id))
            for e in family
        ]
    return checks


def describe_refusals(checks: Iterable[TokenCheck]) -> list[str]:
    """Return how many episodes are refused, and for each kind of fault how many have it and the
    first one; nothing if none is refused."""
    refused = [check for check in checks if check.faults]
    if not refused:
        return []
    counts = Counter(kind for check in refused for kind in {f.kind for f in check.faults})
    first = {f.kind: (check, f) for check in reversed(refused) for f in reversed(check.faults)}
    lines = [f"{len(refused)} episodes with token ids are refused for training"]
    for kind, count in counts.most_common():
        check, fault = first[kind]
        name = fault.episode or check.episode.task
        lines.append(f"{kind} in {count} of them, such as {name}, {fault.message}")
    return lines
