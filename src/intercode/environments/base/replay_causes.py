"""Why a re-executed step differs from its record: the first reason that its text shows."""

from __future__ import annotations

import re
from typing import Protocol


class ComparedStep(Protocol):
    """What is looked at: the action and both observations."""

    @property
    def action(self) -> str: ...
    @property
    def recorded(self) -> str: ...
    @property
    def replayed(self) -> str: ...


_ACTION_CAUSES = (
    ("network", r"\b(ping|dig|curl|wget|nslookup|host|ifconfig|netstat|ip)\b|/dev/tcp"),
    ("processes and load", r"\b(ps|pstree|top|uptime|w|pgrep|jobs|free)\b|/proc/(loadavg|\d)"),
    ("disk and mounts", r"\b(df|mount|findmnt|lsblk|du)\b|/proc/(self/)?mounts"),
    ("host name and environment", r"\b(hostname|uname|env|printenv|who|whoami|id)\b|HOSTNAME"),
    ("time of the run", r"\b(date|cal|touch)\b|-[acm](time|min)|-newer|newermt|daystart|TIME"),
    ("inode numbers", r"-i\b.*\bls\b|\bls\s+-\w*i|\bstat\b|-inum"),
)
_DATES = re.compile(
    r"\b\d{4}-\d\d-\d\d\b|\b\d\d:\d\d(:\d\d)?(\.\d+)?\b"
    r"|\b(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\s+\d+\b"
)


def difference_cause(step: ComparedStep) -> str:
    """One of a fixed set of causes."""
    for name, pattern in _ACTION_CAUSES:
        if re.search(pattern, step.action):
            return name
    if "Command timed out" in (step.recorded, step.replayed):
        return "time limit"
    if step.recorded == step.replayed:
        return "the gold's run or the state differs"
    if sorted(step.recorded.splitlines()) == sorted(step.replayed.splitlines()):
        return "order of a directory or of stdout against stderr"
    if _DATES.sub("", step.recorded) == _DATES.sub("", step.replayed):
        return "time of the run"
    return "other"
