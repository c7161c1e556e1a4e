"""The registry of environments, and ``make``, which creates one by name."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from intercode.core.registry import Registry

ENVIRONMENTS = Registry(
    "environment",
    {
        "bash": "intercode.environments.bash.env:BashEnv",
        "code": "intercode.environments.code.env:CodeEnv",
        "ctf": "intercode.environments.ctf.env:CTFEnv",
        "harbor": "intercode.environments.harbor.env:HarborEnv",
        "python": "intercode.environments.python.env:PythonEnv",
        "sql": "intercode.environments.sql.env:SqlEnv",
    },
    group="intercode.environments",
)
_GYMNASIUM_IDS = {
    "intercode/Bash-v1": "intercode.environments.bash.env:BashEnv",
    "intercode/Code-v1": "intercode.environments.code.env:CodeEnv",
    "intercode/CTF-v1": "intercode.environments.ctf.env:CTFEnv",
    "intercode/Python-v1": "intercode.environments.python.env:PythonEnv",
    "intercode/SQL-v1": "intercode.environments.sql.env:SqlEnv",
}


def make(environment: str, dataset: Any = "starter", **settings: Any) -> Any:
    """Create an environment by name: ``make("bash", dataset="nl2bash:fs_1")``.

    Raises UnknownNameError for an unknown environment, dataset or subset.
    """
    return ENVIRONMENTS.load(environment)(dataset, **settings)


def register() -> None:
    """Register the environments with Gymnasium."""
    for identifier, entry_point in _GYMNASIUM_IDS.items():
        if identifier not in gym.registry:
            kind = entry_point.split(".")[2]
            vector_entry_point = f"intercode.environments.base.vector:{kind}"
            gym.register(identifier, entry_point=entry_point, vector_entry_point=vector_entry_point)
