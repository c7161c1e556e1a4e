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
    """The caller asked for something impossible.

    >>> from intercode_sandbox import SandboxPool
    >>> SandboxPool("host", size=0)
    Traceback (most recent call last):
    intercode_sandbox.errors.UsageError: a pool holds at least 1 sandbox, not 0
    """


class UnknownNameError(UsageError):
    """A name that is not registered.

    >>> from intercode_sandbox import Sandbox
    >>> Sandbox("host", backend="namespaces")
    Traceback (most recent call last):
    intercode_sandbox.errors.UnknownNameError: unknown back end 'namespaces'; did you mean ...
    """


class ConfigError(UsageError):
    """A setting that does not exist or has an invalid value.

    >>> from intercode_sandbox import ConfigError, DataError, UnknownNameError, UsageError
    >>> [issubclass(kind, UsageError) for kind in (ConfigError, DataError, UnknownNameError)]
    [True, True, True]
    """


class DataError(UsageError):
    """A file that cannot be read or has the wrong format.

    >>> from intercode_sandbox import Sandbox
    >>> Sandbox.load("/dev/null")
    Traceback (most recent call last):
    intercode_sandbox.errors.DataError: /dev/null is no saved sandbox: empty header at byte 0
    """


class InfrastructureError(InterCodeError, RuntimeError):
    """A sandbox, a model or what they need failed.

    ``machine_failed``: what failed is out of reach of the code in the sandbox. If not, the code may
    have caused the error: an environment finds out, and raises it only if the machine has failed.

    >>> from intercode_sandbox.errors import InfrastructureError, SandboxLostError
    >>> def is_void(error: Exception) -> bool:  # whether a result says nothing about the code
    ...     return isinstance(error, InfrastructureError) and error.machine_failed
    >>> is_void(SandboxLostError("the sandbox is gone"))
    True
    """

    machine_failed: bool = False


class SandboxError(InfrastructureError):
    """A sandbox could not be created or controlled."""


class SandboxUnavailableError(SandboxError):
    """This machine cannot provide the requested sandbox.

    >>> from intercode_sandbox import Sandbox
    >>> Sandbox("host", backend="chroot", users=True)
    Traceback (most recent call last):
    intercode_sandbox.errors.SandboxUnavailableError: a sandbox of the tier chroot has one user, ...
    """

    machine_failed = True


class MissingCapabilityError(SandboxError):
    """The sandbox's back end cannot do what was asked of it. See ``Sandbox.capabilities``.

    >>> from intercode_sandbox import Sandbox
    >>> from intercode_sandbox.errors import MissingCapabilityError
    >>> with Sandbox("host") as sandbox:
    ...     try:
    ...         (copy,) = sandbox.fork()
    ...     except MissingCapabilityError:
    ...         copy = Sandbox("host")
    >>> copy.close()
    """

    machine_failed = True


class TooManyChangesError(SandboxError):
    """A sandbox cannot be copied, because its code has changed more files than can be listed."""


class SandboxLostError(SandboxError):
    """A running sandbox was lost.

    >>> from intercode_sandbox import Sandbox
    >>> sandbox = Sandbox("host")
    >>> sandbox.close()
    >>> sandbox.run("ls")
    Traceback (most recent call last):
    intercode_sandbox.errors.SandboxLostError: the sandbox is closed
    """

    machine_failed = True


class SandboxKilledError(SandboxLostError):
    """A sandbox ended because of what ran in it, for example of its use of memory.

    An environment then ends the episode as failed. It is not an error that is retried, because an
    agent could otherwise withdraw its failures from the results.

    >>> from intercode_sandbox.errors import SandboxKilledError, SandboxLostError
    >>> issubclass(SandboxKilledError, SandboxLostError), SandboxKilledError.machine_failed
    (True, False)
    """

    machine_failed = False
