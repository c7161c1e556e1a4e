"""What tells rows apart that share agent, model and conditions: settings in which they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from intercode.core.types import Trajectory

SETTINGS = ("generation", "agent_options", "env_options", "max_turns", "timeout", "seed")
WHOLE_SETTINGS = ("prompts", "endpoint")
"""As ``SETTINGS``, but no tables."""
_MAX_LENGTH = 40


def variant_labels(runs: Sequence[tuple[str, Trajectory]]) -> list[str]:
    """A label for each of several runs, given by where it lies and one of its episodes.

    ``temperature = 0.7`` and the like for every setting that is not the same in all; ``from FILE``
    for a further one with the settings of one before, nothing for the first of those.
    """
    facts = [_flatten_settings(episode.run) for _, episode in runs]
    names = sorted({name for one in facts for name in one})
    apart = [n for n in names if any(one.get(n) != facts[0].get(n) for one in facts)]
    out: list[str] = []
    seen: set[str] = set()
    for (log, _), one in zip(runs, facts, strict=True):
        label = ", ".join(f"{n} = {_shorten(one.get(n))}" for n in apart)
        further = f"from {log}"
        out.append(label if label not in seen else f"{label}, {further}".removeprefix(", "))
        seen.add(label)
    return out


def _flatten_settings(run: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by name, those in tables by their own."""
    found: dict[str, Any] = {}
    for name in SETTINGS + WHOLE_SETTINGS:
        value = run.get(name)
        found |= value if isinstance(value, Mapping) and name in SETTINGS else {name: value}
    return {name: value for name, value in found.items() if value not in (None, {}, [])}


def _shorten(value: Any) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}..."
