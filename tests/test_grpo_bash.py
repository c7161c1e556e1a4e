"""The documented example: a short GRPO training with TRL on a model made from scratch."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import intercode
from support import traces
from support.sandboxes import eventually

EXAMPLE = Path(__file__).parent.parent / "examples" / "grpo_bash"
pytestmark = pytest.mark.sandbox
pytest.importorskip("trl", reason="pip install 'intercode-gym[trl,plots]'")
pytest.importorskip("matplotlib", reason="pip install 'intercode-gym[trl,plots]'")


@contextmanager
def training(cwd: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run the example on one core and without a network; its output goes to ``cwd/told``."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    with (cwd / "told").open("wb") as told, subprocess.Popen(
        [sys.executable, str(EXAMPLE / "train.py"), *options], cwd=cwd, env=environment,
        stdout=told, stderr=subprocess.STDOUT,
    ) as trainer:  # fmt: skip
        try:
            yield trainer
        finally:
            trainer.kill()


def drills() -> Any:
    spec = importlib.util.spec_from_file_location("drills", EXAMPLE / "drills.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_is_short() -> None:
    assert len((EXAMPLE / "train.py").read_text().splitlines()) <= 60


def test_the_tasks_are_sound_and_none_is_in_both_parts() -> None:
    made = drills()
    tasks, train, held_out = made.load()
    assert not set(train) & set(held_out) and len(train) + len(held_out) == len(tasks)
    pairs = [{t.gold for t in tasks.tasks if t.id in part} for part in (train, held_out)]
    assert not pairs[0] & pairs[1]
    path = tasks.tasks[0].id.rpartition("/")[0].rpartition("/")[0]
    with intercode.make("bash", tasks, recycle=True) as env:  # each request has one right program
        for at in range(0, 2 * len(made.KINDS), 2):
            scores = {}
            for program in made.KINDS:
                env.reset(options={"task": at})
                env.step(f"{program} {path}")
                scores[program] = env.score().value
            assert [p for p, s in scores.items() if s == 1.0] == [list(made.KINDS)[at // 2]], scores


@pytest.mark.slow
def test_success_on_held_out_tasks_rises(tmp_path: Path) -> None:
    """The command of docs/training.md, with fewer steps."""
    with training(tmp_path, "--steps", "30", "--output", "out") as trainer:
        trainer.wait(timeout=900)
    told = (tmp_path / "told").read_text()
    assert trainer.returncode == 0, told[-3000:]
    found = re.search(r"held-out tasks: before ([\d.]+), after ([\d.]+)", told)
    assert found is not None, told[-3000:]
    before, after = float(found[1]), float(found[2])
    assert before < 0.5 and after > before + 0.2, (before, after)
    assert "</svg>" in (tmp_path / "out" / "curve.svg").read_text()


@pytest.mark.slow
def test_nothing_is_left_of_a_trainer_that_is_killed(tmp_path: Path) -> None:
    with training(tmp_path, "--steps", "1000") as trainer:
        family = traces.family(trainer.pid)
        while trainer.poll() is None and len(family.inits) <= 20:
            time.sleep(1.0)  # checking too often would take processor time from the training
            family = traces.family(trainer.pid)
        assert trainer.poll() is None, (tmp_path / "told").read_text()[-3000:]
        os.kill(trainer.pid, signal.SIGKILL)
    eventually(lambda: not traces.living((*family.sandboxes, *family.launchers)), "nothing is left")
