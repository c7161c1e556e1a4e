"""The threat model of each tier."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from intercode.core.config import EvalConfig
from intercode.evaluation.evaluate.run import evaluate
from intercode_sandbox.command import main as sandbox_main
from intercode_sandbox.tiers import protections
from intercode_sandbox.tiers.tier_table import TIERS

DOCS = Path(__file__).parents[3] / "docs"


def test_the_page_has_the_summary_of_every_tier() -> None:
    page = (DOCS / "threat-model.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    models = protections.threat_models()
    assert rows == [f"| `{name}` | {m.summary} | {m.golds} |" for name, m in models.items()]


def test_every_tier_has_every_protection() -> None:
    models = protections.threat_models()
    assert list(models) == [tier.name for tier in TIERS]
    for name, model in models.items():
        assert set(model.protections) == set(protections.ASPECTS), name
        assert model.summary and model.golds
        there = protections.threat_model_of(f"remote/{name}")
        assert there == protections.threat_model_of(name)


def test_doctor_prints_the_threat_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert sandbox_main(["doctor", "--threat-model"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for name, model in protections.threat_models().items():
        assert name in text
        for protection in model.protections.values():
            assert f"{protection.by} not protected: {protection.gap}" in text


@pytest.mark.sandbox
def test_a_run_names_what_its_tier_protects_against(tmp_path: Path) -> None:
    out = evaluate(EvalConfig("starter", "gold", limit=1, out=tmp_path / "run"), quiet=True)
    metadata = json.loads((out / "run.json").read_text(encoding="utf-8"))
    summary = protections.threat_models()[metadata["tier"]].summary
    assert metadata["threat_model"] == f"{summary} (see `{protections.REMEDY}`)"
    episode = json.loads((out / "trajectories.jsonl").read_text(encoding="utf-8"))
    assert episode["run"]["tier"] == metadata["tier"] and "threat_model" not in episode["run"]
