"""The reward of a task in Harbor's format: what its own verifier wrote."""

from __future__ import annotations

from intercode.core.types import Score, State, Task

MAIN_REWARD = "reward"
_PROGRAM_PREFIXES = ("/bin/", "/sbin/", "/lib", "/usr/", "/etc/ld.so")
_MAX_PATHS = 50  # paths that are told


def standard(_task: Task, agent: State, _gold: State) -> Score:
    """The number that the verifier wrote, or of several the one called ``reward``, or else their
    mean; all of them are its parts. 0 where it wrote none that can be read.

    The details tell which programs and libraries the agent changed or added: the verifier may have
    run them.
    """
    parts = {test.test: float(test.output or 0.0) for test in agent.tests}
    programs = sorted(path for path in agent.files if path.startswith(_PROGRAM_PREFIXES))[
        :_MAX_PATHS
    ]
    details = {"verifier": agent.exit_code, "said": agent.output, "programs": programs}
    if not parts or agent.failed:
        return Score(0.0, {MAIN_REWARD: 0.0}, details)
    value = parts.get(MAIN_REWARD, sum(parts.values()) / len(parts))
    return Score(value, parts, details)
