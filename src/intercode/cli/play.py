"""``intercode play``: a person does tasks in the terminal."""

from __future__ import annotations

import argparse
import sys

from intercode.cli.parser import add_place, count, path

EXAMPLE = """\
examples:
  intercode play starter
  intercode play starter --task 3 --task starter/bash/count-csv
  printf 'ls\\nsubmit\\n' | intercode play starter --task 0

Type the language of the dataset. In Bash a line that ends in \\ goes on in the next one, and so
does a here-document; in Python a block ends with an empty line. Besides: submit (hand in), score
(what it would earn now), skip, quit, help."""


def add(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.epilog = EXAMPLE
    parser.add_argument("dataset", metavar="DATASET", help="such as starter or nl2bash:fs_1")
    parser.add_argument(
        "--task", action="append", default=[], metavar="ID",
        help="this one, by id or by position from 0; may be repeated (default: all, in order)",
    )  # fmt: skip
    parser.add_argument(
        "--max-turns", type=count, default=argparse.SUPPRESS, metavar="N",
        help="actions a task may take (default: any number)",
    )  # fmt: skip
    parser.add_argument(
        "--out", type=path, default=argparse.SUPPRESS, metavar="DIR",
        help="where your trajectories go (default: runs/<dataset>-<agent>-<date>)",
    )  # fmt: skip
    add_place(parser)


def handle(args: argparse.Namespace) -> int:
    """Play one task after another until they or the person are through."""
    from intercode import trajectories
    from intercode.agents import AGENTS
    from intercode.cli.person import Person, Quit
    from intercode.config import make_config
    from intercode.rollout import rollout
    from intercode.runner.plan import begin, make_plan, with_facts

    values = vars(args)
    chosen = values.pop("task")
    config = make_config({**values, "tasks": chosen, "agent": "human"})
    with AGENTS.including("human", "intercode.cli.person:Person"):
        plan = make_plan(config)
    wanted = list(plan.chosen) if chosen else plan.pending()
    solved = played = 0
    try:
        with plan.env() as env:
            for index in wanted:
                person = Person(score=env.score, directory=lambda: env.working_directory)
                trajectory = rollout(person, env, index, max_turns=config.max_turns)
                person.tell(trajectory)
                if not any(step.action for step in trajectory.steps):
                    continue  # skipped without a try: nothing to record
                begin(plan)
                trajectories.append(plan.file, with_facts(plan, trajectory))
                played, solved = played + 1, solved + trajectory.success
    except (Quit, KeyboardInterrupt):
        print()
    print(f"{solved} of {played} solved.")
    if played:
        print(f"Trajectories: {plan.file}", file=sys.stderr)
    return 0
