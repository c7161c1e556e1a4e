"""The receipt of a bundle's verification, a file next to the bundle."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from intercode.core.decoding import decode_as, parse_json
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
        receipt: Receipt = decode_as(Receipt, parse_json(path.read_bytes(), path.name))
    except (DataError, OSError) as e:
        raise DataError(f"{path} is not a receipt of `intercode replay` ({e}): remove it") from e
    return receipt if receipt.bundle == sha256 else None
