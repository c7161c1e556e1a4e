"""Tasks of families in Inspect."""

from __future__ import annotations

import pytest

pytest.importorskip("inspect_ai", reason="pip install 'intercode-gym[inspect]'")

from intercode.agents.parsing import CHANGES_NOTE
from intercode.core.errors import UsageError
from intercode.integrations.inspect import bash

pytestmark = pytest.mark.sandbox


@pytest.mark.paper
def test_the_input_says_where_only_changes_are_judged() -> None:
    for profile, ends in (("standard", True), ("original", False)):
        task = bash(dataset="families:bash/old-files@seed=1", profile=profile)
        assert [str(s.input).endswith(CHANGES_NOTE) for s in task.dataset] == [ends]
    assert not any(CHANGES_NOTE in str(s.input) for s in bash().dataset)


def test_tasks_without_end_are_refused() -> None:
    with pytest.raises(UsageError, match="as in families:bash/trail@seed="):
        bash(dataset="families:bash/trail")
