"""A session of ``intercode play``: plays tasks one after another and records them as a run."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from intercode.cli.output import log_warnings
from intercode.cli.play import unfinished_sessions
from intercode.cli.play.interrupts import InterruptGate
from intercode.cli.play.plain_console import PlainConsole
from intercode.cli.play.terminal_player import AGENT_COMMANDS, PLAY_COMMANDS, Quit, TerminalPlayer
from intercode.cli.play.unfinished_sessions import UnfinishedSession
from intercode.core import trajectories
from intercode.core.config import make_config
from intercode.core.errors import ConfigError
from intercode.core.types import Trajectory
from intercode.environments.base.env import InterCodeEnv
from intercode.evaluation.evaluate.plan import Plan, create_run, make_plan, with_metadata
from intercode.evaluation.evaluate.run_directory import require_same_run, run_name, unused_directory
from intercode.evaluation.play.interactive_episode import InteractiveEpisode
from intercode.evaluation.play.player import play_task

HUMAN = "human"
"""The name of the agent in runs that a human plays alone."""


@dataclass(frozen=True)
class PlaySession:
    """A session to be played.

    ``settings`` are those that ``plan`` was made from. ``tasks`` are the positions of the tasks to
    play. ``unfinished`` records the turns of the first task in an earlier session. ``gate`` says
    what Ctrl-C stops; it is None unless both input and output are a terminal, and a session without
    it is not saved when it is left.
    """

    plan: Plan
    settings: Mapping[str, Any]
    tasks: tuple[int, ...]
    unfinished: Trajectory | None = None
    gate: InterruptGate | None = None

    @property
    def agent(self) -> str | None:
        """The name of the agent that plays with the human, if any."""
        name = self.plan.config.agent
        return None if name == HUMAN else name


def start_session(settings: Mapping[str, Any]) -> PlaySession:
    """Return a new session. Raises UsageError and its subclasses for settings that are wrong."""
    plan = _plan(settings)
    tasks = plan.task_indices if settings.get("tasks") else tuple(plan.pending_tasks())
    return PlaySession(plan, {**settings, "out": plan.out.absolute()}, tasks, gate=_gate())


def resume_session(dataset: str | None) -> PlaySession:
    """Return the session that was left last. Raises UsageError if there is none."""
    saved = unfinished_sessions.load_newest(dataset)
    return PlaySession(_plan(saved.settings), saved.settings, saved.tasks, saved.episode, _gate())


def _gate() -> InterruptGate | None:
    """Return a gate at a terminal. Raises ConfigError if the extra ``play`` is not installed."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None
    if find_spec("prompt_toolkit") is None:
        raise ConfigError(
            "playing at a terminal needs prompt_toolkit: pip install 'intercode-gym[play]'; "
            "reading actions from a pipe does not"
        )
    return InterruptGate()


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


def run_session(session: PlaySession) -> int:
    """Play the tasks of a session and print how many were solved. Returns the exit status."""
    plan, remaining = session.plan, list(session.tasks)
    log_warnings(plan.dataset)
    solved = played = 0
    try:
        with session.gate.installed() if session.gate else nullcontext(), plan.make_env() as env:
            while remaining:
                trajectory = _play_task(session, env, tuple(remaining))
                if any(step.action for step in trajectory.steps):
                    create_run(plan)
                    record = with_metadata(plan, trajectory, **trajectory.run)
                    trajectories.append_trajectory(plan.trajectories_file, record)
                    played, solved = played + 1, solved + trajectory.success
                remaining.pop(0)
        unfinished_sessions.delete(plan.out)
    except (Quit, KeyboardInterrupt):
        print()
        if session.gate:
            print("`intercode play --resume` resumes this session.", file=sys.stderr)
    print(f"{solved} of {played} solved.")
    if played:
        print(f"Trajectories: {plan.trajectories_file}", file=sys.stderr)
    return 0


def _play_task(session: PlaySession, env: InterCodeEnv, remaining: tuple[int, ...]) -> Trajectory:
    plan = session.plan
    unfinished = session.unfinished if remaining == session.tasks else None

    def save(episode: InteractiveEpisode) -> None:
        record = episode.draft() if episode.steps else None
        unfinished_sessions.save(UnfinishedSession(session.settings, remaining, record))

    if session.gate:
        from intercode.cli.play.terminal_console import TerminalConsole

        limits = [n for n in (plan.metadata.get("max_turns"), env.max_turns) if n is not None]
        limit = min(limits, default=None)
        words = (*PLAY_COMMANDS, *AGENT_COMMANDS) if session.agent else PLAY_COMMANDS
        console = TerminalConsole(
            env.name,
            env.description.language.typing,
            lambda: player.status(limit),
            words,
            session.gate,
        )
        player = TerminalPlayer(console, agent=session.agent, on_turn=save)
    else:
        player = TerminalPlayer(PlainConsole(), agent=session.agent)
    agent = plan.make_agent() if session.agent else None
    trajectory = play_task(
        env, remaining[0], player, agent, max_turns=plan.config.max_turns, unfinished=unfinished
    )
    player.print_result(trajectory)
    return trajectory
