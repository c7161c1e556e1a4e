"""Tasks of families as MCP tools."""

from __future__ import annotations

import intercode
from intercode.agents.parsing import CHANGES_NOTE
from intercode.integrations.mcp.session import EnvironmentSession


def _session(score_requests: bool = False) -> EnvironmentSession:
    return EnvironmentSession(lambda: intercode.make("sql"), score_requests)


def test_the_text_of_a_task_says_where_only_changes_are_judged() -> None:
    with intercode.make("sql", "families:sql/change-prices") as env:
        query, _ = env.reset(seed=1, options={"task": 0})
        session = EnvironmentSession(lambda: env)
        begun = session.reset(0, seed=1)
    assert begun.text.startswith(query) and begun.text.endswith(f"\n{CHANGES_NOTE}")
    assert begun.text.count(CHANGES_NOTE) == 1 and begun.values["info"]["only_changes"]
    session = _session()
    assert CHANGES_NOTE not in session.reset(0).text
    session.close()
