"""The documented example: a short GRPO training with TRL on a model made from scratch."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import intercode
from support import traces
from support.sandboxes import eventually

EXAMPLE = Path(__file__).parent.parent / "examples" / "grpo_bash"
PLAYER = """
import sys, threading
sys.path.insert(0, sys.argv[1])
import drills
from intercode.integrations.trl import BashEnvironment
tasks, train, _ = drills.load()
environments = [BashEnvironment(tasks, max_turns=5, binary=True, recycle=True) for _ in range(24)]
for environment in environments:
    environment.reset(task=train[0])
    threading.Thread(target=environment.bash, args=("sleep 300",)).start()
print("ready", flush=True)
threading.Event().wait()
"""
pytestmark = pytest.mark.sandbox
if not (importlib.util.find_spec("trl") and importlib.util.find_spec("matplotlib")):
    pytest.skip("pip install 'intercode-gym[trl,data]'", allow_module_level=True)


def drills() -> Any:
    spec = importlib.util.spec_from_file_location("drills", EXAMPLE / "drills.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_is_short() -> None:
    assert len((EXAMPLE / "train.py").read_text().splitlines()) <= 70


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


@pytest.mark.slow("long")
def test_success_on_held_out_tasks_rises(tmp_path: Path) -> None:
    """The command of docs/training.md, with fewer steps, on one core and without a network."""
    done = subprocess.run(
        [sys.executable, EXAMPLE / "train.py", "--steps", "20", "--output", "out"],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        timeout=900,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    told = done.stdout
    assert done.returncode == 0, told[-3000:]
    found = re.search(r"held-out tasks: before ([\d.]+), after ([\d.]+)", told)
    assert found is not None, told[-3000:]
    before, after = float(found[1]), float(found[2])
    assert before < 0.5 and after > before + 0.2, (before, after)
    assert "</svg>" in (tmp_path / "out" / "curve.svg").read_text()


def test_nothing_is_left_of_a_trainer_that_is_killed() -> None:
    """The example's environments in a process without PyTorch, which takes long to import. Like
    TRL, it uses each from a thread of its own."""
    with subprocess.Popen(
        [sys.executable, "-c", PLAYER, str(EXAMPLE)], stdout=subprocess.PIPE
    ) as trainer:
        assert trainer.stdout is not None and trainer.stdout.readline() == b"ready\n"
        family = traces.family(trainer.pid)
        assert len(family.inits) >= 24
        os.kill(trainer.pid, signal.SIGKILL)
    eventually(lambda: not traces.living((*family.sandboxes, *family.launchers)), "nothing is left")
