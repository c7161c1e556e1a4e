"""Provides environments for TRL's ``GRPOTrainer(environment_factory=…)``.

    from functools import partial
    from intercode.integrations.trl import BashEnvironment, rows

    trainer = GRPOTrainer(
        model="Qwen/Qwen3-0.6B",
        train_dataset=Dataset.from_list(rows("bash", "families:bash[split=train]")),
        environment_factory=partial(BashEnvironment, "families:bash[split=train]", max_turns=5),
    )

TRL creates one environment object for each concurrent episode, resets it for the next episode, and
never closes it. It offers all public methods of the object except ``reset`` and ``get_reward`` to
the model as tools. Each class therefore has one tool and no other public method. This package does
not import TRL.
"""

from __future__ import annotations

from collections.abc import Sequence

from intercode.core.types import Dataset
from intercode.integrations.trl.described import described_class
from intercode.integrations.trl.episode import TrlEnvironment
from intercode.integrations.trl.row_data import dataset_rows

__all__ = [
    "BashEnvironment",
    "CtfEnvironment",
    "PythonEnvironment",
    "SqlEnvironment",
    "environment_class",
    "rows",
]


class BashEnvironment(TrlEnvironment):
    """Plays Bash tasks with the tool ``bash``. The last output and the final files are scored.

    The sandbox is freed when the reward has been given, when the object is collected, and when the
    process ends.

    Args:
        dataset: The tasks of the rows: a specification as for ``intercode.make``, or a Dataset.
        max_turns: The number of actions per episode; the tool refuses further ones.
        idle_timeout: Seconds of inactivity after which an episode is scored as it is and its
            sandbox freed; None: never.
        observation_limit: Characters of a tool's result.
        binary: Whether the reward is 1 for a score of 1, else 0, for tasks in which doing nothing
            earns part of the score.
        allow_exploitable: Whether a profile is allowed whose faults training would exploit.
        **settings: Those of the environment: ``image``, ``timeout``, ``recycle=True``,
            ``reward_mode``, ….

    Raises:
        UsageError: A number is out of range, the profile is not allowed, ``binary`` is given with
            ``reward_mode="per-turn"``, or a setting or the dataset does not exist.
    """

    _name = "bash"

    def bash(self, command: str) -> str:
        """Run commands in a Bash shell that lives as long as the task does.

        Args:
            command: The commands to run.

        Returns:
            What they printed.
        """
        return self._act(command)


class SqlEnvironment(TrlEnvironment):
    """Plays SQL tasks with the tool ``sql``. The rows of the last statement are scored.

    The arguments are those of ``BashEnvironment``.

    >>> from intercode.integrations.trl import SqlEnvironment, rows
    >>> env = SqlEnvironment("starter", max_turns=5)
    >>> query = env.reset(**rows("sql")[0])
    >>> env.sql("SELECT 1")
    '[(1,)]'
    """

    _name = "sql"

    def sql(self, statement: str) -> str:
        """Run one SQL statement on the database.

        Args:
            statement: The statement, in the dialect of MySQL.

        Returns:
            The rows, or the error.
        """
        return self._act(statement)


class PythonEnvironment(TrlEnvironment):
    """Plays Python tasks with the tool ``python``. Hidden tests score the defined function.

    The arguments are those of ``BashEnvironment``.

    >>> from intercode.integrations.trl import PythonEnvironment, rows
    >>> env = PythonEnvironment("starter", max_turns=5)
    >>> query = env.reset(**rows("python")[0])
    >>> env.python("1 + 1")
    '2'
    """

    _name = "python"

    def python(self, code: str) -> str:
        """Run Python code in an interpreter that keeps its names as long as the task does.

        Args:
            code: The code to run, as at a prompt.

        Returns:
            What it printed, or the error.
        """
        return self._act(code)


class CtfEnvironment(TrlEnvironment):
    """Plays Capture the Flag with the tool ``bash``. The command ``submit FLAG`` submits a flag.

    The arguments are those of ``BashEnvironment``.
    """

    _name = "ctf"

    def bash(self, command: str) -> str:
        """Run commands in a Bash shell in the folder of the task, or hand the flag in.

        Args:
            command: The commands to run; or, alone, the word submit and the flag.

        Returns:
            What they printed, or whether the flag is wrong.
        """
        return self._act(command)


ENVIRONMENTS: dict[str, type[TrlEnvironment]] = {
    kind._name: kind
    for kind in (BashEnvironment, SqlEnvironment, PythonEnvironment, CtfEnvironment)
}
"""The classes above by environment. TRL accepts such a mapping if rows name their environment."""


def environment_class(environment: str) -> type[TrlEnvironment]:
    """Return the class that plays an environment.

    It is one of those above, or it is made from the description of the environment, with the tool
    that this names.

    Args:
        environment: The name of an environment.

    Raises:
        UnknownNameError: The environment is not registered.

    >>> from intercode.integrations.trl import environment_class
    >>> environment_class("code").__doc__
    'Plays tasks of code with the tool ``run_code``.'
    """
    return ENVIRONMENTS.get(environment) or described_class(environment)


def rows(
    environment: str,
    dataset: str | Dataset = "starter",
    instruction: str | None = None,
    seeds: Sequence[int | None] | None = None,
) -> list[dict[str, object]]:
    """Return the tasks of a dataset as rows for a trainer, one for each task and each seed.

    Datasets that draw their tasks, such as families:bash and starter:ctf, draw another task for
    each seed; with the seed None, for each episode of a group.

    Args:
        environment: The name of an environment.
        dataset: A specification as for ``intercode.make``, or a Dataset.
        instruction: The prompt, to which ``reset`` appends the query; None: a line about the tool
            and about what is scored.
        seeds: Seeds of episodes; None: one row for each task, with a random seed that nobody can
            guess if the task is drawn, else with the seed None.

    Returns:
        Rows with ``prompt``, ``task``, ``seed`` and ``environment``.

    Raises:
        UnknownNameError: The environment is not registered.
        UsageError: The dataset does not exist, or ``seeds`` are not a sequence of whole numbers of
            at least 0 and None.
    """
    tool = next(n for n in vars(environment_class(environment)) if not n.startswith("_"))
    return dataset_rows(environment, tool, dataset, instruction, seeds)
