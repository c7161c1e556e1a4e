"""Checks that a session satisfies the contract, to be called by the tests of a session."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

from intercode.sessions.base import Session
from intercode_sandbox.checks import require

_TIMEOUT = 60.0  # seconds; the code takes milliseconds on an idle machine


def check_session(open_session: Callable[[], Session], show: str = "echo {}") -> None:
    """Check a session against ``sessions.base.Session``. Raises AssertionError.

    ``open_session`` opens it, and later another one in the same sandbox, which stays open.
    ``show``: code that prints the number put in place of ``{}``, on a line of its own.

    >>> from intercode.sessions import BashSession, check_session
    >>> from intercode_sandbox import SandboxSpec, open_sandbox, resolve_image
    >>> with open_sandbox(SandboxSpec(resolve_image("host"))) as sandbox:
    ...     check_session(lambda: BashSession(sandbox), "echo {}")
    """
    with closing(open_session()) as session:
        for number in (1, 2):
            result = session.run(show.format(number), _TIMEOUT)
            require(result.ok, f"{show.format(number)!r} fails: {result}")
            require(result.output == f"{number}\n", f"prints {result.output!r}, not {number}")
        require(session.cwd.startswith("/"), f"cwd is not an absolute path: {session.cwd!r}")
        for odd in ("'", '"', "((", "\\", "\0", "# ä 🙂", "", "x" * 50_000):
            session.run(odd, 5.0)
            result = session.run(show.format(3), _TIMEOUT)
            require(result.output == "3\n", f"after {odd[:20]!r} it prints {result.output!r}")
    session.close()  # a second time
    with closing(open_session()) as session:
        result = session.run(show.format(4), _TIMEOUT)
        require(result.output == "4\n", f"after another session was closed: {result.output!r}")
