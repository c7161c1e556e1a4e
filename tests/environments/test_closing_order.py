"""In which order an environment closes a session and its sandbox."""

from __future__ import annotations

from typing import Any

import pytest

from intercode.environments.base.workspaces import SandboxWorkspace


class Part:
    """A session or a sandbox that notes when it is closed."""

    def __init__(self, name: str, closed: list[str], fails: bool = False) -> None:
        self._name, self._closed, self._fails = name, closed, fails

    def close(self) -> None:
        self._closed.append(self._name)
        if self._fails:
            raise OSError(self._name)


class EndsWithSandbox(Part):
    """A session whose ``close`` needs no sandbox."""

    ends_with_sandbox = True

    def close(self) -> None:
        super().close()


class Wraps:
    """A session that passes everything on to another."""

    def __init__(self, *parts: Any) -> None:
        self._inner = Part(*parts)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class StopsServer(EndsWithSandbox):
    """A session that adds a step to ``close``."""

    def close(self) -> None:
        super().close()


@pytest.mark.parametrize(
    ("kind", "order"),
    [
        (Part, ["session", "sandbox"]),
        (EndsWithSandbox, ["sandbox", "session"]),
        (StopsServer, ["session", "sandbox"]),
        (Wraps, ["session", "sandbox"]),
    ],
)
@pytest.mark.parametrize("fails", [False, True])
def test_a_session_is_closed_first_unless_its_close_needs_no_sandbox(
    kind: Any, order: list[str], fails: bool
) -> None:
    closed: list[str] = []
    session: Any = kind("session", closed, fails)
    sandbox: Any = Part("sandbox", closed)
    if fails:
        with pytest.raises(OSError, match="session"):
            SandboxWorkspace(sandbox, session).close()
    else:
        SandboxWorkspace(sandbox, session).close()
    assert closed == order


def test_the_first_error_is_raised_also_if_the_second_part_fails() -> None:
    class Interrupted(Part):
        def close(self) -> None:
            super().close()
            raise KeyboardInterrupt

    closed: list[str] = []
    session: Any = Interrupted("session", closed)
    sandbox: Any = Part("sandbox", closed, fails=True)
    with pytest.raises(KeyboardInterrupt):
        SandboxWorkspace(sandbox, session).close()
    assert closed == ["session", "sandbox"]
