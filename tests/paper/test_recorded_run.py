"""A whole evaluation against an endpoint that returns the answers of a recorded log."""

from __future__ import annotations

from pathlib import Path

import pytest

from intercode.core import logs
from intercode.core.config import EvalConfig
from intercode.evaluation.evaluate.run import evaluate
from intercode.evaluation.replay import log_replay
from support import requirements
from support.recorded_endpoint import RecordedEndpoint

LOG = "ic_bash_multiturn_gpt-3.5_10_turns_fs_3.json"


@pytest.mark.sandbox
@pytest.mark.rootfs
@pytest.mark.slow
@pytest.mark.nl2bash
def test_a_recorded_model_reaches_its_recorded_success(
    recorded_dir: Path, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The success rate equals the log's, except for episodes whose replay also differs from the
    log."""
    image = requirements.image("nl2bash")
    monkeypatch.setenv("INTERCODE_DATA", str(data_dir))
    log = recorded_dir / "bash" / LOG
    with RecordedEndpoint(log) as server:
        config = EvalConfig(
            "nl2bash:fs_3",
            "try-again",
            model="recorded",
            base_url=server.base_url,
            max_turns=10,
            parallel=4,
            out=tmp_path / "run",
            env_options={"profile": "original", "image": image, "network": "host"},
        )
        played = {t.index: t for t in logs.load_log(evaluate(config, quiet=True))}
    options = log_replay.ReplayOptions(profile="original", image=image, network="host", parallel=4)
    (report,) = log_replay.replay_logs([log], options)
    again: dict[str, float] = {}
    for step in report.steps:
        again[step.task] = max(again.get(step.task, 0.0), step.replayed_reward or 0.0)
    assert len(played) == 60
    recorded = {t.index: t for t in logs.load_log(log)}
    for index, episode in played.items():
        assert episode.error is None
        explained = (again.get(episode.task, 0.0) >= 1 - 1e-9) != recorded[index].success
        assert episode.success == recorded[index].success or explained, episode.task
