"""The words of this project as frozen dataclasses. Nothing here does any work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from intercode.core.types.execution import (
    SUCCESS,
    ExecResult,
    FileEntry,
    Rows,
    Score,
    State,
    TestRun,
)
from intercode.core.types.records import EndReason, Move, Step, Trajectory, Usage
from intercode.core.types.tasks import (
    Brief,
    DatabaseSpec,
    Dataset,
    Image,
    Layer,
    LayerSpec,
    Network,
    Profile,
    Task,
)

__all__ = [
    "NOTHING", "SUCCESS", "Brief", "DatabaseSpec", "Dataset", "EndReason", "ExecResult",
    "FileEntry", "Image", "Layer", "LayerSpec", "Move", "Network", "Profile", "Rows", "Score",
    "State", "Step", "Task", "TestRun", "Trajectory", "Usage", "plain",
]  # fmt: skip

NOTHING: Mapping[str, Any] = MappingProxyType({})


def plain(value: Any) -> Any:
    """A dataclass of this module as JSON types."""
    if hasattr(value, "__dataclass_fields__"):
        return {k: plain(getattr(value, k)) for k in value.__dataclass_fields__}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(v) for v in value]
    return str(value) if isinstance(value, Path) else value
