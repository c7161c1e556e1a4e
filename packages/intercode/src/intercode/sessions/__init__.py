"""Sessions: live interpreters in a sandbox (Bash, Python, and programs in other languages)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from intercode_sandbox.lazy import lazy_imports

if TYPE_CHECKING:
    from intercode.sessions.base import Session, SessionState
    from intercode.sessions.bash.persistent import BashSession
    from intercode.sessions.programs.program import ProgramSession
    from intercode.sessions.testing import check_session

__all__ = [
    "BashSession",
    "ProgramSession",
    "Session",
    "SessionState",
    "check_session",
]

__getattr__ = lazy_imports(
    __name__,
    {
        "BashSession": ".bash.persistent",
        "ProgramSession": ".programs.program",
        "Session": ".base",
        "SessionState": ".base",
        "check_session": ".testing",
    },
)
