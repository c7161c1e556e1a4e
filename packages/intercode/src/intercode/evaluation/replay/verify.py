"""Verifies a bundle: checks its digests and conditions, and executes its episodes again."""

from __future__ import annotations

import datetime
import json
import random
import secrets
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import intercode
from intercode.core import trajectories
from intercode.core.errors import DataError
from intercode.core.types import Trajectory
from intercode.evaluation.replay import log_replay
from intercode.evaluation.replay.log_replay import ReplayReport, StepComparison
from intercode.evaluation.replay.record_safety import reject_unsafe_record
from intercode.evaluation.replay.recorded_environments import (
    ReplayOptions,
    open_recorded_env,
    reset_to_task,
)
from intercode.results.export.bundle.bundle import Bundle, read_bundle
from intercode.results.export.bundle.receipt import Receipt, receipt_path

DEFAULT_SAMPLE = 20
"""The default number of episodes to execute again."""
_REQUIRED_CONDITIONS = ("dataset_hash", "scoring")
"""Conditions that must equal the recorded ones; otherwise replaying proves nothing."""
_NOTED_CONDITIONS = ("image_digest", "arch", "tier", "hard_limits")
"""Conditions that may differ. A difference is noted, because it may explain differing results."""


@dataclass(frozen=True)
class Verdict:
    """The result of verifying a bundle.

    ``notes`` name conditions that differ on this machine. ``first_mismatch`` is the first step that
    differs from its record, or None.
    """

    bundle: Bundle
    report: ReplayReport
    seed: int
    notes: tuple[str, ...] = ()
    first_mismatch: StepComparison | None = None

    @property
    def equal(self) -> bool:
        return self.first_mismatch is None


def verify(
    path: Path,
    options: ReplayOptions,
    *,
    sample: int | None = DEFAULT_SAMPLE,
    seed: int | None = None,
) -> Verdict:
    """Check a bundle, and execute a random sample of its episodes again.

    ``sample`` is the number of episodes (None: all). The default ``seed`` is random, so that the
    creator of the bundle cannot predict the sample; the ``seed`` of an earlier verification selects
    the same episodes. Raises DataError if the bundle was changed, or was recorded with another
    version of the dataset or of the scoring. Raises UsageError for settings that a record may not
    choose (see record_safety.py).
    """
    bundle = read_bundle(path)
    seed = secrets.randbelow(1 << 32) if seed is None else seed
    finished = [t for t in bundle.episodes if t.end != "error" and t.error is None]
    if not finished:
        raise DataError(f"{path} has no episode that was played to its end")
    chosen = _choose_sample(finished, sample, seed)
    for episode in chosen:
        reject_unsafe_record(episode.run, options)
    notes = _differing_conditions(chosen[0], options)
    with tempfile.TemporaryDirectory(prefix="intercode-verify-") as directory:
        run = Path(directory) / (path.name.removesuffix(".tar.gz") or "bundle")
        trajectories.write_run_metadata(run, bundle.metadata)
        for episode in chosen:
            trajectories.append_trajectory(run / trajectories.TRAJECTORIES_FILE, episode)
        (report,) = log_replay.replay_logs([run], options)
    first = report.native_mismatches[0] if report.native_mismatches else None
    return Verdict(bundle, report, seed, notes, first)


def write_receipt(verdict: Verdict) -> Path:
    """Write the result next to the bundle, for the leaderboard. Returns the path of the file."""
    report, bundle = verdict.report, verdict.bundle
    first = verdict.first_mismatch
    equal = ("every reward is equal",) if first and report.native_rewards_equal else ()
    receipt = Receipt(
        bundle=bundle.sha256,
        equal=verdict.equal,
        episodes=report.episodes,
        of=len(bundle.episodes),
        steps=len(report.steps),
        differing=len(report.native_mismatches),
        first="" if first is None else f"{first.task}, step {first.turn + 1}: {first.cause}",
        seed=verdict.seed,
        version=intercode.__version__,
        at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        notes=(*verdict.notes, *equal),
    )
    path = receipt_path(bundle.path)
    path.write_text(json.dumps(receipt.as_json(), indent=1) + "\n", encoding="utf-8")
    return path


def _choose_sample(
    episodes: Sequence[Trajectory], sample: int | None, seed: int
) -> list[Trajectory]:
    """Return ``sample`` random episodes, in their recorded order (None: all episodes)."""
    if sample is None or sample >= len(episodes):
        return list(episodes)
    positions = random.Random(seed).sample(range(len(episodes)), sample)
    return [episodes[i] for i in sorted(positions)]


def _differing_conditions(episode: Trajectory, options: ReplayOptions) -> tuple[str, ...]:
    """Describe the conditions of this machine that differ from those recorded with an episode.

    Raises DataError if a required condition differs.
    """
    recorded: Mapping[str, Any] = episode.run
    with open_recorded_env(episode, options) as env:
        reset_to_task(env, episode)  # some metadata needs a sandbox
        here = env.result_metadata()
    for name in _REQUIRED_CONDITIONS:
        if recorded.get(name) != here.get(name):
            raise DataError(
                f"the bundle was made with {name} {recorded.get(name)!r}, and here it is "
                f"{here.get(name)!r}: it cannot be verified with this version"
            )
    return tuple(
        f"{name} is {here.get(name)!r} here, {recorded.get(name)!r} in the bundle"
        for name in _NOTED_CONDITIONS
        if recorded.get(name) != here.get(name)
    )
