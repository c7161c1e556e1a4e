"""The receipt of a bundle's verification, a file next to the bundle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from intercode.core.errors import DataError

_RECEIPT_SUFFIX = ".verified.json"


@dataclass(frozen=True, slots=True)
class Receipt:
    """``bundle``: the SHA-256 of the archive. ``episodes`` of ``of`` were re-executed, ``steps`` in
    all; ``differing`` episodes differed, and ``first`` names the first difference. ``seed`` selects
    the same sample again; ``at`` is the time in UTC."""

    bundle: str
    equal: bool
    episodes: int
    of: int
    steps: int
    differing: int
    first: str
    seed: int
    version: str
    at: str
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the receipt as JSON types."""
        return {**asdict(self), "notes": list(self.notes)}


def receipt_path(bundle: Path) -> Path:
    """Return the path of a bundle's receipt."""
    return bundle.with_name(bundle.name + _RECEIPT_SUFFIX)


def read_receipt(bundle: Path, sha256: str) -> Receipt | None:
    """Return the receipt of a bundle with this digest; None if there is none, or one of another
    bundle with the same name. Raises DataError for an invalid receipt."""
    path = receipt_path(bundle)
    if not path.exists():
        return None
    try:
        values = json.loads(path.read_bytes())
        receipt = _parse_receipt(values)
    except (ValueError, TypeError, OSError) as e:
        raise DataError(f"{path} is not a receipt of `intercode replay` ({e}): remove it") from e
    return receipt if receipt.bundle == sha256 else None


def _parse_receipt(values: Any) -> Receipt:
    kinds: Mapping[str, type] = {
        "bundle": str,
        "first": str,
        "version": str,
        "at": str,
        "equal": bool,
        "episodes": int,
        "of": int,
        "steps": int,
        "differing": int,
        "seed": int,
        "notes": list,
    }
    if not isinstance(values, dict) or values.keys() != {f.name for f in fields(Receipt)}:
        raise ValueError("not its keys")
    for name, kind in kinds.items():
        if not isinstance(values[name], kind):
            raise ValueError(f"{name} is {values[name]!r:.60}")
    return Receipt(**{**values, "notes": tuple(map(str, values["notes"]))})
