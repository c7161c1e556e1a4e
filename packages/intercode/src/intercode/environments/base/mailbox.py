"""Answers the requests that an agent leaves in a file for a service outside of its sandbox."""

from __future__ import annotations

from contextlib import suppress

from intercode.core.types import Mailbox
from intercode_sandbox.contract import BaseSandbox

MAX_REQUEST_BYTES = 64 << 10
"""The greatest request that is read."""


def answer_request(sandbox: BaseSandbox, mailbox: Mailbox) -> None:
    """Answer the request in a sandbox, if there is one, and empty its file.

    A file that is no regular one, or too large, is left alone, and so is one that cannot be
    emptied. An answer that cannot be written is lost.
    """
    with suppress(OSError):
        data = sandbox.read(mailbox.request, MAX_REQUEST_BYTES)
        if data.strip():
            sandbox.write(mailbox.request, b"")
            sandbox.write(mailbox.reply, mailbox.answer(data.decode("utf-8", "replace")).encode())
