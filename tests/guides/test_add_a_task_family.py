"""The guide "Add a task family" works as it is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from intercode.core.registry import Registry
from intercode.datasets.families import family as family_module
from intercode.evaluation.check.family_proofs import prove
from intercode.evaluation.check.family_tables import report_as_json
from support import pages


@pytest.mark.sandbox
@pytest.mark.heavy
def test_the_guide_gives_a_family_that_passes_the_proof(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path,) = pages.write_files("add-a-task-family.md", tmp_path)
    with path.open("a") as file:
        file.write("\n\nFAMILIES = [sum_of_numbers]\n")
    registry = Registry("environment with task families", {"bash": f"{path}:FAMILIES"})
    monkeypatch.setattr(family_module, "FAMILIES", registry)
    report = prove("families:bash/sum-of-numbers", 5, tmp_path / "proofs.jsonl", settings={})
    document = report_as_json(report)
    assert document["sound"] and document["tasks"] == 5, document["faults"]
