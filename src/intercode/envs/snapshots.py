"""A moment of an episode that can be gone back to, and from which several ways can be taken."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from intercode.types import ExecResult


@dataclass(frozen=True)
class Snapshot:
    """What ``InterCodeEnv.snapshot`` keeps. Close it when it is no longer needed.

    ``left_behind`` names what could not be kept: processes in the background. Files, directory,
    variables, functions and options are kept.
    """

    index: int
    turns: int
    last: ExecResult | None
    transcript: tuple[str, ...]
    random_state: Mapping[str, Any]
    potential: float
    held: Any
    left_behind: tuple[str, ...]
    release: Callable[[], None]

    def close(self) -> None:
        """Free what the snapshot holds. May be called again; environments restored from it live."""
        self.release()

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
