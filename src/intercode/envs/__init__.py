"""Environments, and how they are made by name."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from intercode.registry import Registry

ENVIRONMENTS = Registry(
    "environment",
    {
        "bash": "intercode.envs.bash:BashEnv",
        "code": "intercode.envs.code:CodeEnv",
        "ctf": "intercode.envs.ctf:CTFEnv",
        "harbor": "intercode.envs.harbor:HarborEnv",
        "python": "intercode.envs.python:PythonEnv",
        "sql": "intercode.envs.sql:SqlEnv",
    },
    group="intercode.environments",
)
_IDS = {
    "intercode/Bash-v1": "intercode.envs.bash:BashEnv",
    "intercode/Code-v1": "intercode.envs.code:CodeEnv",
    "intercode/CTF-v1": "intercode.envs.ctf:CTFEnv",
    "intercode/Python-v1": "intercode.envs.python:PythonEnv",
    "intercode/SQL-v1": "intercode.envs.sql:SqlEnv",
}


def make(environment: str, dataset: Any = "starter", **settings: Any) -> Any:
    """An environment by name: ``make("bash", dataset="nl2bash:fs_1")``.

    Raises UnknownNameError for an unknown environment, dataset or subset.
    """
    return ENVIRONMENTS.load(environment)(dataset, **settings)


def register() -> None:
    """Put the environments into Gymnasium's registry."""
    for identifier, entry_point in _IDS.items():
        if identifier not in gym.registry:
            kind = entry_point.partition(":")[0].rpartition(".")[2]
            many = f"intercode.envs.vector:{kind}"
            gym.register(identifier, entry_point=entry_point, vector_entry_point=many)
