"""`intercode doctor` reports the programs that a dataset's tasks need."""

from __future__ import annotations

import json

import pytest

from intercode.cli import main

pytestmark = pytest.mark.sandbox


def _findings(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(capsys.readouterr().out)
    return [f for f in found if str(f["name"]).startswith("programs")]


def test_what_the_machine_lacks_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    name = "support.needy:needy"
    assert main(["doctor", name, "--json"]) == 0
    (found,) = _findings(capsys)
    assert found["name"] == "programs of host" and not found["ok"]
    assert str(found["detail"]).endswith("needs also no-such-program")
    assert main(["doctor", name, "--image", "host", "--json"]) == 1
    assert _findings(capsys)[0]["needed"]


@pytest.mark.slow
def test_a_machine_with_all_programs_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "support.needy:content", "--json"]) == 0
    assert _findings(capsys)[0]["ok"]
    assert main(["doctor", "starter", "--json"]) == 0
    assert _findings(capsys) == []
