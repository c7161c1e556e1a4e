"""Compares the isolation tiers of this machine: what agents observe and earn, and how fast it is.

    python benchmarks/compare_tiers.py [--tiers namespace/1 chroot ...] [--steps 500]
        [--recorded DIRECTORY] [--image recipe:nl2bash] [--profile standard] [--rounds 15]
        [--seconds 8] [--no-replay | --no-speed]

The first table has, for each tier but `landlock`, which has no images, the steps of the authors'
recorded Bash episodes whose observation and reward are the same as on the first tier, with the
reasons of the differences. The second has the medians of reset, step and fork, and gold episodes
per second, for every tier that works here.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from measuring import Contender, take_turns

import intercode
from intercode.core import logs
from intercode.core.errors import InterCodeError
from intercode.core.types import Dataset, Task, Trajectory
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.replay.comparison import StepComparison, difference_cause
from intercode.environments.base.replay.rules import replay_rules_for
from intercode.evaluation.replay.recorded_environments import (
    RecordedEnvironments,
    ReplayOptions,
    reset_to_task,
)
from intercode.results.report import render
from intercode.results.tables import Cell, Table
from intercode_sandbox import SandboxSpec, images, open_sandbox

TIERS = ("namespace/1", "namespace/2", "container/docker", "container/podman", "chroot", "landlock")
"""Every tier, the strongest first."""
SHORT = Dataset(
    "relative-paths",
    "bash",
    tuple(
        Task(
            f"relative-paths/{number}",
            f"Write the number of lines of logs/all with the digit {number} to the file count.",
            gold=f"grep -c {number} logs/all > count",
            setup="mkdir logs && seq 100 > logs/all",
        )
        for number in range(1, 7)
    ),
)
"""Tasks that every tier can play, because they name no file by an absolute path."""
UNSTEADY = "differs on one tier from run to run"
RECORDED = Path(__file__).resolve().parents[2] / "shared" / "recorded"
WARM = 0.3  # seconds to prewarm the next sandbox; not counted


def working_tiers(names: list[str]) -> tuple[list[str], list[str]]:
    """Return the tiers that open a sandbox here, and a note for each of the others."""
    found, notes = [], []
    for name in names:
        try:
            open_sandbox(SandboxSpec(images.resolve("host")), name).close()
            found.append(name)
        except InterCodeError as e:
            notes.append(f"no {name} here: {' '.join(str(e).split())[:160]}")
    return found, notes


# ------------------------------------------------------------------------------------- the replay


@dataclass
class Agreement:
    """The steps of a tier next to those of the first tier."""

    steps: int = 0
    observations: int = 0
    rewards: int = 0
    causes: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, one: StepComparison, steady: bool) -> None:
        """Count a step. ``one`` has the first tier's result as its record."""
        self.steps += 1
        self.observations += one.same_observation
        self.rewards += one.recorded_reward == one.replayed_reward
        if not one.same_observation or one.recorded_reward != one.replayed_reward:
            cause = difference_cause(one) if steady else UNSTEADY
            self.causes[cause] += 1
            self.examples.setdefault(cause, f"{one.task}: {one.action[:80]}")


def recorded_episodes(folder: Path, steps: int, seed: int = 1) -> list[Trajectory]:
    """Return episodes of the authors' Bash logs, in a random order, with about ``steps`` steps."""
    found = [e for file in logs.find_logs([folder / "bash"]) for e in logs.load_log(file)]
    random.Random(seed).shuffle(found)
    chosen, count = [], 0
    for episode in found:
        if count >= steps:
            break
        chosen.append(episode)
        count += sum(step.executed for step in episode.steps)
    return chosen


def replayed(envs: RecordedEnvironments, episode: Trajectory) -> Iterator[StepComparison]:
    """Execute the steps of an episode and yield each with its record."""
    rules = replay_rules_for(episode)
    with envs.borrow(episode) as env:
        reset_to_task(env, episode)
        for turn, raw in enumerate(episode.steps):
            if raw.executed:
                step = rules.executed_step(episode, raw)
                observation, score = rules.play_and_score(env, step)
                yield StepComparison(
                    episode.task,
                    turn,
                    step.action,
                    step.observation,
                    observation,
                    step.score_value,
                    score.value if score else None,
                    None,
                )


def agreement_table(
    args: argparse.Namespace, tiers: list[str], episodes: list[Trajectory]
) -> Table:
    """Replay the episodes on every tier and return how many steps are the same as on the first."""
    found = {tier: Agreement() for tier in tiers[1:]}
    with ExitStack() as stack:
        envs = {
            tier: stack.enter_context(
                RecordedEnvironments(
                    ReplayOptions(
                        profile=args.profile,
                        image=args.image,
                        env_options={"backend": tier},
                    )
                )
            )
            for tier in tiers
        }
        for episode in episodes:
            base = list(replayed(envs[tiers[0]], episode))
            again: list[StepComparison] = []
            for tier, agreement in found.items():
                other = list(replayed(envs[tier], episode))
                differ = [(a.replayed, a.replayed_reward) for a in base] != [
                    (b.replayed, b.replayed_reward) for b in other
                ]
                if differ and not again:
                    again = list(replayed(envs[tiers[0]], episode))
                for turn, (a, b) in enumerate(zip(base, other, strict=True)):
                    pair = replace(b, recorded=a.replayed, recorded_reward=a.replayed_reward)
                    steady = not again or (
                        (again[turn].replayed, again[turn].replayed_reward)
                        == (a.replayed, a.replayed_reward)
                    )
                    agreement.add(pair, steady)
    notes = [
        f"{tier}: {count} x {cause}, such as {agreement.examples[cause]}"
        for tier, agreement in found.items()
        for cause, count in agreement.causes.most_common()
    ]
    rows = tuple((t, a.steps, a.observations, a.rewards) for t, a in found.items())
    title = f"{len(episodes)} recorded episodes, {args.profile} profile, compared with {tiers[0]}"
    columns = ("tier", "steps", "same observation", "same reward")
    return Table("agreement", title, columns, rows, notes=tuple(notes))


# -------------------------------------------------------------------------------------- the speed


class Played:
    """An environment of one tier in an episode, and what it did."""

    def __init__(self, tier: str, image: str, stack: ExitStack) -> None:
        self.env = intercode.make("bash", dataset=SHORT, image=image, backend=tier)
        stack.callback(self.env.close)
        self.env.reset(options={"task": 0})
        self.copies: list[InterCodeEnv] = []

    def contenders(self) -> dict[str, Contender]:
        """Return the operations to time."""
        env = self.env
        return {
            "reset ms": Contender(
                lambda: env.reset(options={"task": 0}),
                lambda: (env.step("ls > /tmp/x"), time.sleep(WARM)),
            ),
            "step ms": Contender(lambda: env.step("true"), in_a_row=3),
            "fork ms": Contender(lambda: self.copies.extend(env.fork(1)), self.close_copies),
        }

    def close_copies(self) -> None:
        while self.copies:
            self.copies.pop().close()

    def episodes_per_second(self, seconds: float) -> float:
        """Play gold episodes for a while."""
        count, begun = 0, time.perf_counter()
        while time.perf_counter() < begun + seconds:
            self.env.reset(options={"task": count % len(self.env.dataset)})
            self.env.step(self.env.task.gold)
            assert self.env.submit()[1] >= 1 - 1e-9, f"gold fails {self.env.task.id}"
            count += 1
        return count / (time.perf_counter() - begun)


def speed_table(args: argparse.Namespace, tiers: list[str], notes: list[str]) -> Table:
    """Return the table of times, one row for each tier."""
    rows: dict[str, dict[str, Cell]] = {tier: {} for tier in tiers}
    with ExitStack() as stack:
        played = {tier: Played(tier, "host", stack) for tier in tiers}
        entrants = {
            f"{tier} {name}": contender
            for tier, one in played.items()
            for name, contender in one.contenders().items()
        }
        for name, ms in take_turns(entrants, args.rounds).items():
            tier, _, what = name.partition(" ")
            rows[tier][what] = ms
        for tier, one in played.items():
            rows[tier]["episodes/s"] = one.episodes_per_second(args.seconds)
    columns = ("reset ms", "step ms", "fork ms", "episodes/s")
    title = f"Short Bash tasks, machine's own programs, {os.cpu_count()} processors, one worker"
    return Table(
        "speed",
        title,
        ("tier", *columns),
        tuple((tier, *(cells[c] for c in columns)) for tier, cells in rows.items()),
        notes=tuple(notes),
        digits=tuple((c, 1) for c in columns),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiers", nargs="+", default=list(TIERS))
    parser.add_argument("--steps", type=int, default=500)
    default = Path(os.environ.get("INTERCODE_RECORDED", RECORDED))
    parser.add_argument("--recorded", type=Path, default=default, help="the authors' logs")
    parser.add_argument("--image", default="recipe:nl2bash", help="of the recorded episodes")
    parser.add_argument("--profile", default="standard")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=8.0, help="of gold episodes on each tier")
    parser.add_argument("--no-replay", action="store_true")
    parser.add_argument("--no-speed", action="store_true")
    args = parser.parse_args()
    tiers, notes = working_tiers(args.tiers)
    with_images = [tier for tier in tiers if tier != "landlock"]
    tables = []
    if not args.no_replay and len(with_images) > 1:
        episodes = recorded_episodes(args.recorded, args.steps)
        tables.append(agreement_table(args, with_images, episodes))
    if not args.no_speed:
        tables.append(speed_table(args, tiers, notes))
    print(render(tables))


if __name__ == "__main__":
    main()
