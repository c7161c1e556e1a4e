"""``intercode show``: prints one episode of a run, turn by turn."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from intercode.core.errors import InterCodeError, UsageError
from intercode.core.types import Step, Trajectory, Usage
from intercode.evaluation.tracebacks import recorded_action_error
from intercode.results.explanation import Explanation, TextComparison
from intercode.results.short_text import join_first, shorten_lines
from intercode.results.statistics.metrics import (
    is_from_cache,
    is_refused_action,
    is_refused_answer,
    is_solved,
    known_usage,
    turn_count,
)
from intercode.results.tables import format_cost
from intercode.results.task_names import matching_tasks, one_task
from intercode_sandbox.command.output import escape_control, log

COLOURS = {"strong": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "36"}
PARALLEL = 4
"""How many episodes are played again at once."""
_MAX_CHANGES = 10
_MAX_ERROR = 100  # characters of an error in a list
_CONTEXT = {
    "observation": "not shown to the model: observation",
    "answer": "not shown to the model: answer",
    "history": "not shown to the model: history",
    "action": "not executed: action",
    "arguments_replaced": "calls whose arguments were replaced by {}:",
    "seen": "how its actions were seen:",
    "program": "how the program ended:",
    "conversation": "continues an earlier conversation:",
    "messages": "messages left out:",
}
"""What is printed before each value of a turn's context."""
_DIFF = {"+": "green", "-": "red", "@": "blue"}

_MIN_ID = 6
"""With how many characters the beginning of an episode's id names it."""
_LINES = 40
"""Lines that are printed of an observation unless all are requested."""

EXAMPLE = """\
examples:
  intercode show runs/starter-react-m-2026-01-31 starter/files/3
  intercode show RUN 3 --epoch 1 --messages
      the second sample of the task at position 3, with the messages of the model
  intercode show RUN --failed
      lists the episodes that were not solved, of the run or of all runs in a directory; with
      --with-gold, a line on why each was not
  intercode show RUN files/3 --with-gold
      plays the actions again, and prints the gold and what differs from it

TASK is an id, a part of an id that no other task has (files/3), a position in the dataset (which
begins each line of the list), or the id of an episode or its first 6 characters."""

ARGUMENTS = """\
run RUN      a run's directory, or a log; without TASK also a directory of runs
task [TASK]  the task (default: list the episodes)
--epoch N    which sample of it, from 0
--messages   also print the messages of the model
--failed     list only the episodes that were not solved
--with-gold  also print the gold, and beside it what the agent left; with --failed, in a line why
             each episode was not solved; the actions run again
--all        whole observations and tracebacks (default: 40 lines of an observation, from both ends,
             and of a traceback what follows from your own code on)"""
SETTINGS = {"epoch": {"type": int}}
RENAMED = {
    "--traceback": "--all",
    "--lines": "--all",
}
"""Options of an earlier version that only this command had, and what they are now."""


def handle(args: argparse.Namespace) -> int:
    """Print the episode, or a line for each episode of the run."""
    from intercode.results.run import load_run

    style = Style(sys.stdout.isatty() and "NO_COLOR" not in os.environ)
    if args.task is None:
        return _list_episodes(args, style)
    episodes = load_run(args.run).episodes
    if args.failed:
        raise UsageError("--failed lists episodes: leave out the TASK")
    samples = find_samples(episodes, args.task)
    chosen = _choose_sample(samples, args.epoch)
    others = [t for t in samples if t is not chosen]
    branches = [t for t in episodes if t.parent and t.parent == chosen.id]
    most = None if args.all else _LINES
    print("\n".join(episode_lines(chosen, style, most, args.messages)))
    if args.with_gold:
        _print_gold(chosen, style, most)
    for title, found in (("other samples", others), ("branches", branches)):
        if found:
            print(f"\n{title}:\n" + "\n".join(f"  {line}" for line in episode_table(found, style)))
    return 0


def _list_episodes(args: argparse.Namespace, style: Style) -> int:
    """Print a line for each episode of a run, or of the runs in a directory."""
    from intercode.core.logs import find_logs
    from intercode.results.run import load_run

    if args.with_gold and not args.failed:
        raise UsageError(
            "--with-gold plays an episode again: name its TASK, or add --failed for a line on why "
            "each episode was not solved"
        )
    runs = [load_run(log) for log in find_logs([args.run])]
    if not any(run.episodes for run in runs):
        raise UsageError(f"{args.run} has no episode yet")
    unsolved = 0
    for run in runs:
        listed = [t for t in run.episodes if not (args.failed and is_solved(t))]
        unsolved += len(listed) if args.failed else 0
        if len(runs) > 1:
            print(style("strong", str(run.path)))
        lines = _cause_lines(listed) if args.with_gold else episode_table(listed, style)
        for line in lines:
            print(line, flush=True)
        if not listed:
            told = "every episode is solved" if run.episodes else "there is no episode yet"
            print(f"{run.path}: {told}")
    if unsolved and not args.with_gold:
        log(f"why: intercode show {args.run} --failed --with-gold")
    return 0


def _cause_lines(episodes: Sequence[Trajectory]) -> Iterator[str]:
    """Yield for each episode, which is played again, its name and why it is not solved."""
    from intercode.evaluation.replay.explain import explain

    def cause(t: Trajectory) -> str:
        try:
            text = t.error or explain(t).cause
        except InterCodeError as e:
            text = str(e)
        return escape_control(text).partition("\n")[0]

    names = [_name(t) for t in episodes]
    width = max(map(len, names), default=0)
    executor = ThreadPoolExecutor(PARALLEL)
    try:
        for name, text in zip(names, executor.map(cause, episodes), strict=True):
            yield f"{name:{width}}  {text}"
    finally:
        executor.shutdown(cancel_futures=True)


def _print_gold(episode: Trajectory, style: Style, lines: int | None) -> None:
    """Play an episode again and print what was expected."""
    from intercode.evaluation.replay.explain import explain

    width = shutil.get_terminal_size((100, 24)).columns
    print("\n" + "\n".join(gold_lines(explain(episode), style, lines, width)))


def find_samples(episodes: Sequence[Trajectory], name: str) -> list[Trajectory]:
    """Return the samples of the task that a name matches, or the one episode with that id.

    Raises UnknownNameError for no match, UsageError for several tasks.
    """
    if own := [t for t in episodes if t.id and t.id == name]:
        return own
    plain = [t for t in episodes if t.parent is None] or list(episodes)
    tasks = matching_tasks(plain, name)
    if not tasks and len(name) >= _MIN_ID:
        tasks = list(dict.fromkeys(t.task for t in plain if t.id.startswith(name)))
    task = one_task(tasks, name, [t.task for t in episodes])
    return sorted((t for t in plain if t.task == task), key=lambda t: t.epoch)


def _choose_sample(samples: Sequence[Trajectory], epoch: int | None) -> Trajectory:
    for sample in samples:
        if epoch is None or sample.epoch == epoch:
            return sample
    known = ", ".join(str(t.epoch) for t in samples)
    raise UsageError(f"{samples[0].task} has no epoch {epoch}; it has: {known}")


# --------------------------------------------------------------------- text of an episode
@dataclass(frozen=True, slots=True)
class Style:
    """Adds colours to text, if they are on. Control characters have to be escaped before."""

    colours: bool = False

    def __call__(self, colour: str, text: str) -> str:
        return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m" if self.colours else text


def episode_table(episodes: Sequence[Trajectory], style: Style) -> list[str]:
    """Format episodes as a line each, in the order of their tasks, with aligned columns."""
    ordered = sorted(episodes, key=lambda t: (t.index, t.task, t.epoch, t.branched_at or 0))
    rows = [_episode_cells(t) for t in ordered]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    out = []
    for t, row in zip(ordered, rows, strict=True):
        cells = [
            cell.rjust(width) if n in _RIGHT else cell.ljust(width)
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        colour = "green" if is_solved(t) else "red"
        cells[2], cells[-1] = style(colour, cells[2]), style("dim", cells[-1])
        out.append("  ".join(cells).rstrip())
    return out


_RIGHT = (0, 3, 4)  # columns of numbers


def _episode_cells(t: Trajectory) -> tuple[str, ...]:
    name, position = _name(t), str(t.index)
    if t.end == "error" or t.error is not None:
        text = escape_control(t.error or "").partition("\n")[0]
        return position, name, "error", "", "", text[:_MAX_ERROR], t.id
    turns = int(turn_count(t))
    return (
        position,
        name,
        "solved" if t.success else "not solved",
        f"score {t.score:zg}",
        "1 turn " if turns == 1 else f"{turns} turns",
        _end(t),
        t.id,
    )


def _name(t: Trajectory) -> str:
    epoch = f" epoch {t.epoch}" if t.epoch else ""
    parent = f" branch of {t.parent} after turn {t.branched_at}" if t.parent else ""
    return f"{escape_control(t.task)}{epoch}{parent}"


def gold_lines(
    explanation: Explanation, style: Style, lines: int | None, width: int
) -> Iterator[str]:
    """Format what was expected of an episode, beside what its actions left."""
    for number, gold in enumerate(explanation.golds, 1):
        which = f" {number}" if len(explanation.golds) > 1 else ""
        yield style("strong", f"gold{which}")
        yield from _indent(escape_control(gold.rstrip("\n")), "  ")
    if explanation.other_form:
        yield style("yellow", escape_control(explanation.cause))
    for comparison in explanation.comparisons:
        shown = TextComparison(
            comparison.what, escape_control(comparison.given), escape_control(comparison.expected)
        )
        if comparison.is_equal:
            yield style("strong", shown.what) + style("green", ": as expected")
            yield from _indent(shown.shortened()[1], "  ", lines)
            continue
        yield style("strong", f"{shown.what}: the agent's on the left, the expected on the right")
        yield from _indent("\n".join(shown.lines(width - 2)), "  ", lines)
    yield from (style("yellow", f"note: {escape_control(note)}") for note in explanation.notes)


def episode_lines(t: Trajectory, style: Style, lines: int | None, messages: bool) -> list[str]:
    """Format an episode turn by turn, with at most ``lines`` lines of each observation, and the
    end of a traceback. None: all of both."""
    run = t.run
    agent = " with ".join(str(run[k]) for k in ("agent", "model") if run.get(k))
    identity = f"  {style('dim', t.id)}" if t.id else ""
    out = [style("strong", f"{escape_control(t.task)}, epoch {t.epoch}") + identity]
    out.append(f"{_outcome(t, style)}{_usage(t)}" + (f"  ({agent})" if agent else ""))
    if t.started:
        out.append(style("dim", f"started {t.started}"))
    if t.parent:
        out.append(f"branch of {t.parent}: the first {t.branched_at} turns are its own")
    out += ["", *_indent(escape_control(t.query), "  ")]
    for number, step in enumerate(t.steps, 1):
        shared = t.branched_at is not None and number <= t.branched_at
        if number - 1 in t.restarts:
            out += ["", style("yellow", "the agent began the task again, in its first state")]
        out += ["", *_turn(number, step, shared, style, lines, messages)]
    if t.error:
        out += ["", style("red", f"error: {escape_control(t.error)}")]
    if caused := recorded_action_error(run):
        out += ["", style("red", escape_control(f"action error: {caused}"))]
    if trace := run.get("traceback") or (caused and caused.traceback):
        every = escape_control(str(trace)).split("\n")
        start = 0 if lines is None else _own_frame(every)
        hidden = [f"... {start} lines before: --all prints them"] if start else []
        out += [style("dim", f"  {line}") for line in (*hidden, *every[start:])]
    return out


def _own_frame(traceback: Sequence[str]) -> int:
    """Return at which line of a traceback the last frame outside of this package begins, or else
    its last frame."""
    frames = [n for n, line in enumerate(traceback) if line.lstrip(" |").startswith('File "')]
    own = [n for n in frames if 'File "intercode/' not in traceback[n]]
    return next(iter((own or frames)[-1:]), 0)


def _turn(
    number: int, step: Step, shared: bool, style: Style, lines: int | None, messages: bool
) -> Iterator[str]:
    about = [] if step.actor == "agent" else [step.actor]
    about += ["in common with the parent"] if shared else []
    about += ["refused by a policy"] if is_refused_action(step) else []
    about += ["wrong answer"] if is_refused_answer(step) else []
    about += ["timed out"] if step.timed_out else []
    about += ["no code"] if not step.executed else []
    about += ["error"] if step.valid is False and step.executed else []
    notes = f" ({', '.join(about)})" if about else ""
    took = "" if step.seconds is None else style("dim", f"  {step.seconds:.2g} s")
    yield style("strong", f"turn {number}") + style("yellow", notes) + _score(step, style) + took
    if messages and (step.messages or step.message):
        for message in step.messages or ({"role": step.actor, "content": step.message},):
            yield from _message(message, style)
    elif step.thought:
        if step.actor != "agent":
            yield style("dim", "  (the agent thought)")
        yield from _indent(style("dim", escape_control(step.thought.strip())), "  ")
    if not step.action and not messages:
        yield from _indent(escape_control(_written(step)), "  | ")
    if step.action:
        first, *rest = escape_control(step.action).rstrip("\n").split("\n")
        yield style("blue", f"  $ {first}")
        yield from (style("blue", f"  > {more}") for more in rest)
    yield from _indent(escape_control(step.observation).rstrip("\n"), "  ", lines)
    if step.changes:
        yield style("dim", f"  changed: {_join_names(step.changes)}")
    for name, diff in step.diffs.items():
        yield from _diff(name, diff, style, lines)
    for what, value in step.context.items():
        label = _CONTEXT.get(what, f"{what}:")
        yield style("yellow", f"  {label} {_shorten_value(value)}")


def _written(step: Step) -> str:
    """Return what the model wrote in a turn without an action, apart from the thought."""
    last = step.messages[-1] if step.messages else {}
    answer = last.get("content") if last.get("role") == "assistant" else None
    text = str(step.message if answer is None else answer).strip()
    return "" if text == step.thought.strip() else text


def _diff(path: str, diff: str, style: Style, lines: int | None) -> Iterator[str]:
    name = escape_control(path).replace("\n", "\\n")
    yield style("strong", f"  {name}")
    for one in _indent(escape_control(diff), "", lines):
        colour = _DIFF.get(one[:1])
        yield f"    {style(colour, one) if colour else one}"


def _message(message: Mapping[str, Any], style: Style) -> Iterator[str]:
    yield style("dim", f"  [{message.get('role', '?')}]")
    if reasoning := message.get("reasoning"):
        yield from _indent(style("dim", escape_control(str(reasoning))), "  ~ ")
    yield from _indent(escape_control(str(message.get("content") or "")), "  | ")
    for call in message.get("tool_calls") or ():
        function = call.get("function", {})
        yield escape_control(f"  | calls {function.get('name')}({function.get('arguments')})")


def _score(step: Step, style: Style) -> str:
    if step.score is None:
        return ""
    parts = ", ".join(f"{name} {value:zg}" for name, value in step.parts.items())
    text = f"  score {step.score.value:zg}" + (f" ({parts})" if parts else "")
    return style("green" if step.score.value >= 1 else "dim", text)


def _outcome(t: Trajectory, style: Style) -> str:
    if t.end == "error" or t.error is not None:
        return style("red", "error")
    solved = style("green", "solved") if t.success else style("red", "not solved")
    turns_taken = int(turn_count(t))
    turns = "1 turn" if turns_taken == 1 else f"{turns_taken} turns"
    return ", ".join(filter(None, (solved, f"score {t.score:zg}", turns, _end(t))))


def _end(t: Trajectory) -> str:
    """Return how an episode ended; nothing for one that ended because it was solved."""
    return "" if t.end == "solved" else t.end.replace("_", " ")


def _usage(t: Trajectory) -> str:
    usage: Usage = known_usage(t)
    words = [] if t.seconds is None else [f"{t.seconds:.1f} s"]
    if usage.prompt_tokens is not None and usage.completion_tokens is not None:
        words.append(f"{usage.prompt_tokens:,} + {usage.completion_tokens:,} tokens")
    words += [] if usage.cost is None else [f"${format_cost(usage.cost)}"]
    cached = sum(map(is_from_cache, t.steps))
    words += [f"{cached} of {t.turns} turns answered from the cache"] if cached else []
    return "".join(f", {word}" for word in words)


def _indent(text: str, mark: str, most: int | None = None) -> list[str]:
    """Return the lines of a text after a mark, at most ``most``. None: all of them."""
    lines = text.split("\n") if text else []
    return [f"{mark}{one}" for one in (lines if most is None else shorten_lines(lines, most))]


def _join_names(names: tuple[str, ...]) -> str:
    return join_first([escape_control(n) for n in names], _MAX_CHANGES)


def _shorten_value(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return escape_control(text if len(text) <= 300 else f"{text[:300]}...")
