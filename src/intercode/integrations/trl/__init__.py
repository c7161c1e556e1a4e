"""InterCode in TRL: the environments that ``GRPOTrainer(environment_factory=…)`` expects.

    from functools import partial
    from intercode.integrations.trl import BashEnvironment, rows

    trainer = GRPOTrainer(
        model="Qwen/Qwen3-0.6B",
        train_dataset=Dataset.from_list(rows("bash", "nl2bash:fs_1")),
        environment_factory=partial(BashEnvironment, "nl2bash:fs_1", max_turns=5),
    )

TRL creates an object per concurrent episode, resets it for the next and never closes it. All its
public methods except ``reset`` and ``get_reward`` are tools of the model, so each class has one
tool and no other public method. This package does not import TRL.
"""

from __future__ import annotations

from intercode.core.registry import unknown_name_error
from intercode.core.types import Dataset
from intercode.integrations.trl.episode import TrlEnvironment
from intercode.integrations.trl.rows import dataset_rows

__all__ = ["BashEnvironment", "CtfEnvironment", "PythonEnvironment", "SqlEnvironment", "rows"]


class BashEnvironment(TrlEnvironment):
    """Bash: the tool ``bash``. The last output and the remaining files are scored."""

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
    """SQL: the tool ``sql``. The rows of the last statement are scored."""

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
    """Python: the tool ``python``. Hidden tests score what has been defined."""

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
    """Capture the Flag: the tool ``bash``, in which ``submit FLAG`` submits the flag."""

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
    "bash": BashEnvironment,
    "sql": SqlEnvironment,
    "python": PythonEnvironment,
    "ctf": CtfEnvironment,
}
"""Environments by name. TRL accepts such a table for rows of several environments."""


def rows(
    environment: str,
    dataset: str | Dataset = "starter",
    instruction: str | None = None,
    seeds: tuple[int | None, ...] = (None,),
) -> list[dict[str, object]]:
    """Return a dataset's tasks as rows for a trainer: ``prompt``, ``task``, ``seed``,
    ``environment``.

    The prompt is the ``instruction`` (None: a line on the tool and on what is scored); ``reset``
    appends the query. There is a row for each task and each of ``seeds``. Datasets that generate
    their tasks, such as starter:ctf, generate a different task for each seed (None: for each
    episode). Raises UnknownNameError for an environment without a tool here.
    """
    if environment not in ENVIRONMENTS:
        raise unknown_name_error("environment for TRL", environment, list(ENVIRONMENTS))
    tool = next(name for name in vars(ENVIRONMENTS[environment]) if not name.startswith("_"))
    return dataset_rows(environment, tool, dataset, instruction, seeds)
