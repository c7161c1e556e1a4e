"""Transcripts of one task, beside each other in columns of plain text."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from intercode.core.errors import UsageError
from intercode.core.registry import unknown
from intercode.core.types import Step, Trajectory
from intercode.results.compare.sides import Side
from intercode.results.statistics.behaviour import labelled
from intercode.results.statistics.samples import solved_at

GAP = " | "
NARROWEST = 24
MOST_LINES = 12
"""Lines of an observation that are shown unless all are asked for, its beginning and its end."""


def side_by_side(
    sides: Sequence[Side], task: str, *, epoch: int | None = None, width: int, every: bool = False
) -> str:
    """The episodes of a task, a column for each side, turn beside turn.

    ``epoch``: which sample (None: the first that every side has, else each side's first).
    ``width``: of the terminal, in columns. ``every``: whole observations. Control characters of
    what was printed are shown as marks, so that no record reaches the terminal's own. Raises
    UnknownNameError for a task that is in no side, UsageError for a name that means several and
    for an epoch that one lacks. ``task``: an id, the end of one, or a position.
    """
    task = _named(sides, task)
    episodes = _chosen(sides, task, epoch)
    column = max(NARROWEST, (width - len(GAP) * (len(sides) - 1)) // len(sides))
    heads = [_head(s, t, task) for s, t in zip(sides, episodes, strict=True)]
    query = next(t.query for t in episodes if t is not None)
    out = [*_wrapped(f"{task}: {query}", width), "", *_beside(heads, column)]
    turns = [list(labelled(t)) if t is not None else [] for t in episodes]
    for number, row in enumerate(zip_longest(*turns), start=1):
        cells = [_turn(number, said, every) if said else [] for said in row]
        out += [GAP.join(["-" * column] * len(sides)), *_beside(cells, column)]
    return "\n".join(out) + "\n"


def _named(sides: Sequence[Side], name: str) -> str:
    """The task that an id, the end of one, or a position means, as in ``intercode show``."""
    known = {task: found[0].index for side in sides for task, found in side.tasks.items()}
    if name in known:
        return name
    at = [task for task, index in known.items() if name.isdigit() and index == int(name)]
    found = at or [task for task in known if task.endswith(f"/{name}")]
    if not found:
        raise unknown("task", name, list(known))
    if len(found) > 1:
        raise UsageError(f"{name!r} means {len(found)} tasks: {', '.join(sorted(found)[:5])}")
    return found[0]


def _chosen(sides: Sequence[Side], task: str, epoch: int | None) -> list[Trajectory | None]:
    have = [{t.epoch: t for t in side.tasks.get(task, [])} for side in sides]
    if epoch is None:
        common = set.intersection(*(set(h) for h in have))
        first = [min(common) if common else min(h, default=None) for h in have]
        return [h.get(e) if e is not None else None for h, e in zip(have, first, strict=True)]
    for side, mine in zip(sides, have, strict=True):
        if mine and epoch not in mine:
            raise UsageError(
                f"{side.letter} has no epoch {epoch} of {task}, but {', '.join(map(str, mine))}"
            )
    return [h.get(epoch) for h in have]


def _head(side: Side, episode: Trajectory | None, task: str) -> list[str]:
    title = f"{side.letter}: {side.label}"
    if episode is None:
        return [title, "ended in an error" if task in side.failed else "missing"]
    at = solved_at(episode)
    what = f"solved at turn {at}" if at else f"not solved, best reward {episode.reward:.2f}"
    return [title, f"epoch {episode.epoch}, {episode.turns} turns, {episode.end}, {what}"]


def _turn(number: int, turn: tuple[Step, Sequence[str]], every: bool) -> list[str]:
    """One turn as lines: what was thought, done and seen, and what it was worth."""
    step, words = turn
    reward = "" if step.reward is None else f"  reward {step.reward:.2f}"
    said = f"  ({', '.join(words)})" if words else ""
    out = [f"[{number}]{reward}{said}"]
    if step.thought:
        out += [f"~ {line}" for line in _lines(step.thought)]
    actions = _lines(step.action) or ["(no code)"]
    out += [f"{'$' if n == 0 else ' '} {line}" for n, line in enumerate(actions)]
    seen = _lines(step.observation)
    return out + (seen if every else _clipped(seen))


def _lines(text: str) -> list[str]:
    return text.rstrip("\n").split("\n") if text.strip("\n") else []


def _clipped(lines: list[str]) -> list[str]:
    if len(lines) <= MOST_LINES:
        return lines
    half = MOST_LINES // 2
    return [*lines[:half], f"[... {len(lines) - 2 * half} lines ...]", *lines[-half:]]


def _beside(cells: Sequence[Sequence[str]], column: int) -> Iterator[str]:
    """Cells as columns of one width."""
    wrapped = [[piece for line in cell for piece in _wrapped(line, column)] for cell in cells]
    for row in zip_longest(*wrapped, fillvalue=""):
        yield GAP.join(text + " " * (column - _wide(text)) for text in row).rstrip()


def _wrapped(line: str, width: int) -> list[str]:
    """A line cut where it is full; at least one piece."""
    pieces, piece, used = [], "", 0
    for char in _visible(line):
        size = _size(char)
        if used + size > width:
            pieces.append(piece)
            piece, used = "", 0
        piece, used = piece + char, used + size
    return [*pieces, piece]


def _visible(text: str) -> str:
    """Without anything that a terminal would obey: control characters become marks."""
    return "".join(_mark(c) for c in text.expandtabs(4).replace("\r", ""))


def _mark(char: str) -> str:
    if unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
        return char
    return chr(0x2400 + ord(char)) if ord(char) < 0x20 else "\N{REPLACEMENT CHARACTER}"


def _size(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _wide(text: str) -> int:
    return sum(map(_size, text))
