"""Draws samples over time as a column of small SVG plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

_WIDTH, _HEIGHT, _LEFT, _TOP, _GAP = 640, 60, 250, 30, 24  # pixels
_MOST = 600  # maximum number of points of a line


def plot(samples: Sequence[Mapping[str, float]], over: str, names: Sequence[str]) -> str:
    """Draw one line per name, each on its own scale from 0 to its largest value."""
    step = max(1, len(samples) // _MOST)
    shown = samples[::step]
    height = _TOP + len(names) * (_HEIGHT + _GAP) + _GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 60}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        f'<text x="{_LEFT}" y="18">over {samples[-1][over]:.0f} {escape(over)}, '
        f"{len(samples)} samples</text>",
    ]
    for number, name in enumerate(names):
        top = _TOP + number * (_HEIGHT + _GAP)
        parts += _line([s[over] for s in shown], [s[name] for s in shown], name, top)
    return "\n".join([*parts, "</svg>", ""])


def _line(xs: Sequence[float], ys: Sequence[float], name: str, top: int) -> list[str]:
    most, last = max(*ys, 1e-9), max(xs[-1], 1e-9)
    points = " ".join(
        f"{_LEFT + _WIDTH * x / last:.1f},{top + _HEIGHT * (1 - y / most):.1f}"
        for x, y in zip(xs, ys, strict=True)
    )
    bottom = top + _HEIGHT
    return [
        f'<text x="{_LEFT - 10}" y="{top + _HEIGHT / 2}" text-anchor="end">{escape(name)}</text>',
        f'<path d="M{_LEFT} {top}V{bottom}H{_LEFT + _WIDTH}" fill="none" stroke="#999"/>',
        f'<text x="{_LEFT + _WIDTH + 5}" y="{top + 10}">{max(ys):.4g}</text>',
        f'<text x="{_LEFT + _WIDTH + 5}" y="{bottom}">0</text>',
        f'<polyline points="{points}" fill="none" stroke="#1f5fbf" stroke-width="1.5"/>',
    ]
