"""The registry of environments, and ``make``, which creates one by name."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from intercode.core.errors import UnknownNameError, UsageError
from intercode.core.packages import GYM_DISTRIBUTION
from intercode_sandbox.deprecation import renamed_arguments
from intercode_sandbox.lazy import lazy_imports
from intercode_sandbox.registry import Registry, suggest_name

if TYPE_CHECKING:
    from intercode.core.settings import setting
    from intercode.environments.base.contract import Environment
    from intercode.environments.base.env import InterCodeEnv
    from intercode.environments.base.episode import Episode, Snapshots
    from intercode.environments.base.episode_context import EpisodeContext
    from intercode.environments.base.policy.policy import Policy
    from intercode.environments.base.pool.episode import PooledEpisode
    from intercode.environments.base.pool.pool import Pool
    from intercode.environments.base.profiles import Profile
    from intercode.environments.base.sandboxed_env import FileSnapshots, SandboxedEnv
    from intercode.environments.base.settings import EnvironmentSettings, SandboxSettings
    from intercode.environments.base.snapshots.snapshot import EnvironmentSnapshot
    from intercode.environments.base.testing import check_env
    from intercode.environments.base.vector import VectorInterCode, make_vec
    from intercode.environments.bash.env import BashEnv
    from intercode.environments.code.env import CodeEnv
    from intercode.environments.ctf.env import CTFEnv
    from intercode.environments.python.env import PythonEnv
    from intercode.environments.sql.env import SqlEnv

__all__ = [
    "ENVIRONMENTS",
    "BashEnv",
    "CTFEnv",
    "CodeEnv",
    "Environment",
    "EnvironmentSettings",
    "EnvironmentSnapshot",
    "Episode",
    "EpisodeContext",
    "FileSnapshots",
    "InterCodeEnv",
    "Policy",
    "Pool",
    "PooledEpisode",
    "Profile",
    "PythonEnv",
    "SandboxSettings",
    "SandboxedEnv",
    "Snapshots",
    "SqlEnv",
    "VectorInterCode",
    "check_env",
    "make",
    "make_vec",
    "register",
    "setting",
    "setting_names",
]

__getattr__ = lazy_imports(
    __name__,
    {
        "BashEnv": ".bash.env",
        "CTFEnv": ".ctf.env",
        "CodeEnv": ".code.env",
        "Environment": ".base.contract",
        "EnvironmentSettings": ".base.settings",
        "EnvironmentSnapshot": ".base.snapshots.snapshot",
        "Episode": ".base.episode",
        "EpisodeContext": ".base.episode_context",
        "FileSnapshots": ".base.sandboxed_env",
        "InterCodeEnv": ".base.env",
        "Policy": ".base.policy.policy",
        "Pool": ".base.pool.pool",
        "PooledEpisode": ".base.pool.episode",
        "Profile": ".base.profiles",
        "PythonEnv": ".python.env",
        "SandboxSettings": ".base.settings",
        "SandboxedEnv": ".base.sandboxed_env",
        "Snapshots": ".base.episode",
        "SqlEnv": ".sql.env",
        "VectorInterCode": ".base.vector",
        "check_env": ".base.testing",
        "make_vec": ".base.vector",
        "setting": ".base.settings",
    },
)

ENVIRONMENTS = Registry(
    "environment",
    {
        "bash": "intercode.environments.bash.env:BashEnv",
        "code": "intercode.environments.code.env:CodeEnv",
        "ctf": "intercode.environments.ctf.env:CTFEnv",
        "harbor": GYM_DISTRIBUTION,
        "python": "intercode.environments.python.env:PythonEnv",
        "sql": "intercode.environments.sql.env:SqlEnv",
        "swe-bench": GYM_DISTRIBUTION,
    },
    group="intercode.environments",
    owner=GYM_DISTRIBUTION,
    hint=", or MODULE:CLASS for one of your own",
)
"""Classes of environments by name; ``package.module:Class`` names any other.

>>> from intercode.environments import ENVIRONMENTS
>>> ENVIRONMENTS.load("bash").description.tool
'run_command'
"""
_GYMNASIUM_IDS = {
    "intercode/Bash-v1": "intercode.environments.bash.env:BashEnv",
    "intercode/Code-v1": "intercode.environments.code.env:CodeEnv",
    "intercode/CTF-v1": "intercode.environments.ctf.env:CTFEnv",
    "intercode/Python-v1": "intercode.environments.python.env:PythonEnv",
    "intercode/SQL-v1": "intercode.environments.sql.env:SqlEnv",
}


@renamed_arguments(sandbox="backend")
def make(environment: str, dataset: Any = "starter", **settings: Any) -> Any:
    """Create an environment by name: ``make("bash", dataset="nl2bash:fs_1")``.

    Args:
        environment: A name in ``ENVIRONMENTS``, or ``package.module:Class`` for one of your own.
        dataset: ``name[:subset]``, a file of tasks, or a Dataset.
        **settings: Those that every environment has are the fields of ``EnvironmentSettings``:
            ``profile``, ``image``, ``backend``, ``network``, ``timeout`` (seconds for an action),
            ``max_turns``, ``reward``, ``reward_mode``, ``render_mode``, ``deterministic``,
            ``hashes``, ``policy`` and ``mcp``. With a sandbox it has those of ``SandboxSettings``,
            too: ``recycle``, ``record_diffs``, ``extra_layers`` and ``limits``.
            ``setting_names(environment)`` returns all that an environment has.

    Returns:
        An ``InterCodeEnv``. The caller closes it, for example with ``with``.

    Raises:
        UnknownNameError: There is no such environment, dataset, subset or setting.
        UsageError: A setting has an invalid value, or the dataset is for another environment.
        DataError: The dataset cannot be read, or a task lacks a column.
        ConfigError: The policy is invalid.
    """
    if not isinstance(environment, str):
        raise UsageError(
            "an environment is a name such as 'bash', or 'package.module:Class' for one of your "
            f"own, not {environment!r:.80}"
        )
    try:
        kind = ENVIRONMENTS.load(environment)
    except UsageError as e:
        from intercode.datasets import datasets

        if environment.partition(":")[0] in datasets:
            e.args = (f"{e}; {environment!r} is a dataset: make(ENVIRONMENT, {environment!r})",)
        raise
    try:
        return kind(dataset, **settings)
    except TypeError as e:
        if "unexpected keyword argument" in str(e):
            check_setting_names(environment, settings)
        raise


def setting_names(environment: str) -> set[str]:
    """Return the names of the settings of an environment.

    Args:
        environment: A name in ``ENVIRONMENTS``, or ``package.module:Class``.

    Raises:
        UnknownNameError: There is no such environment.

    >>> from intercode.environments import setting_names
    >>> {"timeout", "network"} <= setting_names("bash")
    True
    """
    return {f.name for f in fields(ENVIRONMENTS.load(environment).settings_class)}


def check_setting_names(
    environment: str, names: Iterable[str], others: Collection[str] = ()
) -> None:
    """Raise UnknownNameError for a name that is not that of a setting of an environment.

    ``others``: further names that the message may suggest, such as those of a run.
    """
    known = setting_names(environment)
    for name in names:
        if name not in known:
            similar = suggest_name(name, [*known, *others])
            raise UnknownNameError(
                f"unknown setting of {environment} {name!r}; {similar}known: "
                f"{', '.join(sorted(known))}"
                + ("; `intercode list settings` prints those of a run, too" if others else "")
            )


def register() -> None:
    """Register the environments with Gymnasium.

    >>> import gymnasium
    >>> from intercode.environments import register
    >>> register()  # `import intercode` has done so
    >>> with gymnasium.make("intercode/Bash-v1", disable_env_checker=True) as env:
    ...     query, info = env.reset(seed=1)
    """
    for identifier, entry_point in _GYMNASIUM_IDS.items():
        if identifier not in gym.registry:
            kind = entry_point.split(".")[2]
            vector_entry_point = f"intercode.environments.base.vector:{kind}"
            gym.register(identifier, entry_point=entry_point, vector_entry_point=vector_entry_point)
