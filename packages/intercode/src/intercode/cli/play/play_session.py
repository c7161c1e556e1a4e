"""A session of ``intercode play``: plays tasks one after another and records them as a run.

At a terminal, a session that ends before its last task is saved, to be resumed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from intercode.cli.output import log_warnings
from intercode.cli.play.console import Console, Quit
from intercode.core import trajectories
from intercode.core.config import make_config, recorded_settings
from intercode.core.errors import ConfigError, DataError, UsageError
from intercode.core.types import Trajectory, to_jsonable
from intercode.environments.base.env import InterCodeEnv
from intercode.evaluation.evaluate.plan import Plan, make_plan, with_metadata
from intercode.evaluation.evaluate.run_directory import (
    create_run_directory,
    require_same_run,
    run_name,
    unused_directory,
)
from intercode.evaluation.evaluate.run_metadata import remove_secrets
from intercode.evaluation.play.interactive_episode import InteractiveEpisode
from intercode.evaluation.play.player import play_task
from intercode_sandbox.platforms.paths import state_root

HUMAN = "human"
"""The name of the agent in runs that a human plays alone."""


@dataclass(frozen=True)
class PlaySession:
    """What is left of a session.

    ``settings`` are those of its run. ``tasks`` are the positions of the tasks to play.
    ``episode`` records the turns of the first of them in an earlier session, None if it had none.
    """

    settings: Mapping[str, Any]
    tasks: tuple[int, ...]
    episode: Trajectory | None = None


def run_new_session(settings: Mapping[str, Any]) -> int:
    """Play the tasks of a new session, as ``run_session`` does. Raises UsageError and its
    subclasses for settings that are wrong."""
    plan = _plan(settings)
    tasks = plan.task_indices if settings.get("tasks") else tuple(plan.pending_tasks())
    return run_session(PlaySession({**settings, "out": plan.out.absolute()}, tasks), plan)


def _plan(settings: Mapping[str, Any]) -> Plan:
    """Return the plan of a session's run.

    A run that an agent and a human play together has the agent ``<agent>+human`` in its metadata,
    so that it is not taken for a run of the agent alone.
    """
    config = make_config(settings)
    if config.agent == HUMAN:
        return make_plan(config)
    plan = make_plan(replace(config, out=None))
    metadata = {**plan.metadata, "agent": f"{config.agent}+{HUMAN}"}
    out = config.out or unused_directory(Path("runs"), run_name(metadata), metadata)
    require_same_run(out, metadata)
    return replace(plan, config=config, metadata=metadata, out=out)


def run_session(session: PlaySession, plan: Plan | None = None) -> int:
    """Play the tasks of a session and print how many were solved. Returns the exit status."""
    plan = plan or _plan(session.settings)
    at_terminal = uses_terminal()
    log_warnings(plan.dataset)
    solved = played = 0
    try:
        env = plan.make_env()
        console = _open_console(plan, env, at_terminal)
        with console.session(), env:
            while session.tasks:
                trajectory = _play_task(session, plan, env, console, at_terminal)
                if any(step.action for step in trajectory.steps):
                    create_run_directory(plan.out, plan.metadata)
                    record = with_metadata(plan, trajectory, **trajectory.run)
                    trajectories.append_trajectory(plan.trajectories_file, record)
                    played, solved = played + 1, solved + trajectory.success
                session = replace(session, tasks=session.tasks[1:], episode=None)
        with contextlib.suppress(FileNotFoundError):
            _path(plan.out).unlink()
    except (Quit, KeyboardInterrupt):
        print()
        if at_terminal:
            print("`intercode play --resume` resumes this session.", file=sys.stderr)
    left = f" {len(session.tasks)} not finished." if session.tasks else ""
    print(f"{solved} of {played} solved.{left}")
    if played:
        print(f"Trajectories: {plan.trajectories_file}", file=sys.stderr)
    return 0


def uses_terminal() -> bool:
    """Return whether a human types at a terminal. Raises ConfigError if the extra ``play`` is not
    installed there."""
    at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if at_terminal and find_spec("prompt_toolkit") is None:
        raise ConfigError(
            "playing at a terminal needs prompt_toolkit: pip install 'intercode-gym[play]'; "
            "reading actions from a pipe does not"
        )
    return at_terminal


def _open_console(plan: Plan, env: InterCodeEnv, at_terminal: bool) -> Console:
    agent = None if plan.config.agent == HUMAN else plan.config.agent
    if not at_terminal:
        return Console(env.description.language, agent)
    from intercode.cli.play.terminal_console import TerminalConsole

    limits = [n for n in (plan.metadata.get("max_turns"), env.max_turns) if n is not None]
    return TerminalConsole(env.name, env.description.language, agent, min(limits, default=None))


def _play_task(
    session: PlaySession, plan: Plan, env: InterCodeEnv, console: Console, at_terminal: bool
) -> Trajectory:
    """Play the first task of a session, which is saved meanwhile at a terminal."""

    def save(episode: InteractiveEpisode) -> None:
        save_session(replace(session, episode=episode.draft() if episode.steps else None))

    if at_terminal:
        console.save = save
    trajectory = play_task(
        env,
        session.tasks[0],
        console,
        plan.make_agent() if console.agent else None,
        max_turns=plan.config.max_turns,
        unfinished=session.episode,
    )
    console.print_result(trajectory)
    return trajectory


# ------------------------------------------------------------- sessions to be resumed
def save_session(session: PlaySession) -> None:
    """Save a session without its secrets. Replaces what was saved for the same run before."""
    row = {
        "settings": remove_secrets(to_jsonable(session.settings)),
        "tasks": list(session.tasks),
        "episode": session.episode and trajectories.trajectory_to_row(session.episode),
    }
    path = _path(Path(session.settings["out"]))
    temporary = path.with_suffix(f".{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(row, file)
    temporary.replace(path)


def load_session(dataset: str | None) -> PlaySession:
    """Load the session that was saved last, of ``dataset`` if that is not None.

    Raises UsageError if there is none, DataError for a file that cannot be read.
    """
    files = sorted(_folder().glob("*.json"), key=lambda p: p.stat().st_mtime, reverse=True)
    for path in files:
        session = _read_session(path)
        if dataset in (None, session.settings.get("dataset")):
            return session
    of = f" of {dataset}" if dataset else ""
    raise UsageError(f"there is no unfinished session{of}: leave out --resume to begin one")


def _read_session(path: Path) -> PlaySession:
    try:
        row = json.loads(path.read_text(encoding="utf-8"))
        episode = row["episode"] and trajectories.trajectory_from_row(row["episode"])
        return PlaySession(recorded_settings(row["settings"]), tuple(row["tasks"]), episode)
    except (ValueError, KeyError, TypeError) as e:
        raise DataError(f"{path} is no unfinished session that can be resumed: remove it") from e


def _folder() -> Path:
    path = state_root() / "unfinished"
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    return path


def _path(out: Path) -> Path:
    name = hashlib.sha256(str(out.absolute()).encode()).hexdigest()[:16]
    return _folder() / f"{name}.json"
