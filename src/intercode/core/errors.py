"""Every error this package raises on purpose, drawn as a tree.

    InterCodeError
    ├── UsageError               the caller asked for something that cannot be; nothing was lost
    │   ├── UnknownNameError     a name that is not registered; the message gives the nearest one
    │   ├── ConfigError          a setting that does not exist or has the wrong form
    │   └── DataError            a file that cannot be read as what it should be
    ├── EnvironmentStateError    step before reset, step after the end, use after close
    ├── BudgetError              a limit on tokens, cost or time is reached: no failure, an end
    ├── TooManyErrorsError       a run stopped because more episodes failed than it was allowed
    ├── GoldError                a task's own solution cannot be run: a fault of the dataset
    └── InfrastructureError      the box, not the command, failed; the runner retries these
        ├── SandboxError         a sandbox could not be created or driven
        │   ├── SandboxUnavailableError   this machine cannot give what was asked
        │   └── SandboxLostError          a live sandbox went away
        ├── DatabaseLostError    a database server or a connection to it went away
        └── ModelError           an endpoint gave no usable answer after the retries allowed
            ├── ModelRefusedError         the endpoint said no for good (bad key, unknown model)
            └── ModelUnavailableError     time-outs, 429 or 5xx until patience ran out

A command that fails inside a sandbox is no error: it is an observation.
"""

from __future__ import annotations


class InterCodeError(Exception):
    """Base of every error raised on purpose by this package."""


class UsageError(InterCodeError, ValueError):
    """The caller asked for something that cannot be."""


class UnknownNameError(UsageError):
    """A name that is not registered."""


class ConfigError(UsageError):
    """A setting that does not exist or has the wrong form."""


class DataError(UsageError):
    """A file that cannot be read as what it should be."""


class EnvironmentStateError(InterCodeError, RuntimeError):
    """An environment was used out of order."""


class BudgetError(InterCodeError):
    """A limit on tokens, cost or time is reached; nothing more was spent.

    ``whole``: the limit is the run's. The episode that meets it then has no result, and is played
    again when the run goes on; at a limit of its own, an episode ends and is scored as it stands.
    """

    def __init__(self, message: str, run_limit: bool = False) -> None:
        super().__init__(message)
        self.run_limit = run_limit


class TooManyErrorsError(InterCodeError):
    """More episodes of a run ended in an error than was allowed; the finished ones are on disk."""


class GoldError(InterCodeError):
    """A task's own solution cannot be run."""


class InfrastructureError(InterCodeError, RuntimeError):
    """The box failed, not what ran in it."""


class SandboxError(InfrastructureError):
    """A sandbox could not be created or driven."""


class SandboxUnavailableError(SandboxError):
    """This machine cannot give the sandbox that was asked for."""


class SandboxLostError(SandboxError):
    """A live sandbox went away."""


class DatabaseLostError(InfrastructureError):
    """A database server, or a connection to it, went away."""


class ModelError(InfrastructureError):
    """A model endpoint gave no usable answer."""


class ModelRefusedError(ModelError):
    """A model endpoint refused for good: retrying cannot help.

    ``whole``: it would refuse any request (a bad key, an unknown model); otherwise it is this
    conversation that it does not take (a content filter, say).
    """

    def __init__(self, message: str, affects_all_requests: bool = True) -> None:
        super().__init__(message)
        self.affects_all_requests = affects_all_requests


class ModelUnavailableError(ModelError):
    """A model endpoint could not be reached, or kept failing."""
