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
_MAX_CHANGES = 10
_DIFF = {"+": "green", "-": "red", "@": "blue"}


@dataclass(frozen=True, slots=True)
class Style:
    """Paints text where that is wanted. What an episode printed cannot: see ``safe``."""

    colours: bool = False

    def __call__(self, colour: str, text: str) -> str:
        return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m" if self.colours else text


def escape_control(text: str) -> str:
    """Text that does nothing to a terminal: what is no letter is written as its number."""
    text = text.replace("\r\n", "\n")
    return _CONTROL.sub(lambda m: m.group().encode("unicode_escape").decode(), text)


def episode_line(t: Trajectory, looks: Style) -> str:
    """An episode in one line."""
    epoch = f" epoch {t.epoch}" if t.epoch else ""
    parent = f" branch of {t.parent} after turn {t.branched_at}" if t.parent else ""
    name = f"{escape_control(t.task)}{epoch}{parent}"
    return f"{name}  {_outcome(t, looks)}  {looks('dim', t.id)}".rstrip()


def episode_lines(t: Trajectory, looks: Style, lines: int, messages: bool) -> list[str]:
    """An episode turn by turn. ``lines``: of an observation, at most."""
    run = t.run
    who = " with ".join(str(run[k]) for k in ("agent", "model") if run.get(k))
    identity = f"  {looks('dim', t.id)}" if t.id else ""
    out = [looks("strong", f"{escape_control(t.task)}, epoch {t.epoch}") + identity]
    out.append(f"{_outcome(t, looks)}{_usage(t)}" + (f"  ({who})" if who else ""))
    if t.parent:
        out.append(f"branch of {t.parent}: the first {t.branched_at} turns are its own")
    out += ["", *_indent(escape_control(t.query), "  ")]
    for number, step in enumerate(t.steps, 1):
        shared = t.branched_at is not None and number <= t.branched_at
        out += ["", *_turn(number, step, shared, looks, lines, messages)]
    if t.error:
        out += ["", looks("red", f"error: {escape_control(t.error)}")]
    return out


def _turn(
    number: int, step: Step, shared: bool, looks: Style, lines: int, messages: bool
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
        yield from _indent(looks("dim", escape_control(step.thought.strip())), "  ")
    if step.action:
        first, *rest = escape_control(step.action).rstrip("\n").split("\n")
        yield looks("blue", f"  $ {first}")
        yield from (looks("blue", f"  > {more}") for more in rest)
    yield from _indent(shorten(escape_control(step.observation).rstrip("\n"), lines), "  ")
    if step.changes:
        yield looks("dim", f"  changed: {_join_names(step.changes)}")
    for path, diff in step.diffs.items():
        yield from _diff(path, diff, looks, lines)
    for what, value in step.context.items():
        yield looks("yellow", f"  not shown to the model: {what} {_shorten_value(value)}")


def _diff(path: str, diff: str, looks: Style, lines: int) -> Iterator[str]:
    name = escape_control(path).replace("\n", "\\n")
    yield looks("strong", f"  {name}")
    for one in shorten(escape_control(diff), lines).split("\n"):
        colour = _DIFF.get(one[:1])
        yield f"    {looks(colour, one) if colour else one}"


def _message(message: Mapping[str, Any], looks: Style) -> Iterator[str]:
    yield looks("dim", f"  [{message.get('role', '?')}]")
    if reasoning := message.get("reasoning"):
        yield from _indent(looks("dim", escape_control(str(reasoning))), "  ~ ")
    yield from _indent(escape_control(str(message.get("content") or "")), "  | ")
    for call in message.get("tool_calls") or ():
        function = call.get("function", {})
        yield escape_control(f"  | calls {function.get('name')}({function.get('arguments')})")


def _reward(step: Step, looks: Style) -> str:
    if step.reward is None:
        return ""
    parts = ", ".join(f"{name} {value:g}" for name, value in step.parts.items())
    text = f"  reward {step.reward:g}" + (f" ({parts})" if parts else "")
    return looks("green" if step.reward >= 1 else "dim", text)


def _outcome(t: Trajectory, looks: Style) -> str:
    if t.end == "error" or t.error is not None:
        return looks("red", "error")
    solved = looks("green", "solved") if t.success else looks("red", "not solved")
    taken = int(turn_count(t))
    turns = "1 turn" if taken == 1 else f"{taken} turns"
    return f"{solved}, reward {t.reward:g}, {turns}, {t.end.replace('_', ' ')}"


def _usage(t: Trajectory) -> str:
    usage: Usage = t.usage
    words = [] if t.seconds is None else [f"{t.seconds:.1f} s"]
    if usage.prompt_tokens is not None and usage.completion_tokens is not None:
        words.append(f"{usage.prompt_tokens:,} + {usage.completion_tokens:,} tokens")
    words += [] if usage.cost is None else [f"${usage.cost:.4f}"]
    return "".join(f", {word}" for word in words)


def shorten(text: str, lines: int) -> str:
    """The head and the tail of a text, with what is between them told."""
    every = text.split("\n")
    if len(every) <= lines:
        return text
    head, tail = lines - lines // 3, lines // 3
    missing = len(every) - head - tail
    return "\n".join([*every[:head], f"... {missing} lines ...", *every[len(every) - tail :]])


def _indent(text: str, mark: str) -> list[str]:
    return [f"{mark}{one}" for one in text.split("\n")] if text else []


def _join_names(names: tuple[str, ...]) -> str:
    some = ", ".join(escape_control(n) for n in names[:_MAX_CHANGES])
    return some + (f" and {len(names) - _MAX_CHANGES} more" if len(names) > _MAX_CHANGES else "")


def _shorten_value(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return escape_control(text if len(text) <= 300 else f"{text[:300]}...")
