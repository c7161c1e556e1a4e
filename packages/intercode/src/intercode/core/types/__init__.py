"""The types that every part of this package uses, as frozen dataclasses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from intercode.core.types.descriptions import (
    ActionLanguage,
    EnvironmentDescription,
    Terminal,
    Typing,
)
from intercode.core.types.execution import (
    SUCCESS_THRESHOLD,
    ActionError,
    Score,
    State,
    TestResult,
)
from intercode.core.types.records import (
    SUBMIT,
    AgentOutput,
    EndReason,
    Step,
    Trajectory,
    Usage,
)
from intercode.core.types.tasks import (
    TOOL_CALL,
    Brief,
    DatabaseSpec,
    Dataset,
    Payload,
    Task,
    Tool,
    TreeEntry,
    tree_digest,
)
from intercode_sandbox.types import (
    TRUNCATED_CHANGES,
    ExecResult,
    FileEntry,
    Image,
    Layer,
    LayerSpec,
    Network,
    Rows,
)

__all__ = [
    "EMPTY_MAPPING",
    "SUBMIT",
    "SUCCESS_THRESHOLD",
    "TOOL_CALL",
    "TRUNCATED_CHANGES",
    "ActionError",
    "ActionLanguage",
    "AgentOutput",
    "Brief",
    "DatabaseSpec",
    "Dataset",
    "EndReason",
    "EnvironmentDescription",
    "ExecResult",
    "FileEntry",
    "Image",
    "Layer",
    "LayerSpec",
    "Network",
    "Payload",
    "Rows",
    "Score",
    "State",
    "Step",
    "Task",
    "Terminal",
    "TestResult",
    "Tool",
    "Trajectory",
    "TreeEntry",
    "Typing",
    "Usage",
    "to_jsonable",
    "tree_digest",
]

EMPTY_MAPPING: Mapping[str, Any] = MappingProxyType({})


def to_jsonable(value: Any) -> Any:
    """Return a dataclass of this module, or a structure of them, as JSON types."""
    if value is None or type(value) in (str, int, float, bool):
        return value
    if hasattr(value, "__dataclass_fields__"):
        return {k: to_jsonable(getattr(value, k)) for k in value.__dataclass_fields__}
    if isinstance(value, Mapping):
        return {str(k): to_jsonable(v) for k, v in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [to_jsonable(v) for v in value]
    return str(value) if isinstance(value, Path) else value
