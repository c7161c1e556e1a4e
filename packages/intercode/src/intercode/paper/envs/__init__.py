"""The environments of the InterCode authors' package, with their names and interface.

``from intercode.paper.envs import BashEnv`` replaces the authors' ``from intercode.envs
import BashEnv``: the same arguments (``image_name``, ``data_path``, ``preprocess``, ``traj_dir``,
``verbose``), a ``reset(index)`` and a ``step(action)`` that returns ``(observation, reward, done,
info)``, on top of this package's environments and sandboxes. Scoring and execution follow the
authors' code (``profile="original"``) by default. docs/from-the-authors-package.md lists the
differences.
"""

from __future__ import annotations

from intercode.paper.envs.base import (
    ACTION_EXEC,
    AGENT_OBS,
    CORRUPT_GOLD,
    EVAL_OBS,
    REWARD,
    IntercodeEnv,
)
from intercode.paper.envs.data import IntercodeDataLoader
from intercode.paper.envs.environments import BashEnv, CTFEnv, PythonEnv, SqlEnv, SWEEnv

__all__ = [
    "ACTION_EXEC",
    "AGENT_OBS",
    "CORRUPT_GOLD",
    "EVAL_OBS",
    "REWARD",
    "BashEnv",
    "CTFEnv",
    "IntercodeDataLoader",
    "IntercodeEnv",
    "PythonEnv",
    "SWEEnv",
    "SqlEnv",
]
