"""``intercode eval``: an agent plays a dataset."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from intercode.cli.parser import add_place, count, path
from intercode.config import make_config, parse_pairs, read_toml
from intercode.errors import UsageError

MOST_ERRORS = 3
ERRORS_LEFT = 3
"""Exit status when episodes remain that an error kept from being played."""

EXAMPLE = """\
examples:
  intercode eval starter --agent gold
      the starter tasks, played by their own solutions: shows that this machine works
  intercode eval nl2bash:verified --agent try-again --model openai/gpt-4o-mini --parallel 8
  intercode eval nl2bash:fs_1 --agent try-again --model my-model --base-url http://localhost:8000/v1
      a model of your own behind any OpenAI-compatible address

Stopped (Ctrl-C, kill, power cut)? The same command with the same --out plays only what is missing.
Exit status: 0 done, 3 done but some episodes had errors, 2 bad usage, 1 otherwise, 130 Ctrl-C."""


def add(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    absent: Any = argparse.SUPPRESS
    parser.epilog = EXAMPLE
    parser.add_argument(
        "dataset", nargs="?", default=absent, metavar="DATASET",
        help="name[:subset], such as starter or nl2bash:fs_1, or a .json/.jsonl/.csv file",
    )  # fmt: skip
    parser.add_argument(
        "--config", type=path, metavar="FILE.toml",
        help="settings from a file, under the names of these options (base_url = ...); "
        "options given here go before it",
    )  # fmt: skip
    who = parser.add_argument_group("who plays")
    who.add_argument(
        "--agent", default=absent, metavar="NAME|PKG:CLASS",
        help="strategy: try-again, single-turn, gold, noop, ... (see `intercode list`)",
    )  # fmt: skip
    who.add_argument(
        "--model", default=absent, metavar="PROVIDER/NAME",
        help="the language model that the agent asks; its key comes from the environment",
    )  # fmt: skip
    who.add_argument(
        "--base-url", default=absent, metavar="URL",
        help="address of an OpenAI-compatible endpoint (or set OPENAI_BASE_URL)",
    )  # fmt: skip
    for name, what in (
        ("agent", "the agent"), ("model", "the model, such as temperature=0.7"),
        ("env", "the environment, such as session=fresh or reuse=true"),
    ):  # fmt: skip
        who.add_argument(
            f"--{name}-option", action="append", default=[], metavar="K=V",
            help=f"a setting of {what}; may be given several times",
        )  # fmt: skip
    _add_how_much(parser)
    _add_same_again(parser)
    add_place(parser)


def _add_how_much(parser: argparse.ArgumentParser) -> None:
    absent: Any = argparse.SUPPRESS
    much = parser.add_argument_group("how much, and where it goes")
    much.add_argument(
        "--max-turns", type=count, default=absent, metavar="N",
        help="actions an episode may take (default: the agent's own, mostly 10)",
    )  # fmt: skip
    much.add_argument(
        "--parallel", type=count, default=absent, metavar="N",
        help="episodes at the same time (default 4); results do not depend on it",
    )  # fmt: skip
    much.add_argument(
        "--limit", type=count, default=absent, metavar="N", help="only the first N tasks"
    )
    much.add_argument(
        "--tasks", default=absent, metavar="ID,ID,...",
        help="only these, by id or by position from 0",
    )  # fmt: skip
    much.add_argument("--seed", type=int, default=absent, metavar="N", help="seed of the episodes")
    much.add_argument(
        "--out", type=path, default=absent, metavar="DIR",
        help="where the run goes (default: runs/<dataset>-<agent>-<model>-<date>)",
    )  # fmt: skip


def _add_same_again(parser: argparse.ArgumentParser) -> None:
    absent: Any = argparse.SUPPRESS
    same = parser.add_argument_group("the same again")
    same.add_argument(
        "--deterministic", action="store_true", default=absent,
        help="fixed time, seeded chance, hashes of every step: see `intercode replay`",
    )  # fmt: skip
    same.add_argument(
        "--clock", default=absent, metavar="TIME",
        help="deterministic, with the clock at '2026-01-01 00:00' (UTC), off by '+3d', or 'real'",
    )  # fmt: skip
    same.add_argument(
        "--hashes", action="store_true", default=absent,
        help="record hashes of every observation and state, also where they may differ",
    )  # fmt: skip


def handle(args: argparse.Namespace) -> int:
    """Play, then print where the files are and the table of this run."""
    from intercode import report
    from intercode.runner.plan import make_plan
    from intercode.runner.pool import run_plan

    config = make_config(settings(args))
    if config.out is not None and config.out.exists() and not config.out.is_dir():
        raise UsageError(f"--out {config.out} is a file; name a directory")
    plan = make_plan(config)
    before = len(plan.chosen) - len(plan.pending())
    if before:
        _say(f"{before} of {len(plan.chosen)} tasks are finished already in {plan.out}")
    try:
        run_plan(plan)
    except KeyboardInterrupt:
        _say(f"\nstopped; `--out {plan.out}` with the same settings plays the rest")
        raise
    print(report.render(report.build([plan.out])))
    print(f"Trajectories: {plan.file}\nSettings:     {plan.out / 'run.json'}")
    left = plan.failures()
    if left:
        _say(_errors(left, plan.out))
    return ERRORS_LEFT if left else 0


def _errors(texts: Sequence[str], out: Path) -> str:
    """How many episodes had errors, the commonest ones, and what to do."""
    lines = [f"errors in {len(texts)} of the episodes (they count in no figure):"]
    for text, times in Counter(" ".join(t.split()) for t in texts).most_common(MOST_ERRORS):
        lines.append(f"  {times} x {text}")
    if any(text.startswith("Sandbox") for text in texts):
        lines.append("`intercode doctor` says what this machine lacks.")
    return "\n".join([*lines, f"The same command with --out {out} plays these again."])


def settings(args: argparse.Namespace) -> dict[str, Any]:
    """The settings of the file, with those of the command line over them."""
    given = dict(vars(args))
    file = given.pop("config", None)
    values = read_toml(file) if file else {}
    for name in ("agent", "model", "env"):
        pairs = parse_pairs(given.pop(f"{name}_option"))
        if pairs:
            given[f"{name}_options"] = {**values.get(f"{name}_options", {}), **pairs}
    if "tasks" in given:
        given["tasks"] = [t for t in given["tasks"].split(",") if t]
    return {**values, **given}


def _say(message: str) -> None:
    print(message, file=sys.stderr)
