"""``intercode show``: one episode of a run, turn by turn."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from intercode.cli.parser import path, positive_int
from intercode.core.errors import UsageError
from intercode.core.registry import unknown_name_error

if TYPE_CHECKING:
    from intercode.core.types import Trajectory

EXAMPLE = """\
examples:
  intercode show runs/starter-react-m-2026-01-31 starter/files/3
  intercode show RUN 3 --epoch 1 --messages
      the task at position 3, its second sample, with the conversation as the model saw it
  intercode show RUN
      the episodes of the run, one line each

TASK is an id, its end (files/3), a position, or an episode's own id."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.epilog = EXAMPLE
    parser.add_argument("run", type=path, metavar="RUN", help="a run's directory, or a log")
    parser.add_argument("task", nargs="?", metavar="TASK", help="which task (default: list them)")
    parser.add_argument("--epoch", type=int, metavar="N", help="which sample of it, from 0")
    parser.add_argument(
        "--messages", action="store_true", help="also what the model was told and answered"
    )
    parser.add_argument(
        "--lines", type=positive_int, default=40, metavar="N",
        help="lines of an observation that are shown, head and tail (default 40)",
    )  # fmt: skip


def handle(args: argparse.Namespace) -> int:
    """Print it."""
    from intercode.cli.episode_text import Style, episode_line, episode_lines
    from intercode.results.run import load_run

    episodes = load_run(args.run).episodes
    looks = Style(sys.stdout.isatty() and "NO_COLOR" not in os.environ)
    if args.task is None:
        print(
            "\n".join(episode_line(t, looks) for t in episodes)
            or f"{args.run} holds no episode yet"
        )
        return 0
    samples = find_samples(episodes, args.task)
    chosen = _choose_sample(samples, args.epoch)
    others = [t for t in samples if t is not chosen]
    branches = [t for t in episodes if t.parent and t.parent == chosen.id]
    print("\n".join(episode_lines(chosen, looks, args.lines, args.messages)))
    for title, found in (("other samples", others), ("branches", branches)):
        if found:
            print(f"\n{title}:\n" + "\n".join(f"  {episode_line(t, looks)}" for t in found))
    return 0


def find_samples(episodes: Sequence[Trajectory], name: str) -> list[Trajectory]:
    """The samples of the task that a name means, or the one episode with that id.

    Raises UnknownNameError with the near name, UsageError where several tasks are meant.
    """
    if own := [t for t in episodes if t.id and t.id == name]:
        return own
    plain = [t for t in episodes if t.parent is None] or list(episodes)
    exact = [t for t in plain if t.task == name]
    position = [t for t in plain if name.isdigit() and t.index == int(name)]
    ending = [t for t in plain if t.task.endswith(f"/{name}")]
    found = exact or position or ending
    if not found:
        raise unknown_name_error("task of this run", name, sorted({t.task for t in episodes}))
    if len(tasks := sorted({t.task for t in found})) > 1:
        raise UsageError(f"{name!r} means {len(tasks)} tasks: {', '.join(tasks[:5])}")
    return sorted(found, key=lambda t: t.epoch)


def _choose_sample(samples: Sequence[Trajectory], epoch: int | None) -> Trajectory:
    for sample in samples:
        if epoch is None or sample.epoch == epoch:
            return sample
    known = ", ".join(str(t.epoch) for t in samples)
    raise UsageError(f"{samples[0].task} has no epoch {epoch}; it has: {known}")
