"""A session of ``intercode play``: its tasks one after another, recorded as a run."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from intercode.cli.play import unfinished_sessions as drafts
from intercode.cli.play.interrupts import InterruptGate
from intercode.cli.play.plain_console import PlainConsole
from intercode.cli.play.terminal_player import AGENT_COMMANDS, PLAY_COMMANDS, Quit, TerminalPlayer
from intercode.core import trajectories
from intercode.core.config import make_config
from intercode.core.types import Trajectory
from intercode.environments.base.env import InterCodeEnv
from intercode.evaluation.evaluate.plan import Plan, create_run, make_plan, with_metadata
from intercode.evaluation.evaluate.run_directory import require_same_run, run_name, unused_directory
from intercode.evaluation.play.interactive_episode import InteractiveEpisode
from intercode.evaluation.play.player import play_task

HUMAN = "human"


@dataclass(frozen=True)
class PlaySession:
    """What is to be played: a run, its settings, the positions of its tasks, and what was done of
    the first before. ``gate``: what Ctrl-C stops, where a person sits at both ends; what they leave
    is kept then. None without a terminal."""

    plan: Plan
    settings: Mapping[str, Any]
    tasks: tuple[int, ...]
    unfinished: Trajectory | None = None
    gate: InterruptGate | None = None

    @property
    def agent(self) -> str | None:
        """The name of the agent that plays as well."""
        name = self.plan.config.agent
        return None if name == HUMAN else name


def start_session(values: Mapping[str, Any]) -> PlaySession:
    """A session with these settings. Raises UsageError and its kin for what cannot be."""
    plan = _plan(values)
    tasks = plan.task_indices if values.get("tasks") else tuple(plan.pending_tasks())
    return PlaySession(plan, {**values, "out": plan.out.absolute()}, tasks, gate=_gate())


def resume_session(dataset: str | None) -> PlaySession:
    """The session that was left last. Raises UsageError where there is none."""
    draft = drafts.load_newest(dataset)
    plan = _plan(draft.settings)
    return PlaySession(plan, draft.settings, draft.tasks, draft.episode, _gate())


def _gate() -> InterruptGate | None:
    return InterruptGate() if sys.stdin.isatty() and sys.stdout.isatty() else None


def _plan(values: Mapping[str, Any]) -> Plan:
    """The run of a session. Where an agent plays as well, it is no run of that agent alone: its
    facts say ``<agent>+human``."""
    config = make_config(values)
    if config.agent == HUMAN:
        return make_plan(config)
    plan = make_plan(replace(config, out=None))
    facts = {**plan.metadata, "agent": f"{config.agent}+{HUMAN}"}
    out = config.out or unused_directory(Path("runs"), run_name(facts), facts)
    require_same_run(out, facts)
    return replace(plan, config=config, metadata=facts, out=out)


def run_session(session: PlaySession) -> int:
    """Play, and print how it went."""
    plan, left = session.plan, list(session.tasks)
    solved = played = 0
    try:
        with session.gate.installed() if session.gate else nullcontext(), plan.make_env() as env:
            while left:
                trajectory = _play_task(session, env, tuple(left))
                if any(step.action for step in trajectory.steps):
                    create_run(plan)
                    done = with_metadata(plan, trajectory, **trajectory.run)
                    trajectories.append_trajectory(plan.trajectories_file, done)
                    played, solved = played + 1, solved + trajectory.success
                left.pop(0)
        drafts.delete(plan.out)
    except (Quit, KeyboardInterrupt):
        print()
        if session.gate:
            print("`intercode play --resume` goes on from here.", file=sys.stderr)
    print(f"{solved} of {played} solved.")
    if played:
        print(f"Trajectories: {plan.trajectories_file}", file=sys.stderr)
    return 0


def _play_task(session: PlaySession, env: InterCodeEnv, left: tuple[int, ...]) -> Trajectory:
    """The episode of the first of the tasks that are left."""
    plan = session.plan
    before = session.unfinished if left == session.tasks else None

    def saved(sitting: InteractiveEpisode) -> None:
        episode = sitting.draft() if sitting.steps else None
        drafts.save(drafts.UnfinishedSession(session.settings, left, episode))

    if session.gate:
        from intercode.cli.play.terminal_console import TerminalConsole

        limits = [n for n in (plan.metadata.get("max_turns"), env.max_turns) if n is not None]
        limit = min(limits, default=None)
        words = (*PLAY_COMMANDS, *AGENT_COMMANDS) if session.agent else PLAY_COMMANDS
        console = TerminalConsole(env.name, lambda: person.status(limit), words, session.gate)
        person = TerminalPlayer(console, agent=session.agent, on_turn=saved)
    else:
        person = TerminalPlayer(PlainConsole(), agent=session.agent)
    agent = plan.make_agent() if session.agent else None
    trajectory = play_task(
        env, left[0], person, agent, max_turns=plan.config.max_turns, unfinished=before
    )
    person.print_result(trajectory)
    return trajectory
