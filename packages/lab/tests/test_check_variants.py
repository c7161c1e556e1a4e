"""Checks of variants and of tasks that are drawn."""

from __future__ import annotations

import json

import pytest

from intercode.cli import main

pytestmark = pytest.mark.sandbox


@pytest.mark.slow
def test_a_limit_holds_for_variants_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "starter:bash", "--limit", "2", "--variants", "1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["tasks"] == len(document["variants"]) == 2


def test_draws_and_a_limit_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "families:bash", "--draw", "2", "--limit", "1"]) == 2
    assert "--limit is for the check of tasks, not for --draw" in capsys.readouterr().err
