"""The reward of a Harbor task: what its verifier wrote."""

from __future__ import annotations

from intercode.core.types import Score, State, Task

MAIN_REWARD = "reward"
_PROGRAM_PREFIXES = ("/bin/", "/sbin/", "/lib", "/usr/", "/etc/ld.so")
_MAX_PATHS = 50  # in the details


def standard(_task: Task, agent: State, _gold: State) -> Score:
    """Return the number that the verifier wrote.

    Of several numbers this is the one called ``reward``, or else their mean; all of them become
    parts. 0 if the verifier wrote no readable number. The details list the programs and
    libraries that the agent changed or added, because the verifier may have run them.
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
