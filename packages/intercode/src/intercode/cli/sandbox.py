"""``intercode sandbox``: commands of intercode-sandbox."""

from __future__ import annotations

from intercode_sandbox.command import sandbox_arguments as sandboxes
from intercode_sandbox.command.sandbox_arguments import add_arguments, handle

__all__ = ["EXAMPLE", "add_arguments", "handle"]

EXAMPLE = sandboxes.for_program(sandboxes.EXAMPLE, "intercode sandbox")
