"""Measures how difficult tasks are: the success of two scripts and of trained players.

    python examples/learn/difficulty.py [--runs DIR] [--tasks N] [--out FILE]

All have seven turns. The solver of skills.py looks: it opens the file that it read of last, and
does what it finds there. The explorer, which the players imitated, opens anything. The players are
those of families.py; their share is the mean over the seeds that are trained, of greedy actions.
The table is printed and, with its shares, stored as JSON.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

import torch
from player import Player, Situation, success
from settings import TRAIN_WORDING, count
from skills import FAMILIES, MAX_TURNS, SkillPolicy, explore, solve, tasks

DIFFICULTIES = (1, 2, 3, 4, 5)
FIRST_SEED = 3_000_000  # apart from those of training, of its tests and of the explorer


def load_player(run: Path) -> Player:
    """Return the greedy player of a finished run."""
    policy = SkillPolicy()
    policy.load_state_dict(torch.load(run / "state.pt", weights_only=True)["policy"])

    def choose(situation: Situation) -> str:
        return policy.choose(situation, greedy=True)

    return choose


def measure(players: Sequence[Player], family: str, count: int) -> list[float]:
    """Return the mean success of players on each difficulty of a family."""
    seeds = range(FIRST_SEED, FIRST_SEED + count)
    return [
        mean(
            success(player, tasks(family, str(difficulty)), MAX_TURNS, seeds, TRAIN_WORDING)
            for player in players
        )
        for difficulty in DIFFICULTIES
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=Path, default=Path("runs/learn"), help="where runs are kept")
    parser.add_argument("--tasks", type=count, default=20, help="of each cell (default 20)")
    parser.add_argument("--out", type=Path, default=Path("difficulty.json"))
    args = parser.parse_args()
    torch.set_num_threads(1)
    runs = sorted(result.parent for result in args.runs.glob("families-*/result.json"))
    random.seed(0)
    who: dict[str, list[Player]] = {"solver": [solve], "explorer": [explore]}
    who[f"player, {len(runs)} seed{'s' * (len(runs) != 1)}"] = [load_player(run) for run in runs]
    table = {}
    print("| family | who |", *(f"{difficulty} |" for difficulty in DIFFICULTIES))
    print("|---|---|" + "---|" * len(DIFFICULTIES))
    for family in FAMILIES:
        for name, players in who.items():
            if players:
                table[f"{family}, {name}"] = shares = measure(players, family, args.tasks)
                cells = " | ".join(f"{share:.2f}" for share in shares)
                print(f"| `{family}` | {name} | {cells} |", flush=True)
    args.out.write_text(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
