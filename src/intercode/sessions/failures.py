"""Whose fault it is that a session's program could not be started."""

from __future__ import annotations

import errno

from intercode.core.errors import SandboxLostError

_DESCRIPTOR_ERRORS = {
    errno.EMFILE,
    errno.ENFILE,
}  # this process, or the machine, has no descriptor left


def is_infrastructure_failure(error: Exception) -> bool:
    """Whether the machine failed, or the whole box, and not something that an agent may do to the
    program or to the box: that is an observation, and must not look like a fault of the machine."""
    return (
        isinstance(error, SandboxLostError) or getattr(error, "errno", None) in _DESCRIPTOR_ERRORS
    )
