"""The reward of a Harbor task: what its verifier wrote."""

from __future__ import annotations

import re

from intercode.core.types import Score, State, Task

MAIN_REWARD = "reward"
_TRUSTED = re.compile(
    r"/(?:bin|sbin|lib\w*|usr|etc)/.*"  # programs, libraries and their settings
    r"|(?:/root|/home/[^/]+)/\..*"
    r"|.*/(?:s?bin|site-packages|dist-packages|\.git/hooks)/.*"
    r"|.*/(?:conftest\.py|sitecustomize\.py|usercustomize\.py|[^/]+\.pth|\.git/config)"
)
_MAX_PATHS = 50  # in the details


def standard(_task: Task, agent: State, _gold: State) -> Score:
    """Return the number that the verifier wrote.

    Of several numbers this is the one called ``reward``, or else their mean; all of them become
    parts. 0 if the verifier wrote no readable number, or if its result does not count (see
    ``run_verifier``). The details have its exit status as ``verifier`` and the reason and its
    output as ``said``. ``trusted`` lists the agent's files that a verifier may have executed or
    loaded without naming them: programs, libraries, start-up files and settings.
    """
    parts = {test.test: float(test.output or 0.0) for test in agent.tests}
    trusted = sorted(filter(_TRUSTED.fullmatch, agent.files))[:_MAX_PATHS]
    details = {"verifier": agent.exit_code, "said": agent.output, "trusted": trusted}
    if not parts or agent.failed:
        return Score(0.0, {MAIN_REWARD: 0.0}, details)
    value = parts.get(MAIN_REWARD, sum(parts.values()) / len(parts))
    return Score(value, parts, details)
