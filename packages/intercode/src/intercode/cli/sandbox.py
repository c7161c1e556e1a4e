"""``intercode sandbox``: commands of intercode-sandbox."""

from __future__ import annotations

from intercode_sandbox.command import sandbox_arguments
from intercode_sandbox.command.sandbox_arguments import add_arguments, handle

__all__ = ["EXAMPLE", "add_arguments", "handle"]

EXAMPLE = sandbox_arguments.for_program(sandbox_arguments.EXAMPLE, "intercode sandbox")
