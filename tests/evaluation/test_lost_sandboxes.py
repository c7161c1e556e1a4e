"""A sandbox that is lost during a run costs a second attempt, and no result."""

from __future__ import annotations

import importlib
import json
import os
import signal
import threading
from pathlib import Path

import pytest

from intercode.core import trajectories
from intercode.core.config import EvalConfig
from intercode.evaluation.evaluate.progress import Progress
from intercode.evaluation.evaluate.run import evaluate
from support import traces
from support.sandboxes import open_test_sandbox

pytestmark = pytest.mark.sandbox

_NUMBER, _PARALLEL = 12, 6
_WAITING = """
import threading
from intercode.agents.baselines import GoldAgent

go, live = threading.Event(), threading.Semaphore(0)

class Waiting(GoldAgent):
    def act(self, feedback):
        live.release()
        assert go.wait(60)
        return super().act(feedback)
"""


def test_the_launcher_is_killed_with_episodes_live(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_test_sandbox().close()  # skips the test if there is no sandbox
    (tmp_path / "waiting_agent.py").write_text(_WAITING)
    monkeypatch.syspath_prepend(str(tmp_path))
    agent = importlib.import_module("waiting_agent")
    rows = [{"query": f"print {n}", "gold": f"echo {n}"} for n in range(_NUMBER)]
    file = tmp_path / "numbers.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "run"
    config = EvalConfig(str(file), "waiting_agent:Waiting", out=out, parallel=_PARALLEL)
    run = threading.Thread(target=evaluate, args=(config,), kwargs={"quiet": True})
    run.start()
    for _ in range(_PARALLEL):
        assert agent.live.acquire(timeout=60)
    family = traces.family(os.getpid())
    for pid, _ in family.launchers:
        os.kill(pid, signal.SIGKILL)
    assert traces.eventually(lambda: not traces.living(family.supervisors), 60) is not None
    agent.go.set()
    run.join(120)
    assert not run.is_alive()
    found = list(trajectories.read_trajectories(out / trajectories.TRAJECTORIES_FILE))
    assert sorted(t.index for t in found) == list(range(_NUMBER))
    assert all(t.success and t.end == "submitted" for t in found), [t.error for t in found]
    again = [t for t in found if t.run.get("attempts", 1) > 1]
    assert len(again) >= _PARALLEL
    progress = Progress(_NUMBER)
    for trajectory in found:
        progress.add(trajectory)
    assert progress.retried == len(again)
