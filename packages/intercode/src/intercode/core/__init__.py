"""Types, errors, registries, settings and records that every other package uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from intercode_sandbox.lazy import lazy_imports

if TYPE_CHECKING:
    from intercode.core import trajectories
    from intercode.core.config import EvalConfig
    from intercode.core.errors import (
        BudgetError,
        ConfigError,
        DatabaseLostError,
        DataError,
        EnvironmentStateError,
        GoldError,
        InfrastructureError,
        InterCodeError,
        MissingCapabilityError,
        ModelError,
        SandboxError,
        SandboxKilledError,
        SandboxLostError,
        SandboxUnavailableError,
        UnknownNameError,
        UsageError,
    )
    from intercode.core.languages import Language
    from intercode.core.logs import load_log
    from intercode.core.types import (
        ActionLanguage,
        AgentOutput,
        Brief,
        DatabaseSpec,
        Dataset,
        EnvironmentDescription,
        ExecResult,
        FileEntry,
        Image,
        Layer,
        LayerSpec,
        Payload,
        Score,
        State,
        Step,
        Task,
        TestResult,
        Trajectory,
        TreeEntry,
        Usage,
    )
    from intercode_sandbox.registry import Registry

__all__ = [
    "ActionLanguage",
    "AgentOutput",
    "Brief",
    "BudgetError",
    "ConfigError",
    "DataError",
    "DatabaseLostError",
    "DatabaseSpec",
    "Dataset",
    "EnvironmentDescription",
    "EnvironmentStateError",
    "EvalConfig",
    "ExecResult",
    "FileEntry",
    "GoldError",
    "Image",
    "InfrastructureError",
    "InterCodeError",
    "Language",
    "Layer",
    "LayerSpec",
    "MissingCapabilityError",
    "ModelError",
    "Payload",
    "Registry",
    "SandboxError",
    "SandboxKilledError",
    "SandboxLostError",
    "SandboxUnavailableError",
    "Score",
    "State",
    "Step",
    "Task",
    "TestResult",
    "Trajectory",
    "TreeEntry",
    "UnknownNameError",
    "Usage",
    "UsageError",
    "load_log",
    "trajectories",
]

_OTHERS = {
    "EvalConfig": ".config",
    "Language": ".languages",
    "Registry": "intercode_sandbox.registry",
    "load_log": ".logs",
}
__getattr__ = lazy_imports(
    __name__,
    {name: ".errors" if name.endswith("Error") else ".types" for name in __all__[:-2]} | _OTHERS,
)
