"""A whole SQL evaluation against an endpoint that returns the answers of a recorded log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from intercode.core import logs
from intercode.core.config import EvalConfig
from intercode.evaluation.evaluate.run import evaluate
from intercode.evaluation.replay import log_replay
from intercode.results.report import build
from support.recorded_endpoint import RecordedEndpoint

LOG = "ic_sql_multiturn_gpt-3.5_10_turns.json"


@pytest.fixture
def log(recorded_dir: Path, tmp_path: Path) -> Path:
    """A log with thirty episodes, all with different queries."""
    whole = json.loads((recorded_dir / "sql" / LOG).read_text())
    asked = {row["query"]: key for key, row in whole.items()}
    chosen = sorted(asked.values(), key=int)[100:130]
    path = tmp_path / LOG
    path.write_text(json.dumps({key: whole[key] for key in chosen}))
    return path


def test_a_recorded_model_reaches_its_recorded_success(
    log: Path, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The success equals the log's, except for episodes whose replay also differs from the log."""
    monkeypatch.setenv("INTERCODE_DATA", str(data_dir))
    recorded = {t.index: t for t in logs.load_log(log)}
    with RecordedEndpoint(log) as server:
        config = EvalConfig(
            "spider",
            "try-again",
            model="recorded",
            base_url=server.base_url,
            parallel=2,
            max_turns=10,
            out=tmp_path / "run",
            tasks=tuple(str(index) for index in recorded),
            env_options={"profile": "original", "reward": "sql-original-iou"},
        )
        out = evaluate(config, quiet=True)
    played = {t.index: t for t in logs.load_log(out)}
    assert len(played) == 30 and all(t.error is None for t in played.values())
    assert all(t.group and t.hardness == recorded[t.index].hardness for t in played.values())
    (report,) = log_replay.replay_logs([log], log_replay.ReplayOptions(profile="original"))
    other = {s.task for s in report.steps if not s.same_reward}
    # rewards by τ
    other |= {s.task for s in report.steps if s.replayed_reward != s.parts.get("iou", 0.0)}
    differing = {t.task for t in played.values() if t.success != recorded[t.index].success}
    assert differing <= other and sum(t.success for t in played.values()) > 5
    table = next(t for t in build([out]) if t.name.startswith("spider"))
    assert "easy" in " ".join(table.columns)
