"""Sandboxes: isolated machines in which code runs.

``Sandbox`` is what programs use (docs/sandbox.md)::

    from intercode_sandbox import Sandbox

    with Sandbox("host") as sandbox:
        print(sandbox.run("echo hi").output)

``BaseSandbox`` is what a back end implements, and ``open_sandbox`` opens one with a full
specification.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from intercode_sandbox.lazy import lazy_imports

if TYPE_CHECKING:
    from intercode_sandbox.api.async_process import AsyncSandboxProcess
    from intercode_sandbox.api.async_sandbox import AsyncSandbox
    from intercode_sandbox.api.forwarding import ForwardedPort
    from intercode_sandbox.api.group import GroupSnapshot, SandboxGroup, Service, ServiceError
    from intercode_sandbox.api.pool import SandboxPool
    from intercode_sandbox.api.process import SandboxProcess
    from intercode_sandbox.api.results import Result
    from intercode_sandbox.api.sandbox import Sandbox
    from intercode_sandbox.api.snapshots import Snapshot
    from intercode_sandbox.api.terminal_server import TerminalServer
    from intercode_sandbox.backends import (
        BACKENDS,
        architecture_of,
        describe_choice,
        open_sandbox,
        resolve_image,
        tier_of,
    )
    from intercode_sandbox.contract import (
        BaseSandbox,
        BaseSnapshot,
        Capability,
        Limits,
        ProgramSpec,
        SandboxSpec,
    )
    from intercode_sandbox.determinism import Determinism, resolve_determinism
    from intercode_sandbox.errors import (
        ConfigError,
        DataError,
        MissingCapabilityError,
        SandboxError,
        SandboxKilledError,
        SandboxLostError,
        SandboxUnavailableError,
        UnknownNameError,
        UsageError,
    )
    from intercode_sandbox.streams import BaseProcess
    from intercode_sandbox.testing import check_sandbox
    from intercode_sandbox.tiers.choice import strongest_backend
    from intercode_sandbox.types import Connection, FileInfo, ResourceUsage

__all__ = [
    "BACKENDS",
    "AsyncSandbox",
    "AsyncSandboxProcess",
    "BaseProcess",
    "BaseSandbox",
    "BaseSnapshot",
    "Capability",
    "ConfigError",
    "Connection",
    "DataError",
    "Determinism",
    "FileInfo",
    "ForwardedPort",
    "GroupSnapshot",
    "Limits",
    "MissingCapabilityError",
    "ProgramSpec",
    "ResourceUsage",
    "Result",
    "Sandbox",
    "SandboxError",
    "SandboxGroup",
    "SandboxKilledError",
    "SandboxLostError",
    "SandboxPool",
    "SandboxProcess",
    "SandboxSpec",
    "SandboxUnavailableError",
    "Service",
    "ServiceError",
    "Snapshot",
    "TerminalServer",
    "UnknownNameError",
    "UsageError",
    "architecture_of",
    "check_sandbox",
    "describe_choice",
    "open_sandbox",
    "resolve_determinism",
    "resolve_image",
    "strongest_backend",
    "tier_of",
]

__getattr__ = lazy_imports(
    __name__,
    {
        "BACKENDS": ".backends",
        "AsyncSandbox": ".api.async_sandbox",
        "AsyncSandboxProcess": ".api.async_process",
        "BaseSandbox": ".contract",
        "Capability": ".contract",
        "Connection": ".types",
        "Determinism": ".determinism",
        "FileInfo": ".types",
        "ForwardedPort": ".api.forwarding",
        "Limits": ".contract",
        "ProgramSpec": ".contract",
        "BaseProcess": ".streams",
        "ResourceUsage": ".types",
        "ConfigError": ".errors",
        "DataError": ".errors",
        "UnknownNameError": ".errors",
        "MissingCapabilityError": ".errors",
        "SandboxError": ".errors",
        "SandboxKilledError": ".errors",
        "SandboxLostError": ".errors",
        "SandboxUnavailableError": ".errors",
        "UsageError": ".errors",
        "Result": ".api.results",
        "Sandbox": ".api.sandbox",
        "GroupSnapshot": ".api.group",
        "SandboxGroup": ".api.group",
        "SandboxPool": ".api.pool",
        "Service": ".api.group",
        "ServiceError": ".api.group",
        "SandboxProcess": ".api.process",
        "BaseSnapshot": ".contract",
        "SandboxSpec": ".contract",
        "Snapshot": ".api.snapshots",
        "TerminalServer": ".api.terminal_server",
        "architecture_of": ".backends",
        "check_sandbox": ".testing",
        "describe_choice": ".backends",
        "open_sandbox": ".backends",
        "resolve_determinism": ".determinism",
        "resolve_image": ".backends",
        "strongest_backend": ".tiers.choice",
        "tier_of": ".backends",
    },
)
