"""Runs with the sandboxes of a server: one that is started again meanwhile, and a built image."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from intercode.core import trajectories
from intercode.core.config import EvalConfig
from intercode.evaluation.evaluate.run import evaluate
from support.requirements import require
from support.sandbox_server import ServerProcess, serving_sandboxes
from support.serving import free_port
from support.traces import eventually

pytestmark = [pytest.mark.sandbox, pytest.mark.namespace_only]


def _evaluate(dataset: str, out: Path, server: ServerProcess, **settings: Any) -> None:
    settings.setdefault("parallel", 2)
    settings["env_options"] = {"backend": server.kind, **settings.get("env_options", {})}
    config = EvalConfig(dataset, "gold", out=out, **settings)
    evaluate(config, quiet=True)


@pytest.mark.slow
def test_a_server_that_is_started_again_costs_episodes_and_not_the_run(tmp_path: Path) -> None:
    out = tmp_path / "run"
    file = out / trajectories.TRAJECTORIES_FILE
    port = free_port()
    with serving_sandboxes(port=port) as first:
        run = threading.Thread(target=_evaluate, args=("starter:bash", out, first))
        run.start()
        assert eventually(lambda: file.exists() and file.read_bytes().count(b"\n") >= 2, 60)
        first.process.kill()
        first.process.wait()
        with serving_sandboxes(port=port):
            run.join(120)
    assert not run.is_alive()
    found = list(trajectories.read_trajectories(file))
    assert len(found) == len({t.task for t in found}) > 20
    assert all(t.success for t in found), [t.error for t in found if not t.success]
    again = [t for t in found if t.run.get("attempts", 1) > 1]
    assert 1 <= len(again) <= 4, "the episodes that were running are played again"


@pytest.mark.slow
def test_a_recipe_of_the_server_is_the_image_of_a_run(tmp_path: Path) -> None:
    require("image:python")
    with serving_sandboxes() as server:
        _evaluate(
            "starter:python",
            tmp_path / "run",
            server,
            env_options={"image": "recipe:python"},
            limit=4,
        )
    found = list(trajectories.read_trajectories(tmp_path / "run" / trajectories.TRAJECTORIES_FILE))
    assert len(found) == 4 and all(t.success for t in found), [t.error for t in found]
    assert {t.run["image"] for t in found} == {"recipe:python"}
