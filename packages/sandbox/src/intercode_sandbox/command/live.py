"""The commands ``list`` and ``end``: the live sandboxes of this user."""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict

from intercode_sandbox.api import live_sandboxes
from intercode_sandbox.command.image_list import rounded_size
from intercode_sandbox.command.output import escape_control

_UNITS = ((86400, "d"), (3600, "h"), (60, "min"))


def print_live(args: argparse.Namespace) -> int:
    """Print a line for each live sandbox."""
    found = live_sandboxes.list_live()
    now = time.time()
    if args.json:
        print(json.dumps([{**asdict(one), "age": now - one.opened} for one in found], indent=1))
        return 0
    rows = [
        (
            str(one.pid),
            str(one.owner),
            escape_control(one.image),
            one.tier,
            _format_age(now - one.opened),
            "-" if one.memory is None else rounded_size(one.memory),
        )
        for one in found
    ]
    rows.insert(0, ("PID", "OWNER", "IMAGE", "TIER", "AGE", "MEMORY"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        line = "  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True))
        print(line.rstrip())
    return 0


def end(args: argparse.Namespace) -> int:
    """End a live sandbox."""
    live = live_sandboxes.end_live(args.pid)
    print(
        f"ended the sandbox {live.pid} ({escape_control(live.image)}) of the process {live.owner}"
    )
    return 0


def _format_age(seconds: float) -> str:
    """Return a time in its largest unit: ``3 min``."""
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"
