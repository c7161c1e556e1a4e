"""Records items as golden files, and compares items with them."""

from __future__ import annotations

import contextlib
import difflib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from frozen.items import produce
from frozen.normalise import clean_json, compact
from frozen.renames import rename_config, rename_label
from frozen.session import Item

SHOWN_LINES = 20
"""Lines that are printed of the differences of one item."""
MAX_VARYING = 0.02
"""The largest share of values that may be volatile or soft."""
VARYING_FILE = "varying.txt"
"""The file that lists them, in the directory of golden files."""


def record(out: Path, names: Sequence[str], jobs: int, rounds: int) -> int:
    """Run items several times and write a file for each; return the exit status.

    It is 1 if more than MAX_VARYING of all values vary, or if an item cannot be made.
    """
    out.mkdir(parents=True, exist_ok=True)
    found = [produce(names, jobs) for _ in range(rounds)]
    for name in names:
        first, *others = [items[name] for items in found]
        volatile = _varying([first.exact, *(item.exact for item in others)])
        row = {
            "exact": first.exact,
            "wording": first.wording,
            "volatile": volatile,
            "unsteady": _varying([first.wording, *(item.wording for item in others)]),
            "soft": sorted(first.soft.union(*(item.soft for item in others))),
            "seconds": round(first.seconds, 1),
        }
        (out / f"{name}.json").write_text(json.dumps(row, indent=1, ensure_ascii=False), "utf-8")
        if volatile:
            some = ", ".join(volatile[:4])
            print(f"{name}: {len(volatile)} of {len(first.exact)} values are volatile: {some}")
        if "broken" in first.exact:
            print(f"BROKEN   {name}: {first.exact['broken']}")
    count, varying, broken = _summary(out)
    print(f"recorded {len(names)} items in {out}")
    print(
        f"{len(varying)} of {count} values vary (at most {MAX_VARYING:.0%}): {out / VARYING_FILE}"
    )
    return 1 if broken or len(varying) > MAX_VARYING * count else 0


def _summary(out: Path) -> tuple[int, list[str], int]:
    """Return the number of values of all golden files, what varies, which is listed in a file, and
    the number of broken items."""
    count = broken = 0
    varying: list[str] = []
    for file in sorted(out.glob("*.json")):
        golden = json.loads(file.read_text("utf-8"))
        labels = golden["exact"].keys() & {*golden["volatile"], *golden["soft"]}
        count += len(golden["exact"])
        broken += "broken" in golden["exact"]
        varying += [f"{file.stem}: {label}" for label in sorted(labels)]
    (out / VARYING_FILE).write_text("".join(f"{line}\n" for line in varying), "utf-8")
    return count, varying, broken


def _varying(rounds: Sequence[dict[str, Any]]) -> list[str]:
    """Return the labels whose values differ, or are missing, in some round."""
    absent = object()
    labels = sorted({label for values in rounds for label in values})
    first = rounds[0]
    return [k for k in labels if any(r.get(k, absent) != first.get(k, absent) for r in rounds)]


def compare(directory: Path, names: Sequence[str], jobs: int, wording: bool) -> int:
    """Run items, print how they differ from the golden files, return the exit status."""
    missing = [name for name in names if not (directory / f"{name}.json").exists()]
    for name in missing:
        print(f"not recorded: {name}")
    names = [name for name in names if name not in missing]
    different = compared = left_out = reworded = 0
    for name, item in produce(names, jobs).items():
        golden = json.loads((directory / f"{name}.json").read_text("utf-8"))
        skipped = {rename_label(k) for k in (*golden["volatile"], *golden["soft"], *item.soft)}
        old, new = rename_exact(golden["exact"]), rename_exact(item.exact)
        left_out += len(skipped & (old.keys() | new.keys()))
        compared += len((old.keys() | new.keys()) - skipped)
        different += _print_differences(name, old, new, skipped)
        reworded += _print_wordings(name, golden, item, wording)
    print(
        f"{len(names) - different} of {len(names)} items equal; {compared} values compared, "
        f"{left_out} left out as volatile; {reworded} texts are worded otherwise"
    )
    return 1 if different or missing else 0


def _print_differences(
    name: str, old: dict[str, Any], new: dict[str, Any], skipped: set[str]
) -> bool:
    lines = [_lines(values, skipped) for values in (old, new)]
    difference = list(difflib.unified_diff(*lines, "golden", "now", lineterm="", n=0))[2:]
    if difference:
        labels = (old.keys() | new.keys()) - skipped
        print(f"DIFFERS  {name}: {sum(old.get(k) != new.get(k) for k in labels)} values")
        for line in difference[:SHOWN_LINES]:
            print(f"  {line[:400]}".replace("\n", "\\n"))
        if len(difference) > SHOWN_LINES:
            print(f"  ... {len(difference) - SHOWN_LINES} more lines")
    return bool(difference)


def _lines(values: dict[str, Any], skipped: set[str]) -> list[str]:
    """Return one line for each value, and for each field of a value that is JSON."""
    out = []
    for label in sorted(values.keys() - skipped):
        value = values[label]
        if isinstance(value, str) and value[:1] == "{":
            with contextlib.suppress(ValueError):
                value = json.loads(value)
        if isinstance(value, dict | list) and value:
            parts = value.items() if isinstance(value, dict) else enumerate(value)
            out += [f"{label} [{n}] = {p if isinstance(p, str) else compact(p)}" for n, p in parts]
        else:
            out.append(f"{label} = {value if isinstance(value, str) else compact(value)}")
    return out


def _print_wordings(name: str, golden: dict[str, Any], item: Item, show: bool) -> int:
    """Return how many texts differ; print them if ``show``."""
    old, new = golden["wording"], item.wording
    labels = sorted((old.keys() | new.keys()) - set(golden["unsteady"]))
    labels = [label for label in labels if old.get(label) != new.get(label)]
    for label in labels if show else ():
        print(f"WORDING  {name}: {label}")
        lines = (texts.get(label, "").splitlines() for texts in (old, new))
        for line in list(difflib.unified_diff(*lines, lineterm="", n=0))[2 : SHOWN_LINES + 2]:
            print(f"  {line[:300]}")
    return len(labels)


def rename_exact(values: dict[str, Any]) -> dict[str, Any]:
    """Return exact values with the names of the present tables, also within encoded JSON."""
    labels = {label: rename_label(label) for label in values}
    return {labels[old]: _rename_value(value, labels[old]) for old, value in values.items()}


def _rename_value(value: Any, label: str) -> Any:
    key, encoded = label.rpartition(" ")[2], False
    if isinstance(value, str) and value[:1] in "{[":
        with contextlib.suppress(ValueError):
            value, encoded = json.loads(value), True
    value = clean_json(value, key)
    if label == "run.json config":
        value = rename_config(value)
    return compact(value) if encoded else value
