"""A session of ``intercode play``: its tasks one after another, recorded as a run."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from intercode.cli.play import unfinished_sessions as drafts
from intercode.cli.play.interrupts import Gate
from intercode.cli.play.plain_console import PlainConsole
from intercode.cli.play.terminal_player import AGENT_WORDS, WORDS, Person, Quit
from intercode.core import trajectories
from intercode.core.config import make_config
from intercode.core.types import Trajectory
from intercode.environments.base.env import InterCodeEnv
from intercode.evaluation.evaluate.plan import Plan, begin, make_plan, with_facts
from intercode.evaluation.evaluate.run_directory import free_directory, refuse_other, run_name
from intercode.evaluation.play.interactive_episode import Sitting
from intercode.evaluation.play.player import guide

HUMAN = "human"


@dataclass(frozen=True)
class Session:
    """What is to be played: a run, its settings, the positions of its tasks, and what was done of
    the first before. ``gate``: what Ctrl-C stops, where a person sits at both ends; what they leave
    is kept then. None without a terminal."""

    plan: Plan
    values: Mapping[str, Any]
    tasks: tuple[int, ...]
    before: Trajectory | None = None
    gate: Gate | None = None

    @property
    def agent(self) -> str | None:
        """The name of the agent that plays as well."""
        name = self.plan.config.agent
        return None if name == HUMAN else name


def begun(values: Mapping[str, Any]) -> Session:
    """A session with these settings. Raises UsageError and its kin for what cannot be."""
    plan = _plan(values)
    tasks = plan.chosen if values.get("tasks") else tuple(plan.pending())
    return Session(plan, {**values, "out": plan.out.absolute()}, tasks, gate=_gate())


def resumed(dataset: str | None) -> Session:
    """The session that was left last. Raises UsageError where there is none."""
    draft = drafts.newest(dataset)
    plan = _plan(draft.values)
    return Session(plan, draft.values, draft.tasks, draft.episode, _gate())


def _gate() -> Gate | None:
    return Gate() if sys.stdin.isatty() and sys.stdout.isatty() else None


def _plan(values: Mapping[str, Any]) -> Plan:
    """The run of a session. Where an agent plays as well, it is no run of that agent alone: its
    facts say ``<agent>+human``."""
    config = make_config(values)
    if config.agent == HUMAN:
        return make_plan(config)
    plan = make_plan(replace(config, out=None))
    facts = {**plan.facts, "agent": f"{config.agent}+{HUMAN}"}
    out = config.out or free_directory(Path("runs"), run_name(facts), facts)
    refuse_other(out, facts)
    return replace(plan, config=config, facts=facts, out=out)


def play(session: Session) -> int:
    """Play, and print how it went."""
    plan, left = session.plan, list(session.tasks)
    solved = played = 0
    try:
        with session.gate.installed() if session.gate else nullcontext(), plan.env() as env:
            while left:
                trajectory = _one(session, env, tuple(left))
                if any(step.action for step in trajectory.steps):
                    begin(plan)
                    done = with_facts(plan, trajectory, **trajectory.run)
                    trajectories.append(plan.file, done)
                    played, solved = played + 1, solved + trajectory.success
                left.pop(0)
        drafts.drop(plan.out)
    except (Quit, KeyboardInterrupt):
        print()
        if session.gate:
            print("`intercode play --resume` goes on from here.", file=sys.stderr)
    print(f"{solved} of {played} solved.")
    if played:
        print(f"Trajectories: {plan.file}", file=sys.stderr)
    return 0


def _one(session: Session, env: InterCodeEnv, left: tuple[int, ...]) -> Trajectory:
    """The episode of the first of the tasks that are left."""
    plan = session.plan
    before = session.before if left == session.tasks else None

    def saved(sitting: Sitting) -> None:
        episode = sitting.draft() if sitting.steps else None
        drafts.keep(drafts.Draft(session.values, left, episode))

    if session.gate:
        from intercode.cli.play.terminal_console import TerminalConsole

        limits = [n for n in (plan.facts.get("max_turns"), env.max_turns) if n is not None]
        limit = min(limits, default=None)
        words = (*WORDS, *AGENT_WORDS) if session.agent else WORDS
        console = TerminalConsole(env.name, lambda: person.status(limit), words, session.gate)
        person = Person(console, agent=session.agent, saved=saved)
    else:
        person = Person(PlainConsole(), agent=session.agent)
    agent = plan.agent() if session.agent else None
    trajectory = guide(env, left[0], person, agent, max_turns=plan.config.max_turns, before=before)
    person.tell(trajectory)
    return trajectory
