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


@pytest.mark.parametrize("ends_with_sandbox", [None, False, True])
@pytest.mark.parametrize("fails", [False, True])
def test_a_session_is_closed_first_unless_it_ends_with_its_sandbox(
    ends_with_sandbox: bool | None, fails: bool
) -> None:
    closed: list[str] = []
    session: Any = Part("session", closed, fails)
    sandbox: Any = Part("sandbox", closed)
    if ends_with_sandbox is not None:
        session.ends_with_sandbox = ends_with_sandbox
    if fails:
        with pytest.raises(OSError, match="session"):
            SandboxWorkspace(sandbox, session).close()
    else:
        SandboxWorkspace(sandbox, session).close()
    order = ["sandbox", "session"] if ends_with_sandbox else ["session", "sandbox"]
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
