"""How an episode looks in a terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from intercode.core.types import Step, Trajectory, Usage
from intercode.results.statistics.samples import turn_count

COLOURS = {"strong": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "36"}
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_MOST_CHANGES = 10
_DIFF = {"+": "green", "-": "red", "@": "blue"}


@dataclass(frozen=True, slots=True)
class Looks:
    """Paints text where that is wanted. What an episode printed cannot: see ``safe``."""

    colours: bool = False

    def __call__(self, colour: str, text: str) -> str:
        return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m" if self.colours else text


def safe(text: str) -> str:
    """Text that does nothing to a terminal: what is no letter is written as its number."""
    text = text.replace("\r\n", "\n")
    return _CONTROL.sub(lambda m: m.group().encode("unicode_escape").decode(), text)


def line(t: Trajectory, looks: Looks) -> str:
    """An episode in one line."""
    epoch = f" epoch {t.epoch}" if t.epoch else ""
    parent = f" branch of {t.parent} after turn {t.branched_at}" if t.parent else ""
    name = f"{safe(t.task)}{epoch}{parent}"
    return f"{name}  {_outcome(t, looks)}  {looks('dim', t.id)}".rstrip()


def episode(t: Trajectory, looks: Looks, lines: int, messages: bool) -> list[str]:
    """An episode turn by turn. ``lines``: of an observation, at most."""
    run = t.run
    who = " with ".join(str(run[k]) for k in ("agent", "model") if run.get(k))
    identity = f"  {looks('dim', t.id)}" if t.id else ""
    out = [looks("strong", f"{safe(t.task)}, epoch {t.epoch}") + identity]
    out.append(f"{_outcome(t, looks)}{_spent(t)}" + (f"  ({who})" if who else ""))
    if t.parent:
        out.append(f"branch of {t.parent}: the first {t.branched_at} turns are its own")
    out += ["", *_indented(safe(t.query), "  ")]
    for number, step in enumerate(t.steps, 1):
        shared = t.branched_at is not None and number <= t.branched_at
        out += ["", *_turn(number, step, shared, looks, lines, messages)]
    if t.error:
        out += ["", looks("red", f"error: {safe(t.error)}")]
    return out


def _turn(
    number: int, step: Step, shared: bool, looks: Looks, lines: int, messages: bool
) -> Iterator[str]:
    about = [] if step.actor == "agent" else [step.actor]
    about += ["in common with the parent"] if shared else []
    about += ["refused"] if step.refused else []
    about += ["timed out"] if step.timed_out else []
    about += ["no code"] if not step.executed else []
    about += ["error"] if step.valid is False and step.executed else []
    said = f" ({', '.join(about)})" if about else ""
    yield looks("strong", f"turn {number}") + looks("yellow", said) + _reward(step, looks)
    if messages and (step.messages or step.message):
        for message in step.messages or ({"role": step.actor, "content": step.message},):
            yield from _message(message, looks)
    elif step.thought:
        if step.actor != "agent":
            yield looks("dim", "  (the agent thought)")
        yield from _indented(looks("dim", safe(step.thought.strip())), "  ")
    if step.action:
        first, *rest = safe(step.action).rstrip("\n").split("\n")
        yield looks("blue", f"  $ {first}")
        yield from (looks("blue", f"  > {more}") for more in rest)
    yield from _indented(cut(safe(step.observation).rstrip("\n"), lines), "  ")
    if step.changes:
        yield looks("dim", f"  changed: {_listed(step.changes)}")
    for path, diff in step.diffs.items():
        yield from _diff(path, diff, looks, lines)
    for what, value in step.context.items():
        yield looks("yellow", f"  not shown to the model: {what} {_short(value)}")


def _diff(path: str, diff: str, looks: Looks, lines: int) -> Iterator[str]:
    name = safe(path).replace("\n", "\\n")
    yield looks("strong", f"  {name}")
    for one in cut(safe(diff), lines).split("\n"):
        colour = _DIFF.get(one[:1])
        yield f"    {looks(colour, one) if colour else one}"


def _message(message: Mapping[str, Any], looks: Looks) -> Iterator[str]:
    yield looks("dim", f"  [{message.get('role', '?')}]")
    if reasoning := message.get("reasoning"):
        yield from _indented(looks("dim", safe(str(reasoning))), "  ~ ")
    yield from _indented(safe(str(message.get("content") or "")), "  | ")
    for call in message.get("tool_calls") or ():
        function = call.get("function", {})
        yield safe(f"  | calls {function.get('name')}({function.get('arguments')})")


def _reward(step: Step, looks: Looks) -> str:
    if step.reward is None:
        return ""
    parts = ", ".join(f"{name} {value:g}" for name, value in step.parts.items())
    text = f"  reward {step.reward:g}" + (f" ({parts})" if parts else "")
    return looks("green" if step.reward >= 1 else "dim", text)


def _outcome(t: Trajectory, looks: Looks) -> str:
    if t.end == "error" or t.error is not None:
        return looks("red", "error")
    solved = looks("green", "solved") if t.success else looks("red", "not solved")
    taken = int(turn_count(t))
    turns = "1 turn" if taken == 1 else f"{taken} turns"
    return f"{solved}, reward {t.reward:g}, {turns}, {t.end.replace('_', ' ')}"


def _spent(t: Trajectory) -> str:
    usage: Usage = t.usage
    words = [] if t.seconds is None else [f"{t.seconds:.1f} s"]
    if usage.prompt_tokens is not None and usage.completion_tokens is not None:
        words.append(f"{usage.prompt_tokens:,} + {usage.completion_tokens:,} tokens")
    words += [] if usage.cost is None else [f"${usage.cost:.4f}"]
    return "".join(f", {word}" for word in words)


def cut(text: str, lines: int) -> str:
    """The head and the tail of a text, with what is between them told."""
    every = text.split("\n")
    if len(every) <= lines:
        return text
    head, tail = lines - lines // 3, lines // 3
    missing = len(every) - head - tail
    return "\n".join([*every[:head], f"... {missing} lines ...", *every[len(every) - tail :]])


def _indented(text: str, mark: str) -> list[str]:
    return [f"{mark}{one}" for one in text.split("\n")] if text else []


def _listed(names: tuple[str, ...]) -> str:
    some = ", ".join(safe(n) for n in names[:_MOST_CHANGES])
    return some + (f" and {len(names) - _MOST_CHANGES} more" if len(names) > _MOST_CHANGES else "")


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return safe(text if len(text) <= 300 else f"{text[:300]}...")
