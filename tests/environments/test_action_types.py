"""What an action may be."""

from __future__ import annotations

import pytest

import intercode
from intercode.core.errors import UsageError


class Marked(str):
    """A text with a type of its own, as some libraries make them."""


@pytest.mark.sandbox
@pytest.mark.parametrize("environment", ["bash", "python", "sql"])
def test_a_text_of_a_type_of_its_own_is_an_action(environment: str) -> None:
    code = {"bash": "echo 5", "python": "print(5)", "sql": "SELECT 5"}[environment]
    with intercode.make(environment) as env:
        env.reset(seed=1)
        result = env.execute(Marked(code))
        assert "5" in result.observation and result.valid and result.action_error is None
        with pytest.raises(UsageError, match="not bytes"):
            env.execute(code.encode())  # type: ignore[arg-type]
