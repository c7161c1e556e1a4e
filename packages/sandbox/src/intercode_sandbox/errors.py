"""The errors that sandboxes raise deliberately, as a tree.

    InterCodeError
    ├── UsageError               the caller asked for something impossible; nothing was changed
    │   ├── UnknownNameError     a name that is not registered; the message suggests the nearest one
    │   ├── ConfigError          a setting that does not exist or has an invalid value
    │   └── DataError            a file that cannot be read or has the wrong format
    └── InfrastructureError      the sandbox failed, not the command
        └── SandboxError         a sandbox could not be created or driven
            ├── TooManyChangesError       too many files were changed to copy a sandbox
            ├── MissingCapabilityError    the back end cannot do what was asked of it
            ├── SandboxUnavailableError   this machine cannot provide the requested sandbox
            └── SandboxLostError          a running sandbox was lost
                └── SandboxKilledError    what ran in it ended it: no failure of the machine

A command that fails in a sandbox is not an error but a result.
"""

from __future__ import annotations


class InterCodeError(Exception):
    """Base class of every error that this package raises deliberately.

    ``verbatim``: a text for the user that commands print below the message, as it is.
    """

    verbatim: str = ""


class UsageError(InterCodeError, ValueError):
    """The caller asked for something impossible."""


class UnknownNameError(UsageError):
    """A name that is not registered."""


class ConfigError(UsageError):
    """A setting that does not exist or has an invalid value."""


class DataError(UsageError):
    """A file that cannot be read or has the wrong format."""


class InfrastructureError(InterCodeError, RuntimeError):
    """The sandbox failed, not the code that ran in it.

    ``machine_failed``: something failed that the code cannot reach. Otherwise the code may have
    caused the error, and an environment finds out.
    """

    machine_failed: bool = False


class SandboxError(InfrastructureError):
    """A sandbox could not be created or controlled."""


class SandboxUnavailableError(SandboxError):
    """This machine cannot provide the requested sandbox."""

    machine_failed = True


class MissingCapabilityError(SandboxError):
    """The sandbox's back end cannot do what was asked of it. See ``Sandbox.capabilities``."""

    machine_failed = True


class TooManyChangesError(SandboxError):
    """A sandbox cannot be copied, because its code has changed more files than can be listed."""


class SandboxLostError(SandboxError):
    """A running sandbox was lost."""

    machine_failed = True


class SandboxKilledError(SandboxLostError):
    """A sandbox ended because of what ran in it, for example of its use of memory.

    An environment then ends the episode as failed. It is not an error that is retried, because an
    agent could otherwise withdraw its failures from the results.
    """

    machine_failed = False
