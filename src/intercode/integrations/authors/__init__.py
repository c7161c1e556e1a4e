"""The environments of the InterCode authors' package, by their names and with their manners.

``from intercode.integrations.authors import BashEnv`` takes the place of ``from intercode.environments import BashEnv``:
the same arguments (``image_name``, ``data_path``, ``preprocess``, ``traj_dir``, ``verbose``), a
``reset(index)`` and a ``step(action)`` that returns ``(observation, reward, done, info)``, on top
of this package's environments and boxes. Scoring and execution are their code's
(``profile="original"``) unless asked otherwise. docs/from-the-authors-package.md says what differs.
"""

from __future__ import annotations

from intercode.integrations.authors.base import (
    ACTION_EXEC,
    AGENT_OBS,
    CORRUPT_GOLD,
    EVAL_OBS,
    REWARD,
    IntercodeEnv,
)
from intercode.integrations.authors.data import IntercodeDataLoader
from intercode.integrations.authors.environments import BashEnv, CTFEnv, PythonEnv, SqlEnv, SWEEnv

__all__ = [
    "ACTION_EXEC", "AGENT_OBS", "CORRUPT_GOLD", "EVAL_OBS", "REWARD", "BashEnv", "CTFEnv",
    "IntercodeDataLoader", "IntercodeEnv", "PythonEnv", "SWEEnv", "SqlEnv",
]  # fmt: skip
