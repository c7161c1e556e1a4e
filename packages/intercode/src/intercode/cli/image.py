"""``intercode image``: the command of intercode-sandbox."""

from __future__ import annotations

from intercode_sandbox.command import image
from intercode_sandbox.command.image import add_arguments, handle

__all__ = ["EXAMPLE", "add_arguments", "handle"]

EXAMPLE = image.for_program(image.EXAMPLE, "intercode image")
