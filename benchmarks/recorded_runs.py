"""Plays whole evaluations against a local endpoint that gives the answers of recorded logs.

    python benchmarks/recorded_runs.py LOG.json ... [--image recipe:nl2bash] [--limit N]

For each of the authors' logs (Try Again, ReAct, Plan & Solve) it prints the success of the log, the
success of this package with the answers of the log in place of a model (original profile), and in
how many episodes the two differ. Of these it prints in how many ``intercode replay`` of the
recorded actions differs as well, or a fault of the authors' loop explains the difference."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from intercode.core import logs
from intercode.core.config import EvalConfig
from intercode.core.types import Network, Trajectory
from intercode.evaluation.evaluate.run import evaluate
from intercode.evaluation.replay import log_replay
from support.recorded_endpoint import FORCED, RecordedEndpoint


@dataclass(frozen=True)
class Outcome:
    """The result of one log. ``unexplained``: tasks whose difference has no known cause."""

    log: str
    agent: str
    episodes: int
    errors: int
    recorded: int
    ours: int
    differing: int
    by_replay: int
    by_their_loop: int
    unexplained: tuple[str, ...]


def reward_of(environment: str, agent: str) -> str | None:
    """Return which of the authors' two SQL scorers a log used; None for the profile's own."""
    if environment != "sql":
        return None
    return "sql-original" if agent == "plan-solve" else "sql-original-iou"


def cut_short(episode: Trajectory) -> bool:
    """Return whether the authors' ReAct loop ended an episode that had not submitted, because its
    flag for the end still had the value of the previous episode."""
    last = episode.steps[-1]
    limit = episode.run.get("max_turns") or 10
    return last.action != "submit" and last.thought != FORCED and episode.turns < limit


def differing_in_replay(log: Path, image: str | None, reward: str | None) -> set[str]:
    """Return the tasks of which a step gives another observation or reward when it is executed
    again. A reward by the other SQL scorer counts as a difference."""
    network: Network = "host" if image else "none"
    options = log_replay.ReplayOptions(profile="original", image=image, network=network, parallel=2)
    (report,) = log_replay.replay_logs([log], options)
    out = set()
    for step in report.steps:
        scorers_differ = step.parts.get("tau", 1.0) != 1.0
        if not (step.same_reward and step.same_observation) or (reward and scorers_differ):
            out.add(step.task)
    return out


def play(log: Path, image: str | None, out: Path, limit: int | None) -> Outcome:
    """Evaluate against the log, and compare."""
    recorded = {t.task: t for t in logs.load_log(log)}
    one = next(iter(recorded.values()))
    agent, environment = str(one.run["agent"]), str(one.run["environment"])
    reward = reward_of(environment, agent)
    chosen = list(recorded.values())[:limit]
    with RecordedEndpoint(log) as server:
        config = EvalConfig(
            str(one.run["dataset"]),
            agent,
            model="recorded",
            base_url=server.base_url,
            parallel=2,
            out=out,
            tasks=tuple(str(t.index) for t in chosen),
            agent_options={"feedback": "original"},
            max_turns=10 if agent != "plan-solve" else None,
            env_options={
                "profile": "original",
                "image": image,
                "network": "host" if image else "none",
                "reward": reward,
            },
        )
        played = {t.task: t for t in logs.load_log(evaluate(config))}
    again = differing_in_replay(log, image, reward)
    other = {n for n, t in played.items() if t.success != recorded[n].success and not t.error}
    replayed = other & again
    ended = {n for n in other - replayed if agent == "react" and cut_short(recorded[n])}
    return Outcome(
        log.name,
        agent,
        len(played),
        sum(t.error is not None for t in played.values()),
        sum(recorded[n].success for n in played),
        sum(t.success for t in played.values()),
        len(other),
        len(replayed),
        len(ended),
        tuple(sorted(other - replayed - ended)),
    )


def main() -> None:
    """Play every log that is named, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("logs", nargs="+", type=Path, metavar="LOG")
    parser.add_argument("--image", help="for Bash logs, such as recipe:nl2bash")
    parser.add_argument("--limit", type=int, help="only the first so many episodes of each log")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    outcomes = []
    with tempfile.TemporaryDirectory() as directory:
        for number, log in enumerate(arguments.logs):
            image = arguments.image if "bash" in log.name else None
            outcomes.append(play(log, image, Path(directory, str(number)), arguments.limit))
    if arguments.json:
        print(json.dumps([vars(o) for o in outcomes], indent=1))
        return
    print(
        f"{'log':48} {'episodes':>8} {'errors':>6} {'log %':>6} {'ours %':>6} {'differ':>6} "
        f"{'replay':>6} {'loop':>5} {'unexplained':>11}"
    )
    for o in outcomes:
        rates = [100 * n / max(o.episodes, 1) for n in (o.recorded, o.ours)]
        print(
            f"{o.log:48} {o.episodes:8} {o.errors:6} {rates[0]:6.1f} {rates[1]:6.1f} "
            f"{o.differing:6} {o.by_replay:6} {o.by_their_loop:5} {len(o.unexplained):11}"
        )
        for task in o.unexplained:
            print(f"  {task}")


if __name__ == "__main__":
    main()
