"""Commands that a sandbox does not run, as results in adapters that give agents a whole sandbox."""

from __future__ import annotations

from intercode.core.errors import InfrastructureError, UsageError

CANNOT_RUN, NOT_FOUND, KILLED = 126, 127, 137
"""Exit statuses of a shell: a program that cannot be run, one that is not there, one that was
killed."""


def status_of_failure(error: UsageError | OSError | InfrastructureError) -> int:
    """Return the exit status for a command that could not run, or that has ended its sandbox.

    Raises the error if the machine has failed: an agent cannot cause that.
    """
    if isinstance(error, InfrastructureError):
        if error.machine_failed:
            raise error
        return KILLED
    return CANNOT_RUN if isinstance(error, UsageError) else NOT_FOUND
