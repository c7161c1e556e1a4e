"""InterCode in TRL: what ``GRPOTrainer(environment_factory=…)`` asks for, for four environments.

    from functools import partial
    from intercode.integrations.trl import BashEnvironment, rows

    trainer = GRPOTrainer(
        model="Qwen/Qwen3-0.6B",
        train_dataset=Dataset.from_list(rows("bash", "nl2bash:fs_1")),
        environment_factory=partial(BashEnvironment, "nl2bash:fs_1", max_turns=5),
    )

TRL makes an object for each episode that it plays at once, resets it for the next and never closes
it; all its public methods but ``reset`` and ``get_reward`` are tools of the model. So each has one
tool and nothing else. Nothing here imports TRL.
"""

from __future__ import annotations

from intercode.core.registry import unknown_name_error
from intercode.core.types import Dataset
from intercode.integrations.trl.episode import TrlEnvironment
from intercode.integrations.trl.rows import dataset_rows

__all__ = ["BashEnvironment", "CtfEnvironment", "PythonEnvironment", "SqlEnvironment", "rows"]


class BashEnvironment(TrlEnvironment):
    """Bash: the tool ``bash``. What was printed last and the files that are left count."""

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
    """SQL: the tool ``sql``. The rows of the last statement count."""

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
    """Python: the tool ``python``. What has been defined is tested, out of sight."""

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
    """Capture the Flag: the tool ``bash``, in which ``submit FLAG`` hands the flag in."""

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
"""By name: TRL takes such a table, too, for rows of several environments."""


def rows(
    environment: str,
    dataset: str | Dataset = "starter",
    instruction: str | None = None,
    seeds: tuple[int | None, ...] = (None,),
) -> list[dict[str, object]]:
    """A dataset's tasks as rows for a trainer: ``prompt``, ``task``, ``seed``, ``environment``.

    The prompt is the ``instruction`` (None: a line on the tool and on what counts); ``reset`` puts
    the query behind it. Each task is played with each of ``seeds``, which makes it another one
    where a dataset draws its tasks, as starter:ctf does (None: drawn anew in every episode).
    Raises UnknownNameError for an environment that has no tool here.
    """
    if environment not in ENVIRONMENTS:
        raise unknown_name_error("environment for TRL", environment, list(ENVIRONMENTS))
    tool = next(name for name in vars(ENVIRONMENTS[environment]) if not name.startswith("_"))
    return dataset_rows(environment, tool, dataset, instruction, seeds)
