"""The errors that this package raises deliberately, as a tree.

    InterCodeError
    ├── UsageError               the caller asked for something impossible; nothing was changed
    │   ├── UnknownNameError     a name that is not registered; the message suggests the nearest one
    │   ├── ConfigError          a setting that does not exist or has an invalid value
    │   └── DataError            a file that cannot be read or has the wrong format
    ├── EnvironmentStateError    step before reset, step after the end, use after close
    ├── BudgetError              a limit on tokens, cost or time was reached: an end, not a failure
    ├── TooManyErrorsError       a run stopped because more episodes failed than allowed
    ├── GoldError                the gold of a task cannot run: an error in the dataset
    ├── TaskError                a task cannot begin; other tasks can be played
    │   ├── TaskImageError       its image cannot be had
    │   └── TaskSetupError       its set-up or its health check failed
    └── InfrastructureError      the sandbox failed, not the command; evaluations retry these
        ├── SandboxError         a sandbox could not be created or driven
        │   ├── TooManyChangesError       too many files were changed to copy a sandbox
        │   ├── SandboxUnavailableError   this machine cannot provide the requested sandbox
        │   └── SandboxLostError          a running sandbox was lost
        │       └── SandboxKilledError    what ran in it ended it: no failure of the machine
        ├── DatabaseLostError    a database server or the connection to it was lost
        └── ModelError           an endpoint gave no usable answer after all retries
            ├── ModelRefusedError         the endpoint refused permanently (bad key, unknown model)
            └── ModelUnavailableError     time-outs, 429 or 5xx until the last retry

A command that fails in a sandbox is not an error but an observation. Those of sandboxes are defined
in ``sandbox/errors.py``.
"""

from __future__ import annotations

from pathlib import Path

from intercode_sandbox.errors import (
    ConfigError,
    DataError,
    InfrastructureError,
    InterCodeError,
    MissingCapabilityError,
    SandboxError,
    SandboxKilledError,
    SandboxLostError,
    SandboxUnavailableError,
    TooManyChangesError,
    UnknownNameError,
    UsageError,
)

__all__ = [
    "BudgetError",
    "ConfigError",
    "DataError",
    "DatabaseLostError",
    "EnvironmentStateError",
    "GoldError",
    "InfrastructureError",
    "InterCodeError",
    "MissingCapabilityError",
    "ModelError",
    "ModelRefusedError",
    "ModelUnavailableError",
    "SandboxError",
    "SandboxKilledError",
    "SandboxLostError",
    "SandboxUnavailableError",
    "TaskError",
    "TaskImageError",
    "TaskSetupError",
    "TooManyChangesError",
    "TooManyErrorsError",
    "UnknownNameError",
    "UsageError",
]


class EnvironmentStateError(InterCodeError, RuntimeError):
    """A method of an environment was called in the wrong state.

    >>> import intercode
    >>> with intercode.make("bash") as env:
    ...     env.step("ls")  # before reset
    Traceback (most recent call last):
    intercode.core.errors.EnvironmentStateError: no episode yet: call reset() first
    """


class BudgetError(InterCodeError):
    """A limit on tokens, cost or time was reached, and nothing more was spent.

    ``run_limit``: the limit is that of the run. The episode then has no result, and is played again
    when the run resumes. At its own limit, an episode ends, and its state is scored. ``out`` is the
    directory of the run that ``intercode.evaluate`` stopped.

    >>> from intercode.models import Budget, ScriptedModel, SpendingLimits, limit_model
    >>> model = limit_model(ScriptedModel(["ls"]), Budget(SpendingLimits(tokens=1)))
    >>> model.complete([{"role": "user", "content": "List the files, one a line."}])
    Traceback (most recent call last):
    intercode.core.errors.BudgetError: the episode's limit is reached (0 of 1 tokens spent): ...
    """

    out: Path | None = None

    def __init__(self, message: str, run_limit: bool = False) -> None:
        super().__init__(message)
        self.run_limit = run_limit


class TooManyErrorsError(InterCodeError):
    """More episodes of a run failed than allowed. The finished episodes are on disk, in ``out``."""

    out: Path | None = None


class GoldError(InterCodeError):
    """The gold of a task cannot run.

    >>> import intercode
    >>> with intercode.make("bash", dataset=[{"query": "Fail.", "gold": "exit 1; ("}]) as env:
    ...     _ = env.reset()
    ...     env.check_gold()
    Traceback (most recent call last):
    intercode.core.errors.GoldError: the gold of rows/0 fails: ...
    """


class TaskError(InterCodeError):
    """A task cannot begin because of what it brings. Other tasks can be played."""


class TaskImageError(TaskError):
    """The image that a task brings cannot be built or pulled."""


class TaskSetupError(TaskError):
    """The set-up of a task or its health check failed before the first action."""


class DatabaseLostError(InfrastructureError):
    """A database server or the connection to it was lost.

    >>> from intercode.core import DatabaseLostError, InfrastructureError
    >>> issubclass(DatabaseLostError, InfrastructureError)  # so the episode is played again
    True
    """


class ModelError(InfrastructureError):
    """A model endpoint gave no usable answer.

    >>> from intercode.models import ScriptedModel
    >>> model = ScriptedModel([])  # which has no answer left
    >>> model.complete([{"role": "user", "content": "hi"}])
    Traceback (most recent call last):
    intercode.core.errors.ModelRefusedError: the script 'scripted' has 0 replies ...
    """

    machine_failed = True


class ModelRefusedError(ModelError):
    """A model endpoint refused permanently, so that a retry cannot help.

    ``affects_all_requests``: it would refuse every request, for example because of an invalid key.
    False: it refuses this conversation only, for example because of a content filter.
    """

    def __init__(self, message: str, affects_all_requests: bool = True) -> None:
        super().__init__(message)
        self.affects_all_requests = affects_all_requests


class ModelUnavailableError(ModelError):
    """A model endpoint could not be reached, or failed repeatedly: ``attempts`` times."""

    def __init__(self, message: str, attempts: int = 1) -> None:
        super().__init__(message)
        self.attempts = attempts
