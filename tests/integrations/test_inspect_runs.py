"""Inspect's mock model answers with the golds of the authors' data; the scores equal those of our
own runs. These tests play a sample: benchmarks/inspect_runs.py plays all tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import requirements

pytest.importorskip("inspect_ai", reason="pip install 'intercode-gym[inspect]'")

from inspect_ai import eval as inspect_eval

import intercode
from intercode import datasets
from intercode.core.config import EvalConfig
from intercode.evaluation.evaluate.run import evaluate
from support.knowing_model import knowing

pytestmark = [pytest.mark.sandbox, pytest.mark.nl2bash, pytest.mark.rootfs]
SAMPLES = {
    "nl2bash": ("nl2bash/fs_1/0", "nl2bash/fs_2/3", "nl2bash/fs_3/5", "nl2bash/fs_4/2"),
    "ic-ctf": ("ic-ctf/0", "ic-ctf/2", "ic-ctf/17"),
}
_IMAGES = {"nl2bash": "nl2bash", "ic-ctf": "ctf"}


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_whole_datasets_score_as_our_own_runs(
    name: str, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image, tasks = requirements.image(_IMAGES[name]), SAMPLES[name]
    monkeypatch.setenv("INTERCODE_DATA", str(data_dir))
    environment = "ctf" if name == "ic-ctf" else "bash"
    dataset = datasets.load(name, environment)
    [log] = inspect_eval(
        f"intercode/{environment}",
        model=knowing(dataset),
        log_dir=str(tmp_path / "logs"),
        task_args={"dataset": name, "max_turns": 4, "image": image},
        sample_id=list(tasks),
        max_samples=2,
        display="none",
    )
    assert log.status == "success", log.error
    theirs = {s.id: (s.scores or {})["reward"].value["reward"] for s in log.samples or ()}  # type: ignore[index,call-overload]
    config = EvalConfig(
        name, "gold", tasks=tasks, parallel=2, out=tmp_path / "run", env_options={"image": image}
    )
    run = intercode.load_run(evaluate(config, quiet=True))
    ours = {row["task"]: row["score"] for row in run.episode_rows()}
    assert set(ours) == set(tasks) and theirs == pytest.approx(ours)
    assert min(ours.values()) == 1.0
