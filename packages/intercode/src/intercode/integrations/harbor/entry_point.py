"""Starts the entry point of a sandbox's image, for tasks that expect a container's programs."""

from __future__ import annotations

from intercode.core.errors import TaskSetupError
from intercode_sandbox.clock_ticks import mark_after
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.streams import BaseProcess

_ARGUMENTS = ("sh", "-c", "sleep infinity")
"""The command with which Harbor's environment `docker` starts a task's container."""


def start_entry_point(sandbox: BaseSandbox) -> BaseProcess | None:
    """Start the entry point of the image as root in the image's working directory, with the
    command of Harbor's containers as its arguments. Its output is discarded.

    Returns the program, or None if the image has no entry point. Raises TaskSetupError if the
    program cannot be started.
    """
    image = sandbox.spec.image
    if not image.entrypoint:
        return None
    try:
        process = sandbox.spawn([*image.entrypoint, *_ARGUMENTS], cwd=image.cwd or "/")
    except OSError as e:
        listed = list(image.entrypoint)
        raise TaskSetupError(f"the image's ENTRYPOINT {listed} cannot be started: {e}") from e
    mark_after(sandbox, sandbox.mark())  # or the end of the next command would end it, too
    return process
