"""Transcripts of one task in columns of plain text, side by side."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from intercode.core.errors import UsageError
from intercode.core.types import Step, Trajectory
from intercode.results.compare.comparison import Side
from intercode.results.short_text import shorten_lines
from intercode.results.statistics.behaviour import labelled_turns
from intercode.results.statistics.metrics import is_failed
from intercode.results.statistics.samples import solving_turn
from intercode.results.task_names import matching_tasks, one_task

COLUMN_SEPARATOR = " | "
MIN_COLUMN_WIDTH = 24
MAX_OBSERVATION_LINES = 12
"""Lines of an observation that are shown, from its beginning and end, unless all are requested."""


def side_by_side(
    sides: Sequence[Side], task: str, *, epoch: int | None = None, width: int, full: bool = False
) -> str:
    """Return the episodes of a task as text: a column for each side, turn beside turn.

    ``task`` is an id, a part of one, or a position. ``epoch`` selects the sample (None: the first
    that every side has, else each side's first). ``width`` is that of the terminal, in columns.
    ``full``: whole observations. Control characters are replaced by visible marks, so that a record
    cannot control the terminal. Raises UnknownNameError for a task that no side has, UsageError for
    an ambiguous name and for an epoch that a side lacks.
    """
    task = _resolve_task(sides, task)
    episodes = _select_episodes(sides, task, epoch)
    column = max(MIN_COLUMN_WIDTH, (width - len(COLUMN_SEPARATOR) * (len(sides) - 1)) // len(sides))
    heads = [_header_lines(s, t) for s, t in zip(sides, episodes, strict=True)]
    query = next(t.query for t in episodes if t is not None)
    out = [*_wrap(f"{task}: {query}", width), "", *_join_columns(heads, column)]
    turns = [list(labelled_turns(t)) if t is not None else [] for t in episodes]
    for number, row in enumerate(zip_longest(*turns), start=1):
        cells = [
            _turn_lines(number, labelled_turn, full) if labelled_turn else []
            for labelled_turn in row
        ]
        out += [COLUMN_SEPARATOR.join(["-" * column] * len(sides)), *_join_columns(cells, column)]
    return "\n".join(out) + "\n"


def _resolve_task(sides: Sequence[Side], name: str) -> str:
    """Return the task that a name means, as in ``intercode show``."""
    episodes = [t for side in sides for t in side.samples]
    return one_task(matching_tasks(episodes, name), name, [t.task for t in episodes])


def _select_episodes(
    sides: Sequence[Side], task: str, epoch: int | None
) -> list[Trajectory | None]:
    episodes_by_epoch = [{t.epoch: t for t in side.tasks.get(task, [])} for side in sides]
    if epoch is None:
        common = set.intersection(*(set(h) for h in episodes_by_epoch))
        first = [min(common) if common else min(h, default=None) for h in episodes_by_epoch]
        return [
            h.get(e) if e is not None else None
            for h, e in zip(episodes_by_epoch, first, strict=True)
        ]
    for side, by_epoch in zip(sides, episodes_by_epoch, strict=True):
        if by_epoch and epoch not in by_epoch:
            raise UsageError(
                f"{side.letter} has no epoch {epoch} of {task}, but {', '.join(map(str, by_epoch))}"
            )
    return [h.get(epoch) for h in episodes_by_epoch]


def _header_lines(side: Side, episode: Trajectory | None) -> list[str]:
    title = f"{side.letter}: {side.label}"
    if episode is None:
        return [title, "missing"]
    if is_failed(episode):
        return [title, f"epoch {episode.epoch}, ended in an error"]
    at = solving_turn(episode)
    what = f"solved at turn {at}" if at else f"not solved, best score {episode.score:z.2f}"
    turns = "1 turn" if episode.turns == 1 else f"{episode.turns} turns"
    return [title, f"epoch {episode.epoch}, {turns}, {episode.end}, {what}"]


def _turn_lines(number: int, turn: tuple[Step, Sequence[str]], full: bool) -> list[str]:
    """Return one turn as lines: thought, action, observation and score."""
    step, words = turn
    score = "" if step.score is None else f"  score {step.score.value:z.2f}"
    labels = f"  ({', '.join(words)})" if words else ""
    out = [f"[{number}]{score}{labels}"]
    if step.thought:
        out += [f"~ {line}" for line in _split_lines(step.thought)]
    actions = _split_lines(step.action) or ["(no code)"]
    out += [f"{'$' if n == 0 else ' '} {line}" for n, line in enumerate(actions)]
    observation = _split_lines(step.observation)
    return out + (observation if full else shorten_lines(observation, MAX_OBSERVATION_LINES))


def _split_lines(text: str) -> list[str]:
    return text.rstrip("\n").split("\n") if text.strip("\n") else []


def _join_columns(cells: Sequence[Sequence[str]], column: int) -> Iterator[str]:
    """Yield the rows of cells set in columns of one width."""
    wrapped = [[piece for line in cell for piece in _wrap(line, column)] for cell in cells]
    for row in zip_longest(*wrapped, fillvalue=""):
        yield COLUMN_SEPARATOR.join(
            text + " " * (column - _terminal_width(text)) for text in row
        ).rstrip()


def _wrap(line: str, width: int) -> list[str]:
    """Split a line into pieces of a width; at least one piece."""
    pieces, piece, used = [], "", 0
    for char in _escape_controls(line):
        size = _character_width(char)
        if used + size > width:
            pieces.append(piece)
            piece, used = "", 0
        piece, used = piece + char, used + size
    return [*pieces, piece]


def _escape_controls(text: str) -> str:
    """Replace characters that control a terminal by visible marks."""
    return "".join(_control_mark(c) for c in text.expandtabs(4).replace("\r", ""))


def _control_mark(char: str) -> str:
    if unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
        return char
    return chr(0x2400 + ord(char)) if ord(char) < 0x20 else "\N{REPLACEMENT CHARACTER}"


def _character_width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _terminal_width(text: str) -> int:
    return sum(map(_character_width, text))
