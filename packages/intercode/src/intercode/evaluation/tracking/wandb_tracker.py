"""Reports a run to Weights & Biases through its own library (the extra ``tracking``)."""

from __future__ import annotations

import importlib
import json
import os
import secrets
from collections.abc import Mapping
from typing import Any

from intercode.core import trajectories
from intercode.core.errors import ConfigError
from intercode.core.types import Trajectory
from intercode.evaluation.evaluate.progress.counts import Progress
from intercode.evaluation.evaluate.run_metadata import episode_metadata
from intercode.evaluation.evaluate.run_state import EpisodeKey, episode_key, total_usage
from intercode.evaluation.tracking.base import RunTracker, TrackedRun

ID_FILE = "wandb.json"
"""The file in a run's directory with the id and the project of its run in Weights & Biases."""
PROJECT = "intercode"
"""The project, unless WANDB_PROJECT names another."""
MAX_POINTS = 2000
"""How many points a curve has at most, for each process: longer runs are reported less often."""
COLUMNS = (
    "task",
    "epoch",
    "success",
    "reward",
    "turns",
    "end",
    "prompt_tokens",
    "completion_tokens",
    "cost",
    "seconds",
    "error",
)
CONTENT_COLUMNS = ("query", "last_action", "last_observation")


class WandbTracker(RunTracker):
    """One run in Weights & Biases for one run here, also if several processes play it.

    Its library collects nothing by itself: no command line, output, code, git or machine.
    """

    def __init__(self, run: TrackedRun) -> None:
        super().__init__(run)
        try:
            self._wandb: Any = importlib.import_module("wandb")
        except ImportError as e:
            raise ConfigError(
                "--log wandb needs its library: pip install 'intercode-gym[tracking]'"
            ) from e
        self._here: Any = None
        self._every = 1
        mode = os.environ.get("WANDB_MODE", "online")
        if mode in ("online", "shared"):
            try:
                logged_in = self._wandb.login()  # asks for the key at a terminal
            except self._wandb.Error as e:
                raise ConfigError(f"--log wandb: {e}; WANDB_MODE=offline needs no key") from e
            if not logged_in:
                raise ConfigError(
                    "--log wandb has no key: run `wandb login`, or set WANDB_API_KEY, or set "
                    "WANDB_MODE=offline"
                )

    def begin(self, progress: Progress) -> str:
        file = self.run.out / ID_FILE
        known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        run_id = known.get("id") or secrets.token_hex(4)
        project = known.get("project") or os.environ.get("WANDB_PROJECT") or PROJECT
        self._here = self._wandb.init(
            project=project,
            id=run_id,
            resume="allow",
            config=_config(self.run.metadata),
            name=os.environ.get("WANDB_NAME") or self.run.out.name,
            dir=None if os.environ.get("WANDB_DIR") else str(self.run.out),
            settings=self._wandb.Settings(
                console="off",
                silent=True,
                save_code=False,
                disable_code=True,
                disable_git=True,
                x_disable_meta=True,
                x_disable_stats=True,
                x_save_requirements=False,
            ),
        )
        file.write_text(json.dumps({"id": run_id, "project": project}) + "\n", encoding="utf-8")
        self._here.define_metric("*", step_metric="episodes")
        self._every = max(1, (progress.total - progress.done) // MAX_POINTS)
        where = self._here.url or f"{self._here.dir} (offline: `wandb sync` sends it)"
        return f"wandb: {where}"

    def add(self, trajectory: Trajectory, progress: Progress) -> None:
        if progress.ended_here % self._every == 0 or progress.done == progress.total:
            self._here.log(
                {
                    **_figures(progress),
                    "episode/reward": trajectory.score,
                    "episode/turns": trajectory.turns,
                    "episode/seconds": trajectory.seconds,
                }
            )

    def end(self, progress: Progress, finished: bool) -> None:
        columns = (*COLUMNS, *(CONTENT_COLUMNS if self.run.content else ()))
        rows = self._rows(columns)
        self._here.log({"episodes_table": self._wandb.Table(columns=list(columns), data=rows)})
        self._here.summary.update({k: v for k, v in _figures(progress).items() if v is not None})
        self._here.finish(exit_code=0 if finished else 1)

    def _rows(self, columns: tuple[str, ...]) -> list[list[Any]]:
        """Return a row for each episode of the run, the last attempt of each."""
        rows: dict[EpisodeKey, list[Any]] = {}
        file = self.run.out / trajectories.TRAJECTORIES_FILE
        for episode in trajectories.read_trajectories(file) if file.exists() else ():
            if episode.parent is None:
                row = _row(episode)
                rows[episode_key(episode)] = [row[name] for name in columns]
        return list(rows.values())


def _config(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the conditions of a run: its settings and versions, without texts of prompts."""
    settings = {k: v for k, v in metadata.get("config", {}).items() if v not in (None, [], {})}
    versions = metadata.get("versions", {})
    return {**episode_metadata(metadata), "settings": settings, "versions": versions}


def _figures(progress: Progress) -> dict[str, Any]:
    success, usage = progress.success_estimate(), progress.usage()
    figures = {
        "episodes": progress.done,
        "errors": progress.errors,
        "requests": usage.requests,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cost": usage.cost,
    }
    if success is not None:
        figures |= {
            "success": success.value,
            "success_low": success.low,
            "success_high": success.high,
        }
    return {k: v for k, v in figures.items() if v is not None}


def _row(episode: Trajectory) -> dict[str, Any]:
    usage = total_usage(episode)
    failed = episode.end == "error"
    last = episode.steps[-1] if episode.steps else None
    return {
        "task": episode.task,
        "epoch": episode.epoch,
        "success": episode.success and not failed,
        "reward": 0.0 if failed else episode.score,
        "turns": episode.turns,
        "end": episode.end,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cost": usage.cost,
        "seconds": episode.seconds,
        # the kind of an error only: its text may hold what an agent or a gold printed
        "error": (episode.error or "").partition(":")[0] or None,
        "query": episode.query,
        "last_action": last.action if last else None,
        "last_observation": last.observation if last else None,
    }
